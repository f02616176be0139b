"""The page of numbers: what was run and what is missing, the paper's tables with intervals, comparisons, plots, settings."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from weft.naming import told_options
from weft.report.caveats import OFFICIAL, judge_caveats
from weft.report.cells import shown
from weft.report.charts import Plot
from weft.report.compare import Comparison
from weft.report.html import Html, join, name, page, tag
from weft.report.marks import marks
from weft.runs import Summary, replies_told
from weft.types import Cell, Table


def top(title: str, current: str, links: Mapping[str, str]) -> Html:
    """The bar above every page."""
    shown_links = [tag("a", text, href=href, aria_current="page" if text == current else None) for text, href in links.items()]
    return tag("header", tag("b", "weft"), tag("nav", shown_links), tag("span", name(title), class_="soft small"), class_="top")


def numbers_body(
    title: str,
    tables: Sequence[Table],
    summaries: Mapping[str, Summary],
    drawn: Sequence[tuple[Plot, str, Mapping[str, str]]],
    comparisons: Sequence[Comparison],
    warnings: Sequence[str],
    links: Mapping[str, str],
    stamp: str | None = None,
) -> Html:
    """What is on the page, for one of its own or inside another. `drawn` are plots with their picture's address and other formats; `links`
    lead from a row's name to its dialogues. What is served has a `stamp`, and tells when there are newer numbers."""
    return join(
        tag("h1", name(title)),
        join(*told_live(stamp)) if stamp is not None else None,
        [tag("p", name(line), class_="warning") for line in warnings],
        tag("div", [_card(label, summary) for label, summary in summaries.items()], class_="cards"),
        [_table(table, links) for table in tables if table.rows_are != "parts"],
        [_comparison(one) for one in comparisons],
        tag("h2", "Plots", id="plots") if drawn else None,
        tag("div", [_plot(*one) for one in drawn], class_="plots") if drawn else None,
        tag("h2", "Parts of each run") if any(table.rows_are == "parts" for table in tables) else None,
        [_part(table, links) for table in tables if table.rows_are == "parts"],
        tag("h2", "Settings"),
        [_settings(label, summary) for label, summary in summaries.items()],
    )


def numbers_page(title: str, bar: Html, body: Html, *, live: bool = False) -> str:
    return page(title, bar, tag("main", body), kind="numbers", script="live.js" if live else None)


def told_live(stamp: str | None = None) -> list[Html]:
    """What a served page says of itself, once it is so."""
    lost = tag("p", "The server is gone: what is here stays as it was.", class_="warning", id="lost", hidden=True)
    if stamp is None:
        return [lost]
    link = tag("a", "show its newer numbers", href="")
    return [lost, tag("p", "The run has gone on: ", link, class_="warning", id="fresh", hidden=True, data_stamp=stamp)]


def warnings_of(summaries: Mapping[str, Summary], tables: Sequence[Table], published_judge: str) -> list[str]:
    """What a reader must know before the numbers."""
    made = [f"{label}: {summary.unfinished}" for label, summary in summaries.items() if summary.unfinished]
    for label, summary in summaries.items():
        missing = summary.verdicts - summary.scored
        if missing:
            made.append(f"{label}: {missing} of {summary.verdicts} verdicts are unscored; run the same command again to ask for them")
        if summary.left_out:
            made.append(f"{label}: {len(summary.left_out)} problems left records of the dataset out")
    judges = {str(summary.manifest["judge"]["name"]) for summary in summaries.values()}
    return made + judge_caveats(judges, published_judge, any(table.published for table in tables))


def _card(label: str, summary: Summary) -> Html:
    told = [*told_options(summary.manifest)]
    facts: list[tuple[str, str]] = [
        ("run", summary.run),
        ("model", str(summary.manifest["model"]["name"])),
        ("judge", str(summary.manifest["judge"]["name"])),
        ("state", f"{summary.state}, started {summary.started}"),
        ("turns", f"{summary.turns} in {summary.samples} dialogues"),
        ("replies", replies_told(summary)),
        ("verdicts", f"{summary.scored} of {summary.verdicts} scored, {sum(summary.zero_by_rule.values())} of them zero: the model failed"),
    ]
    if told:
        facts.append(("options", ", ".join(told)))
    if summary.manifest.get("presets"):
        facts.append(("presets", ", ".join(f"{role}: {name}" for role, name in summary.manifest["presets"].items())))
    if summary.manifest.get("strategy", "none") != "none":
        facts.append(("strategy", f"{summary.manifest['strategy']}: {summary.calls} model calls behind {summary.turns} replies"))
    if summary.seconds is not None:
        facts.append(("time", duration(summary.seconds)))
    for total in summary.totals:
        cost = "price unknown" if total.cost is None else f"${total.cost:.4f}"
        said = f"{total.calls} ({total.retries} retries), {total.tokens_in:,} + {total.tokens_out:,} tokens, {cost}"
        facts.append((f"{total.role} calls", f"{said}, {total.seconds / max(1, total.calls):.2f} s a call"))
    rows = [join(tag("dt", key), tag("dd", name(value))) for key, value in facts]
    why = [_reasons("why zero", summary.zero_by_rule), _reasons("why unscored", summary.unscored)]
    return tag("div", tag("h3", name(label)), tag("dl", rows), why, class_="card")


def _reasons(what: str, told: Mapping[str, int]) -> Html | None:
    if not told:
        return None
    lines = [tag("li", f"{count} x ", name(reason)) for reason, count in told.items()]
    return tag("details", tag("summary", f"{what} ({sum(told.values())})"), tag("ul", lines))


def duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _table(table: Table, links: Mapping[str, str], *, heading: bool = True) -> Html:
    best = marks(table)
    rows: list[Html] = []
    ours = True
    for row in table.rows:
        theirs = row.kind == "published"
        kind = ("theirs first-theirs" if ours else "theirs") if theirs else "ours"
        ours = ours and not theirs
        target = links.get(row.name.partition(" (")[0]) if row.kind == "part" else None
        title = tag("a", name(row.label), href=target) if target else name(row.label)
        shown_cells = [_cell(row.cells.get(column), table.digits, best.get((row.label, column))) for column in table.columns]
        rows.append(tag("tr", tag("td", title), shown_cells, class_=kind))
    head = tag("tr", tag("th", ""), [tag("th", column, scope="col") for column in table.columns])
    told = [table.note] if table.note else []
    told += ["Best in bold, second underlined."] if best else []
    told += [OFFICIAL] if any(row.way == "official" for row in table.rows) else []
    note = tag("p", " ".join(told), class_="soft small") if told else None
    return join(
        tag("h2", name(table.title)) if heading else None,
        tag("div", tag("table", tag("thead", head), tag("tbody", rows)), class_="scroll", tabindex="0"),
        note,
    )


def _part(table: Table, links: Mapping[str, str]) -> Html:
    return tag("details", tag("summary", name(table.title)), _table(table, links, heading=False))


def _cell(cell: Cell | None, digits: int, mark: str | None) -> Html:
    spread = None
    if cell is not None and cell.low is not None and cell.high is not None:
        spread = tag("span", f"{cell.low:.{digits}f} to {cell.high:.{digits}f}", class_="range")
    return tag("td", tag("span", shown(cell, digits), class_=mark), spread)


def _comparison(one: Comparison) -> Html:
    first, second = one.names
    head = tag("tr", [tag("th", text) for text in ("", first, second, "difference", "p", "p (Holm)", "pairs")])
    rows = [
        tag(
            "tr",
            tag("td", name(row.what)),
            tag("td", f"{row.first:.1f}"),
            tag("td", f"{row.second:.1f}"),
            tag("td", f"{row.difference.value:+.1f}", _range(row.difference.low, row.difference.high)),
            tag("td", chance(row.difference.p)),
            tag("td", chance(row.corrected)),
            tag("td", f"{row.difference.pairs}"),
            class_="ours" if row.corrected < 0.05 else None,
        )
        for row in one.rows
    ]  # fmt: skip
    told = (
        "Points of a hundred on turns that both have scored, bold where the corrected p is under 0.05. 95% intervals by resampling "
        "dialogues; two-sided permutation tests by dialogue, Holm over "
        f"{len(one.rows)} rows. {one.unpaired} verdicts have no partner and are left out."
    )
    return join(
        tag("h2", "Compared: ", name(first), " and ", name(second)),
        [tag("p", note, class_="warning") for note in one.notes],
        tag("div", tag("table", tag("thead", head), tag("tbody", rows)), class_="scroll", tabindex="0"),
        tag("p", told, class_="soft small"),
    )


def between(low: float | None, high: float | None) -> str:
    return "-" if low is None or high is None else f"{low:+.1f} to {high:+.1f}"


def _range(low: float | None, high: float | None) -> Html:
    return tag("span", between(low, high), class_="range")


def chance(p: float) -> str:
    return f"{p:.4f}" if p >= 0.0001 else "<0.0001"


def _plot(plot: Plot, href: str, others: Mapping[str, str]) -> Html:
    formats = [join(" ", tag("a", kind, href=target)) for kind, target in others.items()]
    return tag("figure", tag("img", src=href, alt=plot.words), tag("figcaption", plot.title, formats))


def _settings(label: str, summary: Summary) -> Html:
    told: Any = msgspec.json.format(msgspec.json.encode(summary.manifest), indent=2).decode()
    return tag("details", tag("summary", name(label)), tag("pre", told, dir="ltr"))
