"""The server behind `weft view`.

It listens on loopback alone. Every request needs the token of this start, as a cookie after the first; the Host must be
this server, so that no other site can make a browser read from it; only GET is answered; pages load nothing from
elsewhere."""

import asyncio
import hmac
import secrets
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
from aiohttp import web

from weft.errors import WeftError
from weft.report.dialogues import build_dialogue_page
from weft.report.html import Html, build_page, inline_text, tag
from weft.report.listing import build_list_page, key_by_name
from weft.report.numbers import PlotLinks, build_numbers_page, page_header
from weft.report.plots import render_svg
from weft.report.site import build_numbers
from weft.report.view.library import MAX_HITS, Library, SearchHit
from weft.report.view.runs import build_runs_page, parse_filters
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


class Viewer:
    """Serves one home folder."""

    def __init__(self, home: Path, token: str | None = None, benchmarks: Sequence[Any] = ()) -> None:
        """`benchmarks`: the user's own that runs may be of."""
        self.library = Library(home, benchmarks)
        self.token = token or secrets.token_urlsafe(24)
        # browsers keep cookies by host, not by port: two servers must not share a name
        self.cookie = f"weft_view_{secrets.token_hex(4)}"

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard])
        app.router.add_get("/", self._runs)
        app.router.add_get("/runs.json", self._progress)
        app.router.add_get("/open", self._open)
        app.router.add_get("/search", self._search)
        app.router.add_get("/r/{ids}/", self._numbers)
        app.router.add_get("/r/{ids}/index.html", self._numbers)
        app.router.add_get("/r/{ids}/stamp.json", self._stamp)
        app.router.add_get("/r/{ids}/dialogues.html", self._list)
        app.router.add_get("/r/{ids}/list.json", self._list_data)
        app.router.add_get("/r/{ids}/d/{key:[0-9a-f]+}.html", self._dialogue)
        app.router.add_get("/r/{ids}/plots/{name}.svg", self._plot)
        app.router.add_get("/r/{ids}/plots/{night:dark}/{name}.svg", self._plot)
        app.router.add_get("/r/{ids}/img/{name}", self._image)
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
            text = "open the address that `weft view` printed: it has the token\n"
            return web.Response(status=403, text=text, headers=HEADERS)
        try:
            response = await handler(request)
        except WeftError as error:
            response = _error_response(error)
        except web.HTTPException as error:
            error.headers.update(HEADERS)
            raise
        response.headers.update(HEADERS)
        response.headers.setdefault("Cache-Control", "no-store")
        return response

    def _is_token(self, token: str) -> bool:
        return hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode())

    def _ids(self, request: web.Request) -> tuple[str, ...]:
        return tuple(filter(None, request.match_info["ids"].split("+")))

    async def _runs(self, request: web.Request) -> web.Response:
        filters = parse_filters(request.query)
        entries = await asyncio.to_thread(lambda: self.library.runs(**filters))
        return html_response(build_runs_page(entries, filters))

    async def _progress(self, request: web.Request) -> web.Response:
        filters = parse_filters(request.query)
        entries = await asyncio.to_thread(lambda: self.library.runs(**filters))
        return json_response(
            [{"id": entry.record.id, "state": entry.state, "progress": entry.coverage} for entry in entries]
        )

    async def _open(self, request: web.Request) -> web.Response:
        ids = list(map(quote, request.query.getall("run", [])))
        if not ids:
            raise web.HTTPFound("/")
        raise web.HTTPFound(f"/r/{'+'.join(ids)}/")

    async def _search(self, request: web.Request) -> web.Response:
        text = request.query.get("q", "").strip()
        hits: list[SearchHit] = []
        if text:
            hits = await asyncio.to_thread(self.library.search, text)
        count = f"{len(hits)} found"
        if len(hits) == MAX_HITS:
            count = f"the first {MAX_HITS}"
        field = tag("label", "search all dialogues ", tag("input", type="search", name="q", value=text))
        body = tag(
            "main",
            tag("h1", "Search: ", inline_text(text)),
            tag("form", field, action="/search", method="get", class_="find"),
            tag("p", count, class_="soft"),
            tag("ul", list(map(_render_hit, hits)), class_="hits"),
        )
        return html_response(build_page("weft: search", page_header("", "", {"Runs": "/"}), body, forms=True))

    async def _numbers(self, request: web.Request) -> web.Response:
        ids = self._ids(request)
        contents = await asyncio.to_thread(self.library.contents, ids)
        plots = await asyncio.to_thread(self.library.plots, ids)
        links: list[PlotLinks] = []
        for plot in plots.values():
            name = quote(plot.name, safe="")
            links.append(PlotLinks(plot, f"plots/{name}.svg", f"plots/dark/{name}.svg"))
        stamp = await asyncio.to_thread(self.library.stamp, ids)
        body = build_numbers(contents, links, "dialogues.html", stamp)
        header = page_header(contents.title, "Numbers", navigation_links(ids))
        return html_response(build_numbers_page(contents.title, header, body, live=True))

    async def _stamp(self, request: web.Request) -> web.Response:
        return json_response({"stamp": await asyncio.to_thread(self.library.stamp, self._ids(request))})

    async def _list(self, request: web.Request) -> web.Response:
        ids = self._ids(request)
        contents = await asyncio.to_thread(self.library.contents, ids)
        data = await asyncio.to_thread(self.library.listing, ids)
        header = page_header(contents.title, "Dialogues", navigation_links(ids))
        return html_response(build_list_page(contents.title, data, contents.benchmark.metrics, header, live=True))

    async def _list_data(self, request: web.Request) -> web.Response:
        ids = self._ids(request)
        if request.query.get("since") == await asyncio.to_thread(self.library.stamp, ids):
            return json_response({})
        return json_response(await asyncio.to_thread(self.library.listing, ids))

    async def _dialogue(self, request: web.Request) -> web.Response:
        page = await asyncio.to_thread(self.library.dialogue, self._ids(request), request.match_info["key"])
        if page is None:
            raise web.HTTPNotFound
        sample, body, previous, following = page
        text = build_dialogue_page(
            sample,
            body,
            home="../dialogues.html",
            before=f"{previous}.html" if previous else None,
            after=f"{following}.html" if following else None,
        )
        return html_response(text)

    async def _plot(self, request: web.Request) -> web.Response:
        plots = await asyncio.to_thread(self.library.plots, self._ids(request))
        plot = plots.get(request.match_info["name"])
        if plot is None:
            raise web.HTTPNotFound
        svg = await asyncio.to_thread(render_svg, plot.chart, dark="night" in request.match_info)
        return web.Response(text=svg, content_type="image/svg+xml")

    async def _image(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        data = await asyncio.to_thread(self.library.gallery.data, name)
        if data is None:
            raise web.HTTPNotFound
        return web.Response(body=data, content_type=MEDIA_TYPES[name.rpartition(".")[2]], headers=IMMUTABLE)


def _own_path(path: str) -> str:
    """Return a path so that it leads nowhere but to this server: two slashes at its beginning would name a host."""
    return "/" + quote(path.lstrip("/\\"))


def _error_response(error: WeftError) -> web.Response:
    message = tag("p", inline_text(str(error)), class_="warning")
    body = tag("main", message, tag("p", tag("a", "all runs", href="/")))
    page = build_page("weft", page_header("", "", {"Runs": "/"}), body)
    return web.Response(status=404, text=page, content_type="text/html")


def _render_hit(hit: SearchHit) -> Html:
    """Return a link to the turn, and the matches with the text around them."""
    href = f"/r/{quote(hit.run)}/d/{key_by_name(0, hit.sample)}.html#turn-{hit.turn + 1}"
    excerpts: list[Html] = []
    for excerpt in hit.excerpts:
        quotation = tag("bdi", excerpt.before, tag("mark", excerpt.hit), excerpt.after)
        excerpts.append(tag("p", quotation, class_="words small"))
    if hit.more:
        excerpts.append(tag("p", f"and {hit.more} more here", class_="soft small"))
    link = tag("a", inline_text(f"{hit.sample}, turn {hit.turn + 1}"), href=href)
    return tag("li", link, tag("span", f" {hit.where}, ", inline_text(hit.run), class_="soft"), excerpts)


def navigation_links(ids: tuple[str, ...]) -> dict[str, str]:
    """Return the addresses in the bar of a report's pages, by name."""
    base = f"/r/{'+'.join(map(quote, ids))}"
    return {"Runs": "/", "Numbers": f"{base}/", "Dialogues": f"{base}/dialogues.html"}


def html_response(text: str) -> web.Response:
    return web.Response(text=text, content_type="text/html")


def json_response(value: Any) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")
