"""xAI's image models: generations, and edits as JSON (the API takes no files).

The API reports no moderation error. An empty list, or an entry with `respect_moderation: false`, is content that it
blocked.
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from msgspec.structs import replace

from weft.models.http import MAX_REPLY_BYTES, HttpResponse
from weft.models.http_endpoint import HTTP_OPTIONS, from_options, url_of
from weft.models.providers.image_api import IMAGE_ONLY, ImageApi
from weft.models.registry import ModelSpec, provider_info, provider_options
from weft.models.sizes import nearest_ratio
from weft.store.blobs import Blobs
from weft.types import Image, Request, Takes

URL = "https://api.x.ai/v1"
TAKES = Takes(images="list", own_images="user", max_images=3)
GIVES = replace(IMAGE_ONLY, sizes="ratio")


class XAI(ImageApi):
    provider = "xai"
    takes = TAKES
    gives = GIVES
    silent_filter = True
    image_hosts = (".x.ai",)

    def _post_prompt(
        self, prompt: str, images: Sequence[Image], request: Request
    ) -> AbstractAsyncContextManager[HttpResponse]:
        payload: dict[str, Any] = {
            "model": self._model,
            "prompt": prompt,
            "n": 1,
            "response_format": "b64_json",
            **self._parameters_for(request),
        }
        if request.size is not None and "aspect_ratio" not in self._parameters:
            payload["aspect_ratio"] = nearest_ratio(request.size)
        if not images:
            return self._post("/images/generations", payload, MAX_REPLY_BYTES)
        if len(images) == 1:
            payload["image"] = {"url": images[0]}
        else:
            payload["images"] = [{"url": image} for image in images]
        return self._post("/images/edits", payload, MAX_REPLY_BYTES)


@provider_info(TAKES, GIVES, url=URL)
@provider_options(
    **HTTP_OPTIONS,
    **dict.fromkeys(("aspect_ratio", "resolution", "response_format"), str),
)
def from_spec(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> XAI:
    """Build the endpoint of `xai/NAME` or `xai/NAME@URL`."""
    url = url_of(spec, URL)
    return from_options(XAI, spec, blobs, url, chosen)
