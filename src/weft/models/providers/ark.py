"""Seedream on Ark (Volcengine, BytePlus): one route for pictures from words and for edits, up to 14 pictures before one text.

Prompts are not rewritten, nothing is stamped on pictures and no series is made of one request, unless the options say otherwise."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from msgspec.structs import replace

from weft.models.converters import flag
from weft.models.http import MAX_REPLY, Answer
from weft.models.http_endpoint import OPTIONS, from_options, url_of
from weft.models.providers.image_api import PICTURES, ImageApi
from weft.models.registry import ModelSpec, about, options
from weft.store.blobs import Blobs
from weft.types import Image, Takes, Want

URL = "https://ark.ap-southeast.bytepluses.com/api/v3"
TAKES = Takes(images="list", own_images="user", most=14)
GIVES = replace(PICTURES, seed=True)
USUAL: dict[str, Any] = {"response_format": "b64_json", "watermark": False, "sequential_image_generation": "disabled"}


class Ark(ImageApi):
    provider = "ark"
    takes = TAKES
    gives = GIVES
    picture_hosts = (".volces.com", ".bytepluses.com")

    def _asked(self, prompt: str, images: Sequence[Image], want: Want) -> AbstractAsyncContextManager[Answer]:
        payload: dict[str, Any] = {"model": self._model, "prompt": prompt, **self._drawn(want)}
        if images:
            payload["image"] = images[0] if len(images) == 1 else list(images)
        if want.size is not None and "size" not in self._parameters:
            payload["size"] = f"{want.size[0]}x{want.size[1]}"
        return self._post("/images/generations", payload, MAX_REPLY)


@about(TAKES, GIVES, url=URL)
@options(
    **OPTIONS,
    seed=int,
    **dict.fromkeys(("size", "response_format"), str),
    guidance_scale=float,
    watermark=flag,
)
def from_spec(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> Ark:
    url = url_of(spec, URL)
    return from_options(Ark, spec, blobs, url, chosen, **USUAL)
