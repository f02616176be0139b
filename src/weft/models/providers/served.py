"""Models behind `weft serve`: served/NAME@URL, or served/NAME@URL,URL for several servers of one model.

A server publishes a card of the model behind it: what it takes and gives, how many calls it handles at once, and the
identity that answers are cached under. That is the model's own identity and nothing of the server's: the same weights
have the same cache keys in this process, behind one replica or behind eight, at any address.
"""

import asyncio
import base64
import binascii
import http.client
import json
import urllib.error
import urllib.request
from typing import Any, cast

import msgspec

from weft.errors import ImageError, UserError
from weft.models.converters import positive_int, positive_seconds
from weft.models.endpoint import TRANSIENT, CallError, Endpoint, EndpointReply
from weft.models.http import parse_error
from weft.models.http_endpoint import key_for, url_of
from weft.models.load_balancer import LoadBalancer
from weft.models.providers.openai_chat import OpenAIChat, build_part
from weft.models.providers.openai_reply import ReplyContent, first_choice, list_of_dicts, read_usage
from weft.models.registry import ModelSpec, provider_info, provider_options
from weft.secrets import scrub, strip_url_secrets
from weft.store.blobs import Blobs
from weft.types import Gives, Message, Part, Request, Takes, Text, Thought
from weft.untrusted import dict_or_empty

CARD_TIMEOUT_S = 10.0
CARD_FIELDS = {"name", "identity", "takes", "gives", "concurrency", "seed", "replicas"}
MAX_CARD_BYTES = 1 << 20
MAX_ERROR_BYTES = 1 << 16
DEFAULT_TIMEOUT_S = 3600.0
OUTCOMES = ("answered", "refused", "empty", "failed")
MODALITIES = {"text": ["text"], "image": ["image"], "interleaved": ["image", "text"]}


class ServerUnreachable(UserError):
    """No server answers at an address."""


class ServedEndpoint(OpenAIChat):
    provider = "served"
    wants_batches = True

    def __init__(self, model: str, url: str, blobs: Blobs, card: dict[str, Any], **more: Any) -> None:
        takes = msgspec.convert(card["takes"], Takes)
        gives = msgspec.convert(card["gives"], Gives)
        own_images = takes.own_images
        super().__init__(model, url, blobs, takes=takes, gives=gives, own_images=own_images, modalities="none", **more)
        self.name = str(card["name"])
        self.identity = dict_or_empty(card["identity"])
        self.concurrency = max(1, int(card["concurrency"])) * max(1, int(card["replicas"]))
        self._seed = int(card["seed"])

    def _payload(self, messages: tuple[Message, ...], want: Request) -> dict[str, Any]:
        payload = super()._payload(messages, want)
        payload |= {"seed": self._seed + want.draw, "stream": False}
        payload["modalities"] = MODALITIES[want.modality]
        payload.pop("stream_options", None)
        if want.size:
            payload["size"] = f"{want.size[0]}x{want.size[1]}"
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
            except (ImageError, binascii.Error) as error:
                raise CallError(f"{self.address} sent an image that {error}", TRANSIENT) from None
        for position, text in cast(list[tuple[int, str]], details.get("thoughts") or []):
            parts.insert(int(position), Thought(str(text)))
        return tuple(parts)

    def _build_reply(self, content: ReplyContent, reply: EndpointReply, want: Request) -> EndpointReply:
        return reply  # the server decided the outcome


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: a key is sent to the address that it is for, and nowhere else."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def fetch_model_card(url: str, key: str, name: str) -> dict[str, Any]:
    """Fetch the card of a model from its server.

    Raises ServerUnreachable where none answers, UserError for a wrong token, another model, or another kind of server.
    """
    public_url = strip_url_secrets(url)
    models = {str(model.get("id")): model for model in list_of_dicts(_fetch_models(url, key).get("data"))}
    if name not in models:
        raise UserError(f"{public_url} serves {', '.join(models) or 'nothing'}, not {name}")
    card = dict_or_empty(models[name].get("weft"))
    if not set(card) >= CARD_FIELDS:
        raise UserError(
            f"{public_url} is not a `weft serve` server: for other servers of its protocol "
            f"write openai-chat/{name}@{public_url}"
        )
    return card


def _fetch_models(url: str, key: str) -> dict[str, Any]:
    public_url = strip_url_secrets(url)
    request = urllib.request.Request(f"{url}/models")
    if key:
        request.add_header("Authorization", f"Bearer {key}")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), NoRedirects())
    try:
        with opener.open(request, timeout=CARD_TIMEOUT_S) as response:
            return dict_or_empty(json.loads(response.read(MAX_CARD_BYTES)))
    except urllib.error.HTTPError as error:
        if error.code == 401 and key:
            raise UserError(f"{public_url} did not accept the token (from WEFT_API_KEY, or key_env)") from None
        if error.code == 401:
            raise UserError(
                f"{public_url} needs a token: put it in WEFT_API_KEY, or name a variable with key_env"
            ) from None
        message = parse_error(_read_json(error))[0] or "it is not a `weft serve` server"
        raise UserError(f"{public_url} answered {error.code}: {scrub(message)[:200]}") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason: Any = error
        if isinstance(error, urllib.error.URLError):
            reason = error.reason
        raise ServerUnreachable(
            f"no server answers at {public_url} ({scrub(str(reason))}): start it with `weft serve`"
        ) from None


def _read_json(response: Any) -> Any:
    try:
        return json.loads(response.read(MAX_ERROR_BYTES))
    except (OSError, ValueError):
        return None


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
    for url in spec.url.split(","):
        url = url.strip()
        single = msgspec.structs.replace(spec, url=url, source_text=f"{spec.provider}/{spec.model}@{url}")
        try:
            endpoints.append(_build_endpoint(single, blobs, dict(chosen)))
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


def _build_endpoint(spec: ModelSpec, blobs: Blobs, chosen: dict[str, Any]) -> ServedEndpoint:
    url = url_of(spec, "").rstrip("/")
    if not url.endswith("/v1"):
        url += "/v1"
    key = key_for(url, chosen.pop("key_env", ""))
    card = fetch_model_card(url, key, spec.model)
    for option, field in (("max_side", "max_side"), ("most_images", "most")):
        if option in chosen:
            card["takes"] = {**dict_or_empty(card["takes"]), field: chosen.pop(option)}
    try:
        return ServedEndpoint(spec.model, url, blobs, card, key=key, **{"timeout": DEFAULT_TIMEOUT_S, **chosen})
    except (msgspec.ValidationError, ValueError, TypeError) as error:
        raise UserError(f"{strip_url_secrets(url)} sent a model card that weft cannot read: {error}") from None
