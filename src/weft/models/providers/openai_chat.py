"""Chat completions as OpenAI, OpenRouter, vLLM, vLLM-Omni, SGLang, llama.cpp and many others speak them, with images.

Parts keep their order as far as the server's reply has one: `content` as a string, as a list of parts, images in
`message.images` (after the text), data URLs inside text. HTTP 200 is not success: refusals, empty bodies and errors
inside a 200 are told apart. Keys come from the environment and are sent only in the request header.
"""

import asyncio
import re
from collections.abc import Callable
from typing import Any

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
from weft.models.providers.openai_reply import ReplyContent, first_choice, read_choice, read_usage
from weft.models.registry import ModelSpec, provider_info, provider_options
from weft.models.sizes import nearest_ratio
from weft.secrets import scrub
from weft.store.blobs import Blobs
from weft.types import Gives, Image, Message, Part, Request, Takes, Text, Thought, outcome_of
from weft.untrusted import dict_or_empty

ANY_OUTPUT = Gives(ordered=False, thoughts=True, seed=True)  # of a server whose model is not known
SHORT_CONTENT = 20_000  # characters; a shorter content has no image that is worth decoding in a thread
PATH = "/chat/completions"
MIN_TOKEN_LIMIT = 64  # no useful reply fits into less
OPTIONAL_FIELDS = {  # fields a server may reject, with the words that its error message then has
    "response_format": ("response_format", "json_schema", "structured"),
    "modalities": ("modalities",),
    "stream_options": ("stream_options", "include_usage"),
    "stream": ("stream",),
    "max_tokens": ("max_completion_tokens",),
}


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
        """`own_images` says where the model's own images go: `user`, `assistant`, or `images` (beside the content)."""
        self.takes = takes or Takes(own_images="user" if own_images == "user" else "assistant")
        self.gives = gives or ANY_OUTPUT
        self._own_images = own_images
        self._sizes = sizes
        self._modalities = [word for word in modalities.split(",") if word and word != "none"]
        self._unsupported: set[str] = set()  # fields that the server rejected, and that are left out since
        super().__init__(model, url.rstrip("/").removesuffix(PATH), blobs, **more)
        self.name = name or self.name
        identity: dict[str, Any] = {
            "provider": self.provider,
            "model": model,
            "url": self.address,
            "own_images": own_images,
            "modalities": self._modalities,
            "parameters": self._parameters,
        }
        if sizes != "words":
            identity["sizes"] = sizes
        self.identity = identity

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        limit = MAX_REPLY_BYTES
        if request.modality == "text":
            limit = MAX_TEXT_BYTES
        while True:
            payload = self._payload(messages, request)
            try:
                async with self._post(PATH, payload, limit, stream=self._build_stream(payload)) as response:
                    response = _unwrap_choice_error(response)
                    if response.status < 400 and not response.error_message:
                        content, reply = await self._read_body(response.body)
                        break
                    message = response.error_message or response.text
                    if is_refusal(response.error_codes) or not self._drop_unsupported(
                        status_of(response), message, payload
                    ):
                        return self._read_error(response)
            except UnknownStreamFormat:  # it may have been billed, so the next try, without streaming, is paid for anew
                self._unsupported.add("stream")
                raise
        return self._build_reply(await self._fetch_links(content), reply, request)

    def _build_stream(self, payload: dict[str, Any]) -> ChatEventStream | None:
        listener = TEXT_LISTENER.get()
        if listener is None or not payload["stream"]:
            return None
        return ChatEventStream(listener, self.address)

    # batches

    def batch_service(self) -> OpenAIBatches:
        return OpenAIBatches(self)

    def payload(self, messages: tuple[Message, ...], request: Request) -> dict[str, Any]:
        """Build a request, as a line of a batch has it."""
        return self._payload(messages, request)

    async def read_response(self, response: HttpResponse, request: Request) -> EndpointReply:
        """Read the response to a line of a batch."""
        response = _unwrap_choice_error(response)
        if response.status >= 400 or response.error_message:
            return self._read_error(response)
        content, reply = await self._read_body(response.body)
        return self._build_reply(await self._fetch_links(content), reply, request)

    # the request

    def _payload(self, messages: tuple[Message, ...], request: Request) -> dict[str, Any]:
        payload: dict[str, Any] = {
            "model": self._model,
            "messages": [self._build_message(message) for message in messages],
            "stream": False,
        }
        payload.update(self._parameters_for(request))
        if self._may_stream(request):
            payload["stream"] = True
            if "stream_options" not in self._unsupported:
                payload["stream_options"] = {"include_usage": True}
        if self._has_budget_limit():
            payload["max_tokens"] = self.max_reply_tokens
        if "max_tokens" in self._unsupported and "max_tokens" in payload:
            payload["max_completion_tokens"] = payload.pop("max_tokens")
        if (
            request.modality != "text"
            and self.gives.image
            and self._modalities
            and "modalities" not in self._unsupported
        ):
            payload["modalities"] = self._modalities
        if request.schema is not None and "response_format" not in self._unsupported:
            payload["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "verdict", "strict": True, "schema": request.schema},
            }
        if request.size is not None and self._sizes == "size":
            payload["size"] = f"{request.size[0]}x{request.size[1]}"
        elif request.size is not None and self._sizes == "aspect_ratio":
            image_config = dict_or_empty(payload.get("image_config"))
            payload["image_config"] = {**image_config, "aspect_ratio": nearest_ratio(request.size)}
        return payload

    def _may_stream(self, request: Request) -> bool:
        if TEXT_LISTENER.get() is None or "stream" in self._unsupported:
            return False
        return request.modality == "text" and request.schema is None

    def _has_budget_limit(self) -> bool:
        """Whether `--budget`, and not the user, limits the tokens of a reply."""
        return self.max_reply_tokens is not None and not {"max_tokens", "max_completion_tokens"} & set(self._parameters)

    def _build_message(self, message: Message) -> dict[str, Any]:
        texts = [part.text for part in message.parts if isinstance(part, Text)]
        if not any(isinstance(part, Image) for part in message.parts):
            return {"role": message.role, "content": "\n".join(texts)}
        content = [build_part(part) for part in message.parts if not isinstance(part, Thought)]
        if message.role == "assistant" and self._own_images == "images":
            images = [part for part in content if part["type"] == "image_url"]
            return {"role": "assistant", "content": "".join(texts), "images": images}
        return {"role": message.role, "content": content}

    # the reply

    async def _read_body(self, body: Any) -> tuple[ReplyContent, EndpointReply]:
        """Read a completion and store its images; return its content, and a reply with all but parts and outcome."""
        choice = first_choice(body)
        if not choice:
            raise CallError(f"{self.address} answered 200 without `choices`", TRANSIENT)
        message = dict_or_empty(choice.get("message"))
        text = message.get("content")
        if isinstance(text, str) and len(text) < SHORT_CONTENT and not message.get("images"):
            content = read_choice(choice, self._blobs)
        else:
            content = await asyncio.to_thread(read_choice, choice, self._blobs)
        raw = msgspec.json.encode(body).decode()
        served = str(dict_or_empty(body).get("model") or self._model)
        usage = replace(read_usage(body), images=content.images)
        return content, EndpointReply((), "answered", raw=raw, served_model=served, usage=usage)

    def _build_reply(self, content: ReplyContent, reply: EndpointReply, request: Request) -> EndpointReply:
        """Set the parts and the outcome of a reply from its content."""
        if content.refusal:
            if content.blocked:
                reply = replace(reply, stop_cause="blocked")
            return replace(reply, parts=content.parts, outcome="refused", reason=content.refusal)
        if content.truncated:
            reply = replace(reply, stop_cause="truncated")
        if content.truncated and self._has_budget_limit():  # not the model's fault, so not an answer to cache
            reason = f"the reply was truncated at {self.max_reply_tokens} tokens, --budget's limit: give max_tokens"
            return replace(reply, outcome="failed", reason=reason)
        outcome, reason = outcome_of(content.parts, request.modality)
        if outcome == "empty" and content.image_error:
            reason = f"its image {content.image_error}"
            return replace(
                reply, parts=content.parts, outcome="empty", reason=reason, retry_advised=True, stop_cause=""
            )
        if content.truncated and not reason:
            reason = "the reply was truncated at the token limit"
        only_thoughts = all(isinstance(part, Thought) for part in content.parts)
        retry_advised = outcome == "empty" and only_thoughts
        return replace(reply, parts=content.parts, outcome=outcome, reason=reason, retry_advised=retry_advised)

    async def _fetch_links(self, content: ReplyContent) -> ReplyContent:
        """Fetch images that came as links, and put them where they belong among the parts."""
        if not content.image_links:
            return content
        parts = list(content.parts)
        for position, link in reversed(content.image_links):
            try:
                parts.insert(position, await self._fetch_image(link))
            except ImageError as error:
                return replace(content, image_error=str(error), image_links=())
        return replace(content, parts=tuple(parts), image_links=())

    # errors

    def _call_error(self, response: HttpResponse) -> CallError:
        error = super()._call_error(response)
        if first_choice(response.body):  # the reply had begun
            error.billed = True
        return error

    def _drop_unsupported(self, status: int, message: str, payload: dict[str, Any]) -> bool:
        """Leave a field out from now on if the server's error says that it does not know it.

        Returns whether the rejected request had the field, so that sending it again is worth a try.
        """
        if status not in (400, 422, 501):
            return False
        lowered = message.lower()
        names_limit = "max_tokens" in lowered and "max_completion_tokens" not in lowered
        if names_limit and self._has_budget_limit() and "max_tokens" in payload:
            return self._lower_budget_limit(payload["max_tokens"], message)
        for field, words in OPTIONAL_FIELDS.items():
            is_user_option = field in self._parameters and field != "max_tokens"  # left for the user to change
            if is_user_option or not payload.get(field):
                continue
            if any(re.search(rf"\b{word}", lowered) for word in words):
                self._unsupported.add(field)
                return True
        return False

    def _lower_budget_limit(self, sent: int, message: str) -> bool:
        """Lower a budget's token limit that exceeds the model's own: to the most that the error names, or to half.

        Returns whether the new limit is worth another try.
        """
        numbers = [int(number) for number in re.findall(r"(?<![\d.])\d{2,6}(?![\d.])", message)]
        allowed = max((number for number in numbers if number < sent), default=sent // 2)
        self.max_reply_tokens = min(self.max_reply_tokens or sent, allowed)
        return self.max_reply_tokens >= MIN_TOKEN_LIMIT


def build_part(part: Part) -> dict[str, Any]:
    """Build a part of a message's content."""
    if isinstance(part, Image):
        return {"type": "image_url", "image_url": {"url": part}}
    return {"type": "text", "text": part.text}


def _unwrap_choice_error(response: HttpResponse) -> HttpResponse:
    """Return a completion whose choice ended with an error, after it had begun, as the error that it is."""
    choice = first_choice(response.body)
    failed = choice.get("error") or choice.get("finish_reason") == "error"
    if response.status >= 400 or response.error_message or not failed:
        return response
    message, codes = parse_error({"error": choice.get("error") or "it ended with an error"})
    return HttpResponse(response.status, response.headers, response.data, response.body, scrub(message), codes)


NUMBER_OPTIONS = ("temperature", "top_p", "presence_penalty", "frequency_penalty")
ARGUMENTS = ("name", "takes", "gives", "own_images", "sizes", "modalities")  # all other options go with every request
COMMON_OPTIONS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(NUMBER_OPTIONS, finite_number),
    **dict.fromkeys(("max_tokens", "seed"), int),
    "reasoning_effort": str,
    **HTTP_OPTIONS,
}
TEXT_ONLY = Gives(image=False, interleaved=False, ordered=False, thoughts=True, seed=True)


def build_chat(
    endpoint_class: type[OpenAIChat],
    spec: ModelSpec,
    blobs: Blobs,
    default_url: str,
    chosen: dict[str, Any],
    takes: Takes,
    **more: Any,
) -> OpenAIChat:
    """Build an endpoint of this protocol. `takes` is what it accepts; `more` are further arguments."""
    url = url_of(spec, default_url)
    return from_options(endpoint_class, spec, blobs, url, {**chosen, "takes": takes, **more}, *ARGUMENTS)


def build_text_chat(spec: ModelSpec, blobs: Blobs, default_url: str, chosen: dict[str, Any]) -> OpenAIChat:
    """Build an endpoint whose output is text alone."""
    name = f"{spec.provider}/{spec.model}"
    takes = Takes(own_images="user")
    return build_chat(
        OpenAIChat, spec, blobs, default_url, chosen, takes, gives=TEXT_ONLY, name=name, modalities="none"
    )


@provider_info(Takes(own_images="user"), ANY_OUTPUT, address=True)
@provider_options(
    **COMMON_OPTIONS,
    modalities=str,
    images=one_of("interleaved", "list", "strip", "none"),
    own_images=one_of("user", "assistant", "images"),
    sizes=one_of("words", "size", "aspect_ratio"),
)
def from_spec(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> OpenAIChat:
    """Build the endpoint of `openai-chat/NAME@URL`: any server that speaks this protocol."""
    own_images = chosen.get("own_images", "user")
    takes = Takes(chosen.pop("images", "interleaved"), "user" if own_images == "user" else "assistant")
    return build_chat(OpenAIChat, spec, blobs, OPENAI_URL, chosen, takes)


@provider_info(Takes(own_images="user"), TEXT_ONLY, url=OPENAI_URL)
@provider_options(**COMMON_OPTIONS)
def openai(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> OpenAIChat:
    """Build the endpoint of an OpenAI model. Its images are behind `openai-images` and `openai-responses`."""
    return build_text_chat(spec, blobs, OPENAI_URL, chosen)


@provider_info(Takes(own_images="user"), TEXT_ONLY, address=True)
@provider_options(**COMMON_OPTIONS)
def sglang(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> OpenAIChat:
    """Build the endpoint of a model on SGLang. Its images are behind its image API (`openai-images`)."""
    return build_text_chat(spec, blobs, "", chosen)
