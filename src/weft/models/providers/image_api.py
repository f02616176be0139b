"""What APIs share that make one picture of one text and a list of pictures: OpenAI's, Ark's and xAI's answer alike, in
`data`.

Stateless: what a model is to see is one list of pictures and one text, in which they are called by their number. It
makes pictures and no words. An empty list, or one with an error in it, is what such services send for what they will
not show."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, cast

import msgspec

from weft.errors import ImageError
from weft.models.endpoint import NO_RETRY, TRANSIENT, CallError, EndpointReply
from weft.models.http import HttpResponse, parse_error
from weft.models.http_endpoint import HttpEndpoint, is_refusal, retry_decision
from weft.models.providers.openai_reply import read_usage
from weft.secrets import scrub
from weft.types import Gives, Image, Message, Request, Takes, Text
from weft.untrusted import dict_or_empty

EMPTY = {"data", "created", "model", "usage"}  # what a reply may have that shows nothing
STATUSES = {  # what an error means that comes without one
    429: ("ratelimit", "rate_limit", "throttl", "burst", "busy", "overload", "toomany"),
    404: ("notopen", "notfound", "not_found"),
    403: ("denied", "forbidden", "unauthorized"),
    400: ("invalid", "missing", "unsupported"),
}
IMAGE_ONLY = Gives(text=False, interleaved=False, sizes="pixels")


class ImageApi(HttpEndpoint):
    takes = Takes(images="list", own_images="user")
    gives = IMAGE_ONLY
    empty_reason = "it sent no picture"
    silent_filter = False  # whether an empty list stands for what was turned away

    def _asked(self, prompt: str, images: Sequence[Image], want: Request) -> AbstractAsyncContextManager[HttpResponse]:
        """The request, with an answer to come."""
        raise NotImplementedError

    async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
        if lacks := self.gives.unsupported_reason(want.modality):
            return EndpointReply((), "empty", lacks, served_model=self.name)
        prompt, images = flatten_messages(messages)
        if len(images) > (self.takes.max_images or len(images)):
            raise CallError(
                f"{self.name} takes at most {self.takes.max_images} pictures, and there are {len(images)} (option most_images)",
                NO_RETRY,
            )
        async with self._asked(prompt, images, want) as came:
            if came.status >= 400 or came.error_message:
                return self._read_error(came)
            return await self._read(came.body)

    async def _read(self, body: Any) -> EndpointReply:
        """The first picture."""
        answer = dict_or_empty(body)
        data: Any = answer.get("data")
        if self.silent_filter and isinstance(body, dict) and data is None and set(answer) <= EMPTY:
            data = []
        if not isinstance(data, list):
            raise CallError(f"{self.address} answered 200 without `data`", TRANSIENT)
        entry = dict_or_empty(cast(list[Any], data)[0]) if data else {}
        used = read_usage(body)
        if entry:
            told = {**answer, "data": [{name: value for name, value in entry.items() if name != "b64_json"}]}
        else:
            told = answer
        raw = msgspec.json.encode(told).decode()
        if entry.get("error"):
            return self._refused(entry, raw)
        if not entry or entry.get("respect_moderation") is False or not (entry.get("b64_json") or entry.get("url")):
            if self.silent_filter:
                return EndpointReply(
                    (),
                    "refused",
                    f"{self.empty_reason}: turned away without a word",
                    raw,
                    self._model,
                    used,
                    stop_cause="blocked",
                )
            return EndpointReply((), "empty", self.empty_reason, raw, self._model, used)
        try:
            coded = entry.get("b64_json")
            link = entry.get("url")
            image = await (
                self._decode_image(coded) if isinstance(coded, str) and coded else self._fetch_image(str(link))
            )
        except ImageError as error:
            return EndpointReply((), "empty", f"its picture {error}", raw, self._model, used, retry_advised=True)
        return EndpointReply((image,), "answered", "", raw, self._model, used)

    def _refused(self, entry: dict[str, Any], raw: str) -> EndpointReply:
        """An error in a picture's place: turned away where its code says so, else trouble of the service's or of the
        request's."""
        said, codes = parse_error(entry)
        if is_refusal(codes):
            return EndpointReply((), "refused", said[:300], raw, self._model, stop_cause="blocked")
        status = next((status for status, words in STATUSES.items() if any(word in codes for word in words)), 502)
        raise CallError(
            f"{self.address}: {scrub(said)[:300]} ({codes})", retry_decision(status, codes, {}), billed=True
        )


def flatten_messages(messages: Sequence[Message]) -> tuple[str, list[Image]]:
    """One text and the pictures, in their order."""
    images = [part for message in messages for part in message.parts if isinstance(part, Image)]
    texts = [part.text for message in messages for part in message.parts if isinstance(part, Text)]
    return "\n".join(texts).strip(), images
