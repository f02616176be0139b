"""The one HTTP path: a session that opens when it is first used, replies of bounded size, and every transport error as a `CallError`.
Redirects are not followed: a request with a key goes where the user sent it, or nowhere."""

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from weft.errors import PictureError
from weft.models.endpoint import FATAL, NO, TRANSIENT, CallError
from weft.models.wire import Body

if TYPE_CHECKING:
    import aiohttp

MAX_REPLY = 256 * 1024 * 1024
LOOPBACK = ("127.0.0.1", "localhost", "::1")
Answer = tuple[int, Mapping[str, str], bytes]  # status, headers by small letters, body


class Http:
    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._session: aiohttp.ClientSession | None = None

    async def post(self, url: str, body: Body, headers: Mapping[str, str], *, called: str) -> Answer:
        """`called` is what messages call the endpoint by."""
        sent = {"Content-Type": "application/json", "Content-Length": str(body.length), **headers}
        return await self._ask("POST", url, called, body, sent)

    async def get(self, url: str, *, called: str) -> Answer:
        return await self._ask("GET", url, called, None, {})

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _ask(self, method: str, url: str, called: str, body: Body | None, headers: Mapping[str, str]) -> Answer:
        import aiohttp

        data = aiter(body) if body is not None else None
        try:
            async with self._open(url).request(method, url, data=data, headers=headers, allow_redirects=False) as response:
                told = {name.lower(): value for name, value in response.headers.items()}
                if 300 <= response.status < 400:
                    place = told.get("location", "?")
                    raise CallError(f"{called} answered {response.status}: it redirects to {place}; give that address", FATAL)
                return response.status, told, await _all_of(response, called)
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
