"""JSON over HTTP with pictures in it, the one way out: a session that opens when it is first used, request bodies that stream base64
straight from the blob files, replies of bounded size, and every trouble as a `CallError` with a retry decision.

No second copy of a picture's base64 is ever held: a body is cut at the pictures, its length is known beforehand, and each picture is
encoded in pieces while it is sent, and checked against its name meanwhile. Redirects are not followed: a request with a key goes where the
user sent it, or nowhere. What a server says of itself (errors, headers, broken replies) is scrubbed of keys before it is cut or told. Of
the user's settings only proxies are taken from the environment, never a `.netrc`.
"""

import asyncio
import binascii
import contextlib
import email.utils
import hashlib
import math
import re
import time
import urllib.request
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import msgspec
from msgspec import Struct

from weft.errors import PictureError
from weft.models.endpoint import DENIED, FATAL, NO, TRANSIENT, CallError, Retry
from weft.secrets import hide, scrub, without_secrets
from weft.store.blobs import Blobs
from weft.types import Image

if TYPE_CHECKING:
    import aiohttp

MAX_TEXT = 8 * 1024 * 1024  # bytes of a reply where words are due
MAX_REPLY = 128 * 1024 * 1024  # where pictures are
LARGE = 4 * 1024 * 1024  # of replies that are larger than this, one at a time is read to its end and taken apart
WRAPPED = 64  # times as long as what was said a stream of events may be
LOOPBACK = ("127.0.0.1", "localhost", "::1")
PIECE = 3 * 65536  # a multiple of three, so that pieces of base64 join without padding
REFUSALS = ("content_policy", "moderation", "content_filter", "safety", "sensitivecontent", "datainspectionfailed", "image_content_policy")
QUOTA = ("insufficient_quota", "credit_balance", "spend", "billing", "quota_exceeded")


class Answer(Struct, frozen=True):
    """What came back: headers by small letters, the JSON if it is some, and the error that it tells of, if any."""

    status: int
    headers: Mapping[str, str]
    data: bytes | bytearray
    body: Any = None
    said: str = ""
    codes: str = ""

    @property
    def text(self) -> str:
        return scrub(self.data[:100_000].decode("utf-8", "replace"))


class Http:
    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._one_large = asyncio.Lock()  # held by whoever has a large reply in memory
        self._session: aiohttp.ClientSession | None = None

    @contextlib.asynccontextmanager
    async def post(
        self,
        url: str,
        payload: Mapping[str, Any],
        headers: Mapping[str, str],
        blobs: Blobs,
        *,
        called: str,
        most: int,
        bare: bool = False,
        stream: "Pieces | None" = None,
    ) -> AsyncGenerator[Answer]:
        """JSON in, JSON out; pictures go as data URLs, or as `bare` base64. `called` is what messages call the endpoint by; a reply has at
        `most` so many bytes. Whoever is done with the answer lets it go: a large one keeps other large ones waiting. One that comes as a
        stream of events is handed to `stream` piece by piece, which says in the end what it came to."""
        body = Body(payload, blobs, bare=bare)
        sent = {"Content-Type": "application/json", "Content-Length": str(body.length), **headers}
        async with self._posted(url, body, sent, called, most, stream) as answer:
            yield answer

    @contextlib.asynccontextmanager
    async def form(
        self,
        url: str,
        payload: Mapping[str, Any],
        images: Sequence[Image],
        headers: Mapping[str, str],
        blobs: Blobs,
        *,
        called: str,
        most: int,
    ) -> AsyncGenerator[Answer]:
        """The same with pictures as files: `multipart/form-data`, one as `image`, several as `image[]`, in their order."""
        body = Form(payload, images, blobs)
        sent = {"Content-Type": f"multipart/form-data; boundary={body.boundary}", "Content-Length": str(body.length), **headers}
        async with self._posted(url, body, sent, called, most, None) as answer:
            yield answer

    @contextlib.asynccontextmanager
    async def _posted(
        self, url: str, body: "Body", sent: Mapping[str, str], called: str, most: int, stream: "Pieces | None"
    ) -> AsyncGenerator[Answer]:
        async with self._ask("POST", url, called, body, sent, most, stream) as answer:
            if 300 <= answer.status < 400:
                place = without_secrets(answer.headers.get("location", "?"))
                raise CallError(f"{called} answered {answer.status}: it redirects to {place}; give that address", DENIED)
            try:
                decoded: Any = stream.body() if stream is not None and is_events(answer) else msgspec.json.decode(answer.data)
            except (msgspec.DecodeError, UnicodeError, RecursionError):
                if answer.status < 400:
                    raise CallError(f"{called} answered {answer.status} with broken JSON ({len(answer.data)} bytes)", TRANSIENT) from None
                yield answer
                return
            said, codes = error_facts(decoded)
            small = answer.data if said or answer.status >= 400 else b""  # what it says is in `decoded`: no second copy is kept
            answer = Answer(answer.status, answer.headers, small, decoded, scrub(said), codes)
            del decoded
            yield answer

    @contextlib.asynccontextmanager
    async def get(self, url: str, *, called: str) -> AsyncGenerator[Answer]:
        async with self._ask("GET", url, called, None, {}, MAX_REPLY) as answer:
            yield answer

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    @contextlib.asynccontextmanager
    async def _ask(
        self,
        method: str,
        url: str,
        called: str,
        body: "Body | None",
        headers: Mapping[str, str],
        most: int,
        stream: "Pieces | None" = None,
    ) -> AsyncGenerator[Answer]:
        async with contextlib.AsyncExitStack() as holding:
            yield await self._asked(method, url, called, body, headers, most, holding, stream)

    async def _asked(
        self,
        method: str,
        url: str,
        called: str,
        body: "Body | None",
        headers: Mapping[str, str],
        most: int,
        holding: contextlib.AsyncExitStack,
        stream: "Pieces | None",
    ) -> Answer:
        import aiohttp

        data = aiter(body) if body is not None else None
        try:
            async with (
                asyncio.timeout(self._timeout) as limit,
                self._open().request(method, url, data=data, headers=headers, allow_redirects=False, proxy=proxy_for(url)) as response,
            ):
                told = {name.lower(): value for name, value in response.headers.items()}
                answer = Answer(response.status, told, bytearray())
                if stream is not None and is_events(answer):
                    await self._fed(response, called, most, stream)
                    return answer
                return Answer(response.status, told, await self._all_of(response, called, most, holding, limit))
        except (aiohttp.ClientError, PictureError) as error:
            if body is not None and body.broken is not None:
                raise CallError(f"a picture {body.broken}", NO) from None
            raise self._told(error, called) from None
        except TimeoutError:
            raise CallError(f"{called} did not answer within {self._timeout:g} s", TRANSIENT, timed_out=True) from None
        except ValueError:  # of a header that cannot be sent
            raise CallError(f"{called}: its key has a character that no header may have", FATAL) from None

    def _told(self, error: Exception, called: str) -> CallError:
        import aiohttp

        if isinstance(error, aiohttp.ClientConnectorError):
            return CallError(f"cannot reach {called}: {scrub(str(error.os_error or error))}", TRANSIENT, unreachable=True)
        if isinstance(error, aiohttp.InvalidURL):
            return CallError(f"{called} is not a usable address", FATAL)
        said = " ".join(scrub(str(error) or type(error).__name__).split())
        return CallError(f"{called}: the connection broke: {said[:300]}", TRANSIENT)

    async def _fed(self, response: "aiohttp.ClientResponse", called: str, most: int, stream: "Pieces") -> None:
        """A stream of events, piece by piece. What was said is bounded as a whole reply is; what it comes in may be many times as long."""
        came = 0
        async for piece in response.content.iter_any():
            came += len(piece)
            try:
                stream.feed(piece)
            except ValueError as error:
                raise CallError(f"{called} sent a broken piece of its reply: {type(error).__name__}", TRANSIENT) from None
            if stream.size > most or came > WRAPPED * most:
                raise CallError(f"{called} sent more than {most >> 20} MiB", NO, billed=True)

    async def _all_of(
        self,
        response: "aiohttp.ClientResponse",
        called: str,
        most: int,
        holding: contextlib.AsyncExitStack,
        limit: asyncio.Timeout,
    ) -> bytearray:
        """The whole reply. Where it is large, others that are large are waited for; the time that takes is not the server's."""
        data, alone = bytearray(), False
        async for piece in response.content.iter_any():
            data += piece
            if len(data) > most:
                raise CallError(f"{called} sent more than {most >> 20} MiB", NO, billed=True)
            if len(data) > LARGE and not alone:
                alone, clock = True, asyncio.get_running_loop().time
                left = (limit.when() or clock()) - clock()
                limit.reschedule(None)
                await holding.enter_async_context(self._one_large)
                limit.reschedule(clock() + left)
        return data

    def _open(self) -> "aiohttp.ClientSession":
        import aiohttp

        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=15),
            )
        return self._session


class Pieces(Protocol):
    """Who puts a stream of events together."""

    size: int  # of what was said

    def feed(self, piece: bytes) -> None: ...

    def body(self) -> Any: ...


def is_events(answer: Answer) -> bool:
    return answer.status < 300 and answer.headers.get("content-type", "").startswith("text/event-stream")


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for an address."""
    parts = urlsplit(url)
    if parts.hostname in LOOPBACK or urllib.request.proxy_bypass(parts.hostname or ""):
        return None
    return urllib.request.getproxies().get(parts.scheme)


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


class Body:
    """A JSON request. Inside `payload`, an `Image` stands where its data URL (or, `bare`, its base64 alone) will."""

    def __init__(self, payload: Mapping[str, Any], blobs: Blobs, *, bare: bool = False) -> None:
        self._blobs = blobs
        self.broken: PictureError | None = None  # why it could not be sent whole
        self._images: list[Image] = []
        marker = "weft-picture-" + binascii.hexlify(time.monotonic_ns().to_bytes(8, "big")).decode()

        def mark(image: Image) -> str:
            self._images.append(image)
            return marker if bare else f"data:{image.media_type};base64,{marker}"

        self._texts = msgspec.json.encode(_replace(payload, mark)).split(marker.encode())
        if len(self._texts) != len(self._images) + 1:
            raise CallError("the request's text collides with weft's picture marker", NO)
        self.length = sum(map(len, self._texts)) + sum((image.size + 2) // 3 * 4 for image in self._images)

    def coded(self, piece: bytes) -> bytes:
        """A piece of a picture's file as it is sent."""
        return binascii.b2a_base64(piece, newline=False)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for text, image in zip(self._texts, self._images, strict=False):
            yield text
            try:
                for piece in self._pieces(image):
                    yield piece
            except PictureError as error:
                self.broken = error
                raise
        yield self._texts[-1]

    def _pieces(self, image: Image) -> Iterator[bytes]:
        digest = hashlib.sha256()
        try:
            with self._blobs.file(image) as file:
                while piece := file.read(PIECE):
                    digest.update(piece)
                    yield self.coded(piece)
        except OSError as error:
            raise PictureError(f"{image.digest[:12]} cannot be read from the store: {error}") from None
        if digest.hexdigest() != image.digest:  # what was sent by now is no whole request
            raise self._blobs.damaged(image)


class Form(Body):
    """A form with pictures as files. What is no text goes as JSON has it."""

    def __init__(self, payload: Mapping[str, Any], images: Sequence[Image], blobs: Blobs) -> None:
        self._blobs, self.broken, self._images = blobs, None, list(images)
        self.boundary = f"weft-{uuid.uuid4().hex}"
        texts: list[bytes] = []
        whole = b""
        for name, value in payload.items():
            told = value if isinstance(value, str) else msgspec.json.encode(value).decode()
            whole += self._head(name) + b"\r\n" + told.encode() + b"\r\n"
        field = "image" if len(images) == 1 else "image[]"
        for at, image in enumerate(images):
            ending = image.media_type.partition("/")[2].replace("jpeg", "jpg")
            about = f'; filename="{at + 1}.{ending}"\r\nContent-Type: {image.media_type}'.encode()
            texts.append(whole + self._head(field, about) + b"\r\n")
            whole = b"\r\n"
        self._texts = [*texts, whole + f"--{self.boundary}--\r\n".encode()]
        self.length = sum(map(len, self._texts)) + sum(image.size for image in self._images)

    def _head(self, name: str, about: bytes = b"") -> bytes:
        return f'--{self.boundary}\r\nContent-Disposition: form-data; name="{name}"'.encode() + about + b"\r\n"

    def coded(self, piece: bytes) -> bytes:
        return piece


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
    if status == 402 or any(word in codes for word in QUOTA):
        return FATAL
    if status in (401, 403, 404):
        return DENIED
    if status in (429, 503, 529):
        return Retry("rate_limit", retry_after(headers) or _told_delay(body))
    if status in (408, 409, 425) or status >= 500:
        return TRANSIENT
    return NO
