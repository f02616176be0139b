"""Chat completions, as a server reads and writes them: parts in their order, pictures as data URLs both ways.

What a client may ask for is the kind of answer (`modalities`), a size (`size`), and a draw (`seed`). All else that
would change an answer is set when the server is started, and a request that wants it otherwise is refused: it would be
answered as if it had not asked."""

import base64
import binascii
import re
import time
import uuid
from collections.abc import Mapping
from typing import Annotated, Any, cast

import msgspec
from msgspec import Meta, Struct

from weft.errors import ImageError, WeftError
from weft.store.blobs import Blobs
from weft.types import Gives, Image, Message, Modality, Part, Request, Takes, Text, Thought
from weft.untrusted import dict_or_empty

SETTINGS = (
    *(
        "temperature",
        "top_p",
        "top_k",
        "max_tokens",
        "max_completion_tokens",
        "stop",
        "presence_penalty",
        "frequency_penalty",
    ),
    *(
        "logit_bias",
        "tools",
        "functions",
        "reasoning_effort",
        "guidance_scale",
        "num_inference_steps",
        "logprobs",
        "min_p",
    ),
)
ROLES = ("system", "user", "assistant")


class InvalidRequest(WeftError):
    """A request that cannot be read, or asks for what cannot be had."""


class ModelCard(Struct, frozen=True):
    """What a server says of the model behind it. A client keeps its answers under this identity, wherever the server
    is."""

    name: str
    identity: Mapping[str, Any]
    takes: Takes
    gives: Gives
    at_once: int  # calls that one replica works on or has ready
    seed: int = 0
    replicas: int = 1


class ContentPart(Struct):
    type: Any = None
    text: str | None = None
    image_url: Any = None


class ChatMessage(Struct):
    role: Any = None
    content: str | Annotated[list[ContentPart], Meta(max_length=10_000)] | None = None


class ChatRequest(Struct):
    """What is read of a request; all else in it is passed over, and nothing is made of it."""

    messages: Annotated[list[ChatMessage], Meta(max_length=10_000)] = []
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


def read_request(body: bytes, blobs: Blobs, card: ModelCard, called: str = "") -> tuple[tuple[Message, ...], Request]:
    """A request's messages and what it wants; its pictures are put into the store. Raises Refused."""
    try:
        asked = msgspec.json.decode(body, type=ChatRequest)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise InvalidRequest(f"the body is no request: {error}") from None
    if called and asked.model not in (None, called):
        raise InvalidRequest(f"`model` is {str(asked.model)[:80]!r}; this server has {called}")
    for name in SETTINGS:
        if msgspec.structs.asdict(asked)[name] not in (None, [], {}):
            raise InvalidRequest(f"{name} is set when the server is started (--model-opt), not with a request")
    if asked.stream:
        raise InvalidRequest("stream is not supported: answers come whole")
    if asked.n not in (None, 1):
        raise InvalidRequest("n is not supported: ask again with another seed")
    if not asked.messages:
        raise InvalidRequest("`messages` must be a list of messages")
    messages = tuple(_message(one, blobs) for one in asked.messages)
    if asked.seed is None:
        draw = 0
    else:
        draw = asked.seed - card.seed
    return messages, Request(
        _kind(asked.modalities, card.gives), _schema(asked.response_format), draw=draw, size=_size(asked.size)
    )


def _kind(wanted: list[str] | None, gives: Gives) -> Modality:
    if wanted is None:
        if gives.text:
            return "text"
        return "image"
    if not wanted or set(wanted) - {"text", "image"}:
        raise InvalidRequest('`modalities` must be ["text"], ["image"] or both')
    if len(set(wanted)) == 2:
        return "interleaved"
    if wanted[0] == "image":
        return "image"
    return "text"


def _schema(format: Any) -> dict[str, Any] | None:
    return dict_or_empty(dict_or_empty(dict_or_empty(format).get("json_schema")).get("schema")) or None


def _size(given: str | None) -> tuple[int, int] | None:
    if given in (None, "auto"):
        return None
    found = re.fullmatch(r"([0-9]{1,4})x([0-9]{1,4})", str(given))
    if found is None or not 0 < int(found[1]) <= 8192 or not 0 < int(found[2]) <= 8192:
        raise InvalidRequest('`size` must be as "1024x1024"')
    return int(found[1]), int(found[2])


def _message(told: ChatMessage, blobs: Blobs) -> Message:
    if told.role == "developer":
        role = "system"
    else:
        role = told.role
    if role not in ROLES:
        raise InvalidRequest(f"a message's role is {str(role)[:40]!r}; it may be {', '.join(ROLES)}")
    if isinstance(told.content, list):
        return Message(cast(Any, role), tuple(_part(one, blobs) for one in told.content))
    if told.content is None:
        raise InvalidRequest("a message's `content` must be a text or a list of parts")
    return Message(cast(Any, role), (Text(told.content),) if told.content else ())


def _part(part: ContentPart, blobs: Blobs) -> Part:
    if part.type in ("text", "input_text") and part.text is not None:
        return Text(part.text)
    if part.type != "image_url":
        raise InvalidRequest(f"a part of the type {str(part.type)[:40]!r}: there may be text and image_url")
    held: Any = part.image_url
    if isinstance(held, str):
        url = held
    else:
        url = dict_or_empty(held).get("url")
    if not isinstance(url, str) or not url.startswith("data:image/") or ";base64," not in url:
        raise InvalidRequest("a picture must be a data URL (data:image/png;base64,...): links are not followed")
    try:
        return blobs.put(base64.b64decode(url.partition(",")[2], validate=True))
    except binascii.Error as error:
        raise InvalidRequest(f"a picture is no base64: {error}") from None
    except ImageError as error:
        raise InvalidRequest(f"a picture {error}") from None


def format_completion(sent: Any, model: str, blobs: Blobs) -> bytes:
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
            "weft": {
                "outcome": sent.outcome,
                "reason": sent.reason,
                "ended": sent.ended,
                "again": sent.again,
                "thoughts": placed,
            },
        }
    )


def _told(part: Part, blobs: Blobs) -> dict[str, Any]:
    if isinstance(part, Image):
        data = base64.b64encode(blobs.read(part)).decode()
        return {"type": "image_url", "image_url": {"url": f"data:{part.media_type};base64,{data}"}}
    return {"type": "text", "text": part.text}


def format_error(message: str, code: str) -> bytes:
    return msgspec.json.encode({"error": {"message": message, "type": code, "code": code}})
