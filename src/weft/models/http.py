"""JSON over HTTP with images in it: the only way out of weft.

- The session opens when it is first used. Replies have bounded sizes. Every failure is a `CallError` with a retry
  decision.
- Request bodies stream base64 straight from the blob files, so that no second copy of an image is ever in memory: the
  body is cut at the images, its length is known beforehand, and each image is encoded in chunks while it is sent, and
  checked against its digest meanwhile.
- Redirects are not followed: a request with a key goes where the user sent it, or nowhere.
- What a server sends (errors, headers, broken replies) is scrubbed of keys before it is shortened or reported.
- Of the user's environment only proxies are used, never a `.netrc`.
"""

import asyncio
import binascii
import contextlib
import functools
import hashlib
import time
import urllib.request
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from weft.errors import ImageError
from weft.models.endpoint import DENIED, FATAL, NO_RETRY, TRANSIENT, CallError
from weft.secrets import scrub, strip_url_secrets
from weft.store.blobs import Blobs
from weft.types import Image
from weft.untrusted import dict_or_empty

if TYPE_CHECKING:
    import aiohttp

MAX_TEXT_BYTES = 8 * 1024 * 1024  # of a reply where text is expected
MAX_REPLY_BYTES = 128 * 1024 * 1024  # of a reply where images are expected
LARGE_REPLY_BYTES = 4 * 1024 * 1024  # only one reply that is larger than this is in memory at a time
CHUNK_BYTES = 3 * 65536  # a multiple of three, so that encoded chunks join without padding
MAX_EVENT_OVERHEAD = 64  # a stream of events may be so many times as long as its content
LOOPBACK = ("127.0.0.1", "localhost", "::1")


class HttpResponse(Struct, frozen=True):
    """A response."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    data: bytes | bytearray  # empty where `body` says it all
    body: Any = None  # the JSON, if it is JSON
    error_message: str = ""  # of the error that the body describes, if any
    error_codes: str = ""  # in lower case, with spaces between them

    @property
    def text(self) -> str:
        """The start of the response as text, scrubbed of keys."""
        return scrub(self.data[:100_000].decode("utf-8", "replace"))


class RequestBody:
    """A JSON request whose images are encoded while it is sent.

    An `Image` inside `payload` is replaced by its data URL, or with `bare` by its base64 alone.
    """

    # encodes a chunk of an image's file
    encode: Callable[[bytes], bytes] = staticmethod(functools.partial(binascii.b2a_base64, newline=False))

    def __init__(self, payload: Mapping[str, Any], blobs: Blobs, *, bare: bool = False) -> None:
        self._blobs = blobs
        self.image_error: ImageError | None = None  # why it could not be sent completely
        self._images: list[Image] = []
        marker = "weft-picture-" + binascii.hexlify(time.monotonic_ns().to_bytes(8, "big")).decode()

        def mark(image: Image) -> str:
            self._images.append(image)
            if bare:
                return marker
            return f"data:{image.media_type};base64,{marker}"

        self._texts = msgspec.json.encode(_replace_images(payload, mark)).split(marker.encode())
        if len(self._texts) != len(self._images) + 1:
            raise CallError("the request's text collides with weft's image marker", NO_RETRY)
        self.length = self._encoded_length()

    def _encoded_length(self) -> int:
        return sum(map(len, self._texts)) + sum(map(base64_size, self._images))

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for text, image in zip(self._texts, self._images, strict=False):
            yield text
            try:
                for chunk in self._encoded_chunks(image):
                    yield chunk
            except ImageError as error:
                self.image_error = error
                raise
        yield self._texts[-1]

    def _encoded_chunks(self, image: Image) -> Iterator[bytes]:
        digest = hashlib.sha256()
        try:
            with self._blobs.open_file(image) as file:
                while chunk := file.read(CHUNK_BYTES):
                    digest.update(chunk)
                    yield self.encode(chunk)
        except OSError as error:
            raise ImageError(f"{image.digest[:12]} cannot be read from the store: {error}") from None
        if digest.hexdigest() != image.digest:  # the request is still incomplete, so the server will not act on it
            raise self._blobs.quarantine(image)


class JsonLinesBody(RequestBody):
    """Several JSON requests, one on each line."""

    def __init__(self, payloads: Sequence[Mapping[str, Any]], blobs: Blobs, *, bare: bool = False) -> None:
        self._blobs = blobs
        self.image_error = None
        self._images = []
        self._texts = [b""]
        for payload in payloads:
            line = RequestBody(payload, blobs, bare=bare)
            self._texts[-1] += line._texts[0]
            self._texts += line._texts[1:]
            self._texts[-1] += b"\n"
            self._images += line._images
        self.length = self._encoded_length()


class JsonLinesFormBody(JsonLinesBody):
    """JSON lines as the file of a multipart form, with OpenAI's field `purpose`."""

    def __init__(self, payloads: Sequence[Mapping[str, Any]], blobs: Blobs, purpose: str) -> None:
        super().__init__(payloads, blobs)
        self.boundary = f"weft-{uuid.uuid4().hex}"
        head = (
            f'--{self.boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\n{purpose}\r\n'
            f'--{self.boundary}\r\nContent-Disposition: form-data; name="file"; filename="weft.jsonl"\r\n'
            "Content-Type: application/jsonl\r\n\r\n"
        )
        self._texts[0] = head.encode() + self._texts[0]
        self._texts[-1] += f"\r\n--{self.boundary}--\r\n".encode()
        self.length = self._encoded_length()


class FormBody(RequestBody):
    """A multipart form with images as files. Fields that are no text are written as JSON."""

    encode: Callable[[bytes], bytes] = staticmethod(bytes)

    def __init__(self, payload: Mapping[str, Any], images: Sequence[Image], blobs: Blobs) -> None:
        self._blobs = blobs
        self.image_error = None
        self._images = list(images)
        self.boundary = f"weft-{uuid.uuid4().hex}"
        text = b""  # up to the next image
        for name, value in payload.items():
            content = value if isinstance(value, str) else msgspec.json.encode(value).decode()
            text += self._field_head(name) + b"\r\n" + content.encode() + b"\r\n"
        field = "image" if len(images) == 1 else "image[]"
        self._texts: list[bytes] = []
        for number, image in enumerate(images, start=1):
            suffix = image.media_type.partition("/")[2].replace("jpeg", "jpg")
            file_head = f'; filename="{number}.{suffix}"\r\nContent-Type: {image.media_type}'.encode()
            self._texts.append(text + self._field_head(field, file_head) + b"\r\n")
            text = b"\r\n"
        self._texts.append(text + f"--{self.boundary}--\r\n".encode())
        self.length = sum(map(len, self._texts)) + sum(image.size for image in self._images)

    def _field_head(self, name: str, file_head: bytes = b"") -> bytes:
        return f'--{self.boundary}\r\nContent-Disposition: form-data; name="{name}"'.encode() + file_head + b"\r\n"


def base64_size(image: Image) -> int:
    """Return the length of an image's base64 in bytes."""
    return (image.size + 2) // 3 * 4


def _replace_images(value: Any, mark: Callable[[Image], str]) -> Any:
    """Return the same JSON with each image replaced by `mark(image)`."""
    if isinstance(value, Image):
        return mark(value)
    if isinstance(value, dict):
        return {key: _replace_images(item, mark) for key, item in cast(dict[str, Any], value).items()}
    if isinstance(value, list):
        return [_replace_images(item, mark) for item in cast(list[Any], value)]
    return value


class HttpClient:
    """One HTTP session. Errors call the endpoint `endpoint_name`; `max_bytes` limits the bytes of a response."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._large_reply_lock = asyncio.Lock()  # held while a large reply is in memory
        self._session: aiohttp.ClientSession | None = None

    @contextlib.asynccontextmanager
    async def post(
        self,
        url: str,
        payload: Mapping[str, Any],
        headers: Mapping[str, str],
        blobs: Blobs,
        *,
        endpoint_name: str,
        max_bytes: int,
        bare: bool = False,
        stream: "EventAssembler | None" = None,
    ) -> AsyncGenerator[HttpResponse]:
        """Send JSON and yield the JSON response; images go as data URLs, or as `bare` base64.

        Leave the context as soon as the response is read: a large one keeps other large ones waiting. A response that
        comes as a stream of events is fed to `stream`, which builds its body.
        """
        body = RequestBody(payload, blobs, bare=bare)
        all_headers = {"Content-Type": "application/json", "Content-Length": str(body.length), **headers}
        async with self._send_body(url, body, all_headers, endpoint_name, max_bytes, stream) as response:
            yield response

    @contextlib.asynccontextmanager
    async def post_form(
        self,
        url: str,
        payload: Mapping[str, Any],
        images: Sequence[Image],
        headers: Mapping[str, str],
        blobs: Blobs,
        *,
        endpoint_name: str,
        max_bytes: int,
    ) -> AsyncGenerator[HttpResponse]:
        """Send `multipart/form-data` with images as files: one as `image`, several as `image[]`, in their order."""
        body = FormBody(payload, images, blobs)
        all_headers = {
            "Content-Type": f"multipart/form-data; boundary={body.boundary}",
            "Content-Length": str(body.length),
            **headers,
        }
        async with self._send_body(url, body, all_headers, endpoint_name, max_bytes, None) as response:
            yield response

    async def upload(
        self, url: str, body: RequestBody, headers: Mapping[str, str], *, endpoint_name: str
    ) -> HttpResponse:
        """Send a body of any kind and return the JSON response."""
        all_headers = {"Content-Length": str(body.length), **headers}
        async with self._send_body(url, body, all_headers, endpoint_name, MAX_TEXT_BYTES, None) as response:
            return response

    @contextlib.asynccontextmanager
    async def _send_body(
        self,
        url: str,
        body: RequestBody,
        headers: Mapping[str, str],
        endpoint_name: str,
        max_bytes: int,
        stream: "EventAssembler | None",
    ) -> AsyncGenerator[HttpResponse]:
        async with contextlib.AsyncExitStack() as resources:
            response = await self._exchange("POST", url, endpoint_name, body, headers, max_bytes, resources, stream)
            if 300 <= response.status < 400:
                target = strip_url_secrets(response.headers.get("location", "?"))
                raise CallError(
                    f"{endpoint_name} answered {response.status}: it redirects to {target}; give that address", DENIED
                )
            yield _parse_response(response, endpoint_name, stream)

    @contextlib.asynccontextmanager
    async def get(
        self,
        url: str,
        *,
        endpoint_name: str,
        headers: Mapping[str, str] | None = None,
        max_bytes: int = MAX_REPLY_BYTES,
    ) -> AsyncGenerator[HttpResponse]:
        """Yield a resource as bytes, whatever its status."""
        async with contextlib.AsyncExitStack() as resources:
            yield await self._exchange("GET", url, endpoint_name, None, headers or {}, max_bytes, resources, None)

    async def get_json(
        self, url: str, headers: Mapping[str, str], *, endpoint_name: str, max_bytes: int = MAX_TEXT_BYTES
    ) -> HttpResponse:
        """Return a JSON resource, such as the state of a task."""
        async with self.get(url, endpoint_name=endpoint_name, headers=headers, max_bytes=max_bytes) as response:
            return _parse_response(response, endpoint_name, None)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _exchange(
        self,
        method: str,
        url: str,
        endpoint_name: str,
        body: RequestBody | None,
        headers: Mapping[str, str],
        max_bytes: int,
        resources: contextlib.AsyncExitStack,
        stream: "EventAssembler | None",
    ) -> HttpResponse:
        """Send a request and read the whole response; `resources` holds the lock of a large one until it is used."""
        import aiohttp

        data = aiter(body) if body is not None else None
        try:
            async with (
                asyncio.timeout(self._timeout) as timeout,
                self._open().request(
                    method, url, data=data, headers=headers, allow_redirects=False, proxy=proxy_for(url)
                ) as raw,
            ):
                response_headers = {name.lower(): value for name, value in raw.headers.items()}
                response = HttpResponse(raw.status, response_headers, bytearray())
                if stream is not None and is_event_stream(response):
                    await self._feed_events(raw, endpoint_name, max_bytes, stream)
                    return response
                content = await self._read_all(raw, endpoint_name, max_bytes, resources, timeout)
                return HttpResponse(raw.status, response_headers, content)
        except (aiohttp.ClientError, ImageError) as error:
            if body is not None and body.image_error is not None:
                raise CallError(f"an image {body.image_error}", NO_RETRY) from None
            raise _call_error(error, endpoint_name) from None
        except TimeoutError:
            raise CallError(
                f"{endpoint_name} did not answer within {self._timeout:g} s", TRANSIENT, timed_out=True
            ) from None
        except ValueError:  # a header that cannot be sent
            raise CallError(f"{endpoint_name}: its key has a character that no header may have", FATAL) from None

    async def _feed_events(
        self, raw: "aiohttp.ClientResponse", endpoint_name: str, max_bytes: int, stream: "EventAssembler"
    ) -> None:
        """Feed a stream of events to its assembler. Its content is limited like any reply; the events may be longer."""
        received = 0
        async for piece in raw.content.iter_any():
            received += len(piece)
            try:
                stream.feed(piece)
            except ValueError as error:
                raise CallError(
                    f"{endpoint_name} sent a broken piece of its reply: {type(error).__name__}", TRANSIENT
                ) from None
            if stream.size > max_bytes or received > MAX_EVENT_OVERHEAD * max_bytes:
                raise CallError(f"{endpoint_name} sent more than {max_bytes >> 20} MiB", NO_RETRY, billed=True)

    async def _read_all(
        self,
        raw: "aiohttp.ClientResponse",
        endpoint_name: str,
        max_bytes: int,
        resources: contextlib.AsyncExitStack,
        timeout: asyncio.Timeout,
    ) -> bytearray:
        """Read the whole content. A large one waits for other large ones; that wait does not count as the server's."""
        data = bytearray()
        has_lock = False
        async for piece in raw.content.iter_any():
            data += piece
            if len(data) > max_bytes:
                raise CallError(f"{endpoint_name} sent more than {max_bytes >> 20} MiB", NO_RETRY, billed=True)
            if len(data) > LARGE_REPLY_BYTES and not has_lock:
                has_lock = True
                clock = asyncio.get_running_loop().time
                remaining = (timeout.when() or clock()) - clock()
                timeout.reschedule(None)
                await resources.enter_async_context(self._large_reply_lock)
                timeout.reschedule(clock() + remaining)
        return data

    def _open(self) -> "aiohttp.ClientSession":
        import aiohttp

        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=15),
            )
        return self._session


def _call_error(error: Exception, endpoint_name: str) -> CallError:
    """Return a failed connection as a CallError."""
    import aiohttp

    if isinstance(error, aiohttp.ClientConnectorError):
        return CallError(
            f"cannot reach {endpoint_name}: {scrub(str(error.os_error or error))}", TRANSIENT, unreachable=True
        )
    if isinstance(error, aiohttp.InvalidURL):
        return CallError(f"{endpoint_name} is not a usable address", FATAL)
    message = " ".join(scrub(str(error) or type(error).__name__).split())
    return CallError(f"{endpoint_name}: the connection broke: {message[:300]}", TRANSIENT)


def _parse_response(response: HttpResponse, endpoint_name: str, stream: "EventAssembler | None") -> HttpResponse:
    """Return the response with its JSON, and the error that this describes."""
    try:
        if stream is not None and is_event_stream(response):
            body: Any = stream.build_body()
        else:
            body = msgspec.json.decode(response.data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        if response.status < 400:
            raise CallError(
                f"{endpoint_name} answered {response.status} with broken JSON ({len(response.data)} bytes)", TRANSIENT
            ) from None
        return response
    message, codes = parse_error(body)
    data = b""  # `body` holds it all: a second copy would double the memory of an image
    if message or response.status >= 400:
        data = response.data
    return HttpResponse(response.status, response.headers, data, body, scrub(message), codes)


class EventAssembler(Protocol):
    """Assembles the body of a response that comes as a stream of events."""

    size: int  # of its content so far, without the events around it

    def feed(self, piece: bytes) -> None: ...

    def build_body(self) -> Any: ...


def is_event_stream(response: HttpResponse) -> bool:
    return response.status < 300 and response.headers.get("content-type", "").startswith("text/event-stream")


def proxy_for(url: str) -> str | None:
    """Return the proxy that the environment names for an address."""
    parts = urlsplit(url)
    if parts.hostname in LOOPBACK or urllib.request.proxy_bypass(parts.hostname or ""):
        return None
    return urllib.request.getproxies().get(parts.scheme)


def parse_error(body: Any) -> tuple[str, str]:
    """Return message and codes of an error body in any of the shapes servers use; both "" if it is no error."""
    top = dict_or_empty(body)
    error: Any = top.get("error") or top.get("detail")
    if not error and "message" in top and top.get("code"):
        error = top
    if not error:
        return "", ""
    fields = dict_or_empty(error)
    if not fields:
        return str(error), ""
    metadata = dict_or_empty(fields.get("metadata"))
    codes = [fields.get("code"), fields.get("type"), fields.get("status"), metadata.get("error_type")]
    if metadata.get("reasons"):
        codes.append("moderation")
    code_text = " ".join(str(code) for code in codes if code is not None).lower()
    return str(fields.get("message") or fields), code_text
