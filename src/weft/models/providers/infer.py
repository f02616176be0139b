"""The model-server protocol of IMUG-Bench's authors: POST {history, output_mode, temperature} to /infer.

A reply has text or one image. HTTP 200 with `response.error` is an error of the server, never a reply. Images travel as
plain base64 of their own bytes. Several addresses may be given, with commas between them.
"""

import asyncio
import base64
from typing import Any
from urllib.parse import urlsplit

import msgspec

from weft.errors import ImageError, UserError
from weft.models.converters import finite_number, positive_seconds
from weft.models.endpoint import TRANSIENT, CallError, Endpoint, EndpointReply
from weft.models.http import MAX_REPLY_BYTES, MAX_TEXT_BYTES, HttpClient
from weft.models.http_endpoint import parse_address, retry_decision
from weft.models.load_balancer import LoadBalancer
from weft.models.registry import ModelSpec, provider_info, provider_options
from weft.secrets import scrub, strip_url_secrets
from weft.store.blobs import Blobs
from weft.types import Gives, Image, Message, Part, Request, Takes, Text, outcome_of
from weft.untrusted import dict_or_empty

GIVES = Gives(interleaved=False, ordered=False, seed=True, json=False)


class Infer(Endpoint):
    gives = GIVES

    def __init__(
        self, urls: list[str], blobs: Blobs, *, temperature: float = 0.7, timeout: float = 600, seed: int | None = None
    ) -> None:
        """A query in an address is sent with every request, and neither stored nor shown: it may be a token."""
        public_urls = [strip_url_secrets(url) for url in urls]
        super().__init__(f"infer/{urlsplit(urls[0]).netloc}", address=public_urls[0])
        self._blobs = blobs
        self._url = urls[0]
        # as in the authors' client: their servers work on one request at a time
        self.initial_concurrency = 2 * len(urls)
        self._settings: dict[str, Any] = {"temperature": temperature}
        if seed is not None:
            self._settings["seed"] = seed
        self._http = HttpClient(timeout)
        self.identity = {"provider": "infer", "model": self.name, "urls": public_urls, "parameters": self._settings}

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        payload = self._payload(messages, request)
        limit = MAX_REPLY_BYTES
        if request.modality == "text":
            limit = MAX_TEXT_BYTES
        url = self._url
        name = strip_url_secrets(url)
        async with self._http.post(
            url, payload, {}, self._blobs, endpoint_name=name, max_bytes=limit, bare=True
        ) as response:
            if response.status >= 400:
                message = (response.error_message or response.text)[:300]
                raise CallError(
                    f"{name} answered {response.status}: {message}",
                    retry_decision(response.status, response.error_codes, response.headers, response.body),
                )
            return await asyncio.to_thread(self._read, response.body, request, name)

    def _payload(self, messages: tuple[Message, ...], request: Request) -> dict[str, Any]:
        settings = dict(self._settings)
        if request.draw and "seed" in settings:
            settings["seed"] += request.draw
        output_mode = "image_only"
        if request.modality == "text":
            output_mode = "text_only"
        return {"history": [_build_message(message) for message in messages], "output_mode": output_mode, **settings}

    def _read(self, body: Any, request: Request, name: str) -> EndpointReply:
        """Read a reply. `name` is what error messages call the server."""
        answer = dict_or_empty(body)
        if not isinstance(answer.get("response"), dict):
            message = answer.get("error") or answer.get("detail") or answer.get("response") or body
            raise CallError(f"{name} answered without a response: {scrub(str(message))[:300]}", TRANSIENT)
        response = dict_or_empty(answer["response"])
        if response.get("error"):
            raise CallError(f"{name}: the server says: {scrub(str(response['error']))[:300]}", TRANSIENT)
        parts = self._read_parts(response)
        outcome, reason = outcome_of(parts, request.modality)
        if "image" in response:
            response = {**response, "image": "(an image)"}
        raw = msgspec.json.encode(response).decode()
        return EndpointReply(parts, outcome, reason, raw, self.name, retry_advised=outcome == "empty" and not parts)

    async def close(self) -> None:
        await self._http.close()

    def _read_parts(self, response: dict[str, Any]) -> tuple[Part, ...]:
        parts: list[Part] = []
        text = response.get("text")
        if isinstance(text, str) and text:
            parts.append(Text(text))
        data = response.get("image")
        if isinstance(data, str) and data:
            if data.startswith("data:"):
                data = data.partition(",")[2]
            try:
                parts.append(self._blobs.put(base64.b64decode(data)))
            except (ImageError, ValueError) as error:
                raise CallError(f"{self.address}: its image {error}", TRANSIENT) from None
        return tuple(parts)


def _build_message(message: Message) -> dict[str, Any]:
    return {"role": message.role, "content": [_build_part(part) for part in message.parts]}


def _build_part(part: Part) -> dict[str, Any]:
    if isinstance(part, Image):
        return {"type": "image", "image": part}
    return {"type": "text", "text": part.text}


@provider_info(Takes(), GIVES, key="", address=True, several=True)
@provider_options(temperature=finite_number, timeout=positive_seconds, seed=int)
def from_spec(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> Endpoint:
    """Build the endpoint of `infer/http://127.0.0.1:8000/infer`, or of several addresses with commas between them."""
    text = spec.model
    if spec.url:
        text += f"@{spec.url}"
    urls = [url.strip() for url in text.split(",") if url.strip()]
    for url in urls:
        try:
            parse_address(url, hide_secrets=True)
        except ValueError as error:
            raise UserError(f"{spec.provider}: {error}") from None
    if not urls:
        raise UserError(f"{spec.provider}: give the server's address, as in infer/http://127.0.0.1:8000/infer")
    if len(urls) == 1:
        return Infer(urls, blobs, **chosen)
    balancer = LoadBalancer([Infer([url], blobs, **chosen) for url in urls])
    # answers are cached under all addresses together, as they always were
    balancer.identity = Infer(urls, blobs, **chosen).identity
    return balancer
