"""The base of APIs that make one image from one prompt and a list of images, and answer in `data`: OpenAI's, Ark's,
xAI's.

The protocol is stateless and has no text output. All input images go as one list; the prompt refers to them by number.
For content that they block, such services send an empty list, or a list with an error in it.
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from weft.errors import ImageError
from weft.models.endpoint import NO_RETRY, TRANSIENT, CallError, EndpointReply
from weft.models.http import HttpResponse, parse_error
from weft.models.http_endpoint import HttpEndpoint, is_refusal, retry_decision
from weft.models.providers.message_parts import flatten_messages
from weft.models.providers.openai_reply import first_dict, read_usage
from weft.secrets import scrub
from weft.types import Gives, Image, Message, Request, Takes
from weft.untrusted import dict_or_empty

EMPTY_REPLY_KEYS = {"data", "created", "model", "usage"}  # all that a reply without an image has
STATUS_BY_CODE = {  # the HTTP status that an error inside a 200 stands for, by words of its code
    429: ("ratelimit", "rate_limit", "throttl", "burst", "busy", "overload", "toomany"),
    404: ("notopen", "notfound", "not_found"),
    403: ("denied", "forbidden", "unauthorized"),
    400: ("invalid", "missing", "unsupported"),
}
IMAGE_ONLY = Gives(text=False, interleaved=False, sizes="pixels")


class ImageApi(HttpEndpoint):
    takes = Takes(images="list", own_images="user")
    gives = IMAGE_ONLY
    empty_reason = "it sent no image"
    silent_filter = False  # whether the API sends an empty list for content that it blocks

    def _post_prompt(
        self, prompt: str, images: Sequence[Image], request: Request
    ) -> AbstractAsyncContextManager[HttpResponse]:
        """Build the request and send it on entering the context."""
        raise NotImplementedError

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        unsupported = self.gives.unsupported_reason(request.modality)
        if unsupported:
            return EndpointReply((), "empty", unsupported, served_model=self.name)
        prompt, images = flatten_messages(messages)
        limit = self.takes.max_images
        if limit and len(images) > limit:
            raise CallError(
                f"{self.name} takes at most {limit} images, and there are {len(images)} (option most_images)", NO_RETRY
            )
        async with self._post_prompt(prompt, images, request) as response:
            if response.status >= 400 or response.error_message:
                return self._read_error(response)
            return await self._read(response.body)

    async def _read(self, body: Any) -> EndpointReply:
        """Read the first image of a reply."""
        answer = dict_or_empty(body)
        data: Any = answer.get("data")
        if self.silent_filter and isinstance(body, dict) and data is None and set(answer) <= EMPTY_REPLY_KEYS:
            data = []
        if not isinstance(data, list):
            raise CallError(f"{self.address} answered 200 without `data`", TRANSIENT)
        entry = first_dict(data)
        raw = _encode_without_image(answer, entry)
        usage = replace(read_usage(body), images=len(cast(list[Any], data)))
        if entry.get("error"):
            return self._read_entry_error(entry, raw)
        if entry.get("respect_moderation") is False or not (entry.get("b64_json") or entry.get("url")):
            if not self.silent_filter:
                return EndpointReply((), "empty", self.empty_reason, raw, self._model, usage)
            reason = f"{self.empty_reason}: blocked without an error message"
            return EndpointReply((), "refused", reason, raw, self._model, usage, stop_cause="blocked")
        try:
            image = await self._read_image(entry)
        except ImageError as error:
            return EndpointReply((), "empty", f"its image {error}", raw, self._model, usage, retry_advised=True)
        return EndpointReply((image,), "answered", "", raw, self._model, usage)

    async def _read_image(self, entry: dict[str, Any]) -> Image:
        data = entry.get("b64_json")
        if isinstance(data, str) and data:
            return await self._decode_image(data)
        return await self._fetch_image(str(entry.get("url")))

    def _read_entry_error(self, entry: dict[str, Any], raw: str) -> EndpointReply:
        """Return a refusal for an error in an image's place whose code says so. Raises CallError for any other."""
        message, codes = parse_error(entry)
        if is_refusal(codes):
            return EndpointReply((), "refused", message[:300], raw, self._model, stop_cause="blocked")
        retry = retry_decision(_find_status(codes), codes, {})
        raise CallError(f"{self.address}: {scrub(message)[:300]} ({codes})", retry, billed=True)


def _encode_without_image(answer: dict[str, Any], entry: dict[str, Any]) -> str:
    """Return the raw reply as it is journalled: with its first entry alone, and without base64."""
    if entry:
        without_data = {name: value for name, value in entry.items() if name != "b64_json"}
        answer = {**answer, "data": [without_data]}
    return msgspec.json.encode(answer).decode()


def _find_status(codes: str) -> int:
    for status, words in STATUS_BY_CODE.items():
        if any(word in codes for word in words):
            return status
    return 502
