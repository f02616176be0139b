"""JSON over HTTP with pictures in it, the one way out: a session that opens when it is first used, request bodies that
stream base64 straight from the blob files, replies of bounded size, and every trouble as a `CallError` with a retry
decision.

No second copy of a picture's base64 is ever held: a body is cut at the pictures, its length is known beforehand, and
each picture is encoded in pieces while it is sent, and checked against its name meanwhile. Redirects are not followed:
a request with a key goes where the user sent it, or nowhere. What a server says of itself (errors, headers, broken
replies) is scrubbed of keys before it is cut or told. Of the user's settings only proxies are taken from the
environment, never a `.netrc`."""

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

MAX_TEXT_BYTES = 8 * 1024 * 1024  # bytes of a reply where words are due
MAX_REPLY_BYTES = 128 * 1024 * 1024  # where pictures are
# of replies that are larger than this, one at a time is read to its end and taken apart
LARGE_REPLY_BYTES = 4 * 1024 * 1024
CHUNK_BYTES = 3 * 65536  # a multiple of three, so that pieces of base64 join without padding
MAX_EVENT_OVERHEAD = 64  # times as long as what was said a stream of events may be
LOOPBACK = ("127.0.0.1", "localhost", "::1")


class HttpResponse(Struct, frozen=True):
    """What came back: headers by small letters, the JSON if it is some, and the error that it tells of, if any."""

    status: int
    headers: Mapping[str, str]
    data: bytes | bytearray
    body: Any = None
    error_message: str = ""
    error_codes: str = ""

    @property
    def text(self) -> str:
        return scrub(self.data[:100_000].decode("utf-8", "replace"))


class RequestBody:
    """A JSON request. Inside `payload`, an `Image` stands where its data URL (or, `bare`, its base64 alone) will."""

    # a piece of an image's file
    encode: Callable[[bytes], bytes] = staticmethod(functools.partial(binascii.b2a_base64, newline=False))

    def __init__(self, payload: Mapping[str, Any], blobs: Blobs, *, bare: bool = False) -> None:
        self._blobs = blobs
        self.image_error: ImageError | None = None  # why it could not be sent whole
        self._images: list[Image] = []
        marker = "weft-picture-" + binascii.hexlify(time.monotonic_ns().to_bytes(8, "big")).decode()

        def mark(image: Image) -> str:
            self._images.append(image)
            if bare:
                return marker
            return f"data:{image.media_type};base64,{marker}"

        self._texts = msgspec.json.encode(_replace(payload, mark)).split(marker.encode())
        if len(self._texts) != len(self._images) + 1:
            raise CallError("the request's text collides with weft's picture marker", NO_RETRY)
        self.length = sum(map(len, self._texts)) + sum(base64_size(image) for image in self._images)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for text, image in zip(self._texts, self._images, strict=False):
            yield text
            try:
                for piece in self._pieces(image):
                    yield piece
            except ImageError as error:
                self.image_error = error
                raise
        yield self._texts[-1]

    def _pieces(self, image: Image) -> Iterator[bytes]:
        digest = hashlib.sha256()
        try:
            with self._blobs.open_file(image) as file:
                while piece := file.read(CHUNK_BYTES):
                    digest.update(piece)
                    yield self.encode(piece)
        except OSError as error:
            raise ImageError(f"{image.digest[:12]} cannot be read from the store: {error}") from None
        if digest.hexdigest() != image.digest:  # what was sent by now is no whole request
            raise self._blobs.quarantine(image)


class JsonLinesBody(RequestBody):
    """Requests one after another, a line each."""

    def __init__(self, payloads: Sequence[Mapping[str, Any]], blobs: Blobs, *, bare: bool = False) -> None:
        self._blobs, self.image_error, self._images = blobs, None, []
        self._texts = [b""]
        for payload in payloads:
            body = RequestBody(payload, blobs, bare=bare)
            self._texts[-1] += body._texts[0]
            self._texts += body._texts[1:]
            self._texts[-1] += b"\n"
            self._images += body._images
        self.length = sum(map(len, self._texts)) + sum(base64_size(image) for image in self._images)


class JsonLinesFormBody(JsonLinesBody):
    """The same as the file of a form, with a purpose."""

    def __init__(self, payloads: Sequence[Mapping[str, Any]], blobs: Blobs, purpose: str) -> None:
        super().__init__(payloads, blobs)
        self.boundary = f"weft-{uuid.uuid4().hex}"
        told = f'--{self.boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\n{purpose}\r\n'
        told += f'--{self.boundary}\r\nContent-Disposition: form-data; name="file"; filename="weft.jsonl"\r\n'
        self._texts[0] = f"{told}Content-Type: application/jsonl\r\n\r\n".encode() + self._texts[0]
        self._texts[-1] += f"\r\n--{self.boundary}--\r\n".encode()
        self.length = sum(map(len, self._texts)) + sum(base64_size(image) for image in self._images)


def base64_size(image: Image) -> int:
    """Bytes of its base64."""
    return (image.size + 2) // 3 * 4


class FormBody(RequestBody):
    """A form with pictures as files. What is no text goes as JSON has it."""

    encode: Callable[[bytes], bytes] = staticmethod(bytes)

    def __init__(self, payload: Mapping[str, Any], images: Sequence[Image], blobs: Blobs) -> None:
        self._blobs = blobs
        self.image_error = None
        self._images = list(images)
        self.boundary = f"weft-{uuid.uuid4().hex}"
        texts: list[bytes] = []
        whole = b""
        for name, value in payload.items():
            if isinstance(value, str):
                told = value
            else:
                told = msgspec.json.encode(value).decode()
            whole += self._head(name) + b"\r\n" + told.encode() + b"\r\n"
        if len(images) == 1:
            field = "image"
        else:
            field = "image[]"
        for at, image in enumerate(images):
            ending = image.media_type.partition("/")[2].replace("jpeg", "jpg")
            about = f'; filename="{at + 1}.{ending}"\r\nContent-Type: {image.media_type}'.encode()
            texts.append(whole + self._head(field, about) + b"\r\n")
            whole = b"\r\n"
        self._texts = [*texts, whole + f"--{self.boundary}--\r\n".encode()]
        self.length = sum(map(len, self._texts)) + sum(image.size for image in self._images)

    def _head(self, name: str, about: bytes = b"") -> bytes:
        return f'--{self.boundary}\r\nContent-Disposition: form-data; name="{name}"'.encode() + about + b"\r\n"


def _replace(value: Any, mark: Callable[[Image], str]) -> Any:
    """The same JSON with each picture replaced by its marked data URL."""
    if isinstance(value, Image):
        return mark(value)
    if isinstance(value, dict):
        return {key: _replace(one, mark) for key, one in cast(dict[str, Any], value).items()}
    if isinstance(value, list):
        return [_replace(one, mark) for one in cast(list[Any], value)]
    return value


class HttpClient:
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
        stream: "EventAssembler | None" = None,
    ) -> AsyncGenerator[HttpResponse]:
        """JSON in, JSON out; pictures go as data URLs, or as `bare` base64. `called` is what messages call the endpoint
        by; a reply has at `most` so many bytes. Whoever is done with the answer lets it go: a large one keeps other
        large ones waiting. One that comes as a stream of events is handed to `stream` piece by piece, which says in the
        end what it came to."""
        body = RequestBody(payload, blobs, bare=bare)
        sent = {"Content-Type": "application/json", "Content-Length": str(body.length), **headers}
        async with self._posted(url, body, sent, called, most, stream) as answer:
            yield answer

    @contextlib.asynccontextmanager
    async def post_form(
        self,
        url: str,
        payload: Mapping[str, Any],
        images: Sequence[Image],
        headers: Mapping[str, str],
        blobs: Blobs,
        *,
        called: str,
        most: int,
    ) -> AsyncGenerator[HttpResponse]:
        """The same with pictures as files: `multipart/form-data`, one as `image`, several as `image[]`, in their
        order."""
        body = FormBody(payload, images, blobs)
        sent = {
            "Content-Type": f"multipart/form-data; boundary={body.boundary}",
            "Content-Length": str(body.length),
            **headers,
        }
        async with self._posted(url, body, sent, called, most, None) as answer:
            yield answer

    async def upload(self, url: str, body: RequestBody, headers: Mapping[str, str], *, called: str) -> HttpResponse:
        """A body of its own kind in, JSON out."""
        sent = {"Content-Length": str(body.length), **headers}
        async with self._posted(url, body, sent, called, MAX_TEXT_BYTES, None) as answer:
            return answer

    @contextlib.asynccontextmanager
    async def _posted(
        self,
        url: str,
        body: RequestBody,
        sent: Mapping[str, str],
        called: str,
        most: int,
        stream: "EventAssembler | None",
    ) -> AsyncGenerator[HttpResponse]:
        async with contextlib.AsyncExitStack() as holding:
            answer = await self._exchange("POST", url, called, body, sent, most, holding, stream)
            if 300 <= answer.status < 400:
                place = strip_url_secrets(answer.headers.get("location", "?"))
                raise CallError(
                    f"{called} answered {answer.status}: it redirects to {place}; give that address", DENIED
                )
            yield _read(answer, called, stream)

    @contextlib.asynccontextmanager
    async def get(
        self, url: str, *, called: str, headers: Mapping[str, str] | None = None, most: int = MAX_REPLY_BYTES
    ) -> AsyncGenerator[HttpResponse]:
        """What is there, as it is."""
        async with contextlib.AsyncExitStack() as holding:
            yield await self._exchange("GET", url, called, None, headers or {}, most, holding, None)

    async def get_json(
        self, url: str, headers: Mapping[str, str], *, called: str, most: int = MAX_TEXT_BYTES
    ) -> HttpResponse:
        """JSON that is there, such as the state of a task."""
        async with self.get(url, called=called, headers=headers, most=most) as answer:
            return _read(answer, called, None)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _exchange(
        self,
        method: str,
        url: str,
        called: str,
        body: RequestBody | None,
        headers: Mapping[str, str],
        most: int,
        holding: contextlib.AsyncExitStack,
        stream: "EventAssembler | None",
    ) -> HttpResponse:
        """One request and all of its answer; `holding` keeps what a large one holds until whoever asked is done with
        it."""
        import aiohttp

        if body is not None:
            data = aiter(body)
        else:
            data = None
        try:
            async with (
                asyncio.timeout(self._timeout) as limit,
                self._open().request(
                    method, url, data=data, headers=headers, allow_redirects=False, proxy=proxy_for(url)
                ) as response,
            ):
                told = {name.lower(): value for name, value in response.headers.items()}
                answer = HttpResponse(response.status, told, bytearray())
                if stream is not None and is_event_stream(answer):
                    await self._fed(response, called, most, stream)
                    return answer
                return HttpResponse(response.status, told, await self._all_of(response, called, most, holding, limit))
        except (aiohttp.ClientError, ImageError) as error:
            if body is not None and body.image_error is not None:
                raise CallError(f"a picture {body.image_error}", NO_RETRY) from None
            raise self._told(error, called) from None
        except TimeoutError:
            raise CallError(f"{called} did not answer within {self._timeout:g} s", TRANSIENT, timed_out=True) from None
        except ValueError:  # of a header that cannot be sent
            raise CallError(f"{called}: its key has a character that no header may have", FATAL) from None

    def _told(self, error: Exception, called: str) -> CallError:
        import aiohttp

        if isinstance(error, aiohttp.ClientConnectorError):
            return CallError(
                f"cannot reach {called}: {scrub(str(error.os_error or error))}", TRANSIENT, unreachable=True
            )
        if isinstance(error, aiohttp.InvalidURL):
            return CallError(f"{called} is not a usable address", FATAL)
        said = " ".join(scrub(str(error) or type(error).__name__).split())
        return CallError(f"{called}: the connection broke: {said[:300]}", TRANSIENT)

    async def _fed(self, response: "aiohttp.ClientResponse", called: str, most: int, stream: "EventAssembler") -> None:
        """A stream of events, piece by piece. What was said is bounded as a whole reply is; what it comes in may be
        many times as long."""
        came = 0
        async for piece in response.content.iter_any():
            came += len(piece)
            try:
                stream.feed(piece)
            except ValueError as error:
                raise CallError(
                    f"{called} sent a broken piece of its reply: {type(error).__name__}", TRANSIENT
                ) from None
            if stream.size > most or came > MAX_EVENT_OVERHEAD * most:
                raise CallError(f"{called} sent more than {most >> 20} MiB", NO_RETRY, billed=True)

    async def _all_of(
        self,
        response: "aiohttp.ClientResponse",
        called: str,
        most: int,
        holding: contextlib.AsyncExitStack,
        limit: asyncio.Timeout,
    ) -> bytearray:
        """The whole reply. Where it is large, others that are large are waited for; the time that takes is not the
        server's."""
        data = bytearray()
        alone = False
        async for piece in response.content.iter_any():
            data += piece
            if len(data) > most:
                raise CallError(f"{called} sent more than {most >> 20} MiB", NO_RETRY, billed=True)
            if len(data) > LARGE_REPLY_BYTES and not alone:
                alone = True
                clock = asyncio.get_running_loop().time
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


def _read(answer: HttpResponse, called: str, stream: "EventAssembler | None") -> HttpResponse:
    """An answer with its JSON, and the error that it tells of."""
    try:
        if stream is not None and is_event_stream(answer):
            decoded: Any = stream.build_body()
        else:
            decoded = msgspec.json.decode(answer.data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        if answer.status < 400:
            raise CallError(
                f"{called} answered {answer.status} with broken JSON ({len(answer.data)} bytes)", TRANSIENT
            ) from None
        return answer
    said, codes = parse_error(decoded)
    # what it says is in `decoded`: no second copy is kept
    if said or answer.status >= 400:
        small = answer.data
    else:
        small = b""
    return HttpResponse(answer.status, answer.headers, small, decoded, scrub(said), codes)


class EventAssembler(Protocol):
    """Who puts a stream of events together."""

    size: int  # of what was said

    def feed(self, piece: bytes) -> None: ...

    def build_body(self) -> Any: ...


def is_event_stream(answer: HttpResponse) -> bool:
    return answer.status < 300 and answer.headers.get("content-type", "").startswith("text/event-stream")


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for an address."""
    parts = urlsplit(url)
    if parts.hostname in LOOPBACK or urllib.request.proxy_bypass(parts.hostname or ""):
        return None
    return urllib.request.getproxies().get(parts.scheme)


def parse_error(body: Any) -> tuple[str, str]:
    """(message, codes) of an error body in any of the shapes servers use; both '' when there is no error in it."""
    said = dict_or_empty(body)
    error: Any = said.get("error") or said.get("detail") or (said if "message" in said and said.get("code") else None)
    if not error:
        return "", ""
    facts = dict_or_empty(error)
    if not facts:
        return str(error), ""
    metadata = dict_or_empty(facts.get("metadata"))
    codes = [facts.get("code"), facts.get("type"), facts.get("status"), metadata.get("error_type")]
    if metadata.get("reasons"):
        codes.append("moderation")
    return str(facts.get("message") or facts), " ".join(str(code) for code in codes if code is not None).lower()
