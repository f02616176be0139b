"""Chat completions, as a server reads and writes them: parts in their order, pictures as data URLs both ways.

What a client may ask for is the kind of answer (`modalities`), a size (`size`), and a draw (`seed`). All else that would change an answer
is set when the server is started, and a request that wants it otherwise is refused: it would be answered as if it had not asked.
"""

import base64
import binascii
import time
import uuid
from collections.abc import Mapping
from typing import Any, cast

import msgspec
from msgspec import Struct

from weft.errors import PictureError, WeftError
from weft.outside import fields
from weft.store.blobs import Blobs
from weft.types import Gives, Image, Kind, Message, Part, Takes, Text, Thought, Want

SETTINGS = (
    *("temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "stop", "presence_penalty", "frequency_penalty"),
    *("logit_bias", "tools", "functions", "reasoning_effort", "guidance_scale", "num_inference_steps", "logprobs", "min_p"),
)
ROLES = ("system", "user", "assistant")


class Refused(WeftError):
    """A request that cannot be read, or asks for what cannot be had."""


class Card(Struct, frozen=True):
    """What a server says of the model behind it. A client keeps its answers under this identity, wherever the server is."""

    name: str
    identity: Mapping[str, Any]
    takes: Takes
    gives: Gives
    at_once: int  # calls that one replica works on or has ready
    seed: int = 0
    replicas: int = 1


def read(body: bytes, blobs: Blobs, card: Card) -> tuple[tuple[Message, ...], Want]:
    """A request's messages and what it wants; its pictures are put into the store. Raises Refused."""
    try:
        asked = fields(msgspec.json.decode(body))
    except (msgspec.DecodeError, RecursionError) as error:
        raise Refused(f"the body is no JSON object: {error}") from None
    for name in SETTINGS:
        if asked.get(name) not in (None, [], {}):
            raise Refused(f"{name} is set when the server is started (--model-opt), not with a request")
    if asked.get("stream"):
        raise Refused("stream is not supported: answers come whole")
    if asked.get("n") not in (None, 1):
        raise Refused("n is not supported: ask again with another seed")
    told: Any = asked.get("messages")
    if not isinstance(told, list) or not told:
        raise Refused("`messages` must be a list of messages")
    messages = tuple(_message(one, blobs) for one in cast(list[Any], told))
    return messages, Want(_kind(asked, card.gives), _schema(asked), draw=_draw(asked, card.seed), size=_size(asked))


def _kind(asked: Mapping[str, Any], gives: Gives) -> Kind:
    wanted: Any = asked.get("modalities")
    if wanted is None:
        return "text" if gives.text else "image"
    kinds = {"text", "image"} & set(map(str, cast(list[Any], wanted))) if isinstance(wanted, list) else set[str]()
    if not kinds:
        raise Refused('`modalities` must be ["text"], ["image"] or both')
    return "interleaved" if len(kinds) == 2 else "image" if kinds == {"image"} else "text"


def _schema(asked: Mapping[str, Any]) -> dict[str, Any] | None:
    format = fields(asked.get("response_format"))
    return fields(fields(format.get("json_schema")).get("schema")) or None


def _draw(asked: Mapping[str, Any], seed: int) -> int:
    given = asked.get("seed", seed)
    if not isinstance(given, int) or isinstance(given, bool):
        raise Refused("`seed` must be a whole number")
    return given - seed


def _size(asked: Mapping[str, Any]) -> tuple[int, int] | None:
    given = asked.get("size")
    if given in (None, "auto"):
        return None
    width, _, height = str(given).partition("x")
    if not (width.isdigit() and height.isdigit() and 0 < int(width) <= 8192 and 0 < int(height) <= 8192):
        raise Refused('`size` must be as "1024x1024"')
    return int(width), int(height)


def _message(told: Any, blobs: Blobs) -> Message:
    message = fields(told)
    role, content = message.get("role"), message.get("content")
    role = "system" if role == "developer" else role
    if role not in ROLES:
        raise Refused(f"a message's role is {role!r}; it may be {', '.join(ROLES)}")
    if isinstance(content, str):
        return Message(cast(Any, role), (Text(content),) if content else ())
    if not isinstance(content, list):
        raise Refused("a message's `content` must be a text or a list of parts")
    return Message(cast(Any, role), tuple(_part(one, blobs) for one in cast(list[Any], content)))


def _part(told: Any, blobs: Blobs) -> Part:
    part = fields(told)
    if part.get("type") in ("text", "input_text") and isinstance(part.get("text"), str):
        return Text(part["text"])
    if part.get("type") != "image_url":
        raise Refused(f"a part of the type {part.get('type')!r}: there may be text and image_url")
    held: Any = part.get("image_url")
    url = held if isinstance(held, str) else fields(held).get("url")
    if not isinstance(url, str) or not url.startswith("data:image/") or ";base64," not in url:
        raise Refused("a picture must be a data URL (data:image/png;base64,...): links are not followed")
    try:
        return blobs.put(base64.b64decode(url.partition(",")[2], validate=True))
    except binascii.Error as error:
        raise Refused(f"a picture is no base64: {error}") from None
    except PictureError as error:
        raise Refused(f"a picture {error}") from None


def written(sent: Any, model: str, blobs: Blobs) -> bytes:
    """A `Sent` as a completion. What clients of OpenAI's do not know stands under `weft`."""
    said: list[Part] = [part for part in sent.parts if not isinstance(part, Thought)]
    thoughts = "\n".join(part.text for part in sent.parts if isinstance(part, Thought) and part.text)
    content: Any = [_told(part, blobs) for part in said]
    if all(isinstance(part, Text) for part in said):
        content = "".join(part.text for part in said if isinstance(part, Text))
    finish = {"truncated": "length", "blocked": "content_filter"}.get(sent.ended, "stop")
    usage = {"prompt_tokens": sent.usage.tokens_in, "completion_tokens": sent.usage.tokens_out}
    message = {"role": "assistant", "content": content, **({"reasoning_content": thoughts} if thoughts else {})}
    if sent.outcome == "refused":
        message["refusal"] = sent.reason or "refused"
    return msgspec.json.encode(
        {
            "id": f"chatcmpl-{uuid.uuid4().hex}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": model,
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {**usage, "total_tokens": sum(usage.values())},
            "weft": {"outcome": sent.outcome, "reason": sent.reason, "ended": sent.ended, "again": sent.again},
        }
    )


def _told(part: Part, blobs: Blobs) -> dict[str, Any]:
    if isinstance(part, Image):
        data = base64.b64encode(blobs.read(part)).decode()
        return {"type": "image_url", "image_url": {"url": f"data:{part.media_type};base64,{data}"}}
    return {"type": "text", "text": part.text}


def error(message: str, code: str) -> bytes:
    return msgspec.json.encode({"error": {"message": message, "type": code, "code": code}})
