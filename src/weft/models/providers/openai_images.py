"""Any server that speaks OpenAI's image API: `images/generations` without input images, `images/edits` with some.

`edits` says how input images travel: `json` as data URLs (OpenAI), `multipart` as files (vLLM-Omni, SGLang, LightX2V).
These other servers must be asked for base64 instead of a link (`response_format`), a field that OpenAI's own models
reject.
"""

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

TAKES = Takes(images="list", own_images="user", max_images=16)  # OpenAI's own limit
OPENAI_HOST = urlsplit(OPENAI_URL).hostname


class OpenAIImages(ImageApi):
    provider = "openai-images"
    takes = TAKES

    def __init__(
        self, model: str, url: str, blobs: Blobs, *, edits: str = "", sizes: str = "size", **more: Any
    ) -> None:
        is_openai = urlsplit(url).hostname == OPENAI_HOST
        if not edits:
            edits = "json" if is_openai else "multipart"
        self._edits = edits
        self._sizes = sizes
        self._sends_format = not is_openai
        identity = {"edits": edits}
        if sizes != "size":
            identity["sizes"] = sizes
        super().__init__(model, url, blobs, **identity, **more)

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        try:
            return await super().send(messages, request)
        except CallError as error:
            if error.retry.kind != "no" or not self._sends_format or "response_format" not in str(error):
                raise
            self._sends_format = False  # it is OpenAI behind another address
            return await super().send(messages, request)

    def _post_prompt(
        self, prompt: str, images: Sequence[Image], request: Request
    ) -> AbstractAsyncContextManager[HttpResponse]:
        payload: dict[str, Any] = {"model": self._model, "prompt": prompt, "n": 1, **self._parameters_for(request)}
        if self._sends_format:
            payload.setdefault("response_format", "b64_json")
        if request.size is not None and self._sizes == "size" and "size" not in self._parameters:
            payload["size"] = f"{request.size[0]}x{request.size[1]}"
        if not images:
            return self._post("/images/generations", payload, MAX_REPLY_BYTES)
        if self._edits == "json":
            payload["images"] = [{"image_url": image} for image in images]
            return self._post("/images/edits", payload, MAX_REPLY_BYTES)
        return self._http.post_form(
            f"{self._url}/images/edits",
            payload,
            images,
            self._headers(),
            self._blobs,
            endpoint_name=self.address,
            max_bytes=MAX_REPLY_BYTES,
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
    """Build the endpoint of `openai-images/NAME` or `openai-images/NAME@URL`."""
    url = url_of(spec)
    return from_options(OpenAIImages, spec, blobs, url, chosen, "edits", "sizes")
