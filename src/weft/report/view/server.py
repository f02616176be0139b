"""The server behind `weft view`. Loopback alone; every request needs the token of this start, as a cookie after the
first; the Host must be this server, so that no page elsewhere can have a browser ask for it; nothing but GET; pages
allow nothing from anywhere else."""

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

HEADERS = {
    "Content-Security-Policy": "frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
TYPES = {"png": "image/png", "jpg": "image/jpeg", "webp": "image/webp", "gif": "image/gif"}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Viewer:
    def __init__(self, home: Path, token: str | None = None, benchmarks: Sequence[Any] = ()) -> None:
        """`benchmarks` are the user's own that runs may have been made with."""
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
        app.router.add_get("/r/{ids}/img/{name}", self._picture)
        return app

    async def start(self, port: int = 0) -> tuple[web.AppRunner, str]:
        """Serve; gives the address with its token."""
        runner = web.AppRunner(self.app(), access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", port)
        await site.start()
        bound = runner.addresses[0][1]
        return runner, f"http://127.0.0.1:{bound}/?token={self.token}"

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.host.partition(":")[0] not in ("127.0.0.1", "localhost"):
            return web.Response(status=403, text="this server answers to 127.0.0.1 alone\n", headers=HEADERS)
        given = request.query.get("token", "")
        if given and self._is_token(given):
            response: web.StreamResponse = web.Response(status=302, headers={**HEADERS, "Location": request.path})
            response.set_cookie(self.cookie, self.token, httponly=True, samesite="Strict", path="/")
            return response
        if not self._is_token(request.cookies.get(self.cookie, "")):
            return web.Response(
                status=403, text="open the address that `weft view` printed: it has the token\n", headers=HEADERS
            )
        try:
            response = await handler(request)
        except WeftError as error:
            body = tag(
                "main", tag("p", inline_text(str(error)), class_="warning"), tag("p", tag("a", "all runs", href="/"))
            )
            response = web.Response(
                status=404, text=build_page("weft", page_header("", "", {"Runs": "/"}), body), content_type="text/html"
            )
        except web.HTTPException as error:
            error.headers.update(HEADERS)
            raise
        response.headers.update(
            {**HEADERS, **({} if "Cache-Control" in response.headers else {"Cache-Control": "no-store"})}
        )
        return response

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self.token.encode())

    def _ids(self, request: web.Request) -> tuple[str, ...]:
        return tuple(one for one in request.match_info["ids"].split("+") if one)

    async def _runs(self, request: web.Request) -> web.Response:
        wanted = parse_filters(request.query)
        return html_response(build_runs_page(await asyncio.to_thread(lambda: self.library.runs(**wanted)), wanted))

    async def _progress(self, request: web.Request) -> web.Response:
        wanted = parse_filters(request.query)
        found = await asyncio.to_thread(lambda: self.library.runs(**wanted))
        return json_response([{"id": one.record.id, "state": one.state, "progress": one.coverage} for one in found])

    async def _open(self, request: web.Request) -> web.Response:
        chosen = [quote(one) for one in request.query.getall("run", [])]
        raise web.HTTPFound(f"/r/{'+'.join(chosen)}/" if chosen else "/")

    async def _search(self, request: web.Request) -> web.Response:
        wanted = request.query.get("q", "").strip()
        found = await asyncio.to_thread(self.library.search, wanted) if wanted else []
        if len(found) == MAX_HITS:
            count = f"the first {MAX_HITS}"
        else:
            count = f"{len(found)} found"
        find = tag("label", "search all dialogues ", tag("input", type="search", name="q", value=wanted))
        form = tag("form", find, action="/search", method="get", class_="find")
        listed = tag("ul", [_hit(one) for one in found], class_="hits")
        body = tag("main", tag("h1", "Search: ", inline_text(wanted)), form, tag("p", count, class_="soft"), listed)
        return html_response(build_page("weft: search", page_header("", "", {"Runs": "/"}), body, forms=True))

    async def _numbers(self, request: web.Request) -> web.Response:
        ids = self._ids(request)
        made = await asyncio.to_thread(self.library.contents, ids)
        plots = await asyncio.to_thread(self.library.plots, ids)
        names = {plot.name: quote(plot.name, safe="") for plot in plots.values()}
        drawn = [
            PlotLinks(plot, f"plots/{names[plot.name]}.svg", f"plots/dark/{names[plot.name]}.svg")
            for plot in plots.values()
        ]
        stamp = await asyncio.to_thread(self.library.stamp, ids)
        body = build_numbers(made, drawn, "dialogues.html", stamp)
        return html_response(
            build_numbers_page(made.title, page_header(made.title, "Numbers", navigation_links(ids)), body, live=True)
        )

    async def _stamp(self, request: web.Request) -> web.Response:
        return json_response({"stamp": await asyncio.to_thread(self.library.stamp, self._ids(request))})

    async def _list(self, request: web.Request) -> web.Response:
        ids = self._ids(request)
        made = await asyncio.to_thread(self.library.contents, ids)
        data = await asyncio.to_thread(self.library.listing, ids)
        return html_response(
            build_list_page(
                made.title,
                data,
                made.benchmark.metrics,
                page_header(made.title, "Dialogues", navigation_links(ids)),
                live=True,
            )
        )

    async def _list_data(self, request: web.Request) -> web.Response:
        ids = self._ids(request)
        if request.query.get("since") == await asyncio.to_thread(self.library.stamp, ids):
            return json_response({})
        return json_response(await asyncio.to_thread(self.library.listing, ids))

    async def _dialogue(self, request: web.Request) -> web.Response:
        found = await asyncio.to_thread(self.library.dialogue, self._ids(request), request.match_info["key"])
        if found is None:
            raise web.HTTPNotFound
        sample, body, *around = found
        before, after = (f"{key}.html" if key else None for key in around)
        return html_response(build_dialogue_page(sample, body, home="../dialogues.html", before=before, after=after))

    async def _plot(self, request: web.Request) -> web.Response:
        plots = await asyncio.to_thread(self.library.plots, self._ids(request))
        plot = plots.get(request.match_info["name"])
        if plot is None:
            raise web.HTTPNotFound
        dark = "night" in request.match_info
        return web.Response(
            text=await asyncio.to_thread(render_svg, plot.chart, dark=dark), content_type="image/svg+xml"
        )

    async def _picture(self, request: web.Request) -> web.Response:
        called = request.match_info["name"]
        data = await asyncio.to_thread(self.library.gallery.data, called)
        if data is None:
            raise web.HTTPNotFound
        kept = {"Cache-Control": "private, max-age=31536000, immutable"}
        return web.Response(body=data, content_type=TYPES[called.rpartition(".")[2]], headers=kept)


def _hit(one: SearchHit) -> Html:
    """Where it is, and the words around it."""
    place = f"/r/{quote(one.run)}/d/{key_by_name(0, one.sample)}.html#turn-{one.turn + 1}"
    quoted = [
        tag("p", tag("bdi", cut.before, tag("mark", cut.hit), cut.after), class_="words small") for cut in one.excerpts
    ]
    if one.more:
        more = tag("p", f"and {one.more} more here", class_="soft small")
    else:
        more = None
    where = tag("span", f" {one.where}, ", inline_text(one.run), class_="soft")
    return tag("li", tag("a", inline_text(f"{one.sample}, turn {one.turn + 1}"), href=place), where, quoted, more)


def navigation_links(ids: tuple[str, ...]) -> dict[str, str]:
    place = f"/r/{'+'.join(map(quote, ids))}"
    return {"Runs": "/", "Numbers": f"{place}/", "Dialogues": f"{place}/dialogues.html"}


def html_response(text: str) -> web.Response:
    return web.Response(text=text, content_type="text/html")


def json_response(value: Any) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")
