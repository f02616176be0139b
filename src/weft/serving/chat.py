"""Chat completions, as the server reads and writes them: parts in their order, images as data URLs both ways.

A client chooses the modalities of the answer (`modalities`; without them the content is one text), an image size
(`size`), a draw (`seed`), and the sampling settings that the model can take call by call. All other settings that
change an answer are set when the server starts. A request that has one is rejected, so that nobody believes it was
used, unless it changes nothing, or whoever started the server said that such a setting is to be ignored.
"""

import base64
import binascii
import re
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Annotated, Any, cast

import msgspec
from msgspec import Meta, Struct

from weft.errors import ImageError, WeftError
from weft.models.call_settings import CallSettings
from weft.models.converters import fraction, non_negative_number, positive_int
from weft.models.endpoint import EndpointReply
from weft.models.providers.served_card import ModelCard
from weft.store.blobs import Blobs
from weft.types import Gives, Image, Message, Modality, Part, Request, Text, Thought
from weft.untrusted import dict_or_empty

SETTINGS = (  # that change an answer
    *("temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "stop", "presence_penalty"),
    *("frequency_penalty", "logit_bias", "tools", "functions", "reasoning_effort", "guidance_scale"),
    *("num_inference_steps", "logprobs", "min_p"),
)
CALL_SETTINGS: dict[str, Callable[[Any], Any]] = {
    "temperature": non_negative_number,
    "top_p": fraction,
    "max_tokens": positive_int,
}
NEUTRAL_VALUES: dict[str, Any] = {"presence_penalty": 0, "frequency_penalty": 0, "logprobs": False, "min_p": 0}
ROLES = ("system", "user", "assistant")
MAX_SIDE = 8192  # pixels
FINISH_REASONS = {"truncated": "length", "blocked": "content_filter"}  # OpenAI's word for a stop cause; else "stop"


class InvalidRequest(WeftError):
    """A request that cannot be read, or asks for something that this server does not offer."""


class ContentPart(Struct):
    """One part of a message's content, as OpenAI names them."""

    type: Any = None
    text: str | None = None
    image_url: Any = None


class ChatMessage(Struct):
    """One message, as OpenAI names its fields."""

    role: Any = None
    content: str | Annotated[list[ContentPart], Meta(max_length=10_000)] | None = None


class ChatRequest(Struct):
    """The fields of a request that weft reads; all others are ignored."""

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


class ServedRequest(Struct, frozen=True):
    """What a client asks for."""

    messages: tuple[Message, ...]
    request: Request
    settings: CallSettings
    text_content: bool  # the client named no modalities: it reads a reply's content as one text


def read_request(body: bytes, blobs: Blobs, card: ModelCard, served_name: str = "") -> ServedRequest:
    """Read a request; its images are put into the store. Raises InvalidRequest."""
    try:
        request = msgspec.json.decode(body, type=ChatRequest)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise InvalidRequest(f"the body is not a chat completion request: {error}") from None
    if served_name and request.model not in (None, served_name):
        raise InvalidRequest(f"`model` is {str(request.model)[:80]!r}; this server has {served_name}")
    settings = _read_settings(msgspec.structs.asdict(request), card)
    if request.stream:
        raise InvalidRequest("stream is not supported: answers come whole")
    if request.n not in (None, 1):
        raise InvalidRequest("n is not supported: ask again with another seed")
    if not request.messages:
        raise InvalidRequest("`messages` must be a list of messages")
    messages = tuple(_read_message(message, blobs) for message in request.messages)
    draw = 0
    if request.seed is not None:
        draw = request.seed - card.seed
    modality = _read_modality(request.modalities, card.gives)
    schema = _read_schema(request.response_format)
    size = _read_size(request.size)
    return ServedRequest(
        messages, Request(modality, schema, draw=draw, size=size), settings, request.modalities is None
    )


def _read_settings(fields: Mapping[str, Any], card: ModelCard) -> CallSettings:
    """Return the settings that the model takes. Raises InvalidRequest for one that it would not obey."""
    settings: dict[str, Any] = {}
    for name in SETTINGS:
        value = fields[name]
        if value in (None, [], {}) or name in card.ignored_settings:
            continue
        setting = "max_tokens" if name == "max_completion_tokens" else name
        if setting in card.request_settings:
            number = _read_number(name, value)
            if settings.setdefault(setting, number) != number:
                raise InvalidRequest("max_tokens and max_completion_tokens differ: give one of them")
        elif not _changes_nothing(setting, value, card):
            raise InvalidRequest(
                f"{name} is set when the server is started (--model-opt), not with a request; "
                f"`weft serve --ignore {name}` accepts it and leaves it unused"
            )
    return CallSettings(**settings)


def _read_number(name: str, value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidRequest(f"{name} must be a number")
    if name == "top_p" and value == 0:  # the smallest share that some clients send is none: the likeliest token alone
        raise InvalidRequest("top_p must be above 0; for the likeliest token alone give temperature 0")
    convert = CALL_SETTINGS["max_tokens" if name == "max_completion_tokens" else name]
    try:
        return convert(value)
    except (ValueError, OverflowError) as error:
        raise InvalidRequest(f"{name}: {error}") from None


def _changes_nothing(name: str, value: Any, card: ModelCard) -> bool:
    """Return whether a setting says what the model does anyway."""
    if isinstance(value, bool) != isinstance(NEUTRAL_VALUES.get(name), bool):
        return False
    if name in NEUTRAL_VALUES:
        return value == NEUTRAL_VALUES[name]
    own = dict_or_empty(card.identity.get("parameters"))
    return name in own and own[name] == value


def _read_modality(modalities: list[str] | None, gives: Gives) -> Modality:
    if modalities is None:
        if gives.text:
            return "text"
        return "image"
    if not modalities or set(modalities) - {"text", "image"}:
        raise InvalidRequest('`modalities` must be ["text"], ["image"] or both')
    if len(set(modalities)) == 2:
        return "interleaved"
    if modalities[0] == "image":
        return "image"
    return "text"


def _read_schema(response_format: Any) -> dict[str, Any] | None:
    json_schema = dict_or_empty(dict_or_empty(response_format).get("json_schema"))
    return dict_or_empty(json_schema.get("schema")) or None


def _read_size(size: str | None) -> tuple[int, int] | None:
    if size in (None, "auto"):
        return None
    match = re.fullmatch(r"([0-9]{1,4})x([0-9]{1,4})", str(size))
    if match is None or not 0 < int(match[1]) <= MAX_SIDE or not 0 < int(match[2]) <= MAX_SIDE:
        raise InvalidRequest('`size` must be as "1024x1024"')
    return int(match[1]), int(match[2])


def _read_message(message: ChatMessage, blobs: Blobs) -> Message:
    role = message.role
    if role == "developer":
        role = "system"
    if role not in ROLES:
        raise InvalidRequest(f"a message's role is {str(role)[:40]!r}; it may be {', '.join(ROLES)}")
    content = message.content
    if content is None:
        raise InvalidRequest("a message's `content` must be a text or a list of parts")
    parts: tuple[Part, ...] = ()
    if isinstance(content, list):
        parts = tuple(_read_part(part, blobs) for part in content)
    elif content:
        parts = (Text(content),)
    return Message(cast(Any, role), parts)


def _read_part(part: ContentPart, blobs: Blobs) -> Part:
    if part.type in ("text", "input_text") and part.text is not None:
        return Text(part.text)
    if part.type != "image_url":
        raise InvalidRequest(f"a part has the type {str(part.type)[:40]!r}; it may be text or image_url")
    url: Any = part.image_url
    if not isinstance(url, str):
        url = dict_or_empty(url).get("url")
    if not isinstance(url, str) or not url.startswith("data:image/") or ";base64," not in url:
        raise InvalidRequest("an image must be a data URL (data:image/png;base64,...): links are not followed")
    try:
        return blobs.put(base64.b64decode(url.partition(",")[2], validate=True), unchanged=True)
    except binascii.Error as error:
        raise InvalidRequest(f"an image is not valid base64: {error}") from None
    except ImageError as error:
        raise InvalidRequest(f"an image {error}") from None


def format_completion(reply: EndpointReply, model: str, blobs: Blobs, *, text_content: bool = False) -> bytes:
    """Format a reply as a chat completion. What OpenAI's clients do not know is under `weft`.

    `text_content`: the content is one text, and images stand under `images`, where clients of text do not look.
    """
    output = [part for part in reply.parts if not isinstance(part, Thought)]
    thoughts = [(index, part.text) for index, part in enumerate(reply.parts) if isinstance(part, Thought)]
    message: dict[str, Any] = {"role": "assistant"}
    if text_content:
        message["content"] = "\n".join(part.text for part in output if isinstance(part, Text))
        images = [_format_part(part, blobs) for part in output if isinstance(part, Image)]
        if images:
            message["images"] = images
    else:
        message["content"] = _format_content(output, blobs)
    reasoning = "\n".join(text for _, text in thoughts if text)
    if reasoning:
        message["reasoning_content"] = reasoning
    if reply.outcome == "refused":
        message["refusal"] = reply.reason or "refused"
    finish_reason = FINISH_REASONS.get(reply.stop_cause, "stop")
    usage = {"prompt_tokens": reply.usage.tokens_in, "completion_tokens": reply.usage.tokens_out}
    return msgspec.json.encode(
        {
            "id": f"chatcmpl-{uuid.uuid4().hex}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": model,
            "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
            "usage": {**usage, "total_tokens": sum(usage.values())},
            "weft": {
                "outcome": reply.outcome,
                "reason": reply.reason,
                "stop_cause": reply.stop_cause,
                "retry_advised": reply.retry_advised,
                "thoughts": thoughts,
            },
        }
    )


def _format_content(output: list[Text | Image], blobs: Blobs) -> Any:
    """Return a plain string for no part or one text, as most clients expect; else a list of parts."""
    if not output:
        return ""
    if len(output) == 1 and isinstance(output[0], Text):
        return output[0].text
    return [_format_part(part, blobs) for part in output]


def _format_part(part: Text | Image, blobs: Blobs) -> dict[str, Any]:
    if isinstance(part, Image):
        data = base64.b64encode(blobs.read(part)).decode()
        return {"type": "image_url", "image_url": {"url": f"data:{part.media_type};base64,{data}"}}
    return {"type": "text", "text": part.text}


def format_error(message: str, code: str) -> bytes:
    """Format an error as OpenAI's API does."""
    return msgspec.json.encode({"error": {"message": message, "type": code, "code": code}})
