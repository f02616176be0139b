"""A server for this machine's user alone.

It listens on loopback. Every request needs the token of this start, as a cookie after the first; the Host must be this
server, so that no other site can make a browser read from it; only GET is answered; pages load nothing from elsewhere.
"""

import hmac
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote

import msgspec
from aiohttp import web

from weft.errors import WeftError
from weft.report.gallery import ImageFiles
from weft.report.html import build_page, inline_text, tag
from weft.report.numbers import page_header
from weft.untrusted import read_host

HEADERS = {
    "Content-Security-Policy": "frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
IMMUTABLE = {"Cache-Control": "private, max-age=31536000, immutable"}
MEDIA_TYPES = {"png": "image/png", "jpg": "image/jpeg", "webp": "image/webp", "gif": "image/gif"}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class LoopbackServer:
    """Serves pages behind a token. A subclass writes `routes`."""

    home_name = "home"  # of the first page, in links to it

    def __init__(self, token: str | None = None) -> None:
        self.token = token or secrets.token_urlsafe(24)
        # browsers keep cookies by host, not by port: two servers must not share a name
        self.cookie = f"weft_view_{secrets.token_hex(4)}"

    def routes(self) -> Mapping[str, Handler]:
        """Return the handler of each path. Written by a subclass."""
        raise TypeError(f"{type(self).__name__} has no routes")

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard])
        for path, handler in self.routes().items():
            app.router.add_get(path, handler)
        return app

    async def start(self, port: int = 0) -> tuple[web.AppRunner, str]:
        """Start serving; return the runner and the address with its token."""
        runner = web.AppRunner(self.app(), access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", port)
        await site.start()
        actual_port = runner.addresses[0][1]
        return runner, f"http://127.0.0.1:{actual_port}/?token={self.token}"

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if read_host(request.host) not in ("127.0.0.1", "localhost"):
            return web.Response(status=403, text="this server answers only to 127.0.0.1\n", headers=HEADERS)
        if self._is_token(request.query.get("token", "")):
            headers = {**HEADERS, "Location": _own_path(request.path)}
            response: web.StreamResponse = web.Response(status=302, headers=headers)
            response.set_cookie(self.cookie, self.token, httponly=True, samesite="Strict", path="/")
            return response
        if not self._is_token(request.cookies.get(self.cookie, "")):
            text = "open the address that the command printed: it has the token\n"
            return web.Response(status=403, text=text, headers=HEADERS)
        try:
            response = await handler(request)
        except WeftError as error:
            response = self._error_response(error)
        except web.HTTPException as error:
            error.headers.update(HEADERS)
            raise
        response.headers.update(HEADERS)
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    def _is_token(self, token: str) -> bool:
        return hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode())

    def _error_response(self, error: WeftError) -> web.Response:
        message = tag("p", inline_text(str(error)), class_="warning")
        body = tag("main", message, tag("p", tag("a", f"all {self.home_name.lower()}", href="/")))
        page = build_page("weft", page_header("", "", {self.home_name: "/"}), body)
        return web.Response(status=404, text=page, content_type="text/html")


def _own_path(path: str) -> str:
    """Return a path so that it leads nowhere but to this server: two slashes at its beginning would name a host."""
    return "/" + quote(path.lstrip("/\\"))


def html_response(text: str) -> web.Response:
    return web.Response(text=text, content_type="text/html")


def json_response(value: Any) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")


def image_response(images: ImageFiles, name: str) -> web.Response:
    """Return an image that a page shows, by its file name; 404 for any other."""
    data = images.data(name)
    if data is None:
        raise web.HTTPNotFound
    return web.Response(body=data, content_type=MEDIA_TYPES[name.rpartition(".")[2]], headers=IMMUTABLE)
