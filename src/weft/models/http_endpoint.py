"""What all models share that are behind an address and a key: where they are, which key goes there, what an error means for the next try,
and images that come as base64 or as links.

A provider's key goes to that provider's own hosts and to nobody else; any other address has `WEFT_API_KEY`, or the variable that
`key_env` names. A picture's link is followed to the endpoint's own host and to those that its provider is known to keep pictures at; to
others only where the user allowed it, and never with a key.

Content that was turned away is an outcome, and never tried again; a rate is waited out, for as long as the server asks; a quota that is
used up ends the run, since every further call would fail as well.
"""

import asyncio
import base64
import binascii
import email.utils
import math
import os
import re
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar, cast
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from msgspec.structs import replace

from weft.errors import PictureError, UserError
from weft.models.converters import count, flag, json_object, seconds
from weft.models.endpoint import DENIED, FATAL, NO, TRANSIENT, CallError, Endpoint, Expired, Retry, Sent
from weft.models.http import MAX_REPLY, MAX_TEXT, Answer, Body, Http, Pieces, error_facts
from weft.models.registry import KEY_BY_HOST, OTHERS, ModelSpec
from weft.secrets import hide, scrub, without_secrets
from weft.store.blobs import Blobs
from weft.types import Image, Want
from weft.untrusted import fields

OPENAI = "https://api.openai.com/v1"
OPTIONS: dict[str, Callable[[Any], Any]] = {  # that all have
    "key_env": str,
    "max_side": count,
    "most_images": count,
    "timeout": seconds,
    "fetch_images": flag,
    "extra": json_object,
}
OWN = ("max_side", "most_images", "timeout", "fetch_images")  # those that the endpoint itself takes: they do not go with a request
REFUSALS = ("content_policy", "moderation", "content_filter", "safety", "sensitivecontent", "datainspectionfailed", "image_content_policy")
QUOTA = ("insufficient_quota", "credit_balance", "spend", "billing", "quota_exceeded", "quotaexceeded", "arrearage", "overdue")


class HttpEndpoint(Endpoint):
    provider = ""
    picture_hosts: tuple[str, ...] = ()  # how hosts end that this provider keeps pictures at

    _url: str

    def __init__(
        self,
        model: str,
        url: str,
        blobs: Blobs,
        *,
        key: str = "",
        timeout: float = 600,
        fetch_images: bool = False,
        max_side: int | None = None,
        most_images: int | None = None,
        parameters: Mapping[str, Any] | None = None,
        **told: Any,
    ) -> None:
        """`parameters` go with every request; `told` is what else can change an answer. What the class says it takes, and how many, is
        changed by `max_side` and `most_images`."""
        self.takes = replace(self.takes, max_side=max_side or self.takes.max_side, most=most_images or self.takes.most)
        self._model, self._blobs, self._key, self._fetch = model, blobs, key.strip(), fetch_images
        if self._key:
            hide(self._key)
        self._url = url.rstrip("/")
        self._parameters = dict(parameters or {})
        self._http = Http(timeout)
        self.close = self._http.close
        super().__init__(f"{self.provider}/{model}", address=urlsplit(self._url)._replace(query="", fragment="").geturl())
        self.identity = {"provider": self.provider, "model": model, "url": self.address, "parameters": self._parameters, **told}

    @property
    def keyless(self) -> str:
        host = urlsplit(self._url).hostname or ""
        return f"{KEY_BY_HOST[host]} is not set" if host in KEY_BY_HOST and not self._key else ""

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._key}"} if self._key else {}

    def _drawn(self, want: Want) -> dict[str, Any]:
        """The parameters of one draw: a seed moves on with it."""
        seed = self._parameters.get("seed")
        return {**self._parameters, **({"seed": seed + want.draw} if want.draw and isinstance(seed, int) else {})}

    def _post(
        self, path: str, payload: Mapping[str, Any], most: int, *, bare: bool = False, stream: Pieces | None = None
    ) -> AbstractAsyncContextManager[Answer]:
        """A request as JSON, with the answer to come: of at `most` so many bytes, and let go by whoever is done with it."""
        url, headers = f"{self._url}{path}", self._headers()
        return self._http.post(url, payload, headers, self._blobs, called=self.address, most=most, bare=bare, stream=stream)

    async def _asked_for(self, path: str, payload: Mapping[str, Any], want: Want, *, bare: bool = False) -> Answer:
        """A request as JSON, and what came. An error in a shape of the service's own (`_problem`) stands in it like any other."""
        async with self._post(path, payload, MAX_TEXT if want.kind == "text" else MAX_REPLY, bare=bare) as came:
            said, codes = self._problem(came.body)
            return Answer(came.status, came.headers, came.data, came.body, scrub(said), codes) if said else came

    def _problem(self, body: Any) -> tuple[str, str]:
        """What an error says that is in no shape that others use, and its codes; nothing where there is none."""
        return "", ""

    # errors

    def _turned_away(self, came: Answer) -> Sent:
        """Content that was turned away, as an outcome. Any other error is raised, with what it means for the next try."""
        said = came.said or came.text
        if is_refusal(came.codes):
            return Sent((), "refused", said[:1000], came.text, self._model, ended="blocked")
        status = status_of(came)
        raise CallError(self._explain(status, said), decide(status, came.codes, came.headers, came.body))

    def _explain(self, status: int, said: str) -> str:
        said = " ".join(said.split())
        said = said if len(said) <= 300 else said[:299] + "…"
        variable = key_variable(self._url)
        if status == 401:
            wanted = f"it wants a key; set {variable}, or name a variable with key_env"
            return f"{self.address} answered 401: {'the key was not accepted' if self._key else wanted}: {said}"
        allowed = f": that is not allowed{'' if self._key else f' (no key was sent; there is none in {variable})'}" if status == 403 else ""
        return f"{self.address} answered {status}{allowed}: {said}"

    # files and batches

    @property
    def blobs(self) -> Blobs:
        return self._blobs

    def _checked(self, came: Answer) -> Answer:
        if came.status >= 400 or came.said:
            said = came.said or came.text
            status = status_of(came)
            raise CallError(self._explain(status, said), decide(status, came.codes, came.headers, came.body))
        return came

    async def looked(self, path: str, *, told: bool = False) -> Answer:
        """JSON that is there. `told`: an error in it is about what is looked at, and not about the looking."""
        came = await self._http.look(f"{self._url}{path}", self._headers(), called=self.address)
        if came.status in (404, 410):
            raise Expired(f"{self.address} has it no more: {(came.said or came.text)[:200]}")
        return came if told and came.status < 400 else self._checked(came)

    async def posted(self, path: str, payload: Mapping[str, Any]) -> Answer:
        async with self._post(path, payload, MAX_TEXT) as came:
            return self._checked(came)

    async def upload(self, path: str, body: Body, headers: Mapping[str, str]) -> Answer:
        sent = {**self._headers(), **headers}
        return self._checked(await self._http.upload(f"{self._url}{path}", body, sent, called=self.address))

    async def file(self, path: str, most: int) -> bytes:
        async with self._http.get(f"{self._url}{path}", called=self.address, headers=self._headers(), most=most) as came:
            if came.status in (404, 410):
                raise Expired(f"{self.address} has the file no more")
            if came.status != 200:
                raise CallError(f"{self.address} answered {came.status} for a file", decide(came.status, "", came.headers))
            return bytes(came.data)

    # pictures

    async def _decoded(self, coded: str) -> Image:
        """A picture that came as base64, bare or as a data URL. Raises PictureError."""
        try:
            data = base64.b64decode(coded.rpartition(",")[2] if coded.startswith("data:") else coded, validate=True)
        except (binascii.Error, ValueError):
            raise PictureError("is no base64") from None
        return await asyncio.to_thread(self._blobs.put, data)

    async def _fetched(self, link: str) -> Image:
        """A picture that came as a link. Raises PictureError for what is none."""
        try:
            place = address_of(link)
        except ValueError as error:
            raise PictureError(f"came as a link: {error}") from None
        if not self._may_fetch(place.netloc, place.scheme, place.hostname or ""):
            why = f"{self.address} sent a link to another host instead of a picture; allow it with fetch_images=true"
            raise CallError(why, NO, billed=True)
        async with self._http.get(link, called="the picture's link") as came:
            if came.status != 200:
                moved = ": it redirects" if 300 <= came.status < 400 else ""
                raise CallError(f"the picture's link answered {came.status}{moved}", TRANSIENT)
            return await asyncio.to_thread(self._blobs.put, bytes(came.data))

    def _may_fetch(self, netloc: str, scheme: str, host: str) -> bool:
        known = scheme == "https" and any(host.endswith(ending) for ending in self.picture_hosts)
        return self._fetch or known or netloc == urlsplit(self._url).netloc


W = TypeVar("W", bound=HttpEndpoint)


def from_options(kind: type[W], spec: ModelSpec, blobs: Blobs, url: str, chosen: dict[str, Any], *own: str, **usual: Any) -> W:
    """An endpoint from its options: those of its `own` are its arguments; all others, and `extra`, go with every request, as does what is
    `usual` where they say nothing else."""
    key = key_for(url, chosen.pop("key_env", ""))
    parameters = {**usual, **chosen.pop("extra", {}), **{name: chosen.pop(name) for name in list(chosen) if name not in (*OWN, *own)}}
    return kind(spec.model, url, blobs, key=key, parameters=parameters, **chosen)


def status_of(came: Answer) -> int:
    """The status of an error, also of one that came with 200: its own code if it has one, else that of a server in trouble."""
    if came.status >= 400:
        return came.status
    code = re.sub("[^0-9]", "", came.codes.split(" ")[0])
    return int(code) if len(code) == 3 else 502


def key_variable(url: str, chosen: str = "") -> str:
    """The environment variable that holds the key for an address. A known provider's key goes to that provider alone."""
    return chosen or KEY_BY_HOST.get(urlsplit(url).hostname or "", OTHERS)


def url_of(spec: ModelSpec, usual: str = OPENAI) -> str:
    """The address of a named model: the user's, or the provider's own. Raises UserError for what is none, or has a key in it."""
    url = spec.url or usual
    if not spec.url and "@" in spec.model:
        name, _, place = spec.text.rpartition("@")
        why = f"an address begins with http:// or https://, as in {name}@http://{place}"
        raise UserError(f"{spec.text}: {why}; if @{place} is a part of the model's name, give the address behind it")
    if not url:
        raise UserError(f"{spec.text}: give the server's address, as in {spec.provider}/NAME@http://127.0.0.1:8000/v1")
    try:
        parts = address_of(url, ours=True)
    except ValueError as error:
        raise UserError(f"{spec.provider}/{spec.model}: {error}") from None
    if not spec.model:
        raise UserError(f"{without_secrets(spec.text)}: name the model, as in {spec.provider}/NAME{'@URL' if usual == OPENAI else ''}")
    if parts.query:
        raise UserError("keys do not belong in addresses; put the key in an environment variable and name it with key_env=NAME")
    return url


def key_for(url: str, chosen: str = "") -> str:
    """The key for an address, from the environment; nothing where there is none."""
    variable = key_variable(url, chosen)
    key = os.environ.get(variable, "").strip()
    if chosen and not key:
        raise UserError(f"key_env={chosen}: there is nothing in {chosen}; export it, or leave key_env out")
    if not key.isascii() or not key.isprintable() or " " in key:
        hide(key)
        raise UserError(f"the key in {variable} has a character in it that no key has (a space, or none of ASCII): set it again")
    return key


def address_of(url: str, *, ours: bool = False) -> SplitResult:
    """An http(s) address, taken apart. Raises ValueError, which does not repeat what may be a key in it. Of one that is `ours`, the user's,
    whatever may be a key is hidden; a server's links do not choose what is."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable, parts = False, SplitResult("", "", "", "", "")
    for secret in (parts.password, parts.username, *(value for _, value in parse_qsl(parts.query))) if ours else ():
        if secret:
            hide(unquote(secret))
    if not usable:
        raise ValueError(f"{without_secrets(url)!r} is not an http(s) address")
    if parts.username or parts.password:
        raise ValueError("keys do not belong in addresses; put the key in an environment variable and name it with key_env=NAME")
    return parts


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the endpoint asked us to wait, from any of the headers in use."""
    try:
        if "retry-after-ms" in headers:
            delay = max(0.0, float(headers["retry-after-ms"]) / 1000)
            return delay if math.isfinite(delay) else None
        value = headers.get("retry-after")
        if value is None:
            return None
        if re.fullmatch(r"[0-9]+(\.[0-9]+)?", value):
            return float(value)
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def _told_delay(body: Any) -> float | None:
    """Google's way to say how long to wait: RetryInfo among the error's details."""
    details: Any = fields(fields(body).get("error")).get("details")
    for detail in cast(list[Any], details) if isinstance(details, list) else []:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)s", str(fields(detail).get("retryDelay", "")))
        if match:
            return float(match.group(1))
    return None


def _is_spent(body: Any) -> bool:
    """Whether an error says in its details, or in words alone, that nothing is left: Google's quota of a day, Anthropic's credit."""
    details: Any = fields(fields(body).get("error")).get("details")
    for detail in cast(list[Any], details) if isinstance(details, list) else []:
        violations: Any = fields(detail).get("violations")
        for one in cast(list[Any], violations) if isinstance(violations, list) else []:
            if "perday" in str(fields(one).get("quotaId", "")).lower():
                return True
    return "credit balance is too low" in error_facts(body)[0].lower()


def is_refusal(codes: str) -> bool:
    """Whether the error's own codes say that the content was turned away, whatever the status."""
    return any(word in codes.replace("-", "_") for word in REFUSALS)


def decide(status: int, codes: str, headers: Mapping[str, str], body: Any = None) -> Retry:
    """What an error means for the next try."""
    delay = retry_after(headers)
    if status == 402 and delay is not None:
        return Retry("rate_limit", delay)
    if status == 402 or any(word in codes for word in QUOTA) or _is_spent(body):
        return FATAL
    if status in (401, 403, 404):
        return DENIED
    if status in (429, 503, 529):
        return Retry("rate_limit", delay or _told_delay(body))
    if status in (408, 409, 425) or status >= 500:
        return TRANSIENT
    return NO
