"""The card by which a `weft serve` server describes the model behind it: fetched, checked and scrubbed.

A server may say anything. Its card is refused where a value is impossible, keys are removed from every text of it, and
what it says of the model's identity is a claim: `claimed_identity` puts that where no identity can be that weft works
out itself. Only a server that this command started is believed (`own_server`).
"""

import contextlib
import http.client
import queue
import threading
import urllib.error
import urllib.request
from collections.abc import Generator, Mapping
from typing import Annotated, Any, cast

import msgspec
from msgspec import Meta, Struct

from weft.errors import UserError
from weft.models.http import parse_error
from weft.models.providers.openai_reply import list_of_dicts
from weft.secrets import scrub, strip_url_secrets
from weft.store.manifest import Identity
from weft.types import Gives, Takes
from weft.untrusted import dict_or_empty, escape_control_characters, parse_json

FETCH_TIMEOUT_S = 10.0  # for the whole card, however slowly a server sends it
MAX_BYTES = 1 << 20  # of a server's list of models
MAX_IDENTITY_BYTES = 1 << 16  # it stands in every manifest
MAX_ERROR_BYTES = 1 << 16
MAX_NAMES_LENGTH = 200  # characters of what a server serves, in an error
CLAIM = "claim"  # the key under which a server's word stands in an identity
NOT_OURS = (
    "{address} is not a `weft serve` server: for other servers of its protocol write openai-chat/{name}@{address}"
)
_own_servers: set[str] = set()  # addresses


class ServerUnreachable(UserError):
    """No server answers at an address."""


class ModelCard(Struct, frozen=True):
    """What a server publishes about its model."""

    name: str  # as reports show it
    identity: Mapping[str, Any]  # all that can change an answer: part of every cache key
    takes: Takes  # the input that the model accepts
    gives: Gives  # the output that it can produce
    concurrency: Annotated[int, Meta(ge=1, le=100_000)]  # calls that one replica works on or has ready
    seed: Annotated[int, Meta(ge=-(2**53), le=2**53)] = 0  # of the first draw
    replicas: Annotated[int, Meta(ge=1, le=100_000)] = 1
    request_settings: tuple[str, ...] = ()  # settings that a request may change
    ignored_settings: tuple[str, ...] = ()  # settings that a request may have and that change nothing


FIELDS = frozenset(ModelCard.__struct_fields__) - {"request_settings", "ignored_settings"}  # that a server must send


@contextlib.contextmanager
def own_server(url: str) -> Generator[None]:
    """Believe the server at this address meanwhile: this command started it, with a model that it knows."""
    _own_servers.add(url)
    try:
        yield
    finally:
        _own_servers.discard(url)


def is_own_server(url: str) -> bool:
    return url in _own_servers


def claimed_identity(card: ModelCard, provider: str, model: str, address: str) -> dict[str, Any]:
    """Return the identity of a model on a server that is not believed.

    The provider is the server's kind, and the name and the address are the user's. What the server claims decides about
    nothing but itself: a server that claims something else is asked again.
    """
    claim = Identity(card.identity)
    identity: dict[str, Any] = {"provider": provider, "model": model, "url": address}
    if claim.seed == card.seed:
        claim = claim.without_seed()  # requests carry it: runs of one model with several seeds are recognised by it
        identity["seed"] = card.seed
    elif card.seed:
        identity["seed"] = card.seed
    return {**identity, CLAIM: dict(claim)}


def fetch_model_card(url: str, key: str, name: str) -> ModelCard:
    """Fetch the card of a model from its server.

    Raises ServerUnreachable where none answers, UserError for a wrong token, another model, another kind of server, or
    a card that cannot be used.
    """
    address = strip_url_secrets(url)
    models = list_of_dicts(_fetch_models(url, key).get("data"))
    cards = {str(model.get("id")): dict_or_empty(model.get("weft")) for model in models}
    if name not in cards:
        names = escape_control_characters(scrub(", ".join(cards)))[:MAX_NAMES_LENGTH] or "nothing"
        raise UserError(f"{address} serves {names}, not {name}")
    if not set(cards[name]) >= FIELDS:
        raise UserError(NOT_OURS.format(address=address, name=name))
    return _parse_card(cards[name], address)


def _parse_card(card: dict[str, Any], address: str) -> ModelCard:
    problem = f"{address} sent a model card that weft cannot use"
    try:
        parsed = msgspec.convert(_scrub_all(card), ModelCard)
        size = len(msgspec.json.encode(parsed.identity))
    except (msgspec.ValidationError, UnicodeError, OverflowError, RecursionError) as error:
        raise UserError(f"{problem}: {scrub(str(error))[:MAX_NAMES_LENGTH]}") from None
    if size > MAX_IDENTITY_BYTES:
        raise UserError(f"{problem}: its identity has {size:,} bytes, more than the limit of {MAX_IDENTITY_BYTES:,}")
    max_side = parsed.takes.max_side
    max_images = parsed.takes.max_images
    if (max_side is not None and max_side < 1) or (max_images is not None and max_images < 0):
        raise UserError(f"{problem}: it accepts images of no size or number")
    return parsed


def _scrub_all(value: Any) -> Any:
    """Return decoded JSON with every text in it scrubbed, names included."""
    if isinstance(value, str):
        return scrub(value)
    if isinstance(value, list):
        return [_scrub_all(item) for item in cast(list[Any], value)]
    if isinstance(value, dict):
        return {scrub(name): _scrub_all(item) for name, item in cast(dict[str, Any], value).items()}
    return value


def _fetch_models(url: str, key: str) -> dict[str, Any]:
    """Return a server's list of models. One that sends it drop by drop is not waited for."""
    results: queue.SimpleQueue[dict[str, Any] | UserError] = queue.SimpleQueue()
    threading.Thread(target=_put_models, args=(url, key, results), daemon=True).start()
    try:
        result = results.get(timeout=FETCH_TIMEOUT_S)
    except queue.Empty:
        raise _unreachable(url, f"no whole answer in {FETCH_TIMEOUT_S:g} s") from None
    if isinstance(result, UserError):
        raise result
    return result


def _put_models(url: str, key: str, results: "queue.SimpleQueue[dict[str, Any] | UserError]") -> None:
    try:
        results.put(_request_models(url, key))
    except UserError as error:
        results.put(error)
    except Exception as error:  # whatever a server makes of the library that reads it
        results.put(_unreachable(url, type(error).__name__))


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: a key is sent to the address that it is for, and nowhere else."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


def _request_models(url: str, key: str) -> dict[str, Any]:
    address = strip_url_secrets(url)
    request = urllib.request.Request(f"{url}/models")
    if key:
        request.add_header("Authorization", f"Bearer {key}")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirects())
    try:
        with opener.open(request, timeout=FETCH_TIMEOUT_S) as response:
            return dict_or_empty(parse_json(response.read(MAX_BYTES), f"{address}/models"))
    except urllib.error.HTTPError as error:
        if error.code == 401 and key:
            raise UserError(f"{address} did not accept the token (from WEFT_API_KEY, or key_env)") from None
        if error.code == 401:
            raise UserError(
                f"{address} needs a token: put it in WEFT_API_KEY, or name a variable with key_env"
            ) from None
        message = parse_error(_read_error(error))[0] or "it is not a `weft serve` server"
        raise UserError(f"{address} answered {error.code}: {scrub(message)[:MAX_NAMES_LENGTH]}") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason: Any = error
        if isinstance(error, urllib.error.URLError):
            reason = error.reason
        raise _unreachable(url, str(reason)) from None


def _unreachable(url: str, reason: str) -> ServerUnreachable:
    text = escape_control_characters(scrub(reason))[:MAX_NAMES_LENGTH]
    return ServerUnreachable(f"no server answers at {strip_url_secrets(url)} ({text}): start it with `weft serve`")


def _read_error(response: Any) -> Any:
    try:
        return parse_json(response.read(MAX_ERROR_BYTES), "the error")
    except (OSError, ValueError, UserError, http.client.HTTPException):
        return None
