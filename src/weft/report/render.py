"""Tables in every text format: Markdown, LaTeX, CSV and JSON."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from weft.benchmarks.base import Benchmark
from weft.errors import UserError
from weft.report.caveats import ARITHMETIC_NOTE, published_judge_of, row_notes
from weft.report.csv_table import format_csv
from weft.report.glossary import Glossary, find_terms
from weft.report.latex import render_latex
from weft.report.select import TEXT_FORMATS, Choices, format_with_interval, select_tables, tables_for_json
from weft.results.summary import Summary, describe_runs
from weft.rounding import format_number
from weft.types import Cell, Row, Table
from weft.untrusted import escape_control_characters

MAX_TITLE_RUNS = 3  # whose ids are the heading of a page of Markdown
CSV_COUNTS = ("scored", "expected", "unusable", "not_asked")
CSV_COLUMNS = ("table", "row", "published", "column", "value", "low", "high", *CSV_COUNTS)
MARKDOWN_ESCAPES = {ord(char): f"\\{char}" for char in "\\|*_`[]#"} | {ord("<"): "&lt;", ord(">"): "&gt;"}


def render(
    tables: Sequence[Table],
    runs: Sequence[Summary],
    format: str,
    choices: Choices = Choices(),
    benchmark: Benchmark | None = None,
) -> str:
    """Return the chosen tables as text, with what must be known of the runs. No control character comes through."""
    if format not in FORMATS:
        raise UserError(f"unknown format {format!r}; there are {', '.join(FORMATS)}")
    selected = select_tables(tables, choices)
    glossary: Glossary = {} if benchmark is None else benchmark.presentation.glossary
    if format != "latex":
        return escape_control_characters(RENDERERS[format](list(selected.values()), runs, glossary))
    name = ""
    judge = ""
    if benchmark is not None:
        name = benchmark.name
        judge = published_judge_of(benchmark)
    whole = dict(enumerate(tables, 1))
    return escape_control_characters(render_latex(selected, whole, runs, choices, name, judge))


def _render_markdown(tables: Sequence[Table], runs: Sequence[Summary], glossary: Glossary) -> str:
    title = _markdown_title(tables, runs)
    lines: list[str] = [f"# {title}", ""] if title else []
    provenance = runs[0].lines if len(runs) == 1 else describe_runs(runs)
    lines += [f"- {_escape_markdown(line)}" for line in provenance]
    if runs:
        lines.append("")
    for table in tables:
        lines += [f"## {_escape_markdown(table.title)}", ""]
        lines.append(f"| | {' | '.join(map(_escape_markdown, table.columns))} |")
        lines.append("| --- |" + " ---: |" * len(table.columns))
        group = ""
        for row in table.rows:
            if row.group != group:
                group = row.group
                lines.append(f"| *{_escape_markdown(group)}* |" + " |" * len(table.columns))
            label = _escape_markdown(row.label)
            if row.kind != "published":
                label = f"**{label}**"
            values = [format_with_interval(row.cells.get(column), table.digits) for column in table.columns]
            if any(cell.text for cell in row.cells.values()):
                values = _escape_words(row, table.columns, values)
            lines.append(f"| {label} | {' | '.join(values)} |")
        lines.append("")
        notes = [*filter(None, [table.note]), *map(_escape_markdown, row_notes(table))]
        if notes:
            lines += [" ".join(notes), ""]
        if any(row.arithmetic == "official" for row in table.rows):
            lines += [ARITHMETIC_NOTE, ""]
        terms = find_terms(table.columns, glossary)
        lines += [f"- {_escape_markdown(f'{term}: {meaning}')}" for term, meaning in terms.items()]
        if terms:
            lines.append("")
    return "\n".join(lines)


def _escape_words(row: Row, columns: Sequence[str], texts: Sequence[str]) -> list[str]:
    """Return the texts of a row's cells; in words that stand in place of numbers nothing is markup."""
    escaped: list[str] = []
    for column, text in zip(columns, texts, strict=True):
        has_words = bool(row.cells.get(column, Cell(None)).text)
        escaped.append(_escape_markdown(text) if has_words else text)
    return escaped


def _markdown_title(tables: Sequence[Table], runs: Sequence[Summary]) -> str:
    """Return the heading; an empty text above tables that say themselves what they are of."""
    if len(runs) > MAX_TITLE_RUNS:
        names = dict.fromkeys(summary.manifest.benchmark.name for summary in runs)
        return f"{', '.join(names)}: {len(runs)} runs"
    if runs:
        return ", ".join(summary.run for summary in runs)
    if any(table.run_rows for table in tables):
        return ""
    return "Published results"


def without_page_title(page: str) -> str:
    """Return a page in Markdown without the heading of the whole page, where it has one."""
    return page.partition("\n\n")[2] if page.startswith("# ") else page


def _escape_markdown(text: str) -> str:
    """Return text of models and datasets on one line, in which nothing is markup."""
    return " ".join(text.translate(MARKDOWN_ESCAPES).split())


def _render_csv(tables: Sequence[Table], runs: Sequence[Summary], glossary: Glossary) -> str:
    columns: tuple[str, ...] = CSV_COLUMNS
    has_deviation = _has_standard_deviation(tables)
    if has_deviation:
        columns = (*CSV_COLUMNS, "standard_deviation")
    records: list[tuple[Any, ...]] = []
    for table in tables:
        for row in table.rows:
            for column in table.columns:
                cell = row.cells.get(column)
                if cell is None or (cell.value is None and not cell.expected):  # a number that is not there, or words
                    continue
                digits = cell.decimals(table.digits)
                values = [_format_number(number, digits) for number in (cell.value, cell.low, cell.high)]
                deviation: tuple[str, ...] = ()
                if has_deviation:
                    deviation = (_format_number(cell.standard_deviation, digits),)
                is_published = int(row.kind == "published")
                counts = (cell.scored, cell.expected, cell.unusable, cell.not_asked)
                records.append((table.title, row.label, is_published, column, *values, *counts, *deviation))
    return format_csv(columns, records)


def _has_standard_deviation(tables: Sequence[Table]) -> bool:
    for table in tables:
        for row in table.rows:
            if any(cell.standard_deviation is not None for cell in row.cells.values()):
                return True
    return False


def _format_number(number: float | None, digits: int) -> str:
    if number is None:
        return ""
    return format_number(number, digits)


def _render_json(tables: Sequence[Table], runs: Sequence[Summary], glossary: Glossary) -> str:
    document: dict[str, Any] = {"runs": runs, "tables": tables_for_json(tables)}
    encoded = msgspec.json.encode(document, order="deterministic")
    return msgspec.json.format(encoded, indent=2).decode() + "\n"


RENDERERS: dict[str, Callable[[Sequence[Table], Sequence[Summary], Glossary], str]] = {
    "md": _render_markdown,
    "csv": _render_csv,
    "json": _render_json,
}
FORMATS = TEXT_FORMATS
