"""What `weft serve` serves: served/NAME@URL.

Several addresses of one model have commas between them: served/NAME@URL,URL. A server says what is behind it: what that takes and gives,
how many calls it wants at once, and what answers are kept under. That is the model's own identity and nothing of the server's: the same
weights have the same answers in this process, behind one replica or behind eight, at any address.
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

from weft.errors import PictureError, UserError
from weft.models.converters import count, seconds
from weft.models.endpoint import TRANSIENT, CallError, Endpoint, Sent
from weft.models.http import error_facts
from weft.models.http_endpoint import key_for, url_of
from weft.models.load_balancer import Spread
from weft.models.providers.openai_chat import OpenAIChat
from weft.models.providers.openai_reply import Unpacked, usage_of
from weft.models.registry import ModelSpec, about, options
from weft.secrets import scrub, without_secrets
from weft.store.blobs import Blobs
from weft.types import Gives, Image, Message, Part, Takes, Text, Thought, Want
from weft.untrusted import fields

PATIENCE = 10.0  # seconds for a server to say what it is
OUTCOMES = ("answered", "refused", "empty", "failed")


class Away(UserError):
    """Nobody answers at an address."""


class Served(OpenAIChat):
    provider = "served"
    gathers = True

    def __init__(self, model: str, url: str, blobs: Blobs, card: dict[str, Any], **named: Any) -> None:
        takes, gives = msgspec.convert(card["takes"], Takes), msgspec.convert(card["gives"], Gives)
        own = "user" if takes.own_images == "user" else "assistant"
        super().__init__(model, url, blobs, takes=takes, gives=gives, own_images=own, modalities="none", **named)
        self.name, self.identity = str(card["name"]), fields(card["identity"])
        self.concurrency = max(1, int(card["at_once"])) * max(1, int(card["replicas"]))
        self._seed, self._facts = int(card["seed"]), dict[str, Any]()

    def _payload(self, messages: tuple[Message, ...], want: Want) -> dict[str, Any]:
        payload = super()._payload(messages, want)
        payload |= {"seed": self._seed + want.draw, "stream": False}
        payload["modalities"] = {"text": ["text"], "image": ["image"]}.get(want.kind, ["image", "text"])
        payload.pop("stream_options", None)
        return payload | ({"size": f"{want.size[0]}x{want.size[1]}"} if want.size else {})

    def _message(self, message: Message) -> dict[str, Any]:
        """Part by part: what the model is shown is what it is shown without a server."""
        told = [_told(part) for part in message.parts if not isinstance(part, Thought)]
        return {"role": message.role, "content": told}

    def _drop_unsupported(self, status: int, said: str, payload: dict[str, Any]) -> bool:
        return False  # it knows all that it is sent: a word like that in an error is the model's

    async def _taken(self, body: Any) -> tuple[Unpacked, Sent]:
        choices: Any = fields(body).get("choices")
        choice = fields(cast(list[Any], choices)[0]) if isinstance(choices, list) and choices else {}
        facts = fields(fields(body).get("weft"))
        if not choice or facts.get("outcome") not in OUTCOMES:
            raise CallError(f"{self.address} answered 200, and not as a server of weft's does", TRANSIENT)
        parts = await asyncio.to_thread(self._parts, choice, facts)
        told = {name: facts.get(name) for name in ("outcome", "reason", "ended", "again")}
        sent = Sent(parts, raw=json.dumps(told), served=self.name, usage=usage_of(body), **cast(Any, told))
        return Unpacked(parts), sent

    def _parts(self, choice: dict[str, Any], facts: dict[str, Any]) -> tuple[Part, ...]:
        """As the model made them."""
        content: Any = fields(choice.get("message")).get("content")
        listed: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) and content else content or []
        parts: list[Part] = []
        try:
            for one in map(fields, listed):
                url = str(fields(one.get("image_url")).get("url", ""))
                parts.append(
                    self._blobs.put(base64.b64decode(url.partition(",")[2], validate=True)) if url else Text(str(one.get("text", "")))
                )
        except (PictureError, binascii.Error) as error:
            raise CallError(f"{self.address} sent a picture that {error}", TRANSIENT) from None
        for at, text in cast(list[tuple[int, str]], facts.get("thoughts") or []):
            parts.insert(int(at), Thought(str(text)))
        return tuple(parts)

    def _read(self, got: Unpacked, sent: Sent, want: Want) -> Sent:
        return sent


def _told(part: Part) -> dict[str, Any]:
    if isinstance(part, Image):
        return {"type": "image_url", "image_url": {"url": part}}
    return {"type": "text", "text": part.text}


class Stay(urllib.request.HTTPRedirectHandler):
    """A key goes to the address that it is for, and no further."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _json(came: Any) -> Any:
    try:
        return json.loads(came.read(1 << 16))
    except (OSError, ValueError):
        return None


def card_of(url: str, key: str, name: str) -> dict[str, Any]:
    """What a server says is behind it. Raises UserError."""
    told = without_secrets(url)
    asked = urllib.request.Request(f"{url}/models", headers={"Authorization": f"Bearer {key}"} if key else {})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), Stay())
    try:
        with opener.open(asked, timeout=PATIENCE) as came:
            body = json.loads(came.read(1 << 20))
    except urllib.error.HTTPError as error:
        if error.code == 401 and key:
            raise UserError(f"{told} did not accept its token (WEFT_API_KEY, or what key_env names)") from None
        if error.code == 401:
            raise UserError(f"{told} wants its token: put it in WEFT_API_KEY, or name a variable with key_env") from None
        why = error_facts(_json(error))[0] or "it is no server of weft's (`weft serve`)"
        raise UserError(f"{told} answered {error.code}: {scrub(why)[:200]}") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        why = error.reason if isinstance(error, urllib.error.URLError) else error
        raise Away(f"nobody answers at {told} ({scrub(str(why))}): start it with `weft serve`") from None
    listed: Any = fields(body).get("data")
    there = {str(fields(one).get("id")): fields(one) for one in cast(list[Any], listed if isinstance(listed, list) else [])}
    if name not in there:
        raise UserError(f"{told} serves {', '.join(there) or 'nothing'}, and no {name}")
    card = fields(there[name].get("weft"))
    if not {"name", "identity", "takes", "gives", "at_once", "seed", "replicas"} <= set(card):
        raise UserError(f"{told} is no server of weft's: for others that speak its protocol write openai-chat/{name}@{told}")
    return card


@about(Takes(own_images="user"), Gives(order=True, seed=True, sizes="pixels"), address=True, several=True)
@options(key_env=str, timeout=seconds, max_side=count, most_images=count)
def from_spec(spec: ModelSpec, blobs: Blobs, **chosen: Any) -> Endpoint:
    """One address, or several with commas between them: servers of one model."""
    if not spec.url:
        url_of(spec, "")
    found, away = list[Served](), list[str]()
    for url in spec.url.split(","):
        one = msgspec.structs.replace(spec, url=url.strip(), written=f"{spec.provider}/{spec.model}@{url.strip()}")
        try:
            found.append(_at(one, blobs, dict(chosen)))
        except Away:
            if "," not in spec.url:
                raise
            away.append(without_secrets(url.strip()))
    if not found:
        raise Away(f"nobody answers at {', '.join(away)}: start it with `weft serve`")
    for other in found[1:]:
        if (other.identity, other.takes, other.gives) != (found[0].identity, found[0].takes, found[0].gives):
            raise UserError(f"{other.address} and {found[0].address} do not serve the same model: their weights or settings differ")
    return Spread(found, away) if len(found) + len(away) > 1 else found[0]


def _at(spec: ModelSpec, blobs: Blobs, chosen: dict[str, Any]) -> Served:
    url = url_of(spec, "").rstrip("/")
    url += "" if url.endswith("/v1") else "/v1"
    key = key_for(url, chosen.pop("key_env", ""))
    card = card_of(url, key, spec.model)
    for name, of in (("max_side", "max_side"), ("most_images", "most")):
        if name in chosen:
            card["takes"] = {**fields(card["takes"]), of: chosen.pop(name)}
    try:
        return Served(spec.model, url, blobs, card, key=key, **{"timeout": 3600.0, **chosen})
    except (msgspec.ValidationError, ValueError, TypeError) as error:
        raise UserError(f"{without_secrets(url)} says what weft does not understand: {error}") from None
