"""Seedream on Ark (Volcengine, BytePlus): one route generates and edits images, with up to 14 input images and one
prompt.

By default prompts are not rewritten, images get no watermark, and one request never makes a series of images; options
may change each.
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from msgspec.structs import replace

from weft.models.converters import boolean
from weft.models.http import MAX_REPLY_BYTES, HttpResponse
from weft.models.http_endpoint import HTTP_OPTIONS, from_options, url_of
from weft.models.providers.image_api import IMAGE_ONLY, ImageApi
from weft.models.registry import ModelSpec, provider_info, provider_options
from weft.store.blobs import Blobs
from weft.types import Image, Request, Takes

URL = "https://ark.ap-southeast.bytepluses.com/api/v3"
TAKES = Takes(images="list", own_images="user", max_images=14)
GIVES = replace(IMAGE_ONLY, seed=True)
DEFAULTS: dict[str, Any] = {
    "response_format": "b64_json",
    "watermark": False,
    "sequential_image_generation": "disabled",
}


class Ark(ImageApi):
    provider = "ark"
    takes = TAKES
    gives = GIVES
    image_hosts = (".volces.com", ".bytepluses.com")

    def _post_prompt(
        self, prompt: str, images: Sequence[Image], request: Request
    ) -> AbstractAsyncContextManager[HttpResponse]:
        payload: dict[str, Any] = {"model": self._model, "prompt": prompt, **self._parameters_for(request)}
        if len(images) == 1:
            payload["image"] = images[0]
        elif images:
            payload["image"] = list(images)
        if request.size is not None and "size" not in self._parameters:
            payload["size"] = f"{request.size[0]}x{request.size[1]}"
        return self._post("/images/generations", payload, MAX_REPLY_BYTES)


@provider_info(TAKES, GIVES, url=URL)
@provider_options(
    **HTTP_OPTIONS,
    seed=int,
    **dict.fromkeys(("size", "response_format"), str),
    guidance_scale=float,
    watermark=boolean,
)
def from_spec(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> Ark:
    """Build the endpoint of `ark/NAME` or `ark/NAME@URL`."""
    url = url_of(spec, URL)
    return from_options(Ark, spec, blobs, url, chosen, **DEFAULTS)
