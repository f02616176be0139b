"""Gemini's own protocol (`generateContent`): words and pictures in one ordered reply, thoughts apart from it.

What a model said goes back as it came: each part with its own thought signature, no two texts joined, no picture
encoded anew. Parts that it never said (a dataset's answers, captions) stand in its turns under the signature that the
documentation has for them. Thoughts are kept as `Thought`, drafts among them, and never count as output. Each request
has its own `contents`, so that no turn is ever dropped."""

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
from weft.models.providers.openai_reply import read_token_count
from weft.models.registry import ModelSpec, provider_info, provider_options
from weft.models.sizes import nearest_ratio
from weft.secrets import scrub
from weft.store.blobs import Blobs
from weft.types import Gives, Image, Message, Part, Request, State, Takes, Text, Thought, Usage, outcome_of
from weft.untrusted import dict_or_empty

URL = "https://generativelanguage.googleapis.com/v1beta"
FOREIGN = "skip_thought_signature_validator"  # in place of a signature, for what the model never said
AGAIN = ("NO_IMAGE", "IMAGE_OTHER", "OTHER", "MALFORMED_RESPONSE")  # a matter of chance: asked again before it counts
FILTERS = ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED", "SPII")
CUT = "MAX_TOKENS"
FINE = ("STOP", "FINISH_REASON_UNSPECIFIED", "")
HARMS = ("HARASSMENT", "HATE_SPEECH", "SEXUALLY_EXPLICIT", "DANGEROUS_CONTENT", "CIVIC_INTEGRITY")
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
        """`config` is what `generationConfig` has, `safety` a threshold for every category."""
        self._modalities = [
            word.strip().upper() for word in modalities.split(",") if word.strip() and word.strip() != "none"
        ]
        self._safety = [{"category": f"HARM_CATEGORY_{harm}", "threshold": safety} for harm in HARMS] if safety else []
        told = {"modalities": self._modalities, **({"safety": safety} if safety else {})}
        self.takes = Takes(own_images=own_images)
        super().__init__(model, url, blobs, parameters=config, **told, **more)

    def _headers(self) -> dict[str, str]:
        if self._key:
            return {"x-goog-api-key": self._key}
        return {}

    async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
        payload = self.payload(messages, want)
        if want.modality == "text":
            most = MAX_TEXT_BYTES
        else:
            most = MAX_REPLY_BYTES
        async with self._post(f"/models/{self._model}:generateContent", payload, most, bare=True) as came:
            if came.status >= 400 or came.error_message:
                return self._read_error(unwrap_error_list(came))
            return await self.read(came.body, want)

    # batches

    def batch_service(self) -> GeminiBatches:
        return GeminiBatches(self)

    async def read_batch_line(self, came: HttpResponse, want: Request) -> EndpointReply:
        """What came of a line of a batch."""
        if came.status >= 400 or came.error_message:
            return self._read_error(unwrap_error_list(came))
        return await self.read(came.body, want)

    async def start_upload(self, payload: Mapping[str, Any], headers: Mapping[str, str]) -> HttpResponse:
        """An upload: where a file is to go."""
        home = urlsplit(self._url)
        sent = {**self._headers(), **headers}
        url = home._replace(path=f"/upload{home.path}/files").geturl()
        async with self._http.post(url, payload, sent, self._blobs, called=self.address, most=MAX_TEXT_BYTES) as came:
            return self._raise_for_error(came)

    async def finish_upload(self, url: str, body: RequestBody, headers: Mapping[str, str]) -> HttpResponse:
        return self._raise_for_error(await self._http.upload(url, body, headers, called=self.address))

    async def post_json(self, path: str, payload: Mapping[str, Any]) -> HttpResponse:
        return await super().post_json(f"/models/{self._model}{path}", payload)

    # the request

    def payload(self, messages: tuple[Message, ...], want: Request) -> dict[str, Any]:
        system = [
            {"text": part.text} for m in messages if m.role == "system" for part in m.parts if isinstance(part, Text)
        ]
        contents = [
            {"role": _role(m), "parts": [_sent_part(part, m.role) for part in m.parts]}
            for m in messages
            if m.role != "system"
        ]
        payload: dict[str, Any] = {"contents": contents, "generationConfig": self._config(want)}
        payload |= {"systemInstruction": {"parts": system}} if system else {}
        return payload | ({"safetySettings": self._safety} if self._safety else {})

    def _config(self, want: Request) -> dict[str, Any]:
        config = {"candidateCount": 1, **self._parameters_for(want)}
        if self.max_reply_tokens is not None and "maxOutputTokens" not in config:
            config["maxOutputTokens"] = self.max_reply_tokens
        if want.modality != "text" and self._modalities:
            config["responseModalities"] = self._modalities
        if want.size is not None and "aspectRatio" not in dict_or_empty(config.get("imageConfig")):
            config["imageConfig"] = {
                **dict_or_empty(config.get("imageConfig")),
                "aspectRatio": nearest_ratio(want.size),
            }
        if want.schema is not None:
            config |= {"responseMimeType": "application/json", "responseJsonSchema": want.schema}
        return config

    # the reply

    async def read(self, body: Any, want: Request) -> EndpointReply:
        """Changes `body`: a picture's data becomes `blob:DIGEST`."""
        answer = dict_or_empty(body)
        used = _usage(answer)
        served = str(answer.get("modelVersion") or self._model)
        candidates: Any = answer.get("candidates")
        blocked = str(dict_or_empty(answer.get("promptFeedback")).get("blockReason") or "")
        candidate = dict_or_empty(cast(list[Any], candidates)[0]) if isinstance(candidates, list) and candidates else {}
        if not candidate:
            raw = msgspec.json.encode(body).decode()
            if blocked:
                return EndpointReply(
                    (), "refused", f"the request was blocked: {blocked}", raw, served, used, stop_cause="blocked"
                )
            # nobody's reply, and no model's fault
            if not {"candidates", "usageMetadata", "promptFeedback"} & set(answer):
                raise CallError(f"{self.address} answered 200 without `candidates`", TRANSIENT)
            return EndpointReply((), "empty", "a reply without candidates", raw, served, used, retry_advised=True)
        parts, broken = await asyncio.to_thread(self._parts, dict_or_empty(candidate.get("content")))
        return self._outcome(
            parts,
            broken,
            candidate,
            EndpointReply((), "empty", "", msgspec.json.encode(body).decode(), served, used),
            want,
        )

    def _outcome(
        self, parts: tuple[Part, ...], broken: str, candidate: dict[str, Any], sent: EndpointReply, want: Request
    ) -> EndpointReply:
        """Where the reply has what was due, that is what counts, however it ended."""
        finish = str(candidate.get("finishReason") or "")
        sent = replace(sent, parts=parts, stop_cause="truncated" if finish == CUT else "")
        outcome, reason = outcome_of(parts, want.modality)
        if finish == CUT and self.max_reply_tokens is not None and "maxOutputTokens" not in self._parameters:
            why = f"the reply was cut at {self.max_reply_tokens} tokens, the limit that --budget sets where there is none: give max_tokens"
            return replace(sent, parts=(), outcome="failed", reason=why)
        if outcome == "answered":
            return replace(
                sent, outcome=outcome, reason="the reply was cut at the token limit" if finish == CUT else ""
            )
        if finish not in FINE:
            told = f"{finish}: {candidate.get('finishMessage') or reason}"
        else:
            told = reason
        if broken:
            return replace(sent, reason=f"its picture {broken}", retry_advised=True)
        if any(word in finish for word in FILTERS):
            return replace(sent, outcome="refused", reason=told, stop_cause="blocked")
        silent = all(isinstance(part, Thought) for part in parts)
        return replace(sent, reason=told, retry_advised=finish in AGAIN or (silent and finish != CUT))

    def _parts(self, content: dict[str, Any]) -> tuple[tuple[Part, ...], str]:
        """In the order in which they came, each with its signature; and why a picture is unusable, if one is."""
        made: list[Part] = []
        broken = ""
        raw: Any = content.get("parts")
        for one in cast(list[Any], raw) if isinstance(raw, list) else []:
            part = dict_or_empty(one)
            state = State(str(part.get("thoughtSignature") or part.get("thought_signature") or ""))
            data = dict_or_empty(part.get("inlineData") or part.get("inline_data"))
            if isinstance(part.get("text"), str):
                said = part["text"]
                if part.get("thought") is True:
                    made.append(Thought(said, state if state.data else None))
                elif said or state.data:
                    made.append(Text(said, state))
            elif isinstance(data.get("data"), str):
                try:
                    image = self._blobs.put(_unpacked(data["data"]))
                except ImageError as error:
                    broken, data["data"] = str(error), "(a picture that cannot be used)"
                    continue
                data["data"] = f"blob:{image.digest}"
                draft = part.get("thought") is True
                made.append(
                    Thought(f"[a draft, {image.width} x {image.height}]") if draft else replace(image, state=state)
                )
        return tuple(made), broken


def _unpacked(coded: str) -> bytes:
    try:
        return base64.b64decode(coded, validate=True)
    except (binascii.Error, ValueError):
        raise ImageError("is no base64") from None


def _role(message: Message) -> str:
    if message.role == "assistant":
        return "model"
    return "user"


def _sent_part(part: Part, role: str) -> dict[str, Any]:
    """A part as it came; one that the model never said, under the signature for such."""
    if isinstance(part, Image):
        made: dict[str, Any] = {"inlineData": {"mimeType": part.media_type, "data": part}}
    else:
        made = {"text": part.text, **({"thought": True} if isinstance(part, Thought) else {})}
    if role != "assistant":
        return made
    if part.state is not None:
        signature = part.state.data
    else:
        signature = FOREIGN
    return {**made, **({"thoughtSignature": signature} if signature else {})}


def _usage(answer: dict[str, Any]) -> Usage:
    told = dict_or_empty(answer.get("usageMetadata"))
    return Usage(
        read_token_count(told.get("promptTokenCount")),
        read_token_count(told.get("candidatesTokenCount")) + read_token_count(told.get("thoughtsTokenCount")),
    )


def unwrap_error_list(came: HttpResponse) -> HttpResponse:
    """An error that came in a list, as streams wrap it."""
    whole: Any = came.body
    if isinstance(whole, list) and whole:
        inside: Any = cast(list[Any], whole)[0]
    else:
        inside = None
    if inside is None:
        return came
    said, codes = parse_error(inside)
    return HttpResponse(came.status, came.headers, came.data, inside, scrub(said), codes)


NAMES = {
    "max_tokens": "maxOutputTokens",
    "top_p": "topP",
    "top_k": "topK",
    "temperature": "temperature",
    "seed": "seed",
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
    url = url_of(spec, URL)
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)*", spec.model):
        raise UserError(f"{spec.text}: {spec.model!r} is no model's name")
    config: dict[str, Any] = {
        **chosen.pop("extra", {}),
        **{NAMES[name]: chosen.pop(name) for name in list(chosen) if name in NAMES},
    }
    picture = {"imageSize": chosen.pop("image_size", None), "aspectRatio": chosen.pop("aspect_ratio", None)}
    thinking = {
        "thinkingBudget": chosen.pop("thinking_budget", None),
        "thinkingLevel": chosen.pop("thinking_level", None),
        "includeThoughts": chosen.pop("thoughts", None),
    }
    for name, found in (("imageConfig", picture), ("thinkingConfig", thinking)):
        given = {key: value for key, value in found.items() if value is not None}
        config |= {name: {**dict_or_empty(config.get(name)), **given}} if given else {}
    return Gemini(spec.model, url, blobs, key=key_for(url, chosen.pop("key_env", "")), config=config, **chosen)
