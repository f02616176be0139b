"""Chat completions, as a server reads and writes them: parts in their order, pictures as data URLs both ways.

What a client may ask for is the kind of answer (`modalities`), a size (`size`), and a draw (`seed`). All else that would change an answer
is set when the server is started, and a request that wants it otherwise is refused: it would be answered as if it had not asked.
"""

import base64
import binascii
import re
import time
import uuid
from collections.abc import Mapping
from typing import Annotated, Any, cast

import msgspec
from msgspec import Meta, Struct

from weft.errors import PictureError, WeftError
from weft.store.blobs import Blobs
from weft.types import Gives, Image, Kind, Message, Part, Takes, Text, Thought, Want
from weft.untrusted import fields

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


class Piece(Struct):
    type: Any = None
    text: str | None = None
    image_url: Any = None


class Told(Struct):
    role: Any = None
    content: str | Annotated[list[Piece], Meta(max_length=10_000)] | None = None


class Request(Struct):
    """What is read of a request; all else in it is passed over, and nothing is made of it."""

    messages: Annotated[list[Told], Meta(max_length=10_000)] = []
    model: Any = None
    modalities: Annotated[list[str], Meta(max_length=10)] | None = None
    response_format: Any = None
    seed: int | None = None
    size: str | None = None
    stream: bool | None = None
    n: int | None = None
    temperature: Any = None
    top_p: Any = None
    top_k: Any = None
    max_tokens: Any = None
    max_completion_tokens: Any = None
    stop: Any = None
    presence_penalty: Any = None
    frequency_penalty: Any = None
    logit_bias: Any = None
    tools: Any = None
    functions: Any = None
    reasoning_effort: Any = None
    guidance_scale: Any = None
    num_inference_steps: Any = None
    logprobs: Any = None
    min_p: Any = None


def read(body: bytes, blobs: Blobs, card: Card, called: str = "") -> tuple[tuple[Message, ...], Want]:
    """A request's messages and what it wants; its pictures are put into the store. Raises Refused."""
    try:
        asked = msgspec.json.decode(body, type=Request)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise Refused(f"the body is no request: {error}") from None
    if called and asked.model not in (None, called):
        raise Refused(f"`model` is {str(asked.model)[:80]!r}; this server has {called}")
    for name in SETTINGS:
        if msgspec.structs.asdict(asked)[name] not in (None, [], {}):
            raise Refused(f"{name} is set when the server is started (--model-opt), not with a request")
    if asked.stream:
        raise Refused("stream is not supported: answers come whole")
    if asked.n not in (None, 1):
        raise Refused("n is not supported: ask again with another seed")
    if not asked.messages:
        raise Refused("`messages` must be a list of messages")
    messages = tuple(_message(one, blobs) for one in asked.messages)
    draw = 0 if asked.seed is None else asked.seed - card.seed
    return messages, Want(_kind(asked.modalities, card.gives), _schema(asked.response_format), draw=draw, size=_size(asked.size))


def _kind(wanted: list[str] | None, gives: Gives) -> Kind:
    if wanted is None:
        return "text" if gives.text else "image"
    if not wanted or set(wanted) - {"text", "image"}:
        raise Refused('`modalities` must be ["text"], ["image"] or both')
    return "interleaved" if len(set(wanted)) == 2 else "image" if wanted[0] == "image" else "text"


def _schema(format: Any) -> dict[str, Any] | None:
    return fields(fields(fields(format).get("json_schema")).get("schema")) or None


def _size(given: str | None) -> tuple[int, int] | None:
    if given in (None, "auto"):
        return None
    found = re.fullmatch(r"([0-9]{1,4})x([0-9]{1,4})", str(given))
    if found is None or not 0 < int(found[1]) <= 8192 or not 0 < int(found[2]) <= 8192:
        raise Refused('`size` must be as "1024x1024"')
    return int(found[1]), int(found[2])


def _message(told: Told, blobs: Blobs) -> Message:
    role = "system" if told.role == "developer" else told.role
    if role not in ROLES:
        raise Refused(f"a message's role is {str(role)[:40]!r}; it may be {', '.join(ROLES)}")
    if isinstance(told.content, list):
        return Message(cast(Any, role), tuple(_part(one, blobs) for one in told.content))
    if told.content is None:
        raise Refused("a message's `content` must be a text or a list of parts")
    return Message(cast(Any, role), (Text(told.content),) if told.content else ())


def _part(part: Piece, blobs: Blobs) -> Part:
    if part.type in ("text", "input_text") and part.text is not None:
        return Text(part.text)
    if part.type != "image_url":
        raise Refused(f"a part of the type {str(part.type)[:40]!r}: there may be text and image_url")
    held: Any = part.image_url
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
    placed = [(at, part.text) for at, part in enumerate(sent.parts) if isinstance(part, Thought)]
    thoughts = "\n".join(part.text for part in sent.parts if isinstance(part, Thought) and part.text)
    content: Any = [_told(part, blobs) for part in said]
    if len(said) < 2 and not any(isinstance(part, Image) for part in said):
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
            "weft": {"outcome": sent.outcome, "reason": sent.reason, "ended": sent.ended, "again": sent.again, "thoughts": placed},
        }
    )


def _told(part: Part, blobs: Blobs) -> dict[str, Any]:
    if isinstance(part, Image):
        data = base64.b64encode(blobs.read(part)).decode()
        return {"type": "image_url", "image_url": {"url": f"data:{part.media_type};base64,{data}"}}
    return {"type": "text", "text": part.text}


def error(message: str, code: str) -> bytes:
    return msgspec.json.encode({"error": {"message": message, "type": code, "code": code}})
