"""Chat completions as OpenAI, OpenRouter, vLLM, vLLM-Omni, SGLang, llama.cpp and many others speak it, pictures in and out.

Parts keep their order as far as the server's reply has one: `content` as a string, as a list of parts, pictures in `message.images`
(after the text), data URLs inside text. HTTP 200 is not success: refusals, empty bodies and errors inside a 200 are told apart.
Keys come from the environment and go only into the request header; whoever keeps or shows what a server sends has them cut out.
"""

import asyncio
import re
from collections.abc import Callable
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from weft.errors import PictureError
from weft.models.converters import finite, one_of
from weft.models.endpoint import LISTEN, TRANSIENT, CallError, Sent
from weft.models.http import MAX_REPLY, MAX_TEXT, Answer, error_facts
from weft.models.http_endpoint import OPENAI, OPTIONS, HttpEndpoint, from_options, is_refusal, status_of, url_of
from weft.models.providers.openai_batches import OpenAIBatches
from weft.models.providers.openai_reply import Unpacked, unpack, usage_of
from weft.models.registry import ModelSpec, about, options
from weft.models.sizes import ratio
from weft.models.streamed import Odd, Stream
from weft.secrets import scrub
from weft.store.blobs import Blobs
from weft.types import Gives, Image, Message, Takes, Text, Thought, Want, outcome_of
from weft.untrusted import fields

OPEN = Gives(order=False, thoughts=True, seed=True)  # whatever is behind it may
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
        self.gives = gives or OPEN
        self._own_images, self._sizes = own_images, sizes
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

    async def send(self, messages: tuple[Message, ...], want: Want) -> Sent:
        most = MAX_TEXT if want.kind == "text" else MAX_REPLY
        while True:
            payload = self._payload(messages, want)
            heard = LISTEN.get() if payload["stream"] else None
            stream = Stream(heard, self.address) if heard is not None else None
            try:
                async with self._post(PATH, payload, most, stream=stream) as came:
                    came = _ended_badly(came)
                    if came.status < 400 and not came.said:
                        got, sent = await self._taken(came.body)
                        break
                    if is_refusal(came.codes) or not self._drop_unsupported(status_of(came), came.said or came.text, payload):
                        return self._turned_away(came)
            except Odd:  # at once it may do better
                self._unsupported.add("stream")
        return self._read(await self._follow(got) if got.links else got, sent, want)

    # batches

    def batches(self) -> OpenAIBatches:
        return OpenAIBatches(self)

    def payload(self, messages: tuple[Message, ...], want: Want) -> dict[str, Any]:
        """The request, as a line of a batch has it."""
        return self._payload(messages, want)

    async def answered(self, came: Answer, want: Want) -> Sent:
        """What came of a line."""
        came = _ended_badly(came)
        if came.status >= 400 or came.said:
            return self._turned_away(came)
        got, sent = await self._taken(came.body)
        return self._read(await self._follow(got) if got.links else got, sent, want)

    # the request

    def _payload(self, messages: tuple[Message, ...], want: Want) -> dict[str, Any]:
        capped = self._is_capped()
        payload: dict[str, Any] = {"model": self._model, "messages": [self._message(m) for m in messages], "stream": False}
        payload.update(self._drawn(want))
        if LISTEN.get() is not None and want.kind == "text" and want.schema is None and "stream" not in self._unsupported:
            payload["stream"] = True
            payload |= {"stream_options": {"include_usage": True}} if "stream_options" not in self._unsupported else {}
        if capped:
            payload["max_tokens"] = self.longest
        if "max_tokens" in self._unsupported and "max_tokens" in payload:
            payload["max_completion_tokens"] = payload.pop("max_tokens")
        if want.kind != "text" and self.gives.image and self._modalities and "modalities" not in self._unsupported:
            payload["modalities"] = self._modalities
        if want.schema is not None and "response_format" not in self._unsupported:
            payload["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "verdict", "strict": True, "schema": want.schema},
            }
        if want.size is not None and self._sizes == "size":
            payload["size"] = f"{want.size[0]}x{want.size[1]}"
        elif want.size is not None and self._sizes == "aspect_ratio":
            payload["image_config"] = {**fields(payload.get("image_config")), "aspect_ratio": ratio(want.size)}
        return payload

    def _is_capped(self) -> bool:
        """Whether a budget, and not the user, limits what a reply may have."""
        return self.longest is not None and not {"max_tokens", "max_completion_tokens"} & set(self._parameters)

    def _message(self, message: Message) -> dict[str, Any]:
        texts = [part.text for part in message.parts if isinstance(part, Text)]
        if not any(isinstance(part, Image) for part in message.parts):
            return {"role": message.role, "content": "\n".join(texts)}
        content = [
            {"type": "image_url", "image_url": {"url": part}} if isinstance(part, Image) else {"type": "text", "text": part.text}
            for part in message.parts
            if not isinstance(part, Thought)
        ]
        if message.role == "assistant" and self._own_images == "images":
            return {"role": "assistant", "content": "".join(texts), "images": [part for part in content if part["type"] == "image_url"]}
        return {"role": message.role, "content": content}

    # the reply

    async def _taken(self, body: Any) -> tuple[Unpacked, Sent]:
        """The reply's parts, their pictures in the store, and what else is kept of it."""
        choices: Any = fields(body).get("choices")
        choice = fields(cast(list[Any], choices)[0]) if isinstance(choices, list) and choices else {}
        if not choice:
            raise CallError(f"{self.address} answered 200 without `choices`", TRANSIENT)
        said = fields(choice.get("message")).get("content")
        short = isinstance(said, str) and len(said) < SHORT and not fields(choice.get("message")).get("images")
        got = unpack(choice, self._blobs) if short else await asyncio.to_thread(unpack, choice, self._blobs)
        served = str(fields(body).get("model") or self._model)
        return got, Sent((), "answered", raw=msgspec.json.encode(body).decode(), served=served, usage=usage_of(body))

    def _read(self, got: Unpacked, sent: Sent, want: Want) -> Sent:
        raw, served, usage = sent.raw, sent.served, sent.usage
        if got.refusal:
            return Sent(got.parts, "refused", got.refusal, raw, served, usage, ended="blocked" if got.blocked else "")
        if got.cut and self._is_capped():  # not the model's doing, and no answer to keep
            why = f"the reply was cut at {self.longest} tokens, the limit that --budget sets where there is none: give max_tokens"
            return Sent((), "failed", why, raw, served, usage, ended="truncated")
        outcome, reason = outcome_of(got.parts, want.kind)
        if outcome == "empty" and got.broken:
            return Sent(got.parts, "empty", f"its picture {got.broken}", raw, served, usage, again=True)
        if got.cut and not reason:
            reason = "the reply was cut at the token limit"
        silent = all(isinstance(part, Thought) for part in got.parts)
        again = outcome == "empty" and silent
        return Sent(got.parts, outcome, reason, raw, served, usage, again, "truncated" if got.cut else "")

    async def _follow(self, got: Unpacked) -> Unpacked:
        """Pictures that came as links, in their places."""
        parts = list(got.parts)
        for position, link in reversed(got.links):
            try:
                parts.insert(position, await self._fetched(link))
            except PictureError as error:
                return replace(got, broken=str(error), links=())
        return replace(got, parts=tuple(parts), links=())

    # errors

    def _drop_unsupported(self, status: int, said: str, payload: dict[str, Any]) -> bool:
        """A server that does not know a field says so with 400 or 422: leave the field out from now on. True if this request had it."""
        if status not in (400, 422, 501):
            return False
        lowered = said.lower()
        if self._is_capped() and "max_tokens" in payload and "max_tokens" in lowered and "max_completion_tokens" not in lowered:
            return self._lower(payload["max_tokens"], said)
        for field, words in (
            ("response_format", ("response_format", "json_schema", "structured")),
            ("modalities", ("modalities",)),
            ("stream_options", ("stream_options", "include_usage")),
            ("stream", ("stream",)),
            ("max_tokens", ("max_completion_tokens",)),
        ):
            ours = field not in self._parameters or field == "max_tokens"  # what a user gave stays, and is the user's to take back
            if ours and payload.get(field) and any(re.search(rf"\b{word}", lowered) for word in words):
                self._unsupported.add(field)
                return True
        return False

    def _lower(self, sent: int, said: str) -> bool:
        """A budget's own limit is more than the model allows: the most that it names, or half. True if that is worth another try."""
        told = [int(number) for number in re.findall(r"(?<![\d.])\d{2,6}(?![\d.])", said)]
        self.longest = min(self.longest or sent, max((number for number in told if number < sent), default=sent // 2))
        return self.longest >= LEAST


def _ended_badly(came: Answer) -> Answer:
    """An answer whose one choice ended with an error, once it had begun to come: as the error that it is."""
    choices: Any = fields(came.body).get("choices")
    choice = fields(cast(list[Any], choices)[0]) if isinstance(choices, list) and choices else {}
    if came.status >= 400 or came.said or not (choice.get("error") or choice.get("finish_reason") == "error"):
        return came
    said, codes = error_facts({"error": choice.get("error") or "it ended with an error"})
    return Answer(came.status, came.headers, came.data, came.body, scrub(said), codes)


NUMBERS = ("temperature", "top_p", "presence_penalty", "frequency_penalty")
ARGUMENTS = ("name", "takes", "gives", "own_images", "sizes", "modalities")  # all other options go with every request
COMMON: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(NUMBERS, finite),
    **dict.fromkeys(("max_tokens", "seed"), int),
    "reasoning_effort": str,
    **OPTIONS,
}


def chat(
    kind: type[OpenAIChat], spec: ModelSpec, blobs: Blobs, usual: str, chosen: dict[str, Any], takes: Takes, **more: Any
) -> OpenAIChat:
    """An endpoint of this protocol from its options. `takes` is how its requests are fitted, unless they say otherwise."""
    return from_options(kind, spec, blobs, url_of(spec, usual), {**chosen, "takes": takes, **more}, *ARGUMENTS)


@about(Takes(own_images="user"), OPEN, address=True)
@options(
    **COMMON,
    modalities=str,
    images=one_of("interleaved", "list", "strip", "none"),
    own_images=one_of("user", "assistant", "images"),
    sizes=one_of("words", "size", "aspect_ratio"),
)
def from_spec(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> OpenAIChat:
    own_images = chosen.get("own_images", "user")
    takes = Takes(chosen.pop("images", "interleaved"), "user" if own_images == "user" else "assistant")
    return chat(OpenAIChat, spec, blobs, OPENAI, chosen, takes)


WORDS = Gives(image=False, both=False, order=False, thoughts=True, seed=True)


def in_words(spec: ModelSpec, blobs: Blobs, usual: str, chosen: dict[str, Any]) -> OpenAIChat:
    """One that answers in words alone."""
    name, takes = f"{spec.provider}/{spec.model}", Takes(own_images="user")
    return chat(OpenAIChat, spec, blobs, usual, chosen, takes, gives=WORDS, name=name, modalities="none")


@about(Takes(own_images="user"), WORDS, url=OPENAI)
@options(**COMMON)
def openai(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> OpenAIChat:
    """OpenAI's own models, whose pictures are behind `openai-images` and `openai-responses`."""
    return in_words(spec, blobs, OPENAI, chosen)


@about(Takes(own_images="user"), WORDS, address=True)
@options(**COMMON)
def sglang(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> OpenAIChat:
    """SGLang's chat; its pictures are behind its image API (`openai-images`)."""
    return in_words(spec, blobs, "", chosen)
