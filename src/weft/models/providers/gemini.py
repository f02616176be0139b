"""Gemini's own protocol (`generateContent`): text and images in one ordered reply, thoughts apart from it.

The model's earlier replies go back as they came: each part with its own thought signature, no two texts joined, no
image encoded anew. Parts in its turns that it never produced (references, captions) carry the signature that Google
documents for them. Thoughts are kept as `Thought`, image drafts among them, and never count as output. Each request has
its own `contents`, so that no turn is ever dropped.
"""

import asyncio
import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, Literal, cast
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from weft.errors import ImageError, UserError
from weft.models.converters import boolean, finite_number, one_of
from weft.models.endpoint import TRANSIENT, CallError, EndpointReply
from weft.models.http import MAX_REPLY_BYTES, MAX_TEXT_BYTES, HttpResponse, RequestBody, parse_error
from weft.models.http_endpoint import HTTP_OPTIONS, HttpEndpoint, key_for, url_of
from weft.models.providers.gemini_batches import GeminiBatches
from weft.models.providers.message_parts import list_system_texts
from weft.models.providers.openai_reply import first_dict, list_of_dicts, read_token_count
from weft.models.registry import ModelSpec, provider_info, provider_options
from weft.models.sizes import nearest_ratio
from weft.secrets import scrub
from weft.store.blobs import Blobs
from weft.types import Gives, Image, Message, Part, Request, State, Takes, Text, Thought, Usage, outcome_of
from weft.untrusted import dict_or_empty

URL = "https://generativelanguage.googleapis.com/v1beta"
FOREIGN_SIGNATURE = "skip_thought_signature_validator"  # for parts that the model never produced
RETRY_REASONS = ("NO_IMAGE", "IMAGE_OTHER", "OTHER", "MALFORMED_RESPONSE")  # chance: another try may succeed
FILTER_REASONS = ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED", "SPII")
TRUNCATED = "MAX_TOKENS"
NORMAL_REASONS = ("STOP", "FINISH_REASON_UNSPECIFIED", "")
HARM_CATEGORIES = ("HARASSMENT", "HATE_SPEECH", "SEXUALLY_EXPLICIT", "DANGEROUS_CONTENT", "CIVIC_INTEGRITY")
GIVES = Gives(thoughts=True, seed=True, sizes="ratio")


class Gemini(HttpEndpoint):
    provider = "gemini"
    gives = GIVES

    def __init__(
        self,
        model: str,
        url: str,
        blobs: Blobs,
        *,
        own_images: Literal["assistant", "user"] = "assistant",
        modalities: str = "text,image",
        config: Mapping[str, Any] | None = None,
        safety: str = "",
        **more: Any,
    ) -> None:
        """`config` is sent as `generationConfig`; `safety` is a threshold for every harm category."""
        words = [word.strip() for word in modalities.split(",")]
        self._modalities = [word.upper() for word in words if word and word != "none"]
        self._safety: list[dict[str, str]] = []
        identity: dict[str, Any] = {"modalities": self._modalities}
        if safety:
            self._safety = [{"category": f"HARM_CATEGORY_{harm}", "threshold": safety} for harm in HARM_CATEGORIES]
            identity["safety"] = safety
        self.takes = Takes(own_images=own_images)
        super().__init__(model, url, blobs, parameters=config, **identity, **more)

    def _headers(self) -> dict[str, str]:
        if self._key:
            return {"x-goog-api-key": self._key}
        return {}

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        payload = self.payload(messages, request)
        limit = MAX_REPLY_BYTES
        if request.modality == "text":
            limit = MAX_TEXT_BYTES
        async with self._post(f"/models/{self._model}:generateContent", payload, limit, bare=True) as response:
            return await self.read_response(response, request)

    # batches

    def batch_service(self) -> GeminiBatches:
        return GeminiBatches(self)

    async def read_response(self, response: HttpResponse, request: Request) -> EndpointReply:
        """Read the response to one request, from a batch or not."""
        if response.status >= 400 or response.error_message:
            return self._read_error(unwrap_error_list(response))
        return await self.read(response.body, request)

    async def start_upload(self, payload: Mapping[str, Any], headers: Mapping[str, str]) -> HttpResponse:
        """Announce a file; the response's headers say where it is to be sent."""
        home = urlsplit(self._url)
        url = home._replace(path=f"/upload{home.path}/files").geturl()
        all_headers = {**self._headers(), **headers}
        async with self._http.post(
            url, payload, all_headers, self._blobs, endpoint_name=self.address, max_bytes=MAX_TEXT_BYTES
        ) as response:
            return self._raise_for_error(response)

    async def finish_upload(self, url: str, body: RequestBody, headers: Mapping[str, str]) -> HttpResponse:
        """Send a file to the address that `start_upload` got. The key is not sent."""
        return self._raise_for_error(await self._http.upload(url, body, headers, endpoint_name=self.address))

    async def post_json(self, path: str, payload: Mapping[str, Any]) -> HttpResponse:
        return await super().post_json(f"/models/{self._model}{path}", payload)

    # the request

    def payload(self, messages: tuple[Message, ...], request: Request) -> dict[str, Any]:
        """Build a request, as it is sent alone or in a batch."""
        contents = [_build_content(message) for message in messages if message.role != "system"]
        payload: dict[str, Any] = {"contents": contents, "generationConfig": self._build_config(request)}
        system = list_system_texts(messages)
        if system:
            payload["systemInstruction"] = {"parts": [{"text": text} for text in system]}
        if self._safety:
            payload["safetySettings"] = self._safety
        return payload

    def _build_config(self, request: Request) -> dict[str, Any]:
        config = {"candidateCount": 1, **self._parameters_for(request)}
        if self.max_reply_tokens is not None and "maxOutputTokens" not in config:
            config["maxOutputTokens"] = self.max_reply_tokens
        if request.modality != "text" and self._modalities:
            config["responseModalities"] = self._modalities
        image_config = dict_or_empty(config.get("imageConfig"))
        if request.size is not None and "aspectRatio" not in image_config:
            config["imageConfig"] = {**image_config, "aspectRatio": nearest_ratio(request.size)}
        if request.schema is not None:
            config |= {"responseMimeType": "application/json", "responseJsonSchema": request.schema}
        return config

    # the reply

    async def read(self, body: Any, request: Request) -> EndpointReply:
        """Read a reply and store its images. Changes `body`: image data becomes `blob:DIGEST`."""
        answer = dict_or_empty(body)
        usage = _read_usage(answer)
        served = str(answer.get("modelVersion") or self._model)
        candidate = first_dict(answer.get("candidates"))
        if candidate:
            content = dict_or_empty(candidate.get("content"))
            usage = replace(usage, images=_count_images(content))
            parts, image_error = await asyncio.to_thread(self._read_parts, content)
            raw = msgspec.json.encode(body).decode()  # after its images were stored
            return self._judge_finish(
                EndpointReply(parts, "empty", "", raw, served, usage), image_error, candidate, request
            )
        raw = msgspec.json.encode(body).decode()
        block_reason = str(dict_or_empty(answer.get("promptFeedback")).get("blockReason") or "")
        if block_reason:
            reason = f"the request was blocked: {block_reason}"
            return EndpointReply((), "refused", reason, raw, served, usage, stop_cause="blocked")
        # not a reply of the model's, so not its fault
        if not {"candidates", "usageMetadata", "promptFeedback"} & set(answer):
            raise CallError(f"{self.address} answered 200 without `candidates`", TRANSIENT)
        return EndpointReply((), "empty", "a reply without candidates", raw, served, usage, retry_advised=True)

    def _judge_finish(
        self, reply: EndpointReply, image_error: str, candidate: dict[str, Any], request: Request
    ) -> EndpointReply:
        """Set outcome and reason. Expected output counts as an answer, however the reply ended."""
        finish_reason = str(candidate.get("finishReason") or "")
        truncated = finish_reason == TRUNCATED
        if truncated:
            reply = replace(reply, stop_cause="truncated")
        if truncated and self.max_reply_tokens is not None and "maxOutputTokens" not in self._parameters:
            reason = f"the reply was truncated at {self.max_reply_tokens} tokens, --budget's limit: give max_tokens"
            return replace(reply, parts=(), outcome="failed", reason=reason)
        outcome, reason = outcome_of(reply.parts, request.modality)
        if outcome == "answered":
            if truncated:
                reason = "the reply was truncated at the token limit"
            return replace(reply, outcome=outcome, reason=reason)
        if image_error:
            return replace(reply, reason=f"its image {image_error}", retry_advised=True)
        if finish_reason not in NORMAL_REASONS:
            reason = f"{finish_reason}: {candidate.get('finishMessage') or reason}"
        if any(word in finish_reason for word in FILTER_REASONS):
            return replace(reply, outcome="refused", reason=reason, stop_cause="blocked")
        only_thoughts = all(isinstance(part, Thought) for part in reply.parts)
        retry_advised = finish_reason in RETRY_REASONS or (only_thoughts and not truncated)
        return replace(reply, reason=reason, retry_advised=retry_advised)

    def _read_parts(self, content: dict[str, Any]) -> tuple[tuple[Part, ...], str]:
        """Return the parts in order, each with its signature, and why an image is unusable, if one is."""
        parts: list[Part] = []
        image_error = ""
        for part in list_of_dicts(content.get("parts")):
            state = State(str(part.get("thoughtSignature") or part.get("thought_signature") or ""))
            is_thought = part.get("thought") is True
            text = part.get("text")
            inline_data = dict_or_empty(part.get("inlineData") or part.get("inline_data"))
            if isinstance(text, str):
                if is_thought:
                    parts.append(Thought(text, state if state.data else None))
                elif text or state.data:
                    parts.append(Text(text, state))
            elif isinstance(inline_data.get("data"), str):
                try:
                    image = self._blobs.put(_decode_base64(inline_data["data"]))
                except ImageError as error:
                    image_error = str(error)
                    inline_data["data"] = "(an image that cannot be used)"
                    continue
                inline_data["data"] = f"blob:{image.digest}"
                if is_thought:
                    parts.append(Thought(f"[a draft, {image.width} x {image.height}]"))
                else:
                    parts.append(replace(image, state=state))
        return tuple(parts), image_error


def _count_images(content: dict[str, Any]) -> int:
    """Return how many images the model made, usable or not; drafts are none."""
    parts = [part for part in list_of_dicts(content.get("parts")) if part.get("thought") is not True]
    return sum(bool(part.get("inlineData") or part.get("inline_data")) for part in parts)


def _decode_base64(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise ImageError("is no base64") from None


def _build_content(message: Message) -> dict[str, Any]:
    role = "user"
    if message.role == "assistant":
        role = "model"
    return {"role": role, "parts": [_build_part(part, message.role) for part in message.parts]}


def _build_part(part: Part, role: str) -> dict[str, Any]:
    """Build a part; those in the model's turns carry their signature, or the one for parts it never produced."""
    if isinstance(part, Image):
        content: dict[str, Any] = {"inlineData": {"mimeType": part.media_type, "data": part}}
    else:
        content = {"text": part.text}
    if isinstance(part, Thought):
        content["thought"] = True
    if role != "assistant":
        return content
    signature = FOREIGN_SIGNATURE
    if part.state is not None:
        signature = part.state.data
    if signature:
        content["thoughtSignature"] = signature
    return content


def _read_usage(answer: dict[str, Any]) -> Usage:
    counts = dict_or_empty(answer.get("usageMetadata"))
    output_tokens = read_token_count(counts.get("candidatesTokenCount"))
    thought_tokens = read_token_count(counts.get("thoughtsTokenCount"))
    return Usage(read_token_count(counts.get("promptTokenCount")), output_tokens + thought_tokens)


def unwrap_error_list(response: HttpResponse) -> HttpResponse:
    """Return an error that came inside a list, as streams wrap it, like any other error."""
    body: Any = response.body
    if not isinstance(body, list) or not body:
        return response
    error_body: Any = cast(list[Any], body)[0]
    if error_body is None:
        return response
    message, codes = parse_error(error_body)
    return HttpResponse(response.status, response.headers, response.data, error_body, scrub(message), codes)


CONFIG_NAMES = {
    "max_tokens": "maxOutputTokens",
    "top_p": "topP",
    "top_k": "topK",
    "temperature": "temperature",
    "seed": "seed",
}
IMAGE_CONFIG_NAMES = {"image_size": "imageSize", "aspect_ratio": "aspectRatio"}
THINKING_CONFIG_NAMES = {
    "thinking_budget": "thinkingBudget",
    "thinking_level": "thinkingLevel",
    "thoughts": "includeThoughts",
}


@provider_info(Takes(), GIVES, url=URL)
@provider_options(
    **dict.fromkeys(("temperature", "top_p"), finite_number),
    **dict.fromkeys(("max_tokens", "seed", "top_k", "thinking_budget"), int),
    **HTTP_OPTIONS,
    **dict.fromkeys(("modalities", "image_size", "aspect_ratio", "thinking_level"), str),
    own_images=one_of("assistant", "user"),
    thoughts=boolean,
    safety=one_of("BLOCK_NONE", "OFF", "BLOCK_ONLY_HIGH", "BLOCK_MEDIUM_AND_ABOVE", "BLOCK_LOW_AND_ABOVE"),
)
def from_spec(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> Gemini:
    """Build the endpoint of `gemini/NAME` or `gemini/NAME@URL`."""
    url = url_of(spec, URL)
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)*", spec.model):
        raise UserError(f"{spec.text}: {spec.model!r} is not a model name")
    config: dict[str, Any] = chosen.pop("extra", {}) | {
        CONFIG_NAMES[option]: chosen.pop(option) for option in list(chosen) if option in CONFIG_NAMES
    }
    for section, names in (("imageConfig", IMAGE_CONFIG_NAMES), ("thinkingConfig", THINKING_CONFIG_NAMES)):
        settings = {name: chosen.pop(option) for option, name in names.items() if option in chosen}
        if settings:
            config[section] = {**dict_or_empty(config.get(section)), **settings}
    key = key_for(url, chosen.pop("key_env", ""))
    return Gemini(spec.model, url, blobs, key=key, config=config, **chosen)
