"""What `weft serve` serves: served/NAME@URL.

Several addresses of one model have commas between them: served/NAME@URL,URL. A server says what is behind it: what that
takes and gives, how many calls it wants at once, and what answers are kept under. That is the model's own identity and
nothing of the server's: the same weights have the same answers in this process, behind one replica or behind eight, at
any address."""

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
from weft.models.providers.openai_chat import OpenAIChat
from weft.models.providers.openai_reply import ReplyContent, read_usage
from weft.models.registry import ModelSpec, provider_info, provider_options
from weft.secrets import scrub, strip_url_secrets
from weft.store.blobs import Blobs
from weft.types import Gives, Image, Message, Part, Request, Takes, Text, Thought
from weft.untrusted import dict_or_empty

PATIENCE = 10.0  # seconds for a server to say what it is
OUTCOMES = ("answered", "refused", "empty", "failed")


class ServerUnreachable(UserError):
    """Nobody answers at an address."""


class ServedEndpoint(OpenAIChat):
    provider = "served"
    wants_batches = True

    def __init__(self, model: str, url: str, blobs: Blobs, card: dict[str, Any], **named: Any) -> None:
        takes = msgspec.convert(card["takes"], Takes)
        gives = msgspec.convert(card["gives"], Gives)
        if takes.own_images == "user":
            own = "user"
        else:
            own = "assistant"
        super().__init__(model, url, blobs, takes=takes, gives=gives, own_images=own, modalities="none", **named)
        self.name = str(card["name"])
        self.identity = dict_or_empty(card["identity"])
        self.concurrency = max(1, int(card["at_once"])) * max(1, int(card["replicas"]))
        self._seed = int(card["seed"])
        self._facts = dict[str, Any]()

    def _payload(self, messages: tuple[Message, ...], want: Request) -> dict[str, Any]:
        payload = super()._payload(messages, want)
        payload |= {"seed": self._seed + want.draw, "stream": False}
        payload["modalities"] = {"text": ["text"], "image": ["image"]}.get(want.modality, ["image", "text"])
        payload.pop("stream_options", None)
        return payload | ({"size": f"{want.size[0]}x{want.size[1]}"} if want.size else {})

    def _message(self, message: Message) -> dict[str, Any]:
        """Part by part: what the model is shown is what it is shown without a server."""
        told = [_told(part) for part in message.parts if not isinstance(part, Thought)]
        return {"role": message.role, "content": told}

    def _drop_unsupported(self, status: int, said: str, payload: dict[str, Any]) -> bool:
        return False  # it knows all that it is sent: a word like that in an error is the model's

    async def _taken(self, body: Any) -> tuple[ReplyContent, EndpointReply]:
        choices: Any = dict_or_empty(body).get("choices")
        choice = dict_or_empty(cast(list[Any], choices)[0]) if isinstance(choices, list) and choices else {}
        facts = dict_or_empty(dict_or_empty(body).get("weft"))
        if not choice or facts.get("outcome") not in OUTCOMES:
            raise CallError(f"{self.address} answered 200, and not as a server of weft's does", TRANSIENT)
        parts = await asyncio.to_thread(self._parts, choice, facts)
        told = {name: facts.get(name) for name in ("outcome", "reason", "ended", "again")}
        sent = EndpointReply(
            parts, raw=json.dumps(told), served_model=self.name, usage=read_usage(body), **cast(Any, told)
        )
        return ReplyContent(parts), sent

    def _parts(self, choice: dict[str, Any], facts: dict[str, Any]) -> tuple[Part, ...]:
        """As the model made them."""
        content: Any = dict_or_empty(choice.get("message")).get("content")
        if isinstance(content, str) and content:
            listed: list[Any] = [{"type": "text", "text": content}]
        else:
            listed = content or []
        parts: list[Part] = []
        try:
            for one in map(dict_or_empty, listed):
                url = str(dict_or_empty(one.get("image_url")).get("url", ""))
                parts.append(
                    self._blobs.put(base64.b64decode(url.partition(",")[2], validate=True))
                    if url
                    else Text(str(one.get("text", "")))
                )
        except (ImageError, binascii.Error) as error:
            raise CallError(f"{self.address} sent a picture that {error}", TRANSIENT) from None
        for at, text in cast(list[tuple[int, str]], facts.get("thoughts") or []):
            parts.insert(int(at), Thought(str(text)))
        return tuple(parts)

    def _read(self, got: ReplyContent, sent: EndpointReply, want: Request) -> EndpointReply:
        return sent


def _told(part: Part) -> dict[str, Any]:
    if isinstance(part, Image):
        return {"type": "image_url", "image_url": {"url": part}}
    return {"type": "text", "text": part.text}


class NoRedirects(urllib.request.HTTPRedirectHandler):
    """A key goes to the address that it is for, and no further."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _json(came: Any) -> Any:
    try:
        return json.loads(came.read(1 << 16))
    except (OSError, ValueError):
        return None


def fetch_model_card(url: str, key: str, name: str) -> dict[str, Any]:
    """What a server says is behind it. Raises UserError."""
    told = strip_url_secrets(url)
    asked = urllib.request.Request(f"{url}/models", headers={"Authorization": f"Bearer {key}"} if key else {})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), NoRedirects())
    try:
        with opener.open(asked, timeout=PATIENCE) as came:
            body = json.loads(came.read(1 << 20))
    except urllib.error.HTTPError as error:
        if error.code == 401 and key:
            raise UserError(f"{told} did not accept its token (WEFT_API_KEY, or what key_env names)") from None
        if error.code == 401:
            raise UserError(
                f"{told} wants its token: put it in WEFT_API_KEY, or name a variable with key_env"
            ) from None
        why = parse_error(_json(error))[0] or "it is no server of weft's (`weft serve`)"
        raise UserError(f"{told} answered {error.code}: {scrub(why)[:200]}") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        if isinstance(error, urllib.error.URLError):
            why = error.reason
        else:
            why = error
        raise ServerUnreachable(f"nobody answers at {told} ({scrub(str(why))}): start it with `weft serve`") from None
    listed: Any = dict_or_empty(body).get("data")
    there = {
        str(dict_or_empty(one).get("id")): dict_or_empty(one)
        for one in cast(list[Any], listed if isinstance(listed, list) else [])
    }
    if name not in there:
        raise UserError(f"{told} serves {', '.join(there) or 'nothing'}, and no {name}")
    card = dict_or_empty(there[name].get("weft"))
    if not {"name", "identity", "takes", "gives", "at_once", "seed", "replicas"} <= set(card):
        raise UserError(
            f"{told} is no server of weft's: for others that speak its protocol write openai-chat/{name}@{told}"
        )
    return card


@provider_info(Takes(own_images="user"), Gives(ordered=True, seed=True, sizes="pixels"), address=True, several=True)
@provider_options(key_env=str, timeout=positive_seconds, max_side=positive_int, most_images=positive_int)
def from_spec(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> Endpoint:
    """One address, or several with commas between them: servers of one model."""
    if not spec.url:
        url_of(spec, "")
    found = list[ServedEndpoint]()
    away = list[str]()
    for url in spec.url.split(","):
        one = msgspec.structs.replace(spec, url=url.strip(), written=f"{spec.provider}/{spec.model}@{url.strip()}")
        try:
            found.append(_at(one, blobs, dict(chosen)))
        except ServerUnreachable:
            if "," not in spec.url:
                raise
            away.append(strip_url_secrets(url.strip()))
    if not found:
        raise ServerUnreachable(f"nobody answers at {', '.join(away)}: start it with `weft serve`")
    for other in found[1:]:
        if (other.identity, other.takes, other.gives) != (found[0].identity, found[0].takes, found[0].gives):
            raise UserError(
                f"{other.address} and {found[0].address} do not serve the same model: their weights or settings differ"
            )
    if len(found) + len(away) > 1:
        return LoadBalancer(found, away)
    return found[0]


def _at(spec: ModelSpec, blobs: Blobs, chosen: dict[str, Any]) -> ServedEndpoint:
    url = url_of(spec, "").rstrip("/")
    url += "" if url.endswith("/v1") else "/v1"
    key = key_for(url, chosen.pop("key_env", ""))
    card = fetch_model_card(url, key, spec.model)
    for name, of in (("max_side", "max_side"), ("most_images", "most")):
        if name in chosen:
            card["takes"] = {**dict_or_empty(card["takes"]), of: chosen.pop(name)}
    try:
        return ServedEndpoint(spec.model, url, blobs, card, key=key, **{"timeout": 3600.0, **chosen})
    except (msgspec.ValidationError, ValueError, TypeError) as error:
        raise UserError(f"{strip_url_secrets(url)} says what weft does not understand: {error}") from None
