"""JSON over HTTP with pictures in it, the one way out: a session that opens when it is first used, request bodies that stream base64
straight from the blob files, replies of bounded size, and every trouble as a `CallError` with a retry decision.

No second copy of a picture's base64 is ever held: a body is cut at the pictures, its length is known beforehand, and each picture is
encoded in pieces while it is sent. Redirects are not followed: a request with a key goes where the user sent it, or nowhere.
"""

import binascii
import email.utils
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from weft.errors import PictureError
from weft.models.endpoint import FATAL, NO, TRANSIENT, CallError, Retry
from weft.store.blobs import Blobs
from weft.types import Image

if TYPE_CHECKING:
    import aiohttp

MAX_REPLY = 256 * 1024 * 1024
LOOPBACK = ("127.0.0.1", "localhost", "::1")
PIECE = 3 * 65536  # a multiple of three, so that pieces of base64 join without padding
REFUSALS = ("content_policy", "moderation", "content_filter", "safety", "sensitivecontent", "datainspectionfailed", "image_content_policy")
QUOTA = ("insufficient_quota", "credit_balance", "spend", "billing", "quota_exceeded")


class Answer(Struct, frozen=True):
    """What came back: headers by small letters, the JSON if it is some, and the error that it tells of, if any."""

    status: int
    headers: Mapping[str, str]
    data: bytes
    body: Any = None
    said: str = ""
    codes: str = ""

    @property
    def text(self) -> str:
        return self.data[:100_000].decode("utf-8", "replace")


class Http:
    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._session: aiohttp.ClientSession | None = None

    async def post(
        self, url: str, payload: Mapping[str, Any], headers: Mapping[str, str], blobs: Blobs, *, called: str, bare: bool = False
    ) -> Answer:
        """JSON in, JSON out; pictures go as data URLs, or as `bare` base64. `called` is what messages call the endpoint by."""
        body = Body(payload, blobs, bare=bare)
        sent = {"Content-Type": "application/json", "Content-Length": str(body.length), **headers}
        answer = await self._ask("POST", url, called, body, sent)
        try:
            decoded: Any = msgspec.json.decode(answer.data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            if answer.status < 400:
                raise CallError(f"{called} answered {answer.status} with broken JSON ({len(answer.data)} bytes)", TRANSIENT) from None
            return answer
        said, codes = error_facts(decoded)
        return Answer(answer.status, answer.headers, answer.data, decoded, said, codes)

    async def get(self, url: str, *, called: str) -> Answer:
        return await self._ask("GET", url, called, None, {})

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _ask(self, method: str, url: str, called: str, body: "Body | None", headers: Mapping[str, str]) -> Answer:
        import aiohttp

        data = aiter(body) if body is not None else None
        try:
            async with self._open(url).request(method, url, data=data, headers=headers, allow_redirects=False) as response:
                told = {name.lower(): value for name, value in response.headers.items()}
                if 300 <= response.status < 400:
                    place = told.get("location", "?")
                    raise CallError(f"{called} answered {response.status}: it redirects to {place}; give that address", FATAL)
                return Answer(response.status, told, await _all_of(response, called))
        except aiohttp.ClientConnectorError as error:
            raise CallError(f"cannot reach {called}: {error.os_error or error}", TRANSIENT, unreachable=True) from None
        except aiohttp.InvalidURL:
            raise CallError(f"{url} is not a usable address", FATAL) from None
        except aiohttp.ClientError as error:
            raise CallError(f"{called}: the connection broke: {str(error) or type(error).__name__}", TRANSIENT) from None
        except TimeoutError:
            raise CallError(f"{called} did not answer within {self._timeout:g} s", TRANSIENT) from None
        except PictureError as error:
            raise CallError(f"a picture {error}", NO) from None

    def _open(self, url: str) -> "aiohttp.ClientSession":
        import aiohttp

        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30),
                timeout=aiohttp.ClientTimeout(total=self._timeout, sock_connect=15),
                trust_env=urlsplit(url).hostname not in LOOPBACK,
            )
        return self._session


async def _all_of(response: "aiohttp.ClientResponse", called: str) -> bytes:
    data = bytearray()
    async for piece in response.content.iter_any():
        data += piece
        if len(data) > MAX_REPLY:
            raise CallError(f"{called} sent more than {MAX_REPLY >> 20} MiB", NO)
    return bytes(data)


class Body:
    """A JSON request. Inside `payload`, an `Image` stands where its data URL (or, `bare`, its base64 alone) will."""

    def __init__(self, payload: Mapping[str, Any], blobs: Blobs, *, bare: bool = False) -> None:
        self._blobs = blobs
        self._images: list[Image] = []
        marker = "weft-picture-" + binascii.hexlify(time.monotonic_ns().to_bytes(8, "big")).decode()

        def mark(image: Image) -> str:
            self._images.append(image)
            return marker if bare else f"data:{image.media_type};base64,{marker}"

        self._texts = msgspec.json.encode(_replace(payload, mark)).split(marker.encode())
        if len(self._texts) != len(self._images) + 1:
            raise CallError("the request's text collides with weft's picture marker", NO)
        self.length = sum(map(len, self._texts)) + sum((image.size + 2) // 3 * 4 for image in self._images)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for text, image in zip(self._texts, self._images, strict=False):
            yield text
            for piece in self._pieces(image):
                yield piece
        yield self._texts[-1]

    def _pieces(self, image: Image) -> Iterator[bytes]:
        sent = 0
        try:
            with self._blobs.path(image.digest).open("rb") as file:
                while piece := file.read(PIECE):
                    sent += len(piece)
                    yield binascii.b2a_base64(piece, newline=False)
        except OSError as error:
            raise PictureError(f"{image.digest[:12]} cannot be read from the store: {error}") from None
        if sent != image.size:
            raise PictureError(f"{image.digest[:12]} has {sent} bytes in the store, not {image.size}: the store was changed")


def _replace(value: Any, mark: Callable[[Image], str]) -> Any:
    """The same JSON with each picture replaced by its marked data URL."""
    if isinstance(value, Image):
        return mark(value)
    if isinstance(value, dict):
        return {key: _replace(one, mark) for key, one in fields(value).items()}
    if isinstance(value, list):
        return [_replace(one, mark) for one in cast(list[Any], value)]
    return value


def fields(value: Any) -> dict[str, Any]:
    """A decoded JSON object, or nothing where something else came."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the endpoint asked us to wait, from any of the headers in use."""
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        value = headers.get("retry-after")
        if value is None:
            return None
        if value.replace(".", "", 1).isdigit():
            return float(value)
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError):
        return None


def _told_delay(body: Any) -> float | None:
    """Google's way to say how long to wait: RetryInfo among the error's details."""
    details: Any = fields(fields(body).get("error")).get("details")
    for detail in cast(list[Any], details) if isinstance(details, list) else []:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)s", str(fields(detail).get("retryDelay", "")))
        if match:
            return float(match.group(1))
    return None


def error_facts(body: Any) -> tuple[str, str]:
    """(message, codes) of an error body in any of the shapes servers use; both '' when there is no error in it."""
    said = fields(body)
    error: Any = said.get("error") or said.get("detail") or (said if "message" in said and "code" in said else None)
    if not error:
        return "", ""
    facts = fields(error)
    if not facts:
        return str(error), ""
    metadata = fields(facts.get("metadata"))
    codes = [facts.get("code"), facts.get("type"), facts.get("status"), metadata.get("error_type")]
    if metadata.get("reasons"):
        codes.append("moderation")
    return str(facts.get("message") or facts), " ".join(str(code) for code in codes if code is not None).lower()


def is_refusal(codes: str) -> bool:
    """Whether the error's own codes say that the content was turned away, whatever the status."""
    return any(word in codes.replace("-", "_") for word in REFUSALS)


def decide(status: int, codes: str, headers: Mapping[str, str], body: Any = None) -> Retry:
    """What an error means for the next try."""
    if status in (401, 402, 403, 404) or any(word in codes for word in QUOTA):
        return FATAL
    if status in (429, 503, 529):
        return Retry("rate_limit", retry_after(headers) or _told_delay(body))
    if status in (408, 409, 425) or status >= 500:
        return TRANSIENT
    return NO
