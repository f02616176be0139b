"""xAI's pictures: generations, and edits as JSON (it takes no files). What it will not show it leaves out without a word: an empty list, or
an entry that says `respect_moderation: false`, is content that was turned away."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from msgspec.structs import replace

from weft.models.http import MAX_REPLY, Answer
from weft.models.http_endpoint import OPTIONS, from_options, url_of
from weft.models.providers.image_api import PICTURES, ImageApi
from weft.models.registry import ModelSpec, about, options
from weft.models.sizes import ratio
from weft.store.blobs import Blobs
from weft.types import Image, Takes, Want

URL = "https://api.x.ai/v1"
TAKES = Takes(images="list", own_images="user", most=3)
GIVES = replace(PICTURES, sizes="ratio")


class XAI(ImageApi):
    provider = "xai"
    takes = TAKES
    gives = GIVES
    silent_filter = True
    picture_hosts = (".x.ai",)

    def _asked(self, prompt: str, images: Sequence[Image], want: Want) -> AbstractAsyncContextManager[Answer]:
        payload: dict[str, Any] = {"model": self._model, "prompt": prompt, "n": 1, "response_format": "b64_json", **self._drawn(want)}
        if want.size is not None and "aspect_ratio" not in self._parameters:
            payload["aspect_ratio"] = ratio(want.size)
        if not images:
            return self._post("/images/generations", payload, MAX_REPLY)
        shown = {"image": {"url": images[0]}} if len(images) == 1 else {"images": [{"url": image} for image in images]}
        return self._post("/images/edits", {**payload, **shown}, MAX_REPLY)


@about(TAKES, GIVES, url=URL)
@options(
    **OPTIONS,
    **dict.fromkeys(("aspect_ratio", "resolution", "response_format"), str),
)
def from_spec(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> XAI:
    url = url_of(spec, URL)
    return from_options(XAI, spec, blobs, url, chosen)
