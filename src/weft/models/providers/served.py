"""Models behind `weft serve`: served/NAME@URL, or served/NAME@URL,URL for several servers of one model.

A server publishes a card of the model behind it: what it takes and gives, how many calls it handles at once, and the
model's identity. A server that this command started (`--replicas`) is believed: answers are cached under the model's
own identity, so that the same weights have the same cache keys in this process, behind one replica or behind eight. The
word of any other server is a claim. Its answers are cached under the user's name for it, its address or the user's
version, and the claim, which together are no other model's identity, whatever it says.
"""

import asyncio
import base64
import json
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from weft.errors import ImageError, UserError
from weft.models.converters import positive_int, positive_seconds
from weft.models.endpoint import TRANSIENT, CallError, Endpoint, EndpointReply
from weft.models.http_endpoint import key_for, url_of
from weft.models.load_balancer import LoadBalancer
from weft.models.providers.openai_chat import OpenAIChat, build_part
from weft.models.providers.openai_reply import ReplyContent, first_choice, list_of_dicts, read_usage
from weft.models.providers.served_card import (
    ModelCard,
    ServerUnreachable,
    claimed_identity,
    fetch_model_card,
    is_own_server,
)
from weft.models.registry import ModelSpec, provider_info, provider_options
from weft.secrets import strip_url_secrets
from weft.store.blobs import Blobs
from weft.types import Gives, Message, Part, Request, Takes, Text, Thought
from weft.untrusted import dict_or_empty

DEFAULT_TIMEOUT_S = 3600.0
OUTCOMES = ("answered", "refused", "empty", "failed")
MODALITIES = {"text": ["text"], "image": ["image"], "interleaved": ["image", "text"]}


class ServedEndpoint(OpenAIChat):
    provider = "served"
    wants_batches = True

    def __init__(self, model: str, url: str, blobs: Blobs, card: ModelCard, known_at: str, **more: Any) -> None:
        """`known_at`: the address that stands in its cache keys, the first of several."""
        takes = card.takes
        super().__init__(
            model, url, blobs, takes=takes, gives=card.gives, own_images=takes.own_images, modalities="none", **more
        )
        if is_own_server(url):
            self.name = card.name
            self.identity = card.identity
        else:
            self.identity = claimed_identity(card, self.provider, model, known_at)
        self.concurrency = card.concurrency * card.replicas
        self._seed = card.seed

    def _payload(self, messages: tuple[Message, ...], request: Request) -> dict[str, Any]:
        payload = super()._payload(messages, request)
        payload |= {"seed": self._seed + request.draw, "stream": False}
        payload["modalities"] = MODALITIES[request.modality]
        payload.pop("stream_options", None)
        if request.size:
            payload["size"] = f"{request.size[0]}x{request.size[1]}"
        return payload

    def _build_message(self, message: Message) -> dict[str, Any]:
        """Build a message part by part, so that the model's input is the same as without a server."""
        content = [build_part(part) for part in message.parts if not isinstance(part, Thought)]
        return {"role": message.role, "content": content}

    def _drop_unsupported(self, status: int, message: str, payload: dict[str, Any]) -> bool:
        return False  # the server knows every field: such a word in an error is the model's own

    async def _read_body(self, body: Any) -> tuple[ReplyContent, EndpointReply]:
        choice = first_choice(body)
        details = dict_or_empty(dict_or_empty(body).get("weft"))
        if not choice or details.get("outcome") not in OUTCOMES:
            raise CallError(f"{self.address} answered 200, but not as `weft serve` does", TRANSIENT)
        parts = await asyncio.to_thread(self._read_parts, choice, details)
        facts: dict[str, Any] = {
            name: details.get(name) for name in ("outcome", "reason", "stop_cause", "retry_advised")
        }
        reply = EndpointReply(parts, raw=json.dumps(facts), served_model=self.name, usage=read_usage(body), **facts)
        return ReplyContent(parts), reply

    def _read_parts(self, choice: dict[str, Any], details: dict[str, Any]) -> tuple[Part, ...]:
        """Return the parts in the model's order: thoughts come apart, each with its position."""
        content: Any = dict_or_empty(choice.get("message")).get("content")
        if isinstance(content, str) and content:
            content = [{"type": "text", "text": content}]
        parts: list[Part] = []
        for block in list_of_dicts(content):
            url = str(dict_or_empty(block.get("image_url")).get("url", ""))
            if not url:
                parts.append(Text(str(block.get("text", ""))))
                continue
            try:
                parts.append(self._blobs.put(base64.b64decode(url.partition(",")[2], validate=True)))
            except (ImageError, ValueError) as error:
                raise CallError(f"{self.address} sent an image that {error}", TRANSIENT) from None
        try:
            thoughts = msgspec.convert(details.get("thoughts") or [], list[tuple[int, str]])
        except msgspec.ValidationError:
            raise CallError(f"{self.address} sent thoughts, but not as `weft serve` does", TRANSIENT) from None
        for position, text in thoughts:
            parts.insert(position, Thought(text))
        return tuple(parts)

    def _build_reply(self, content: ReplyContent, reply: EndpointReply, request: Request) -> EndpointReply:
        return reply  # the server decided the outcome


@provider_info(Takes(own_images="user"), Gives(ordered=True, seed=True, sizes="pixels"), address=True, several=True)
@provider_options(key_env=str, timeout=positive_seconds, max_side=positive_int, most_images=positive_int)
def from_spec(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> Endpoint:
    """Build the endpoint of `served/NAME@URL`, or one over several addresses with commas between them.

    Of several, those that do not answer now are left to the load balancer. All others must serve the same model.
    """
    if not spec.url:
        url_of(spec, "")  # raises the error for a missing address
    endpoints: list[ServedEndpoint] = []
    unreachable: list[str] = []
    urls = [url.strip() for url in spec.url.split(",")]
    for url in urls:
        single = replace(spec, url=url, source_text=f"{spec.provider}/{spec.model}@{url}")
        try:
            endpoints.append(_build_endpoint(single, blobs, dict(chosen), known_at=_api_url(urls[0])))
        except ServerUnreachable:
            if "," not in spec.url:
                raise
            unreachable.append(strip_url_secrets(url))
    if not endpoints:
        raise ServerUnreachable(f"no server answers at {', '.join(unreachable)}: start it with `weft serve`")
    first = endpoints[0]
    for other in endpoints[1:]:
        if (other.identity, other.takes, other.gives) != (first.identity, first.takes, first.gives):
            raise UserError(
                f"{other.address} and {first.address} do not serve the same model: their weights or settings differ"
            )
    if len(endpoints) + len(unreachable) > 1:
        return LoadBalancer(endpoints, unreachable)
    return first


def _build_endpoint(spec: ModelSpec, blobs: Blobs, chosen: dict[str, Any], known_at: str) -> ServedEndpoint:
    url = _api_url(url_of(spec, ""))
    key = key_for(url, chosen.pop("key_env", ""))
    card = fetch_model_card(url, key, spec.model)
    takes = replace(
        card.takes,
        max_side=chosen.pop("max_side", card.takes.max_side),
        max_images=chosen.pop("most_images", card.takes.max_images),
    )
    card = replace(card, takes=takes)
    return ServedEndpoint(spec.model, url, blobs, card, known_at, key=key, **{"timeout": DEFAULT_TIMEOUT_S, **chosen})


def _api_url(url: str) -> str:
    """Return a server's address with the path of its API."""
    url = urlsplit(url)._replace(fragment="").geturl().rstrip("/")
    if url.endswith("/v1"):
        return url
    return f"{url}/v1"
