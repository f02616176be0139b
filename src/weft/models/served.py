"""What `weft serve` serves: served/NAME@URL.

Several addresses of one model have commas between them: served/NAME@URL,URL. A server says what is behind it: what that takes and gives,
how many calls it wants at once, and what answers are kept under. That is the model's own identity and nothing of the server's: the same
weights have the same answers in this process, behind one replica or behind eight, at any address.
"""

import json
import urllib.error
import urllib.request
from typing import Any, cast

import msgspec

from weft.errors import UserError
from weft.models.converters import count, seconds
from weft.models.endpoint import Endpoint, Sent
from weft.models.openai_chat import OpenAIChat
from weft.models.openai_parts import Unpacked
from weft.models.registry import Spec, about, options
from weft.models.spread import Spread
from weft.models.wire import key_for, url_of
from weft.outside import fields
from weft.secrets import scrub, without_secrets
from weft.store.blobs import Blobs
from weft.types import Gives, Message, Takes, Want

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

    async def _taken(self, body: Any) -> tuple[Unpacked, Sent]:
        got, sent = await super()._taken(body)
        facts = fields(fields(body).get("weft"))
        if facts.get("outcome") in OUTCOMES:
            told = {name: facts.get(name) for name in ("outcome", "reason", "ended", "again")}
            sent = msgspec.structs.replace(sent, raw=json.dumps(told), served=self.name, **cast(Any, told))
        return got, sent

    def _read(self, got: Unpacked, sent: Sent, want: Want) -> Sent:
        if sent.served != self.name or got.broken:
            return super()._read(got, sent, want)
        return msgspec.structs.replace(sent, parts=got.parts)


def card_of(url: str, key: str, name: str) -> dict[str, Any]:
    """What a server says is behind it. Raises UserError."""
    told = without_secrets(url)
    asked = urllib.request.Request(f"{url}/models", headers={"Authorization": f"Bearer {key}"} if key else {})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(asked, timeout=PATIENCE) as came:
            body = json.loads(came.read(1 << 20))
    except urllib.error.HTTPError as error:
        if error.code == 401:
            raise UserError(f"{told} wants its token: put it in WEFT_API_KEY, or name a variable with key_env") from None
        raise UserError(f"{told} answered {error.code}: it is no server of weft's (`weft serve`)") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "reason", None) or error
        raise Away(f"nobody answers at {told} ({scrub(str(why))}): start it with `weft serve`") from None
    listed: Any = fields(body).get("data")
    there = {str(fields(one).get("id")): fields(one) for one in cast(list[Any], listed if isinstance(listed, list) else [])}
    if name not in there:
        raise UserError(f"{told} serves {', '.join(there) or 'nothing'}, and no {name}")
    card = fields(there[name].get("weft"))
    if not {"name", "identity", "takes", "gives", "at_once", "seed", "replicas"} <= set(card):
        raise UserError(f"{told} is no server of weft's: for others that speak its protocol write openai-chat/{name}@{told}")
    return card


@about(Takes(own_images="user"), Gives(order=True, seed=True, sizes="pixels"), address=True)
@options(key_env=str, timeout=seconds, max_side=count, most_images=count)
def from_spec(spec: Spec, blobs: Blobs, **chosen: Any) -> Endpoint:
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


def _at(spec: Spec, blobs: Blobs, chosen: dict[str, Any]) -> Served:
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
