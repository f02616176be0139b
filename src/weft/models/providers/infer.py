"""The model-server protocol of IMUG-Bench's authors: POST {history, output_mode, temperature} to /infer, one reply of
text or one picture.

Several addresses may be given with commas. HTTP 200 with `response.error` is an error of the server, never a reply.
Pictures travel as bare base64 with their own bytes."""

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
        """A query in an address is sent with every request, and neither kept nor told: it may be a token."""
        told = [strip_url_secrets(url) for url in urls]
        super().__init__(f"infer/{urlsplit(urls[0]).netloc}", address=told[0])
        self._blobs = blobs
        self._url = urls[0]
        # as the authors' client has it: their servers work on one request at a time
        self.initial_concurrency = 2 * len(urls)
        self._settings = {"temperature": temperature, **({"seed": seed} if seed is not None else {})}
        self._http = HttpClient(timeout)
        self.identity = {"provider": "infer", "model": self.name, "urls": told, "parameters": self._settings}

    async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
        settings = dict(self._settings)
        if want.draw and "seed" in settings:
            settings["seed"] += want.draw
        payload = {
            "history": [
                {"role": message.role, "content": [_part(part) for part in message.parts]} for message in messages
            ],
            "output_mode": "text_only" if want.modality == "text" else "image_only",
            **settings,
        }
        url = self._url
        called = strip_url_secrets(url)
        if want.modality == "text":
            most = MAX_TEXT_BYTES
        else:
            most = MAX_REPLY_BYTES
        async with self._http.post(url, payload, {}, self._blobs, called=called, most=most, bare=True) as came:
            if came.status >= 400:
                said = (came.error_message or came.text)[:300]
                raise CallError(
                    f"{called} answered {came.status}: {said}",
                    retry_decision(came.status, came.error_codes, came.headers, came.body),
                )
            return await asyncio.to_thread(self._read, came.body, want, called)

    def _read(self, body: Any, want: Request, called: str) -> EndpointReply:
        answer = dict_or_empty(body)
        if not isinstance(answer.get("response"), dict):
            said = answer.get("error") or answer.get("detail") or answer.get("response") or body
            raise CallError(f"{called} answered without a response: {scrub(str(said))[:300]}", TRANSIENT)
        response = dict_or_empty(answer["response"])
        if response.get("error"):
            raise CallError(f"{called}: the server says: {scrub(str(response['error']))[:300]}", TRANSIENT)
        parts = self._parts(response)
        outcome, reason = outcome_of(parts, want.modality)
        raw = msgspec.json.encode(
            {name: value if name != "image" else "(a picture)" for name, value in response.items()}
        ).decode()
        return EndpointReply(parts, outcome, reason, raw, self.name, retry_advised=outcome == "empty" and not parts)

    async def close(self) -> None:
        await self._http.close()

    def _parts(self, response: dict[str, Any]) -> tuple[Part, ...]:
        parts: list[Part] = []
        if isinstance(response.get("text"), str) and response["text"]:
            parts.append(Text(response["text"]))
        if isinstance(response.get("image"), str) and response["image"]:
            if response["image"].startswith("data:"):
                data = response["image"].partition(",")[2]
            else:
                data = response["image"]
            try:
                parts.append(self._blobs.put(base64.b64decode(data)))
            except (ImageError, ValueError) as error:
                raise CallError(f"{self.address}: its picture {error}", TRANSIENT) from None
        return tuple(parts)


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, Image):
        return {"type": "image", "image": part}
    return {"type": "text", "text": part.text}


@provider_info(Takes(), GIVES, key="", address=True, several=True)
@provider_options(temperature=finite_number, timeout=positive_seconds, seed=int)
def from_spec(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> Endpoint:
    """`infer/http://127.0.0.1:8000/infer`, or several addresses with commas."""
    text = spec.model + (f"@{spec.url}" if spec.url else "")
    urls = [url.strip() for url in text.split(",") if url.strip()]
    for url in urls:
        try:
            parse_address(url, ours=True)
        except ValueError as error:
            raise UserError(f"{spec.provider}: {error}") from None
    if not urls:
        raise UserError(f"{spec.provider}: give the server's address, as in infer/http://127.0.0.1:8000/infer")
    if len(urls) == 1:
        return Infer(urls, blobs, **chosen)
    spread = LoadBalancer([Infer([url], blobs, **chosen) for url in urls])
    spread.identity = Infer(urls, blobs, **chosen).identity  # of all of them, as it always was
    return spread
