"""The page of numbers: what was run and what is missing, the paper's tables with intervals, comparisons, plots,
settings."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from weft.report.caveats import ARITHMETIC_NOTE, judge_caveats
from weft.report.charts import Plot
from weft.report.compare import Comparison
from weft.report.html import Html, build_page, inline_text, join, tag
from weft.report.ranking import rank_cells
from weft.report.scale import format_number
from weft.report.select import format_cell
from weft.results.summary import Summary, describe_replies
from weft.types import Cell, Table

MAX_UNFOLDED = 3  # runs or comparisons that are shown unfolded


class PlotLinks(Struct, frozen=True):
    """A plot and the addresses of its picture: by day, in the dark, and in other formats."""

    plot: Plot
    light: str
    dark: str
    formats: Mapping[str, str] = {}


class PageSection(Struct, frozen=True):
    """A piece of the page that its table of contents leads to; `parts` are the places within it, by their ids."""

    id: str
    title: str
    body: Html
    subsections: Mapping[str, str] = {}


def page_header(title: str, current: str, links: Mapping[str, str]) -> Html:
    """The bar above every page."""
    shown_links = [
        tag("a", text, href=href, aria_current="page" if text == current else None) for text, href in links.items()
    ]
    return tag(
        "header",
        tag("b", "weft"),
        tag("nav", shown_links),
        tag("span", inline_text(title), class_="soft small"),
        class_="top",
    )


def build_numbers_body(
    title: str,
    tables: Sequence[Table],
    summaries: Mapping[str, Summary],
    drawn: Sequence[PlotLinks],
    comparisons: Sequence[Comparison],
    warnings: Sequence[str],
    links: Mapping[str, str],
    stamp: str | None = None,
    common: str = "",
) -> Html:
    """What is on the page, for one of its own or inside another. `links` lead from a row's name to its dialogues. What
    is served has a `stamp`, and tells when there are newer numbers. `common` is what all runs share, which their names
    do not say."""
    sections = [
        *(
            PageSection(f"table-{at}", table.title, render_table(table, links))
            for at, table in enumerate(_whole(tables), start=1)
        ),
        *_compared(comparisons),
        *([_plots(drawn)] if drawn else ()),
        *(
            [_parts([table for table in tables if table.kind == "breakdown"], links)]
            if len(_whole(tables)) < len(tables)
            else ()
        ),
        PageSection("settings", "Settings", join([_settings(label, summary) for label, summary in summaries.items()])),
    ]
    alike = {one.title.partition(": ")[0] for one in sections if one.id.startswith("table-")}
    short = {
        one.id: one.title.partition(": ")[2] for one in sections if len(alike) == 1 and one.id.startswith("table-")
    }
    contents = _links([replace(one, title=short.get(one.id) or one.title) for one in sections])
    cards = [_card(label, summary, folded=len(summaries) > MAX_UNFOLDED) for label, summary in summaries.items()]
    inside = join(
        tag("h1", inline_text(title)),
        tag("p", "all runs: ", inline_text(common), class_="soft") if common else None,
        join(*live_notices(stamp)) if stamp is not None else None,
        [tag("p", inline_text(line), class_="warning") for line in warnings],
        tag("details", tag("summary", "On this page"), contents, class_="toc folded"),
        tag("div", cards, class_="cards", id="runs"),
        [tag("section", tag("h2", inline_text(one.title)), one.body, id=one.id) for one in sections],
    )
    aside = tag("nav", tag("b", "On this page"), contents, class_="toc", aria_label="on this page")
    return tag("div", aside, tag("div", inside, class_="told"), class_="with-toc")


def _whole(tables: Sequence[Table]) -> list[Table]:
    return [table for table in tables if table.kind != "breakdown"]


def _links(sections: Sequence[PageSection]) -> Html:
    def one(place: str, title: str, parts: Mapping[str, str]) -> Html:
        if parts:
            inner = tag("ul", [one(id_, text, {}) for id_, text in parts.items()])
        else:
            inner = None
        return tag("li", tag("a", inline_text(title), href=f"#{place}"), inner)

    return tag(
        "ul", [one("runs", "Runs", {}), *(one(section.id, section.title, section.subsections) for section in sections)]
    )


def build_numbers_page(title: str, bar: Html, body: Html, *, live: bool = False) -> str:
    return build_page(title, bar, tag("main", body), kind="numbers", script="live.js" if live else None)


def live_notices(stamp: str | None = None) -> list[Html]:
    """What a served page says of itself, once it is so."""
    lost = tag("p", "The server is gone: what is here stays as it was.", class_="warning", id="lost", hidden=True)
    if stamp is None:
        return [lost]
    link = tag("a", "show its newer numbers", href="")
    return [lost, tag("p", "The run has gone on: ", link, class_="warning", id="fresh", hidden=True, data_stamp=stamp)]


def build_warnings(summaries: Mapping[str, Summary], tables: Sequence[Table], published_judge: str) -> list[str]:
    """What a reader must know before the numbers."""
    made = [f"{label}: {summary.unfinished}" for label, summary in summaries.items() if summary.unfinished]
    for label, summary in summaries.items():
        missing = summary.verdicts - summary.scored
        if missing:
            made.append(
                f"{label}: {missing} of {summary.verdicts} verdicts are unscored; run the same command again to ask for them"
            )
        if summary.left_out:
            made.append(f"{label}: {len(summary.left_out)} problems left records of the dataset out")
    judges = {summary.manifest.judge.name for summary in summaries.values()}
    return made + judge_caveats(judges, published_judge, any(table.published_rows for table in tables))


def _card(label: str, summary: Summary, *, folded: bool) -> Html:
    manifest = summary.manifest
    facts: list[tuple[str, str]] = [
        ("run", summary.run),
        ("model", summary.manifest.model.name),
        ("judge", summary.manifest.judge.name),
        ("state", f"{summary.state}, started {summary.started}"),
        ("turns", f"{summary.turns} in {summary.samples} dialogues"),
        ("replies", describe_replies(summary)),
        (
            "verdicts",
            f"{summary.scored} of {summary.verdicts} scored, {sum(summary.zeroed.values())} of them zero: the model failed",
        ),
    ]
    if summary.annotation_counts[0]:
        facts.append(
            (
                "ratings",
                f"{summary.annotation_counts[0]} by {summary.annotation_counts[1]} {'person' if summary.annotation_counts[1] == 1 else 'people'}",
            )
        )
    if summary.judge_card:
        facts.append(("judge card", summary.judge_card))
    if manifest.option_labels:
        facts.append(("options", ", ".join(manifest.option_labels)))
    if manifest.presets:
        facts.append(("presets", ", ".join(f"{role}: {name}" for role, name in manifest.presets.items())))
    if manifest.strategy != "none":
        facts.append(("strategy", f"{manifest.strategy}: {summary.calls} model calls behind {summary.turns} replies"))
    if summary.wall_time_s is not None:
        facts.append(("first start to last end", format_duration(summary.wall_time_s)))
    for total in summary.totals:
        if total.cost is None:
            cost = "price unknown"
        else:
            cost = f"${total.cost:.4f}"
        said = f"{total.calls} ({total.retries} retries), {total.tokens_in:,} + {total.tokens_out:,} tokens, {cost}"
        facts.append((f"{total.role} calls", f"{said}, {total.seconds / max(1, total.calls):.2f} s a call"))
    rows = [join(tag("dt", key), tag("dd", inline_text(value))) for key, value in facts]
    why = [_reasons("why zero", summary.zeroed), _reasons("why unscored", summary.unscored)]
    if folded:
        return tag("details", tag("summary", inline_text(label)), tag("dl", rows), why, class_="card")
    return tag("div", tag("h3", inline_text(label)), tag("dl", rows), why, class_="card")


def _reasons(what: str, told: Mapping[str, int]) -> Html | None:
    if not told:
        return None
    lines = [tag("li", f"{count} x ", inline_text(reason)) for reason, count in told.items()]
    return tag("details", tag("summary", f"{what} ({sum(told.values())})"), tag("ul", lines))


def format_duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    if minutes:
        return f"{minutes} min {rest} s"
    return f"{rest} s"


def render_table(table: Table, links: Mapping[str, str] | None = None) -> Html:
    """`links` lead from a row's name to its dialogues."""
    best = rank_cells(table)
    rows: list[Html] = []
    ours = True
    for row in table.rows:
        theirs = row.kind == "published"
        if theirs:
            if ours:
                kind = "theirs first-theirs"
            else:
                kind = "theirs"
        else:
            kind = "ours"
        ours = ours and not theirs
        if row.kind == "part":
            target = (links or {}).get(row.name.partition(" (")[0])
        else:
            target = None
        if target:
            title = tag("a", inline_text(row.label), href=target)
        else:
            title = inline_text(row.label)
        shown_cells = [
            _cell(row.cells.get(column), table.digits, best.get((row.label, column))) for column in table.columns
        ]
        rows.append(tag("tr", tag("th", title, scope="row"), shown_cells, class_=kind))
    head = tag("tr", tag("th", ""), [tag("th", column, scope="col") for column in table.columns])
    told = [table.note] if table.note else []
    told += ["Best in bold, second underlined."] if best else []
    told += [ARITHMETIC_NOTE] if any(row.arithmetic == "official" for row in table.rows) else []
    if told:
        note = tag("p", " ".join(told), class_="soft small")
    else:
        note = None
    return join(
        tag("div", tag("table", tag("thead", head), tag("tbody", rows)), class_="scroll", tabindex="0"),
        note,
    )


def _parts(tables: Sequence[Table], links: Mapping[str, str]) -> PageSection:
    folded = [tag("details", tag("summary", inline_text(table.title)), render_table(table, links)) for table in tables]
    return PageSection("parts", "Parts of each run", join(folded))


def _cell(cell: Cell | None, digits: int, mark: str | None) -> Html:
    spread = None
    if cell is not None and cell.low is not None and cell.high is not None:
        if cell.digits is None:
            fine = digits
        else:
            fine = cell.digits
        spread = tag("span", f"{cell.low:.{fine}f} to {cell.high:.{fine}f}", class_="range")
    if cell is not None and cell.standard_deviation is not None:
        spread = join(tag("span", f"± {cell.standard_deviation:.{digits}f}", class_="range"), spread)
    if cell is None:
        plain = cell
    else:
        plain = replace(cell, standard_deviation=None)
    return tag("td", tag("span", format_cell(plain, digits), class_=mark), spread)


def _compared(comparisons: Sequence[Comparison]) -> list[PageSection]:
    """A section each; many are one section, folded, with the main difference in sight."""
    if len(comparisons) <= MAX_UNFOLDED:
        found = enumerate(comparisons, start=1)
        return [
            PageSection(f"compared-{at}", f"Compared: {one.names[0]} and {one.names[1]}", _comparison(one))
            for at, one in found
        ]
    folded = [
        tag(
            "details",
            tag("summary", inline_text(one.names[0]), " and ", inline_text(one.names[1]), f": {_main(one)}"),
            _comparison(one),
        )
        for one in comparisons
    ]
    return [PageSection("compared", "Compared", join(folded))]


def _main(one: Comparison) -> str:
    row = one.rows[0]
    return f"{format_number(row.difference.value, one.digits, sign=True)}, p (Holm) {format_p_value(row.corrected_p)}"


def _comparison(one: Comparison) -> Html:
    rivals = [tag("th", inline_text(text), scope="col", class_="rival") for text in one.names]
    rest = [tag("th", text, scope="col") for text in ("difference", "p", "p (Holm)", "pairs")]
    head = tag("tr", tag("th", ""), rivals, rest)
    rows = [
        tag(
            "tr",
            tag("th", inline_text(row.name), scope="row"),
            tag("td", format_number(row.first, one.digits)),
            tag("td", format_number(row.second, one.digits)),
            tag("td", format_number(row.difference.value, one.digits, sign=True), _range(row.difference.low, row.difference.high, one.digits)),
            tag("td", format_p_value(row.difference.p)),
            tag("td", format_p_value(row.corrected_p)),
            tag("td", f"{row.difference.pairs}"),
            class_="ours" if row.corrected_p < 0.05 else None,
        )
        for row in one.rows
    ]  # fmt: skip
    told = (
        f"Of {one.max_score:g}, on turns that both have scored, bold where the corrected p is under 0.05. 95% intervals by resampling "
        "dialogues; two-sided permutation tests by dialogue, Holm over "
        f"{len(one.rows)} rows. {one.unpaired} verdicts have no partner and are left out."
    )
    return join(
        [tag("p", note, class_="warning") for note in one.notes],
        tag("div", tag("table", tag("thead", head), tag("tbody", rows)), class_="scroll", tabindex="0"),
        tag("p", told, class_="soft small"),
    )


def format_range(low: float | None, high: float | None, digits: int) -> str:
    if low is None or high is None:
        return "-"
    return f"{format_number(low, digits, sign=True)} to {format_number(high, digits, sign=True)}"


def _range(low: float | None, high: float | None, digits: int) -> Html:
    return tag("span", format_range(low, high, digits), class_="range")


def format_p_value(p: float) -> str:
    if p >= 0.0001:
        return f"{p:.4f}"
    return "<0.0001"


def _plots(drawn: Sequence[PlotLinks]) -> PageSection:
    places = {f"plot-{at}": one for at, one in enumerate(drawn, start=1)}
    figures = tag("div", [_plot(place, one) for place, one in places.items()], class_="plots")
    return PageSection("plots", "Plots", figures, {place: one.plot.title for place, one in places.items()})


def _plot(place: str, one: PlotLinks) -> Html:
    formats = [join(" ", tag("a", kind, href=target)) for kind, target in one.formats.items()]
    night = tag("source", srcset=one.dark, media="(prefers-color-scheme: dark)")
    picture = tag("picture", night, tag("img", src=one.light, alt=one.plot.description))
    return tag(
        "figure",
        picture,
        tag("figcaption", one.plot.title, formats),
        id=place,
        class_="wide" if one.plot.wide else None,
    )


def _settings(label: str, summary: Summary) -> Html:
    told: Any = msgspec.json.format(msgspec.json.encode(summary.manifest), indent=2).decode()
    return tag("details", tag("summary", inline_text(label)), tag("pre", told, dir="ltr"))
