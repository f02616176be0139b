"""The page of numbers: what was run and what is missing, the paper's tables with intervals, comparisons, plots,
settings."""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from weft.report.caveats import ARITHMETIC_NOTE, judge_caveats, row_notes
from weft.report.cells import COMPARED, DIFFERENCE, FIRST, SECOND, CellIndex
from weft.report.charts import Plot
from weft.report.columns import order_for_screen
from weft.report.compare import Comparison, ComparisonRow
from weft.report.glossary import Glossary, build_legend, explain_name
from weft.report.html import Html, build_page, inline_text, join, tag
from weft.report.ranking import rank_cells
from weft.report.select import format_cell
from weft.report.summary_cards import build_card
from weft.results.summary import Summary
from weft.rounding import format_number
from weft.types import Cell, Row, Table

MAX_UNFOLDED = 3  # runs or comparisons that are shown unfolded
SIGNIFICANT = 0.05  # corrected p below which a difference is bold
MIN_P = 0.0001


class PlotLinks(Struct, frozen=True):
    """A plot and the addresses of its image."""

    plot: Plot
    light: str  # for light pages
    dark: str  # for dark pages
    formats: Mapping[str, str] = {}  # other formats, by name


class DialogueLinks(Struct, frozen=True):
    """Where the numbers of a page lead to."""

    list_page: str  # the address of the list of dialogues
    by_group: Mapping[str, str]  # addresses of the list with the filter of a group
    cell_index: CellIndex

    def of_cell(self, number: int, row: Row | ComparisonRow, column: str) -> str | None:
        """Return the address of the dialogues behind a cell of table `number`, or of a comparison; None if there are
        none."""
        key = self.cell_index.find_key(number, row, column)
        if key is None:
            return None
        return f"{self.list_page}#cell={key}"


class PageSection(Struct, frozen=True):
    """A section of the page, to which its table of contents links."""

    id: str
    title: str
    body: Html
    subsections: Mapping[str, str] = {}  # titles by id


def page_header(title: str, current: str, links: Mapping[str, str]) -> Html:
    """Return the bar above every page."""
    anchors: list[Html] = []
    for text, href in links.items():
        anchors.append(tag("a", text, href=href, aria_current="page" if text == current else None))
    soft_title = tag("span", inline_text(title), class_="soft small")
    return tag("header", tag("b", "weft"), tag("nav", anchors), soft_title, class_="top")


def build_numbers_body(
    title: str,
    tables: Sequence[Table],
    summaries: Mapping[str, Summary],
    plots: Sequence[PlotLinks],
    comparisons: Sequence[Comparison],
    warnings: Sequence[str],
    links: DialogueLinks,
    stamp: str | None = None,
    shared_settings: str = "",
    glossary: Glossary | None = None,
) -> Html:
    """Return the content of the page.

    `links` lead from groups and numbers to their dialogues. A served page has a `stamp`, by which it notices newer
    numbers. `shared_settings` are those that all runs share; titles do not repeat them."""
    sections = _build_sections(tables, summaries, plots, comparisons, links, glossary or {})
    contents = _table_of_contents(_shorten_titles(sections))
    is_folded = len(summaries) > MAX_UNFOLDED
    cards = [build_card(label, summary, folded=is_folded) for label, summary in summaries.items()]
    content: list[object] = [tag("h1", inline_text(title))]
    if shared_settings:
        content.append(tag("p", "all runs: ", inline_text(shared_settings), class_="soft"))
    if stamp is not None:
        content.append(live_notices(stamp))
    content += [tag("p", inline_text(warning), class_="warning") for warning in warnings]
    content.append(tag("details", tag("summary", "On this page"), contents, class_="toc folded"))
    content.append(tag("div", cards, class_="cards", id="runs"))
    for section in sections:
        content.append(tag("section", tag("h2", inline_text(section.title)), section.body, id=section.id))
    aside = tag("nav", tag("b", "On this page"), contents, class_="toc", aria_label="on this page")
    return tag("div", aside, tag("div", content, class_="content"), class_="with-toc")


def _build_sections(
    tables: Sequence[Table],
    summaries: Mapping[str, Summary],
    plots: Sequence[PlotLinks],
    comparisons: Sequence[Comparison],
    links: DialogueLinks,
    glossary: Glossary,
) -> list[PageSection]:
    sections: list[PageSection] = []
    breakdowns: list[Html] = []
    by_group: list[Html] = []
    for number, table in enumerate(tables, start=1):
        body = render_table(table, glossary, links, number)
        if table.kind == "groups":
            by_group.append(tag("figure", tag("figcaption", inline_text(table.title)), body))
        elif table.kind == "breakdown":
            breakdowns.append(tag("details", tag("summary", inline_text(table.title)), body))
        else:
            sections.append(PageSection(f"table-{len(sections) + 1}", table.title, body))
    sections += _comparison_sections(comparisons, glossary, links)
    if plots:
        sections.append(_plot_section(plots))
    if breakdowns or by_group:
        title = "Runs by group" if by_group else "Breakdown of each run"
        sections.append(PageSection("breakdown", title, join([*by_group, *breakdowns])))
    settings = join([_render_settings(label, summary) for label, summary in summaries.items()])
    return [*sections, PageSection("settings", "Settings", settings)]


def _shorten_titles(sections: Sequence[PageSection]) -> list[PageSection]:
    """Drop the dataset from the tables' titles, where all of them begin with the same."""
    datasets = {section.title.partition(": ")[0] for section in sections if section.id.startswith("table-")}
    if len(datasets) != 1:
        return list(sections)
    shortened: list[PageSection] = []
    for section in sections:
        short = section.title.partition(": ")[2]
        if short and section.id.startswith("table-"):
            shortened.append(replace(section, title=short))
        else:
            shortened.append(section)
    return shortened


def _table_of_contents(sections: Sequence[PageSection]) -> Html:
    items = [_contents_item("runs", "Runs")]
    items += [_contents_item(section.id, section.title, section.subsections) for section in sections]
    return tag("ul", items)


def _contents_item(id_: str, title: str, subsections: Mapping[str, str] | None = None) -> Html:
    inner = None
    if subsections:
        inner = tag("ul", [_contents_item(sub_id, text) for sub_id, text in subsections.items()])
    return tag("li", tag("a", inline_text(title), href=f"#{id_}"), inner)


def build_numbers_page(title: str, header: Html, body: Html, *, live: bool = False) -> str:
    """Return the whole page of numbers."""
    return build_page(title, header, tag("main", body), kind="numbers", script="live.js" if live else None)


def live_notices(stamp: str | None = None) -> list[Html]:
    """Return the notices that the script of a served page unhides."""
    stopped = "The server has stopped: this page no longer updates."
    notices = [tag("p", stopped, class_="warning", id="lost", hidden=True)]
    if stamp is not None:
        link = tag("a", "show the new numbers", href="")
        notices.append(
            tag("p", "The run has progressed: ", link, class_="warning", id="fresh", hidden=True, data_stamp=stamp)
        )
    return notices


def build_warnings(summaries: Mapping[str, Summary], tables: Sequence[Table], published_judge: str) -> list[str]:
    """Return what a reader must know before the numbers."""
    warnings = [f"{label}: {summary.unfinished}" for label, summary in summaries.items() if summary.unfinished]
    for label, summary in summaries.items():
        missing = summary.verdicts - summary.scored
        if missing:
            warnings.append(
                f"{label}: {missing} of {summary.verdicts} verdicts are unscored; "
                "run the same command again to score them"
            )
        if summary.left_out:
            warnings.append(f"{label}: records of the dataset were left out for {len(summary.left_out)} problems")
    judges = {summary.manifest.judge.name for summary in summaries.values()}
    has_published_rows = any(table.published_rows for table in tables)
    return warnings + judge_caveats(judges, published_judge, has_published_rows)


def render_table(
    table: Table, glossary: Glossary | None = None, links: DialogueLinks | None = None, number: int = 0
) -> Html:
    """Return a table with its notes and the legend of its columns. `links` lead from its groups and from the cells of
    table `number` to their dialogues."""
    terms = glossary or {}
    columns = order_for_screen(table)
    ranks = rank_cells(table)
    rows: list[Html] = []
    is_first_published = True
    group = ""
    for row in table.rows:
        class_ = "ours"
        if row.kind == "published":
            class_ = "theirs first-theirs" if is_first_published else "theirs"
            is_first_published = False
        if row.group != group:
            group = row.group
            rows.append(tag("tr", tag("th", inline_text(group), scope="colgroup", colspan=str(len(columns) + 1))))
        rows.append(_render_row(table, row, ranks, class_, links, number))
    heads = [tag("th", explain_name(column, terms), scope="col") for column in columns]
    head = tag("tr", tag("th", ""), heads)
    return join(
        tag("div", tag("table", tag("thead", head), tag("tbody", rows)), class_="scroll", tabindex="0"),
        _render_notes(table, has_ranks=bool(ranks)),
        build_legend(columns, terms),
    )


def _render_row(
    table: Table,
    row: Row,
    ranks: Mapping[tuple[str, str], str],
    class_: str,
    links: DialogueLinks | None,
    number: int,
) -> Html:
    label: Html = inline_text(row.label)
    cell_links: dict[str, str | None] = {}
    if links:
        target = links.by_group.get(row.name.partition(" (")[0])
        if row.kind == "part" and target:
            label = tag("a", label, href=target)
        cell_links = {column: links.of_cell(number, row, column) for column in table.columns}
    cells: list[Html] = []
    for column in order_for_screen(table):
        rank = ranks.get((row.label, column))
        cells.append(_render_cell(row.cells.get(column), table.digits, rank, cell_links.get(column)))
    return tag("tr", tag("th", label, scope="row"), cells, class_=class_)


def _render_notes(table: Table, *, has_ranks: bool) -> Html | None:
    notes: list[str] = []
    if table.note:
        notes.append(table.note)
    if has_ranks:
        notes.append("Best in bold, second underlined.")
    if any(row.arithmetic == "official" for row in table.rows):
        notes.append(ARITHMETIC_NOTE)
    notes += row_notes(table)
    if not notes:
        return None
    return tag("p", _mark_code(" ".join(notes)), class_="soft small")


def _mark_code(text: str) -> list[Html | str]:
    """Return a text with what stands between backticks as code."""
    parts: list[Html | str] = []
    for index, part in enumerate(text.split("`")):
        parts.append(tag("code", part) if index % 2 else part)
    return parts


def _render_cell(cell: Cell | None, digits: int, rank: str | None, link: str | None) -> Html:
    """Return the value, which may lead to its dialogues, and below it the standard deviation and the interval."""
    if cell is None or cell.text:
        return tag("td", tag("span", inline_text(format_cell(cell, digits)), class_=rank))
    below: list[Html] = []
    if cell.standard_deviation is not None:
        below.append(tag("span", f"± {format_number(cell.standard_deviation, digits)}", class_="range"))
    if cell.low is not None and cell.high is not None:
        decimals = cell.decimals(digits)
        low = format_number(cell.low, decimals)
        below.append(tag("span", f"{low} to {format_number(cell.high, decimals)}", class_="range"))
    value = tag("span", format_cell(replace(cell, standard_deviation=None), digits), class_=rank)
    return tag("td", _link_value(value, link), below)


def _link_value(value: Html | str, link: str | None) -> Html | str:
    if not link:
        return value
    return tag("a", value, href=link, class_="behind", title="the dialogues behind this number")


def _comparison_sections(
    comparisons: Sequence[Comparison], glossary: Glossary, links: DialogueLinks
) -> list[PageSection]:
    """Return a section per comparison; many share one section, folded, with the headline difference in sight."""
    sections: list[PageSection] = []
    folded: list[Html] = []
    for number, comparison in enumerate(comparisons, start=1):
        body = _render_comparison(comparison, glossary, links)
        first, second = comparison.names
        if len(comparisons) <= MAX_UNFOLDED:
            sections.append(PageSection(f"compared-{number}", f"Compared: {first} and {second}", body))
            continue
        text = ": the headline score is not compared"
        if (headline := comparison.headline) is not None:
            difference = format_number(headline.difference.value, comparison.digits, sign=True)
            text = f": {difference}, p (Holm) {format_p_value(headline.corrected_p)}"
        summary = tag("summary", inline_text(first), " and ", inline_text(second), text)
        folded.append(tag("details", summary, body))
    if folded:
        sections.append(PageSection("compared", "Compared", join(folded)))
    return sections


def _render_comparison(comparison: Comparison, glossary: Glossary, links: DialogueLinks) -> Html:
    heads = [tag("th", inline_text(name), scope="col", class_="rival") for name in comparison.names]
    heads += [tag("th", text, scope="col") for text in ("difference", "p", "p (Holm)", "pairs")]
    rows = [_render_comparison_row(row, comparison.digits, glossary, links) for row in comparison.rows]
    note = (
        f"Full marks: {comparison.max_score:g}. Turns that both runs have scored; bold where the corrected p is under "
        f"{SIGNIFICANT:g}. 95% intervals and two-sided p-values by dialogue, from one rule (Wilson's score interval "
        f"with cluster-robust errors); Holm over {len(rows)} rows. {comparison.remark}"
    )
    head = tag("thead", tag("tr", tag("th", ""), heads))
    return join(
        [tag("p", text, class_="warning") for text in comparison.notes],
        tag("div", tag("table", head, tag("tbody", rows)), class_="scroll", tabindex="0"),
        tag("p", note, class_="soft small"),
        build_legend([row.name.partition(", ")[0] for row in comparison.rows], glossary),
    )


def _render_comparison_row(row: ComparisonRow, digits: int, glossary: Glossary, links: DialogueLinks) -> Html:
    difference = row.difference
    metric, comma, group = row.name.partition(", ")
    interval = tag("span", format_range(difference.low, difference.high, digits), class_="range")
    texts = {
        FIRST: format_number(row.first, digits),
        SECOND: format_number(row.second, digits),
        DIFFERENCE: format_number(difference.value, digits, sign=True),
    }
    numbers = {column: _link_value(text, links.of_cell(COMPARED, row, column)) for column, text in texts.items()}
    return tag(
        "tr",
        tag("th", explain_name(metric, glossary), comma, inline_text(group), scope="row"),
        tag("td", numbers[FIRST]),
        tag("td", numbers[SECOND]),
        tag("td", numbers[DIFFERENCE], interval),
        tag("td", format_p_value(difference.p)),
        tag("td", format_p_value(row.corrected_p)),
        tag("td", f"{difference.pairs}"),
        class_="ours" if row.corrected_p < SIGNIFICANT else None,
    )


def format_range(low: float | None, high: float | None, digits: int) -> str:
    """Return `-0.1 to +0.2`; a dash without an interval."""
    if low is None or high is None:
        return "-"
    return f"{format_number(low, digits, sign=True)} to {format_number(high, digits, sign=True)}"


def format_p_value(p: float) -> str:
    if p < MIN_P:
        return f"<{MIN_P}"
    return format_number(p, 4)


def _plot_section(plots: Sequence[PlotLinks]) -> PageSection:
    titles: dict[str, str] = {}
    figures: list[Html] = []
    for number, links in enumerate(plots, start=1):
        id_ = f"plot-{number}"
        titles[id_] = links.plot.title
        figures.append(_render_plot(id_, links))
    return PageSection("plots", "Plots", tag("div", figures, class_="plots"), titles)


def _render_plot(id_: str, links: PlotLinks) -> Html:
    plot = links.plot
    formats = [join(" ", tag("a", name, href=href)) for name, href in links.formats.items()]
    dark = tag("source", srcset=links.dark, media="(prefers-color-scheme: dark)")
    image = tag("picture", dark, tag("img", src=links.light, alt=plot.description))
    caption = tag("figcaption", plot.title, formats)
    return tag("figure", image, caption, id=id_, class_="wide" if plot.wide else None)


def _render_settings(label: str, summary: Summary) -> Html:
    manifest = msgspec.json.format(msgspec.json.encode(summary.manifest), indent=2).decode()
    return tag("details", tag("summary", inline_text(label)), tag("pre", manifest, dir="ltr"))
