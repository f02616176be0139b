"""What all models share that are behind an address and a key: where they are, which key goes there, what an error means
for the next try, and images that come as base64 or as links.

A provider's key goes to that provider's own hosts and to nobody else; any other address has `WEFT_API_KEY`, or the
variable that `key_env` names. A picture's link is followed to the endpoint's own host and to those that its provider is
known to keep pictures at; to others only where the user allowed it, and never with a key.

Content that was turned away is an outcome, and never tried again; a rate is waited out, for as long as the server asks;
a quota that is used up ends the run, since every further call would fail as well."""

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

from weft.errors import ImageError, UserError
from weft.models.converters import boolean, json_object, positive_int, positive_seconds
from weft.models.endpoint import (
    DENIED,
    FATAL,
    NO_RETRY,
    TRANSIENT,
    CallError,
    Endpoint,
    EndpointReply,
    Retry,
    TicketExpired,
)
from weft.models.http import (
    MAX_REPLY_BYTES,
    MAX_TEXT_BYTES,
    EventAssembler,
    HttpClient,
    HttpResponse,
    RequestBody,
    parse_error,
)
from weft.models.registry import DEFAULT_KEY_VARIABLE, KEY_BY_HOST, ModelSpec
from weft.secrets import hide, scrub, strip_url_secrets
from weft.store.blobs import Blobs
from weft.types import Image, Request
from weft.untrusted import dict_or_empty

OPENAI_URL = "https://api.openai.com/v1"
HTTP_OPTIONS: dict[str, Callable[[Any], Any]] = {  # that all have
    "key_env": str,
    "max_side": positive_int,
    "most_images": positive_int,
    "timeout": positive_seconds,
    "fetch_images": boolean,
    "extra": json_object,
}
ENDPOINT_OPTIONS = (
    "max_side",
    "most_images",
    "timeout",
    "fetch_images",
)  # those that the endpoint itself takes: they do not go with a request
REFUSAL_CODES = (
    "content_policy",
    "moderation",
    "content_filter",
    "safety",
    "sensitivecontent",
    "datainspectionfailed",
    "image_content_policy",
)
QUOTA_CODES = (
    "insufficient_quota",
    "credit_balance",
    "spend",
    "billing",
    "quota_exceeded",
    "quotaexceeded",
    "arrearage",
    "overdue",
)


class HttpEndpoint(Endpoint):
    provider = ""
    image_hosts: tuple[str, ...] = ()  # how hosts end that this provider keeps pictures at

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
        """`parameters` go with every request; `told` is what else can change an answer. What the class says it takes,
        and how many, is changed by `max_side` and `most_images`."""
        self.takes = replace(
            self.takes, max_side=max_side or self.takes.max_side, max_images=most_images or self.takes.max_images
        )
        self._model = model
        self._blobs = blobs
        self._key = key.strip()
        self._fetch = fetch_images
        if self._key:
            hide(self._key)
        self._url = url.rstrip("/")
        self._parameters = dict(parameters or {})
        self._http = HttpClient(timeout)
        self.close = self._http.close
        super().__init__(
            f"{self.provider}/{model}", address=urlsplit(self._url)._replace(query="", fragment="").geturl()
        )
        self.identity = {
            "provider": self.provider,
            "model": model,
            "url": self.address,
            "parameters": self._parameters,
            **told,
        }

    @property
    def missing_key(self) -> str:
        host = urlsplit(self._url).hostname or ""
        if host in KEY_BY_HOST and not self._key:
            return f"{KEY_BY_HOST[host]} is not set"
        return ""

    def _headers(self) -> dict[str, str]:
        if self._key:
            return {"Authorization": f"Bearer {self._key}"}
        return {}

    def _parameters_for(self, want: Request) -> dict[str, Any]:
        """The parameters of one draw: a seed moves on with it."""
        seed = self._parameters.get("seed")
        return {**self._parameters, **({"seed": seed + want.draw} if want.draw and isinstance(seed, int) else {})}

    def _post(
        self,
        path: str,
        payload: Mapping[str, Any],
        most: int,
        *,
        bare: bool = False,
        stream: EventAssembler | None = None,
    ) -> AbstractAsyncContextManager[HttpResponse]:
        """A request as JSON, with the answer to come: of at `most` so many bytes, and let go by whoever is done with
        it."""
        url = f"{self._url}{path}"
        headers = self._headers()
        return self._http.post(
            url, payload, headers, self._blobs, called=self.address, most=most, bare=bare, stream=stream
        )

    async def _request_json(
        self, path: str, payload: Mapping[str, Any], want: Request, *, bare: bool = False
    ) -> HttpResponse:
        """A request as JSON, and what came. An error in a shape of the service's own (`_problem`) stands in it like any
        other."""
        async with self._post(
            path, payload, MAX_TEXT_BYTES if want.modality == "text" else MAX_REPLY_BYTES, bare=bare
        ) as came:
            said, codes = self._parse_own_error(came.body)
            if said:
                return HttpResponse(came.status, came.headers, came.data, came.body, scrub(said), codes)
            return came

    def _parse_own_error(self, body: Any) -> tuple[str, str]:
        """What an error says that is in no shape that others use, and its codes; nothing where there is none."""
        return "", ""

    # errors

    def _read_error(self, came: HttpResponse) -> EndpointReply:
        """Content that was turned away, as an outcome. Any other error is raised, with what it means for the next
        try."""
        said = came.error_message or came.text
        if is_refusal(came.error_codes):
            return EndpointReply((), "refused", said[:1000], came.text, self._model, stop_cause="blocked")
        status = status_of(came)
        raise CallError(self._explain(status, said), retry_decision(status, came.error_codes, came.headers, came.body))

    def _explain(self, status: int, said: str) -> str:
        said = " ".join(said.split())
        if not (len(said) <= 300):
            said = said[:299] + "…"
        variable = key_variable(self._url)
        if status == 401:
            wanted = f"it wants a key; set {variable}, or name a variable with key_env"
            return f"{self.address} answered 401: {'the key was not accepted' if self._key else wanted}: {said}"
        if status == 403:
            allowed = f": that is not allowed{'' if self._key else f' (no key was sent; there is none in {variable})'}"
        else:
            allowed = ""
        return f"{self.address} answered {status}{allowed}: {said}"

    # files and batches

    @property
    def blobs(self) -> Blobs:
        return self._blobs

    def _raise_for_error(self, came: HttpResponse) -> HttpResponse:
        if came.status >= 400 or came.error_message:
            said = came.error_message or came.text
            status = status_of(came)
            raise CallError(
                self._explain(status, said), retry_decision(status, came.error_codes, came.headers, came.body)
            )
        return came

    async def get_json(self, path: str, *, told: bool = False) -> HttpResponse:
        """JSON that is there. `told`: an error in it is about what is looked at, and not about the looking."""
        came = await self._http.get_json(f"{self._url}{path}", self._headers(), called=self.address)
        if came.status in (404, 410):
            raise TicketExpired(f"{self.address} has it no more: {(came.error_message or came.text)[:200]}")
        if told and came.status < 400:
            return came
        return self._raise_for_error(came)

    async def post_json(self, path: str, payload: Mapping[str, Any]) -> HttpResponse:
        async with self._post(path, payload, MAX_TEXT_BYTES) as came:
            return self._raise_for_error(came)

    async def upload(self, path: str, body: RequestBody, headers: Mapping[str, str]) -> HttpResponse:
        sent = {**self._headers(), **headers}
        return self._raise_for_error(await self._http.upload(f"{self._url}{path}", body, sent, called=self.address))

    async def download(self, path: str, most: int) -> bytes:
        async with self._http.get(
            f"{self._url}{path}", called=self.address, headers=self._headers(), most=most
        ) as came:
            if came.status in (404, 410):
                raise TicketExpired(f"{self.address} has the file no more")
            if came.status != 200:
                raise CallError(
                    f"{self.address} answered {came.status} for a file", retry_decision(came.status, "", came.headers)
                )
            return bytes(came.data)

    # pictures

    async def _decode_image(self, coded: str) -> Image:
        """A picture that came as base64, bare or as a data URL. Raises PictureError."""
        try:
            data = base64.b64decode(coded.rpartition(",")[2] if coded.startswith("data:") else coded, validate=True)
        except (binascii.Error, ValueError):
            raise ImageError("is no base64") from None
        return await asyncio.to_thread(self._blobs.put, data)

    async def _fetch_image(self, link: str) -> Image:
        """A picture that came as a link. Raises PictureError for what is none."""
        try:
            place = parse_address(link)
        except ValueError as error:
            raise ImageError(f"came as a link: {error}") from None
        if not self._may_fetch(place.netloc, place.scheme, place.hostname or ""):
            why = f"{self.address} sent a link to another host instead of a picture; allow it with fetch_images=true"
            raise CallError(why, NO_RETRY, billed=True)
        async with self._http.get(link, called="the picture's link") as came:
            if came.status != 200:
                if 300 <= came.status < 400:
                    moved = ": it redirects"
                else:
                    moved = ""
                raise CallError(f"the picture's link answered {came.status}{moved}", TRANSIENT)
            return await asyncio.to_thread(self._blobs.put, bytes(came.data))

    def _may_fetch(self, netloc: str, scheme: str, host: str) -> bool:
        known = scheme == "https" and any(host.endswith(ending) for ending in self.image_hosts)
        return self._fetch or known or netloc == urlsplit(self._url).netloc


W = TypeVar("W", bound=HttpEndpoint)


def from_options(
    kind: type[W], spec: ModelSpec, blobs: Blobs, url: str, chosen: dict[str, Any], *own: str, **usual: Any
) -> W:
    """An endpoint from its options: those of its `own` are its arguments; all others, and `extra`, go with every
    request, as does what is `usual` where they say nothing else."""
    key = key_for(url, chosen.pop("key_env", ""))
    parameters = {
        **usual,
        **chosen.pop("extra", {}),
        **{name: chosen.pop(name) for name in list(chosen) if name not in (*ENDPOINT_OPTIONS, *own)},
    }
    return kind(spec.model, url, blobs, key=key, parameters=parameters, **chosen)


def status_of(came: HttpResponse) -> int:
    """The status of an error, also of one that came with 200: its own code if it has one, else that of a server in
    trouble."""
    if came.status >= 400:
        return came.status
    code = re.sub("[^0-9]", "", came.error_codes.split(" ")[0])
    if len(code) == 3:
        return int(code)
    return 502


def key_variable(url: str, chosen: str = "") -> str:
    """The environment variable that holds the key for an address. A known provider's key goes to that provider
    alone."""
    return chosen or KEY_BY_HOST.get(urlsplit(url).hostname or "", DEFAULT_KEY_VARIABLE)


def url_of(spec: ModelSpec, usual: str = OPENAI_URL) -> str:
    """The address of a named model: the user's, or the provider's own. Raises UserError for what is none, or has a key
    in it."""
    url = spec.url or usual
    if not spec.url and "@" in spec.model:
        name, _, place = spec.text.rpartition("@")
        why = f"an address begins with http:// or https://, as in {name}@http://{place}"
        raise UserError(f"{spec.text}: {why}; if @{place} is a part of the model's name, give the address behind it")
    if not url:
        raise UserError(f"{spec.text}: give the server's address, as in {spec.provider}/NAME@http://127.0.0.1:8000/v1")
    try:
        parts = parse_address(url, ours=True)
    except ValueError as error:
        raise UserError(f"{spec.provider}/{spec.model}: {error}") from None
    if not spec.model:
        raise UserError(
            f"{strip_url_secrets(spec.text)}: name the model, as in {spec.provider}/NAME{'@URL' if usual == OPENAI_URL else ''}"
        )
    if parts.query:
        raise UserError(
            "keys do not belong in addresses; put the key in an environment variable and name it with key_env=NAME"
        )
    return url


def key_for(url: str, chosen: str = "") -> str:
    """The key for an address, from the environment; nothing where there is none."""
    variable = key_variable(url, chosen)
    key = os.environ.get(variable, "").strip()
    if chosen and not key:
        raise UserError(f"key_env={chosen}: there is nothing in {chosen}; export it, or leave key_env out")
    if not key.isascii() or not key.isprintable() or " " in key:
        hide(key)
        raise UserError(
            f"the key in {variable} has a character in it that no key has (a space, or none of ASCII): set it again"
        )
    return key


def parse_address(url: str, *, ours: bool = False) -> SplitResult:
    """An http(s) address, taken apart. Raises ValueError, which does not repeat what may be a key in it. Of one that is
    `ours`, the user's, whatever may be a key is hidden; a server's links do not choose what is."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
        parts = SplitResult("", "", "", "", "")
    for secret in (parts.password, parts.username, *(value for _, value in parse_qsl(parts.query))) if ours else ():
        if secret:
            hide(unquote(secret))
    if not usable:
        raise ValueError(f"{strip_url_secrets(url)!r} is not an http(s) address")
    if parts.username or parts.password:
        raise ValueError(
            "keys do not belong in addresses; put the key in an environment variable and name it with key_env=NAME"
        )
    return parts


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the endpoint asked us to wait, from any of the headers in use."""
    try:
        if "retry-after-ms" in headers:
            delay = max(0.0, float(headers["retry-after-ms"]) / 1000)
            if math.isfinite(delay):
                return delay
            return None
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
    details: Any = dict_or_empty(dict_or_empty(body).get("error")).get("details")
    for detail in cast(list[Any], details) if isinstance(details, list) else []:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)s", str(dict_or_empty(detail).get("retryDelay", "")))
        if match:
            return float(match.group(1))
    return None


def _is_spent(body: Any) -> bool:
    """Whether an error says in its details, or in words alone, that nothing is left: Google's quota of a day,
    Anthropic's credit."""
    details: Any = dict_or_empty(dict_or_empty(body).get("error")).get("details")
    for detail in cast(list[Any], details) if isinstance(details, list) else []:
        violations: Any = dict_or_empty(detail).get("violations")
        for one in cast(list[Any], violations) if isinstance(violations, list) else []:
            if "perday" in str(dict_or_empty(one).get("quotaId", "")).lower():
                return True
    return "credit balance is too low" in parse_error(body)[0].lower()


def is_refusal(codes: str) -> bool:
    """Whether the error's own codes say that the content was turned away, whatever the status."""
    return any(word in codes.replace("-", "_") for word in REFUSAL_CODES)


def retry_decision(status: int, codes: str, headers: Mapping[str, str], body: Any = None) -> Retry:
    """What an error means for the next try."""
    delay = retry_after(headers)
    if status == 402 and delay is not None:
        return Retry("rate_limit", delay)
    if status == 402 or any(word in codes for word in QUOTA_CODES) or _is_spent(body):
        return FATAL
    if status in (401, 403, 404):
        return DENIED
    if status in (429, 503, 529):
        return Retry("rate_limit", delay or _told_delay(body))
    if status in (408, 409, 425) or status >= 500:
        return TRANSIENT
    return NO_RETRY
