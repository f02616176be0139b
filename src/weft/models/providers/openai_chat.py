"""Chat completions as OpenAI, OpenRouter, vLLM, vLLM-Omni, SGLang, llama.cpp and many others speak it, pictures in and
out.

Parts keep their order as far as the server's reply has one: `content` as a string, as a list of parts, pictures in
`message.images` (after the text), data URLs inside text. HTTP 200 is not success: refusals, empty bodies and errors
inside a 200 are told apart. Keys come from the environment and go only into the request header; whoever keeps or shows
what a server sends has them cut out."""

import asyncio
import re
from collections.abc import Callable
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from weft.errors import ImageError
from weft.models.converters import finite_number, one_of
from weft.models.endpoint import TEXT_LISTENER, TRANSIENT, CallError, EndpointReply
from weft.models.event_stream import ChatEventStream, UnknownStreamFormat
from weft.models.http import MAX_REPLY_BYTES, MAX_TEXT_BYTES, HttpResponse, parse_error
from weft.models.http_endpoint import (
    HTTP_OPTIONS,
    OPENAI_URL,
    HttpEndpoint,
    from_options,
    is_refusal,
    status_of,
    url_of,
)
from weft.models.providers.openai_batches import OpenAIBatches
from weft.models.providers.openai_reply import ReplyContent, read_choice, read_usage
from weft.models.registry import ModelSpec, provider_info, provider_options
from weft.models.sizes import nearest_ratio
from weft.secrets import scrub
from weft.store.blobs import Blobs
from weft.types import Gives, Image, Message, Request, Takes, Text, Thought, outcome_of
from weft.untrusted import dict_or_empty

ANY_OUTPUT = Gives(ordered=False, thoughts=True, seed=True)  # whatever is behind it may
SHORT = 20_000  # characters in which there is no picture worth a thread
PATH = "/chat/completions"
LEAST = 64  # tokens, under which a limit is no use


class OpenAIChat(HttpEndpoint):
    provider = "openai-chat"

    def __init__(
        self,
        model: str,
        url: str,
        blobs: Blobs,
        *,
        name: str = "",
        takes: Takes | None = None,
        gives: Gives | None = None,
        own_images: str = "user",
        sizes: str = "words",
        modalities: str = "image,text",
        **more: Any,
    ) -> None:
        self.takes = takes or Takes(own_images="user" if own_images == "user" else "assistant")
        self.gives = gives or ANY_OUTPUT
        self._own_images = own_images
        self._sizes = sizes
        self._modalities = [word for word in modalities.split(",") if word and word != "none"]
        self._unsupported: set[str] = set()
        super().__init__(model, url.rstrip("/").removesuffix(PATH), blobs, **more)
        self.name = name or self.name
        self.identity = {
            "provider": self.provider,
            "model": model,
            "url": self.address,
            "own_images": own_images,
            "modalities": self._modalities,
            "parameters": self._parameters,
            **({"sizes": sizes} if sizes != "words" else {}),
        }

    async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
        if want.modality == "text":
            most = MAX_TEXT_BYTES
        else:
            most = MAX_REPLY_BYTES
        while True:
            payload = self._payload(messages, want)
            if payload["stream"]:
                heard = TEXT_LISTENER.get()
            else:
                heard = None
            if heard is not None:
                stream = ChatEventStream(heard, self.address)
            else:
                stream = None
            try:
                async with self._post(PATH, payload, most, stream=stream) as came:
                    came = _ended_badly(came)
                    if came.status < 400 and not came.error_message:
                        got, sent = await self._taken(came.body)
                        break
                    if is_refusal(came.error_codes) or not self._drop_unsupported(
                        status_of(came), came.error_message or came.text, payload
                    ):
                        return self._read_error(came)
            except UnknownStreamFormat:  # at once it may do better
                self._unsupported.add("stream")
        return self._read(await self._follow(got) if got.image_links else got, sent, want)

    # batches

    def batch_service(self) -> OpenAIBatches:
        return OpenAIBatches(self)

    def payload(self, messages: tuple[Message, ...], want: Request) -> dict[str, Any]:
        """The request, as a line of a batch has it."""
        return self._payload(messages, want)

    async def read_batch_line(self, came: HttpResponse, want: Request) -> EndpointReply:
        """What came of a line."""
        came = _ended_badly(came)
        if came.status >= 400 or came.error_message:
            return self._read_error(came)
        got, sent = await self._taken(came.body)
        return self._read(await self._follow(got) if got.image_links else got, sent, want)

    # the request

    def _payload(self, messages: tuple[Message, ...], want: Request) -> dict[str, Any]:
        capped = self._is_capped()
        payload: dict[str, Any] = {
            "model": self._model,
            "messages": [self._message(m) for m in messages],
            "stream": False,
        }
        payload.update(self._parameters_for(want))
        if (
            TEXT_LISTENER.get() is not None
            and want.modality == "text"
            and want.schema is None
            and "stream" not in self._unsupported
        ):
            payload["stream"] = True
            payload |= {"stream_options": {"include_usage": True}} if "stream_options" not in self._unsupported else {}
        if capped:
            payload["max_tokens"] = self.max_reply_tokens
        if "max_tokens" in self._unsupported and "max_tokens" in payload:
            payload["max_completion_tokens"] = payload.pop("max_tokens")
        if want.modality != "text" and self.gives.image and self._modalities and "modalities" not in self._unsupported:
            payload["modalities"] = self._modalities
        if want.schema is not None and "response_format" not in self._unsupported:
            payload["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "verdict", "strict": True, "schema": want.schema},
            }
        if want.size is not None and self._sizes == "size":
            payload["size"] = f"{want.size[0]}x{want.size[1]}"
        elif want.size is not None and self._sizes == "aspect_ratio":
            payload["image_config"] = {
                **dict_or_empty(payload.get("image_config")),
                "aspect_ratio": nearest_ratio(want.size),
            }
        return payload

    def _is_capped(self) -> bool:
        """Whether a budget, and not the user, limits what a reply may have."""
        return self.max_reply_tokens is not None and not {"max_tokens", "max_completion_tokens"} & set(self._parameters)

    def _message(self, message: Message) -> dict[str, Any]:
        texts = [part.text for part in message.parts if isinstance(part, Text)]
        if not any(isinstance(part, Image) for part in message.parts):
            return {"role": message.role, "content": "\n".join(texts)}
        content = [
            {"type": "image_url", "image_url": {"url": part}}
            if isinstance(part, Image)
            else {"type": "text", "text": part.text}
            for part in message.parts
            if not isinstance(part, Thought)
        ]
        if message.role == "assistant" and self._own_images == "images":
            return {
                "role": "assistant",
                "content": "".join(texts),
                "images": [part for part in content if part["type"] == "image_url"],
            }
        return {"role": message.role, "content": content}

    # the reply

    async def _taken(self, body: Any) -> tuple[ReplyContent, EndpointReply]:
        """The reply's parts, their pictures in the store, and what else is kept of it."""
        choices: Any = dict_or_empty(body).get("choices")
        choice = dict_or_empty(cast(list[Any], choices)[0]) if isinstance(choices, list) and choices else {}
        if not choice:
            raise CallError(f"{self.address} answered 200 without `choices`", TRANSIENT)
        said = dict_or_empty(choice.get("message")).get("content")
        short = isinstance(said, str) and len(said) < SHORT and not dict_or_empty(choice.get("message")).get("images")
        if short:
            got = read_choice(choice, self._blobs)
        else:
            got = await asyncio.to_thread(read_choice, choice, self._blobs)
        served = str(dict_or_empty(body).get("model") or self._model)
        return got, EndpointReply(
            (), "answered", raw=msgspec.json.encode(body).decode(), served_model=served, usage=read_usage(body)
        )

    def _read(self, got: ReplyContent, sent: EndpointReply, want: Request) -> EndpointReply:
        raw = sent.raw
        served = sent.served_model
        usage = sent.usage
        if got.refusal:
            return EndpointReply(
                got.parts, "refused", got.refusal, raw, served, usage, stop_cause="blocked" if got.blocked else ""
            )
        if got.truncated and self._is_capped():  # not the model's doing, and no answer to keep
            why = f"the reply was cut at {self.max_reply_tokens} tokens, the limit that --budget sets where there is none: give max_tokens"
            return EndpointReply((), "failed", why, raw, served, usage, stop_cause="truncated")
        outcome, reason = outcome_of(got.parts, want.modality)
        if outcome == "empty" and got.image_error:
            return EndpointReply(
                got.parts, "empty", f"its picture {got.image_error}", raw, served, usage, retry_advised=True
            )
        if got.truncated and not reason:
            reason = "the reply was cut at the token limit"
        silent = all(isinstance(part, Thought) for part in got.parts)
        again = outcome == "empty" and silent
        return EndpointReply(
            got.parts, outcome, reason, raw, served, usage, again, "truncated" if got.truncated else ""
        )

    async def _follow(self, got: ReplyContent) -> ReplyContent:
        """Pictures that came as links, in their places."""
        parts = list(got.parts)
        for position, link in reversed(got.image_links):
            try:
                parts.insert(position, await self._fetch_image(link))
            except ImageError as error:
                return replace(got, image_error=str(error), image_links=())
        return replace(got, parts=tuple(parts), image_links=())

    # errors

    def _drop_unsupported(self, status: int, said: str, payload: dict[str, Any]) -> bool:
        """A server that does not know a field says so with 400 or 422: leave the field out from now on. True if this
        request had it."""
        if status not in (400, 422, 501):
            return False
        lowered = said.lower()
        if (
            self._is_capped()
            and "max_tokens" in payload
            and "max_tokens" in lowered
            and "max_completion_tokens" not in lowered
        ):
            return self._lower(payload["max_tokens"], said)
        for field, words in (
            ("response_format", ("response_format", "json_schema", "structured")),
            ("modalities", ("modalities",)),
            ("stream_options", ("stream_options", "include_usage")),
            ("stream", ("stream",)),
            ("max_tokens", ("max_completion_tokens",)),
        ):
            # what a user gave stays, and is the user's to take back
            ours = field not in self._parameters or field == "max_tokens"
            if ours and payload.get(field) and any(re.search(rf"\b{word}", lowered) for word in words):
                self._unsupported.add(field)
                return True
        return False

    def _lower(self, sent: int, said: str) -> bool:
        """A budget's own limit is more than the model allows: the most that it names, or half. True if that is worth
        another try."""
        told = [int(number) for number in re.findall(r"(?<![\d.])\d{2,6}(?![\d.])", said)]
        self.max_reply_tokens = min(
            self.max_reply_tokens or sent, max((number for number in told if number < sent), default=sent // 2)
        )
        return self.max_reply_tokens >= LEAST


def _ended_badly(came: HttpResponse) -> HttpResponse:
    """An answer whose one choice ended with an error, once it had begun to come: as the error that it is."""
    choices: Any = dict_or_empty(came.body).get("choices")
    choice = dict_or_empty(cast(list[Any], choices)[0]) if isinstance(choices, list) and choices else {}
    if came.status >= 400 or came.error_message or not (choice.get("error") or choice.get("finish_reason") == "error"):
        return came
    said, codes = parse_error({"error": choice.get("error") or "it ended with an error"})
    return HttpResponse(came.status, came.headers, came.data, came.body, scrub(said), codes)


NUMBERS = ("temperature", "top_p", "presence_penalty", "frequency_penalty")
ARGUMENTS = ("name", "takes", "gives", "own_images", "sizes", "modalities")  # all other options go with every request
COMMON_OPTIONS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(NUMBERS, finite_number),
    **dict.fromkeys(("max_tokens", "seed"), int),
    "reasoning_effort": str,
    **HTTP_OPTIONS,
}


def build_chat(
    kind: type[OpenAIChat], spec: ModelSpec, blobs: Blobs, usual: str, chosen: dict[str, Any], takes: Takes, **more: Any
) -> OpenAIChat:
    """An endpoint of this protocol from its options. `takes` is how its requests are fitted, unless they say
    otherwise."""
    return from_options(kind, spec, blobs, url_of(spec, usual), {**chosen, "takes": takes, **more}, *ARGUMENTS)


@provider_info(Takes(own_images="user"), ANY_OUTPUT, address=True)
@provider_options(
    **COMMON_OPTIONS,
    modalities=str,
    images=one_of("interleaved", "list", "strip", "none"),
    own_images=one_of("user", "assistant", "images"),
    sizes=one_of("words", "size", "aspect_ratio"),
)
def from_spec(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> OpenAIChat:
    own_images = chosen.get("own_images", "user")
    takes = Takes(chosen.pop("images", "interleaved"), "user" if own_images == "user" else "assistant")
    return build_chat(OpenAIChat, spec, blobs, OPENAI_URL, chosen, takes)


TEXT_ONLY = Gives(image=False, interleaved=False, ordered=False, thoughts=True, seed=True)


def build_text_chat(spec: ModelSpec, blobs: Blobs, usual: str, chosen: dict[str, Any]) -> OpenAIChat:
    """One that answers in words alone."""
    name = f"{spec.provider}/{spec.model}"
    takes = Takes(own_images="user")
    return build_chat(OpenAIChat, spec, blobs, usual, chosen, takes, gives=TEXT_ONLY, name=name, modalities="none")


@provider_info(Takes(own_images="user"), TEXT_ONLY, url=OPENAI_URL)
@provider_options(**COMMON_OPTIONS)
def openai(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> OpenAIChat:
    """OpenAI's own models, whose pictures are behind `openai-images` and `openai-responses`."""
    return build_text_chat(spec, blobs, OPENAI_URL, chosen)


@provider_info(Takes(own_images="user"), TEXT_ONLY, address=True)
@provider_options(**COMMON_OPTIONS)
def sglang(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> OpenAIChat:
    """SGLang's chat; its pictures are behind its image API (`openai-images`)."""
    return build_text_chat(spec, blobs, "", chosen)
