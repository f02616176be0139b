"""What APIs share that make one picture of one text and a list of pictures: OpenAI's, Ark's and xAI's answer alike, in `data`.

Stateless: what a model is to see is one list of pictures and one text, in which they are called by their number. It makes pictures and no
words. An empty list, or one with an error in it, is what such services send for what they will not show."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, cast

import msgspec

from weft.errors import PictureError
from weft.models.endpoint import NO, TRANSIENT, CallError, Sent
from weft.models.http import Answer, error_facts
from weft.models.http_endpoint import HttpEndpoint, decide, is_refusal
from weft.models.providers.openai_reply import usage_of
from weft.secrets import scrub
from weft.types import Gives, Image, Message, Takes, Text, Want
from weft.untrusted import fields

EMPTY = {"data", "created", "model", "usage"}  # what a reply may have that shows nothing
STATUSES = {  # what an error means that comes without one
    429: ("ratelimit", "rate_limit", "throttl", "burst", "busy", "overload", "toomany"),
    404: ("notopen", "notfound", "not_found"),
    403: ("denied", "forbidden", "unauthorized"),
    400: ("invalid", "missing", "unsupported"),
}
PICTURES = Gives(text=False, both=False, sizes="pixels")


class ImageApi(HttpEndpoint):
    takes = Takes(images="list", own_images="user")
    gives = PICTURES
    empty = "it sent no picture"
    silent_filter = False  # whether an empty list stands for what was turned away

    def _asked(self, prompt: str, images: Sequence[Image], want: Want) -> AbstractAsyncContextManager[Answer]:
        """The request, with an answer to come."""
        raise NotImplementedError

    async def send(self, messages: tuple[Message, ...], want: Want) -> Sent:
        if lacks := self.gives.lacks(want.kind):
            return Sent((), "empty", lacks, served=self.name)
        prompt, images = flat(messages)
        if len(images) > (self.takes.most or len(images)):
            raise CallError(f"{self.name} takes at most {self.takes.most} pictures, and there are {len(images)} (option most_images)", NO)
        async with self._asked(prompt, images, want) as came:
            if came.status >= 400 or came.said:
                return self._turned_away(came)
            return await self._read(came.body)

    async def _read(self, body: Any) -> Sent:
        """The first picture."""
        answer = fields(body)
        data: Any = answer.get("data")
        if self.silent_filter and isinstance(body, dict) and data is None and set(answer) <= EMPTY:
            data = []
        if not isinstance(data, list):
            raise CallError(f"{self.address} answered 200 without `data`", TRANSIENT)
        entry = fields(cast(list[Any], data)[0]) if data else {}
        used = usage_of(body)
        told = {**answer, "data": [{name: value for name, value in entry.items() if name != "b64_json"}]} if entry else answer
        raw = msgspec.json.encode(told).decode()
        if entry.get("error"):
            return self._refused(entry, raw)
        if not entry or entry.get("respect_moderation") is False or not (entry.get("b64_json") or entry.get("url")):
            if self.silent_filter:
                return Sent((), "refused", f"{self.empty}: turned away without a word", raw, self._model, used, ended="blocked")
            return Sent((), "empty", self.empty, raw, self._model, used)
        try:
            coded, link = entry.get("b64_json"), entry.get("url")
            image = await (self._decoded(coded) if isinstance(coded, str) and coded else self._fetched(str(link)))
        except PictureError as error:
            return Sent((), "empty", f"its picture {error}", raw, self._model, used, again=True)
        return Sent((image,), "answered", "", raw, self._model, used)

    def _refused(self, entry: dict[str, Any], raw: str) -> Sent:
        """An error in a picture's place: turned away where its code says so, else trouble of the service's or of the request's."""
        said, codes = error_facts(entry)
        if is_refusal(codes):
            return Sent((), "refused", said[:300], raw, self._model, ended="blocked")
        status = next((status for status, words in STATUSES.items() if any(word in codes for word in words)), 502)
        raise CallError(f"{self.address}: {scrub(said)[:300]} ({codes})", decide(status, codes, {}), billed=True)


def flat(messages: Sequence[Message]) -> tuple[str, list[Image]]:
    """One text and the pictures, in their order."""
    images = [part for message in messages for part in message.parts if isinstance(part, Image)]
    texts = [part.text for message in messages for part in message.parts if isinstance(part, Text)]
    return "\n".join(texts).strip(), images
