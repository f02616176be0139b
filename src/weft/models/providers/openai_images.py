"""Any server that speaks OpenAI's image API: `images/generations` where there is no picture to go by, `images/edits`
where there are some.

`edits` says how pictures travel: `json` as data URLs (OpenAI), `multipart` as files (vLLM-Omni, SGLang, LightX2V).
Those other servers must be told to send the picture itself and no link (`response_format`), which OpenAI's own models
refuse."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any
from urllib.parse import urlsplit

from weft.models.converters import one_of
from weft.models.endpoint import CallError, EndpointReply
from weft.models.http import MAX_REPLY_BYTES, HttpResponse
from weft.models.http_endpoint import HTTP_OPTIONS, OPENAI_URL, from_options, url_of
from weft.models.providers.image_api import IMAGE_ONLY, ImageApi
from weft.models.registry import ModelSpec, provider_info, provider_options
from weft.store.blobs import Blobs
from weft.types import Image, Message, Request, Takes

TAKES = Takes(images="list", own_images="user", max_images=16)  # that OpenAI takes
HOST = urlsplit(OPENAI_URL).hostname


class OpenAIImages(ImageApi):
    provider = "openai-images"
    takes = TAKES

    def __init__(
        self, model: str, url: str, blobs: Blobs, *, edits: str = "", sizes: str = "size", **more: Any
    ) -> None:
        own = urlsplit(url).hostname == HOST
        self._edits = edits or ("json" if own else "multipart")
        self._sizes = sizes
        self._told_format = not own
        told = {"edits": self._edits, **({"sizes": sizes} if sizes != "size" else {})}
        super().__init__(model, url, blobs, **told, **more)

    async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
        try:
            return await super().send(messages, want)
        except CallError as error:
            if error.retry.kind != "no" or not self._told_format or "response_format" not in str(error):
                raise
            self._told_format = False  # OpenAI behind another address, which does not know it
            return await super().send(messages, want)

    def _asked(self, prompt: str, images: Sequence[Image], want: Request) -> AbstractAsyncContextManager[HttpResponse]:
        payload: dict[str, Any] = {"model": self._model, "prompt": prompt, "n": 1, **self._parameters_for(want)}
        payload |= {"response_format": "b64_json"} if self._told_format and "response_format" not in payload else {}
        if want.size is not None and self._sizes == "size" and "size" not in self._parameters:
            payload["size"] = f"{want.size[0]}x{want.size[1]}"
        if not images:
            return self._post("/images/generations", payload, MAX_REPLY_BYTES)
        if self._edits == "json":
            return self._post(
                "/images/edits", {**payload, "images": [{"image_url": image} for image in images]}, MAX_REPLY_BYTES
            )
        url = f"{self._url}/images/edits"
        called = self.address
        return self._http.post_form(
            url, payload, images, self._headers(), self._blobs, called=called, most=MAX_REPLY_BYTES
        )


@provider_info(TAKES, IMAGE_ONLY, url=OPENAI_URL)
@provider_options(
    **HTTP_OPTIONS,
    **dict.fromkeys(("seed", "output_compression"), int),
    **dict.fromkeys(("size", "quality", "background", "output_format", "moderation", "input_fidelity"), str),
    **dict.fromkeys(("negative_prompt", "response_format"), str),
    edits=one_of("json", "multipart"),
    sizes=one_of("size", "words"),
)
def from_spec(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> OpenAIImages:
    url = url_of(spec)
    return from_options(OpenAIImages, spec, blobs, url, chosen, "edits", "sizes")
