"""xAI's pictures: generations, and edits as JSON (it takes no files). What it will not show it leaves out without a word: an empty list, or
an entry that says `respect_moderation: false`, is content that was turned away."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from msgspec.structs import replace

from weft.models.compose.imagine import ratio
from weft.models.converters import count, flag, json_object, seconds
from weft.models.http import Answer
from weft.models.image_api import PICTURES, ImageApi
from weft.models.registry import Spec, about, options
from weft.models.wire import made, url_of
from weft.store.blobs import Blobs
from weft.types import Image, Takes, Want

URL = "https://api.x.ai/v1"
MOST_IMAGES = 3
GIVES = replace(PICTURES, sizes="ratio")


class XAI(ImageApi):
    provider = "xai"
    gives = GIVES
    silent_filter = True
    picture_hosts = (".x.ai",)

    def _asked(self, prompt: str, images: Sequence[Image], want: Want) -> AbstractAsyncContextManager[Answer]:
        payload: dict[str, Any] = {"model": self._model, "prompt": prompt, "n": 1, "response_format": "b64_json", **self._drawn(want)}
        if want.size is not None and "aspect_ratio" not in self._parameters:
            payload["aspect_ratio"] = ratio(want.size)
        if not images:
            return self._post("/images/generations", payload)
        shown = {"image": {"url": images[0]}} if len(images) == 1 else {"images": [{"url": image} for image in images]}
        return self._post("/images/edits", {**payload, **shown})


@about(Takes(images="list", own_images="user", most=MOST_IMAGES), GIVES, url=URL)
@options(
    **dict.fromkeys(("max_side", "most_images"), count),
    **dict.fromkeys(("key_env", "aspect_ratio", "resolution", "response_format"), str),
    timeout=seconds,
    fetch_images=flag,
    extra=json_object,
)
def from_spec(spec: Spec, blobs: Blobs, **chosen: Any) -> XAI:
    url = url_of(spec, URL)
    chosen = {"most_images": MOST_IMAGES, **chosen}
    return made(XAI, spec, blobs, url, chosen)
