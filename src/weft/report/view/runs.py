"""The page that lists all runs: what each is, its main number, how much of it there is, what it cost, how it stands;
sorted and filtered by what the address says."""

import time
from collections.abc import Mapping, Sequence
from urllib.parse import quote

from weft.report.html import Html, build_page, inline_text, tag
from weft.report.numbers import live_notices, page_header
from weft.results.index import SORT_KEYS, RunEntry, format_age

COLUMNS = ("run", "benchmark", "title", "main number", "scored", "cost", "state", "age", "judge")
WANTED = ("benchmark", "model", "find", "sort")


def parse_filters(query: Mapping[str, str]) -> dict[str, str]:
    """What an address asks for."""
    return {key: query[key] for key in WANTED if query.get(key) and (key != "sort" or query[key] in SORT_KEYS)}


def build_runs_page(found: Sequence[RunEntry], wanted: Mapping[str, str]) -> str:
    head = tag("tr", [tag("th", text, scope="col") for text in COLUMNS])
    rows = [_row(one) for one in found]
    table = tag(
        "div",
        tag("table", tag("thead", head), tag("tbody", rows), class_="texts", data_runs=True),
        class_="scroll",
        tabindex="0",
    )
    find = tag("label", "search all dialogues ", tag("input", type="search", name="q"))
    choose = tag("p", tag("button", "Open those chosen together"))
    body = tag(
        "main",
        tag("h1", "Runs"),
        live_notices(),
        tag("form", find, action="/search", method="get", class_="find"),
        _filters(wanted),
        tag("form", table, choose, action="/open", method="get")
        if found
        else tag("p", "no run is left by what was asked for", class_="soft"),
    )
    return build_page("weft: runs", page_header("", "Runs", {"Runs": "/"}), body, script="live.js", forms=True)


def _filters(wanted: Mapping[str, str]) -> Html:
    fields = [
        tag("label", f"{key} ", tag("input", name=key, value=wanted.get(key, "")))
        for key in ("benchmark", "model", "find")
    ]
    sorts = [tag("option", text, value=text, selected=text == wanted.get("sort", "age")) for text in SORT_KEYS]
    if wanted:
        clear = tag("a", "all", href="/")
    else:
        clear = None
    return tag(
        "form",
        fields,
        tag("label", "sort ", tag("select", sorts, name="sort")),
        tag("button", "Filter"),
        clear,
        class_="find",
        method="get",
    )


def _row(one: RunEntry) -> Html:
    record = one.record
    gist = one.gist
    if gist.cost is None:
        cost = "?"
    else:
        cost = f"${gist.cost:.2f}"
    began = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(record.started))
    return tag(
        "tr",
        tag("td", tag("label", tag("input", type="checkbox", name="run", value=record.id), " "),
            tag("a", inline_text(one.handle), href=f"/r/{quote(record.id)}/", title=record.id)),
        tag("td", inline_text(record.manifest.benchmark.name)),
        tag("td", inline_text(one.tagged_title)),
        tag("td", gist.headline_text, class_="number"),
        tag("td", one.coverage, data_progress=True),
        tag("td", cost),
        tag("td", one.state, data_state=True),
        tag("td", format_age(time.time() - record.started), title=began),
        tag("td", inline_text(one.judge)),
        id=f"run-{record.id}",
    )  # fmt: skip
