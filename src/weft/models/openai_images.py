"""Any server that speaks OpenAI's image API: `images/generations` where there is no picture to go by, `images/edits` where there are some.

Stateless: what a model is to see is one list of pictures and one text, in which they are called by their number. It makes pictures and no
words. `edits` says how pictures travel: `json` as data URLs (OpenAI), `multipart` as files (vLLM-Omni, SGLang, LightX2V)."""

import asyncio
import base64
import binascii
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec

from weft.errors import PictureError, UserError
from weft.models.endpoint import NO, TRANSIENT, CallError, Endpoint, Sent
from weft.models.http import MAX_REPLY, Answer, Http, address_of, decide, fields, is_refusal
from weft.models.openai_chat import flag, json_object, key_for, one_of, url_of, usage_of
from weft.models.registry import Spec, options, seconds
from weft.store.blobs import Blobs
from weft.types import Image, Message, Takes, Text, Want

MOST_IMAGES = 16  # that OpenAI takes
WORDLESS = "it makes pictures, and no words"


class OpenAIImages(Endpoint):
    def __init__(
        self,
        model: str,
        url: str,
        blobs: Blobs,
        *,
        key: str = "",
        edits: str = "json",
        sizes: str = "size",
        most_images: int = MOST_IMAGES,
        max_side: int | None = None,
        timeout: float = 600,
        fetch_images: bool = False,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        self._model, self._blobs, self._key = model, blobs, key
        self._edits, self._sizes, self._most, self._fetch = edits, sizes, most_images, fetch_images
        self._url = url.rstrip("/")
        self._parameters = dict(parameters or {})
        self._http = Http(timeout)
        self.close = self._http.close
        super().__init__(f"openai-images/{model}", address=urlsplit(self._url)._replace(query="", fragment="").geturl())
        self.takes = Takes(images="list", own_images="user", max_side=max_side)
        self.identity = {
            "provider": "openai-images",
            "model": model,
            "url": self.address,
            "edits": edits,
            "parameters": self._parameters,
            **({"sizes": sizes} if sizes != "size" else {}),
        }

    async def send(self, messages: tuple[Message, ...], want: Want) -> Sent:
        if want.kind == "text":
            return Sent((), "empty", WORDLESS, served=self.name)
        images = [part for message in messages for part in message.parts if isinstance(part, Image)]
        prompt = "\n".join(part.text for message in messages for part in message.parts if isinstance(part, Text)).strip()
        if len(images) > self._most:
            raise CallError(f"{self.name} takes at most {self._most} pictures, and there are {len(images)} (option most_images)", NO)
        headers = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        payload = self._payload(prompt, want)
        more: dict[str, Any] = {"called": self.address, "most": MAX_REPLY}
        if not images:
            asked = self._http.post(f"{self._url}/images/generations", payload, headers, self._blobs, **more)
        elif self._edits == "json":
            shown = {"images": [{"image_url": image} for image in images]}
            asked = self._http.post(f"{self._url}/images/edits", {**payload, **shown}, headers, self._blobs, **more)
        else:
            asked = self._http.form(f"{self._url}/images/edits", payload, images, headers, self._blobs, **more)
        async with asked as came:
            if came.status >= 400 or came.said:
                return self._refused(came)
            return await self._read(came.body)

    def _payload(self, prompt: str, want: Want) -> dict[str, Any]:
        payload: dict[str, Any] = {"model": self._model, "prompt": prompt, "n": 1, **self._parameters}
        if want.size is not None and self._sizes == "size" and "size" not in self._parameters:
            payload["size"] = f"{want.size[0]}x{want.size[1]}"
        if want.draw and isinstance(payload.get("seed"), int):
            payload["seed"] += want.draw
        return payload

    def _refused(self, came: Answer) -> Sent:
        said = " ".join((came.said or came.text).split())[:300]
        if is_refusal(came.codes):
            return Sent((), "refused", said, came.text, self._model)
        status = came.status if came.status >= 400 else 502
        raise CallError(f"{self.address} answered {status}: {said}", decide(status, came.codes, came.headers, came.body))

    async def _read(self, body: Any) -> Sent:
        """The first picture. An empty list is what some services send for what they will not show."""
        answer = fields(body)
        data: Any = answer.get("data")
        if not isinstance(data, list):
            raise CallError(f"{self.address} answered 200 without `data`", TRANSIENT)
        entry = fields(cast(list[Any], data)[0]) if data else {}
        used = usage_of(body)
        told = {**answer, "data": [{name: value for name, value in entry.items() if name != "b64_json"}]} if entry else answer
        raw = msgspec.json.encode(told).decode()
        if not entry:
            return Sent((), "empty", "it sent no picture", raw, self._model, used)
        if entry.get("error"):
            return Sent((), "refused", str(fields(entry["error"]).get("message") or entry["error"])[:300], raw, self._model, used)
        try:
            image = await self._picture(entry)
        except PictureError as error:
            return Sent((), "empty", f"its picture {error}", raw, self._model, used, again=True)
        return Sent((image,), "answered", "", raw, self._model, used)

    async def _picture(self, entry: Mapping[str, Any]) -> Image:
        coded, link = entry.get("b64_json"), entry.get("url")
        if isinstance(coded, str) and coded:
            try:
                return await asyncio.to_thread(self._blobs.put, base64.b64decode(coded.rpartition(",")[2], validate=True))
            except (binascii.Error, ValueError):
                raise PictureError("is no base64") from None
        if not isinstance(link, str) or not link:
            raise PictureError("is not there")
        try:
            place = address_of(link)
        except ValueError as error:
            raise PictureError(f"came as a link: {error}") from None
        if place.netloc != urlsplit(self._url).netloc and not self._fetch:
            why = f"{self.address} sent a link to another host instead of a picture; allow it with fetch_images=true"
            raise CallError(why, NO, billed=True)
        async with self._http.get(link, called="the picture's link") as came:
            if came.status != 200:
                raise CallError(f"the picture's link answered {came.status}", TRANSIENT)
            return await asyncio.to_thread(self._blobs.put, bytes(came.data))


@options(
    **dict.fromkeys(("seed", "max_side", "most_images", "output_compression"), int),
    **dict.fromkeys(("key_env", "size", "quality", "background", "output_format", "moderation", "input_fidelity", "negative_prompt"), str),
    edits=one_of("json", "multipart"),
    sizes=one_of("size", "words"),
    timeout=seconds,
    fetch_images=flag,
    extra=json_object,
)
def from_spec(spec: Spec, blobs: Blobs, **chosen: Any) -> OpenAIImages:
    url = url_of(spec)
    if chosen.get("most_images", 1) < 1:
        raise UserError(f"{spec.text}: most_images must be at least 1")
    parameters = {**chosen.pop("extra", {})}
    own = ("edits", "sizes", "max_side", "most_images", "timeout", "fetch_images", "key_env")
    parameters |= {name: chosen.pop(name) for name in list(chosen) if name not in own}
    key = key_for(url, chosen.pop("key_env", ""))
    return OpenAIImages(spec.model, url, blobs, key=key, parameters=parameters, **chosen)
