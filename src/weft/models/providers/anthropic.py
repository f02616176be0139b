"""Anthropic's Messages API: images and text in, text out. For judges, and for turns that expect text.

A schema goes as `output_config`, which makes the model's replies follow it. Thinking that the model shows is kept as
`Thought`.
"""

from typing import Any, cast

import msgspec

from weft.models.converters import finite_number
from weft.models.endpoint import TRANSIENT, CallError, EndpointReply
from weft.models.http import MAX_TEXT_BYTES
from weft.models.http_endpoint import HTTP_OPTIONS, HttpEndpoint, from_options, url_of
from weft.models.providers.message_parts import list_system_texts
from weft.models.providers.openai_reply import list_of_dicts, read_usage
from weft.models.registry import ModelSpec, provider_info, provider_options
from weft.store.blobs import Blobs
from weft.types import Gives, Image, Message, Part, Request, Takes, Text, Thought, outcome_of
from weft.untrusted import dict_or_empty

URL = "https://api.anthropic.com/v1"
VERSION = "2023-06-01"
TAKES = Takes(own_images="user", max_images=100)
MAX_TOKENS = 8192  # the API requires a limit: this is the default
GIVES = Gives(image=False, interleaved=False, thoughts=True)
TRUNCATED = ("max_tokens", "model_context_window_exceeded")  # stop reasons
UNSUPPORTED_BOUNDS = (
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "minItems", "maxItems"),
)


class Anthropic(HttpEndpoint):
    provider = "anthropic"
    takes = TAKES
    gives = GIVES

    def __init__(self, model: str, url: str, blobs: Blobs, *, default_limit: bool, **more: Any) -> None:
        """`default_limit`: the user gave no token limit, so a truncated reply is weft's fault and not the model's."""
        super().__init__(model, url, blobs, **more)
        self._default_limit = default_limit

    def _headers(self) -> dict[str, str]:
        headers = {"anthropic-version": VERSION}
        if self._key:
            headers["x-api-key"] = self._key
        return headers

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        payload = self._payload(messages, request)
        async with self._post("/messages", payload, MAX_TEXT_BYTES, bare=True) as response:
            if response.status >= 400 or response.error_message:
                return self._read_error(response)
            return self._read(response.body, request)

    def _payload(self, messages: tuple[Message, ...], request: Request) -> dict[str, Any]:
        payload: dict[str, Any] = {"model": self._model, **self._parameters}
        system = "\n".join(list_system_texts(messages))
        if system:
            payload["system"] = system
        payload["messages"] = [_build_message(message) for message in messages if message.role != "system"]
        if request.schema is not None:
            format = {"type": "json_schema", "schema": remove_schema_bounds(request.schema)}
            payload["output_config"] = {**dict_or_empty(payload.get("output_config")), "format": format}
        return payload

    def _read(self, body: Any, request: Request) -> EndpointReply:
        answer = dict_or_empty(body)
        if not isinstance(answer.get("content"), list):
            raise CallError(f"{self.address} answered 200 without `content`", TRANSIENT)
        parts = _read_parts(list_of_dicts(answer["content"]))
        stop_reason = str(answer.get("stop_reason") or "")
        raw = msgspec.json.encode(body).decode()
        served = str(answer.get("model") or self._model)
        usage = read_usage(body)
        if stop_reason == "refusal":
            return EndpointReply(parts, "refused", "the model refused", raw, served, usage)
        outcome, reason = outcome_of(parts, request.modality)
        if stop_reason not in TRUNCATED:
            return EndpointReply(parts, outcome, reason, raw, served, usage, retry_advised=outcome == "empty")
        if self._default_limit:
            reason = f"the reply was truncated at {MAX_TOKENS} tokens, weft's default limit: give max_tokens"
            return EndpointReply((), "failed", reason, raw, served, usage, stop_cause="truncated")
        reason = reason or "the reply was truncated at the token limit"
        return EndpointReply(parts, outcome, reason, raw, served, usage, stop_cause="truncated")


def _build_message(message: Message) -> dict[str, Any]:
    return {"role": message.role, "content": [_build_part(part) for part in message.parts]}


def _build_part(part: Part) -> dict[str, Any]:
    if isinstance(part, Image):
        return {"type": "image", "source": {"type": "base64", "media_type": part.media_type, "data": part}}
    return {"type": "text", "text": part.text}


def _read_parts(content: list[dict[str, Any]]) -> tuple[Part, ...]:
    parts: list[Part] = []
    for block in content:
        if isinstance(block.get("thinking"), str):
            parts.append(Thought(block["thinking"]))
        elif isinstance(block.get("text"), str) and block["text"]:
            parts.append(Text(block["text"]))
    return tuple(parts)


def remove_schema_bounds(schema: Any) -> Any:
    """Return a JSON schema without bounds on numbers and lengths, which the API rejects, and with closed objects.

    Replies are checked against the full schema when they are read.
    """
    if isinstance(schema, list):
        return [remove_schema_bounds(entry) for entry in cast(list[Any], schema)]
    if not isinstance(schema, dict):
        return schema
    cleaned: dict[str, Any] = {}
    for name, value in dict_or_empty(schema).items():
        if name in UNSUPPORTED_BOUNDS:
            continue
        if name in ("properties", "$defs"):  # its keys are names of fields, and never bounds
            cleaned[name] = {key: remove_schema_bounds(entry) for key, entry in dict_or_empty(value).items()}
        else:
            cleaned[name] = remove_schema_bounds(value)
    if cleaned.get("type") == "object":
        cleaned["additionalProperties"] = False
    return cleaned


@provider_info(TAKES, GIVES, url=URL)
@provider_options(
    **dict.fromkeys(("temperature", "top_p"), finite_number),
    **dict.fromkeys(("max_tokens", "top_k"), int),
    **HTTP_OPTIONS,
)
def from_spec(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> Anthropic:
    """Build the endpoint of `anthropic/NAME` or `anthropic/NAME@URL`."""
    url = url_of(spec, URL)
    default_limit = "max_tokens" not in chosen and "max_tokens" not in chosen.get("extra", {})
    arguments = {"default_limit": default_limit, **chosen}
    return from_options(Anthropic, spec, blobs, url, arguments, "default_limit", max_tokens=MAX_TOKENS)
