"""Anthropic's messages: pictures and words in, words out. A judge, or a model for turns that want words.

A schema goes as `output_config`, so that replies hold to it; thinking that is shown is kept as `Thought`."""

from typing import Any, cast

import msgspec

from weft.models.converters import finite_number
from weft.models.endpoint import TRANSIENT, CallError, EndpointReply
from weft.models.http import MAX_TEXT_BYTES
from weft.models.http_endpoint import HTTP_OPTIONS, HttpEndpoint, from_options, url_of
from weft.models.providers.openai_reply import read_usage
from weft.models.registry import ModelSpec, provider_info, provider_options
from weft.store.blobs import Blobs
from weft.types import Gives, Image, Message, Part, Request, Takes, Text, Thought, outcome_of
from weft.untrusted import dict_or_empty

URL = "https://api.anthropic.com/v1"
VERSION = "2023-06-01"
TAKES = Takes(own_images="user", max_images=100)
MAX_TOKENS = 8192  # one must be sent with every request: ours, where nobody says otherwise
GIVES = Gives(image=False, interleaved=False, thoughts=True)


class Anthropic(HttpEndpoint):
    provider = "anthropic"
    takes = TAKES
    gives = GIVES

    def __init__(self, model: str, url: str, blobs: Blobs, *, ours: bool, **more: Any) -> None:
        """`ours`: the limit of a reply is not the user's."""
        super().__init__(model, url, blobs, **more)
        self._ours = ours

    def _headers(self) -> dict[str, str]:
        return {"anthropic-version": VERSION, **({"x-api-key": self._key} if self._key else {})}

    async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
        async with self._post("/messages", self._payload(messages, want), MAX_TEXT_BYTES, bare=True) as came:
            if came.status >= 400 or came.error_message:
                return self._read_error(came)
            return self._read(came.body, want)

    def _payload(self, messages: tuple[Message, ...], want: Request) -> dict[str, Any]:
        payload: dict[str, Any] = {"model": self._model, **self._parameters}
        system = "\n".join(
            part.text for m in messages if m.role == "system" for part in m.parts if isinstance(part, Text)
        )
        payload |= {"system": system} if system else {}
        payload["messages"] = [
            {"role": m.role, "content": [_sent_part(part) for part in m.parts]} for m in messages if m.role != "system"
        ]
        if want.schema is not None:
            told = dict_or_empty(payload.get("output_config"))
            payload["output_config"] = {
                **told,
                "format": {"type": "json_schema", "schema": remove_schema_bounds(want.schema)},
            }
        return payload

    def _read(self, body: Any, want: Request) -> EndpointReply:
        answer = dict_or_empty(body)
        content: Any = answer.get("content")
        if not isinstance(content, list):
            raise CallError(f"{self.address} answered 200 without `content`", TRANSIENT)
        parts: list[Part] = []
        for one in map(dict_or_empty, cast(list[Any], content)):
            if isinstance(one.get("thinking"), str):
                parts.append(Thought(one["thinking"]))
            elif isinstance(one.get("text"), str) and one["text"]:
                parts.append(Text(one["text"]))
        stop = str(answer.get("stop_reason") or "")
        raw = msgspec.json.encode(body).decode()
        served = str(answer.get("model") or self._model)
        used = read_usage(body)
        if stop == "refusal":
            return EndpointReply(tuple(parts), "refused", "the model refused", raw, served, used)
        cut = stop in ("max_tokens", "model_context_window_exceeded")
        if cut and self._ours:  # not the model's doing
            why = f"the reply was cut at {MAX_TOKENS} tokens, the limit where nobody gives one: give max_tokens"
            return EndpointReply((), "failed", why, raw, served, used, stop_cause="truncated")
        outcome, reason = outcome_of(tuple(parts), want.modality)
        reason = reason or ("the reply was cut at the token limit" if cut else "")
        return EndpointReply(
            tuple(parts), outcome, reason, raw, served, used, outcome == "empty" and not cut, "truncated" if cut else ""
        )


def _sent_part(part: Part) -> dict[str, Any]:
    if isinstance(part, Image):
        return {"type": "image", "source": {"type": "base64", "media_type": part.media_type, "data": part}}
    return {"type": "text", "text": part.text}


def remove_schema_bounds(schema: Any) -> Any:
    """Without bounds of numbers and lengths, which such schemas may not have: replies are held to the whole one when
    they are read."""
    unknown = (
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
    )
    if isinstance(schema, list):
        return [remove_schema_bounds(one) for one in cast(list[Any], schema)]
    if not isinstance(schema, dict):
        return schema
    kept = {
        name: {key: remove_schema_bounds(one) for key, one in dict_or_empty(value).items()}
        if name in ("properties", "$defs")
        else remove_schema_bounds(value)
        for name, value in dict_or_empty(schema).items()
        if name not in unknown
    }
    if kept.get("type") == "object":
        return {**kept, "additionalProperties": False}
    return kept


@provider_info(TAKES, GIVES, url=URL)
@provider_options(
    **dict.fromkeys(("temperature", "top_p"), finite_number),
    **dict.fromkeys(("max_tokens", "top_k"), int),
    **HTTP_OPTIONS,
)
def from_spec(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> Anthropic:
    url = url_of(spec, URL)
    ours = "max_tokens" not in chosen and "max_tokens" not in chosen.get("extra", {})
    return from_options(Anthropic, spec, blobs, url, {"ours": ours, **chosen}, "ours", max_tokens=MAX_TOKENS)
