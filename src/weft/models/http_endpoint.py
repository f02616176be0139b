"""What all models behind an HTTP address share: addresses, keys, errors and their retry decisions, and images.

A provider's key is sent to that provider's own hosts and nowhere else; any other address gets `WEFT_API_KEY`, or the
variable that `key_env` names. A link to an image is followed to the endpoint's own host and to hosts where its provider
is known to store images; to others only if the user allowed it, and never with a key.

Refused content is an outcome and is never retried. A rate limit is waited out for as long as the server asks. An
exhausted quota ends the run, because every further call would fail too.
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
HTTP_OPTIONS: dict[str, Callable[[Any], Any]] = {  # of every HTTP provider
    "key_env": str,
    "max_side": positive_int,
    "most_images": positive_int,
    "timeout": positive_seconds,
    "fetch_images": boolean,
    "extra": json_object,
}
ENDPOINT_OPTIONS = ("max_side", "most_images", "timeout", "fetch_images")  # not sent with requests
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
MAX_ERROR_LENGTH = 300  # characters of a server's message that an error repeats
KEY_IN_ADDRESS = "keys do not belong in addresses; put the key in an environment variable and name it with key_env=NAME"


class HttpEndpoint(Endpoint):
    """The base class of HTTP providers: a subclass builds requests and reads replies."""

    provider = ""
    image_hosts: tuple[str, ...] = ()  # suffixes of hosts where this provider stores images

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
        **identity: Any,
    ) -> None:
        """`parameters` are sent with every request; `identity` is what else can change an answer.

        `max_side` and `most_images` override the class's `takes`.
        """
        self.takes = replace(
            self.takes,
            max_side=max_side or self.takes.max_side,
            max_images=most_images or self.takes.max_images,
        )
        self._model = model
        self._blobs = blobs
        self._key = key.strip()
        self._follow_all_links = fetch_images
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
            **identity,
        }

    @property
    def missing_key(self) -> str:
        host = urlsplit(self._url).hostname or ""
        if host in KEY_BY_HOST and not self._key:
            return f"{KEY_BY_HOST[host]} is not set"
        return ""

    @property
    def blobs(self) -> Blobs:
        return self._blobs

    def _headers(self) -> dict[str, str]:
        if self._key:
            return {"Authorization": f"Bearer {self._key}"}
        return {}

    def _parameters_for(self, request: Request) -> dict[str, Any]:
        """Return the parameters of one draw: each draw has its own seed."""
        parameters = dict(self._parameters)
        seed = parameters.get("seed")
        if request.draw and isinstance(seed, int):
            parameters["seed"] = seed + request.draw
        return parameters

    # requests

    def _post(
        self,
        path: str,
        payload: Mapping[str, Any],
        max_bytes: int,
        *,
        bare: bool = False,
        stream: EventAssembler | None = None,
    ) -> AbstractAsyncContextManager[HttpResponse]:
        """Send a JSON request; the context holds the response, of at most `max_bytes`."""
        return self._http.post(
            f"{self._url}{path}",
            payload,
            self._headers(),
            self._blobs,
            endpoint_name=self.address,
            max_bytes=max_bytes,
            bare=bare,
            stream=stream,
        )

    async def _request_json(
        self, path: str, payload: Mapping[str, Any], request: Request, *, bare: bool = False
    ) -> HttpResponse:
        """Send a JSON request and return the response, with an error that only `_parse_own_error` recognises in it."""
        max_bytes = MAX_TEXT_BYTES if request.modality == "text" else MAX_REPLY_BYTES
        async with self._post(path, payload, max_bytes, bare=bare) as response:
            message, codes = self._parse_own_error(response.body)
            if not message:
                return response
            return HttpResponse(response.status, response.headers, response.data, response.body, scrub(message), codes)

    def _parse_own_error(self, body: Any, /) -> tuple[str, str]:
        """Return message and codes of an error in the service's own shape; both "" if there is none."""
        return "", ""

    async def get_json(self, path: str, *, allow_body_error: bool = False) -> HttpResponse:
        """Return a JSON resource. `allow_body_error`: an error inside it describes the resource, and is not raised."""
        response = await self._http.get_json(f"{self._url}{path}", self._headers(), endpoint_name=self.address)
        if response.status in (404, 410):
            message = response.error_message or response.text
            raise TicketExpired(f"{self.address} does not have it any more: {message[:200]}")
        if allow_body_error and response.status < 400:
            return response
        return self._raise_for_error(response)

    async def post_json(self, path: str, payload: Mapping[str, Any]) -> HttpResponse:
        async with self._post(path, payload, MAX_TEXT_BYTES) as response:
            return self._raise_for_error(response)

    async def upload(self, path: str, body: RequestBody, headers: Mapping[str, str]) -> HttpResponse:
        all_headers = {**self._headers(), **headers}
        response = await self._http.upload(f"{self._url}{path}", body, all_headers, endpoint_name=self.address)
        return self._raise_for_error(response)

    async def download(self, path: str, max_bytes: int) -> bytes:
        """Return a file of at most `max_bytes`."""
        url = f"{self._url}{path}"
        async with self._http.get(
            url, endpoint_name=self.address, headers=self._headers(), max_bytes=max_bytes
        ) as response:
            if response.status in (404, 410):
                raise TicketExpired(f"{self.address} does not have the file any more")
            if response.status != 200:
                raise CallError(
                    f"{self.address} answered {response.status} for a file",
                    retry_decision(response.status, "", response.headers),
                )
            return bytes(response.data)

    # errors

    def _read_error(self, response: HttpResponse, /) -> EndpointReply:
        """Return refused content as a reply; raise any other error with its retry decision."""
        message = response.error_message or response.text
        if is_refusal(response.error_codes):
            return EndpointReply((), "refused", message[:1000], response.text, self._model, stop_cause="blocked")
        raise self._call_error(response)

    def _raise_for_error(self, response: HttpResponse) -> HttpResponse:
        if response.status >= 400 or response.error_message:
            raise self._call_error(response)
        return response

    def _call_error(self, response: HttpResponse) -> CallError:
        status = status_of(response)
        message = self._explain(status, response.error_message or response.text)
        return CallError(message, retry_decision(status, response.error_codes, response.headers, response.body))

    def _explain(self, status: int, message: str) -> str:
        """Return a one-line error with the server's message, and what to do about a missing key."""
        message = " ".join(message.split())
        if len(message) > MAX_ERROR_LENGTH:
            message = message[: MAX_ERROR_LENGTH - 1] + "…"
        variable = key_variable(self._url)
        advice = ""
        if status == 401 and self._key:
            advice = ": the key was not accepted"
        elif status == 401:
            advice = f": it wants a key; set {variable}, or name a variable with key_env"
        elif status == 403 and self._key:
            advice = ": that is not allowed"
        elif status == 403:
            advice = f": that is not allowed (no key was sent; there is none in {variable})"
        return f"{self.address} answered {status}{advice}: {message}"

    # images

    async def _decode_image(self, encoded: str) -> Image:
        """Store an image that came as base64, alone or in a data URL. Raises ImageError."""
        if encoded.startswith("data:"):
            encoded = encoded.rpartition(",")[2]
        try:
            data = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            raise ImageError("is not base64") from None
        return await asyncio.to_thread(self._blobs.put, data)

    async def _fetch_image(self, link: str) -> Image:
        """Store an image that came as a link. Raises ImageError for what is no image."""
        try:
            address = parse_address(link)
        except ValueError as error:
            raise ImageError(f"came as a link: {error}") from None
        if not self._may_fetch(address):
            raise CallError(
                f"{self.address} sent a link to another host instead of an image; allow it with fetch_images=true",
                NO_RETRY,
                billed=True,
            )
        async with self._http.get(link, endpoint_name="the image's link") as response:
            if response.status != 200:
                redirect = ": it redirects" if 300 <= response.status < 400 else ""
                raise CallError(f"the image's link answered {response.status}{redirect}", TRANSIENT)
            return await asyncio.to_thread(self._blobs.put, bytes(response.data))

    def _may_fetch(self, address: SplitResult) -> bool:
        if self._follow_all_links or address.netloc == urlsplit(self._url).netloc:
            return True
        return address.scheme == "https" and (address.hostname or "").endswith(self.image_hosts)


W = TypeVar("W", bound=HttpEndpoint)


def from_options(
    kind: type[W],
    spec: ModelSpec,
    blobs: Blobs,
    url: str,
    options: dict[str, Any],
    *constructor_options: str,
    **default_parameters: Any,
) -> W:
    """Return an endpoint of this class, built from its options.

    `constructor_options` names those that are arguments of the class. All others, and `extra`, are sent with every
    request, as are the `default_parameters` unless an option overrides them. `options` is emptied of what is not an
    argument.
    """
    key = key_for(url, options.pop("key_env", ""))
    parameters = {**default_parameters, **options.pop("extra", {})}
    for name in list(options):
        if name not in (*ENDPOINT_OPTIONS, *constructor_options):
            parameters[name] = options.pop(name)
    return kind(spec.model, url, blobs, key=key, parameters=parameters, **options)


# addresses and keys


def key_variable(url: str, chosen: str = "") -> str:
    """Return the environment variable that holds the key for an address. A provider's key is for its own hosts only."""
    return chosen or KEY_BY_HOST.get(urlsplit(url).hostname or "", DEFAULT_KEY_VARIABLE)


def key_for(url: str, chosen: str = "") -> str:
    """Return the key for an address from the environment; "" if there is none. `chosen` is the user's key_env."""
    variable = key_variable(url, chosen)
    key = os.environ.get(variable, "").strip()
    if chosen and not key:
        raise UserError(f"key_env={chosen}: there is nothing in {chosen}; export it, or leave key_env out")
    if not key.isascii() or not key.isprintable() or " " in key:
        hide(key)
        raise UserError(f"the key in {variable} contains a space or a character that is not ASCII: set it again")
    return key


def url_of(spec: ModelSpec, usual: str = OPENAI_URL) -> str:
    """Return the address of a model: the user's, or the provider's own. Raises UserError for an unusable one."""
    url = spec.url or usual
    if not spec.url and "@" in spec.model:
        name, _, rest = spec.text.rpartition("@")
        raise UserError(
            f"{spec.text}: an address begins with http:// or https://, as in {name}@http://{rest}; "
            f"if @{rest} is a part of the model's name, give the address behind it"
        )
    if not url:
        raise UserError(f"{spec.text}: give the server's address, as in {spec.provider}/NAME@http://127.0.0.1:8000/v1")
    try:
        parts = parse_address(url, hide_secrets=True)
    except ValueError as error:
        raise UserError(f"{spec.provider}/{spec.model}: {error}") from None
    if not spec.model:
        example = f"{spec.provider}/NAME"
        if usual == OPENAI_URL:
            example += "@URL"
        raise UserError(f"{strip_url_secrets(spec.text)}: name the model, as in {example}")
    if parts.query:
        raise UserError(KEY_IN_ADDRESS)
    return url


def parse_address(url: str, *, hide_secrets: bool = False) -> SplitResult:
    """Return the parts of an http(s) address. Raises ValueError, whose message repeats nothing that may be a key.

    `hide_secrets`: whatever may be a key in it is hidden from all output. It is for addresses that the user wrote: a
    server's links must not choose what is hidden.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
        parts = SplitResult("", "", "", "", "")
    if hide_secrets:
        _hide_secrets(parts)
    if not usable:
        raise ValueError(f"{strip_url_secrets(url)!r} is not an http(s) address")
    if parts.username or parts.password:
        raise ValueError(KEY_IN_ADDRESS)
    return parts


def _hide_secrets(parts: SplitResult) -> None:
    values = [parts.password, parts.username]
    values += [value for _, value in parse_qsl(parts.query)]
    for value in values:
        if value:
            hide(unquote(value))


# what an error means


def is_refusal(codes: str) -> bool:
    """Return whether an error's codes say that the content was refused, whatever the status."""
    normalised = codes.replace("-", "_")
    return any(code in normalised for code in REFUSAL_CODES)


def status_of(response: HttpResponse) -> int:
    """Return the status of an error. One that came with 200 has its own code, else it counts as a server error."""
    if response.status >= 400:
        return response.status
    code = re.sub("[^0-9]", "", response.error_codes.split(" ")[0])
    if len(code) == 3:
        return int(code)
    return 502


def retry_decision(status: int, codes: str, headers: Mapping[str, str], body: Any = None) -> Retry:
    """Return what an error means for the next attempt."""
    delay = retry_after(headers)
    if status == 402 and delay is not None:
        return Retry("rate_limit", delay)
    if status == 402 or any(code in codes for code in QUOTA_CODES) or _is_quota_exhausted(body):
        return FATAL
    if status in (401, 403, 404):
        return DENIED
    if status in (429, 503, 529):
        return Retry("rate_limit", delay or _retry_delay_in(body))
    if status in (408, 409, 425) or status >= 500:
        return TRANSIENT
    return NO_RETRY


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the server asks to wait, from any of the headers in use; None if it asks for none."""
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


def _retry_delay_in(body: Any) -> float | None:
    """Return the delay in Google's RetryInfo, among the error's details."""
    for detail in _error_details(body):
        match = re.fullmatch(r"(\d+(?:\.\d+)?)s", str(detail.get("retryDelay", "")))
        if match:
            return float(match.group(1))
    return None


def _is_quota_exhausted(body: Any) -> bool:
    """Return whether the error's details or message say so: Google's quota per day, Anthropic's credit."""
    for detail in _error_details(body):
        for violation in _dicts_in(detail.get("violations")):
            if "perday" in str(violation.get("quotaId", "")).lower():
                return True
    return "credit balance is too low" in parse_error(body)[0].lower()


def _error_details(body: Any) -> list[dict[str, Any]]:
    return _dicts_in(dict_or_empty(dict_or_empty(body).get("error")).get("details"))


def _dicts_in(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        return []
    return [dict_or_empty(item) for item in cast(list[Any], value)]
