"""The page that lists all runs: title, headline score, coverage, cost, state; filtered and sorted by the address."""

import time
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from weft.report.html import Html, build_page, inline_text, tag
from weft.report.numbers import live_notices, page_header
from weft.results.index import SORT_KEYS, RunEntry, format_age

COLUMNS = ("run", "benchmark", "title", "headline score", "scored", "cost", "state", "age", "judge")
FILTERS = ("benchmark", "model", "find")


def parse_filters(query: Mapping[str, str]) -> dict[str, str]:
    """Return the filters in an address. An unknown sort key is ignored."""
    filters = {key: query[key] for key in FILTERS if query.get(key)}
    if query.get("sort") in SORT_KEYS:
        filters["sort"] = query["sort"]
    return filters


def build_runs_page(entries: Sequence[RunEntry], filters: Mapping[str, str]) -> str:
    """Return the page with these runs, and the form that chooses others."""
    search = tag("label", "search all dialogues ", tag("input", type="search", name="q"))
    body = tag(
        "main",
        tag("h1", "Runs"),
        live_notices(),
        tag("form", search, action="/search", method="get", class_="find"),
        _render_filters(filters),
        _render_runs(entries),
    )
    header = page_header("", "Runs", {"Runs": "/"})
    return build_page("weft: runs", header, body, script="live.js", forms=True)


def _render_runs(entries: Sequence[RunEntry]) -> Html:
    if not entries:
        return tag("p", "no run matches these filters", class_="soft")
    head = tag("thead", tag("tr", [tag("th", column, scope="col") for column in COLUMNS]))
    rows = tag("tbody", list(map(_render_run, entries)))
    table = tag("table", head, rows, class_="texts", data_runs=True)
    button = tag("p", tag("button", "Open selected runs together"))
    return tag("form", tag("div", table, class_="scroll", tabindex="0"), button, action="/open", method="get")


def _render_filters(filters: Mapping[str, str]) -> Html:
    inputs = [tag("label", f"{key} ", tag("input", name=key, value=filters.get(key, ""))) for key in FILTERS]
    chosen_sort = filters.get("sort", "age")
    options = [tag("option", key, value=key, selected=key == chosen_sort) for key in SORT_KEYS]
    sort = tag("label", "sort ", tag("select", options, name="sort"))
    clear = tag("a", "all", href="/") if filters else None
    return tag("form", inputs, sort, tag("button", "Filter"), clear, class_="find", method="get")


def _render_run(entry: RunEntry) -> Html:
    record = entry.record
    gist = entry.gist
    cost = "?" if gist.cost is None else f"${gist.cost:.2f}"
    started = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(record.started))
    checkbox = tag("label", tag("input", type="checkbox", name="run", value=record.id), " ")
    link = tag("a", inline_text(entry.handle), href=f"/r/{quote(record.id)}/", title=record.id)
    return tag(
        "tr",
        tag("td", checkbox, link),
        tag("td", inline_text(record.manifest.benchmark.name)),
        tag("td", inline_text(entry.tagged_title)),
        tag("td", gist.headline_text, class_="number"),
        tag("td", entry.coverage, data_progress=True),
        tag("td", cost),
        tag("td", entry.state, data_state=True),
        tag("td", format_age(time.time() - record.started), title=started),
        tag("td", inline_text(entry.judge)),
        id=f"run-{record.id}",
    )
