"""JSON over HTTP with pictures in it, the one way out: a session that opens when it is first used, request bodies that stream base64
straight from the blob files, replies of bounded size, and every trouble as a `CallError` with a retry decision.

No second copy of a picture's base64 is ever held: a body is cut at the pictures, its length is known beforehand, and each picture is
encoded in pieces while it is sent, and checked against its name meanwhile. Redirects are not followed: a request with a key goes where the
user sent it, or nowhere. What a server says of itself (errors, headers, broken replies) is scrubbed of keys before it is cut or told. Of
the user's settings only proxies are taken from the environment, never a `.netrc`.
"""

import asyncio
import contextlib
import urllib.request
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import msgspec
from msgspec import Struct

from weft.errors import PictureError
from weft.models.endpoint import DENIED, FATAL, NO, TRANSIENT, CallError
from weft.models.error_mapping import error_facts
from weft.models.request_bodies import Body, Form
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

    async def upload(self, url: str, body: Body, headers: Mapping[str, str], *, called: str) -> Answer:
        """A body of its own kind in, JSON out."""
        sent = {"Content-Length": str(body.length), **headers}
        async with self._posted(url, body, sent, called, MAX_TEXT, None) as answer:
            return answer

    @contextlib.asynccontextmanager
    async def _posted(
        self, url: str, body: Body, sent: Mapping[str, str], called: str, most: int, stream: "Pieces | None"
    ) -> AsyncGenerator[Answer]:
        async with self._ask("POST", url, called, body, sent, most, stream) as answer:
            if 300 <= answer.status < 400:
                place = without_secrets(answer.headers.get("location", "?"))
                raise CallError(f"{called} answered {answer.status}: it redirects to {place}; give that address", DENIED)
            yield _read(answer, called, stream)

    @contextlib.asynccontextmanager
    async def get(
        self, url: str, *, called: str, headers: Mapping[str, str] | None = None, most: int = MAX_REPLY
    ) -> AsyncGenerator[Answer]:
        """What is there, as it is."""
        async with self._ask("GET", url, called, None, headers or {}, most) as answer:
            yield answer

    async def look(self, url: str, headers: Mapping[str, str], *, called: str, most: int = MAX_TEXT) -> Answer:
        """JSON that is there, such as the state of a task."""
        async with self.get(url, called=called, headers=headers, most=most) as answer:
            return _read(answer, called, None)

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
        body: Body | None,
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
        body: Body | None,
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


def _read(answer: Answer, called: str, stream: "Pieces | None") -> Answer:
    """An answer with its JSON, and the error that it tells of."""
    try:
        decoded: Any = stream.body() if stream is not None and is_events(answer) else msgspec.json.decode(answer.data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        if answer.status < 400:
            raise CallError(f"{called} answered {answer.status} with broken JSON ({len(answer.data)} bytes)", TRANSIENT) from None
        return answer
    said, codes = error_facts(decoded)
    small = answer.data if said or answer.status >= 400 else b""  # what it says is in `decoded`: no second copy is kept
    return Answer(answer.status, answer.headers, small, decoded, scrub(said), codes)


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
