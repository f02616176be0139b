"""The server behind `weft view`: the runs of a journal, their numbers, dialogues and plots."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from aiohttp import web

from weft.report.dialogues import build_dialogue_page
from weft.report.html import Html, build_page, inline_text, tag
from weft.report.listing import build_list_page, key_by_name
from weft.report.numbers import PlotLinks, build_numbers_page, page_header
from weft.report.plots import render_svg
from weft.report.site import build_numbers
from weft.report.view.excerpts import render_excerpts
from weft.report.view.library import MAX_HITS, Library, SearchHit
from weft.report.view.loopback import Handler, LoopbackServer, html_response, image_response, json_response
from weft.report.view.runs import build_runs_page, parse_filters


class Viewer(LoopbackServer):
    """Serves one home folder."""

    home_name = "Runs"

    def __init__(self, home: Path, token: str | None = None, benchmarks: Sequence[Any] = ()) -> None:
        """`benchmarks`: the user's own that runs may be of."""
        super().__init__(token)
        self.library = Library(home, benchmarks)

    def routes(self) -> Mapping[str, Handler]:
        return {
            "/": self._runs,
            "/runs.json": self._progress,
            "/open": self._open,
            "/search": self._search,
            "/r/{ids}/": self._numbers,
            "/r/{ids}/index.html": self._numbers,
            "/r/{ids}/stamp.json": self._stamp,
            "/r/{ids}/dialogues.html": self._list,
            "/r/{ids}/list.json": self._list_data,
            "/r/{ids}/d/{key:[0-9a-f]+}.html": self._dialogue,
            "/r/{ids}/plots/{name}.svg": self._plot,
            "/r/{ids}/plots/{night:dark}/{name}.svg": self._plot,
            "/r/{ids}/img/{name}": self._image,
        }

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
        return await asyncio.to_thread(image_response, self.library.gallery, request.match_info["name"])


def _render_hit(hit: SearchHit) -> Html:
    """Return a link to the turn, and the matches with the text around them."""
    href = f"/r/{quote(hit.run)}/d/{key_by_name(0, hit.sample)}.html#turn-{hit.turn + 1}"
    excerpts = render_excerpts(hit.excerpts, hit.more)
    link = tag("a", inline_text(f"{hit.sample}, turn {hit.turn + 1}"), href=href)
    return tag("li", link, tag("span", f" {hit.where}, ", inline_text(hit.run), class_="soft"), excerpts)


def navigation_links(ids: tuple[str, ...]) -> dict[str, str]:
    """Return the addresses in the bar of a report's pages, by name."""
    base = f"/r/{'+'.join(map(quote, ids))}"
    return {"Runs": "/", "Numbers": f"{base}/", "Dialogues": f"{base}/dialogues.html"}
