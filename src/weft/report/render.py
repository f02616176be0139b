"""Tables in every text format: Markdown, LaTeX, CSV and JSON."""

import csv
import io
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from weft.benchmarks.base import Benchmark
from weft.errors import UserError
from weft.report.caveats import published_judge_of
from weft.report.latex import render_latex
from weft.report.select import TEXT_FORMATS, Choices, format_with_interval, select_tables, tables_for_json
from weft.results.summary import Summary
from weft.types import Cell, Table
from weft.untrusted import escape_control_characters

CSV_COLUMNS = ("table", "row", "published", "column", "value", "low", "high", "scored", "expected")
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
    if format != "latex":
        return escape_control_characters(RENDERERS[format](list(selected.values()), runs))
    if benchmark is None:
        text = render_latex(selected, runs, choices, "", "")
    else:
        text = render_latex(selected, runs, choices, benchmark.name, published_judge_of(benchmark))
    return escape_control_characters(text)


def _render_markdown(tables: Sequence[Table], runs: Sequence[Summary]) -> str:
    lines: list[str] = [f"# {_markdown_title(tables, runs)}", ""]
    for summary in runs:
        lines += [f"- {_escape_markdown(line)}" for line in summary.lines]
        lines.append("")
    for table in tables:
        lines += [f"## {_escape_markdown(table.title)}", ""]
        lines.append(f"| | {' | '.join(table.columns)} |")
        lines.append("| --- |" + " ---: |" * len(table.columns))
        for row in table.rows:
            label = _escape_markdown(row.label)
            if row.kind != "published":
                label = f"**{label}**"
            values = [format_with_interval(row.cells.get(column), table.digits) for column in table.columns]
            lines.append(f"| {label} | {' | '.join(values)} |")
        lines.append("")
        if table.note:
            lines += [table.note, ""]
    return "\n".join(lines)


def _markdown_title(tables: Sequence[Table], runs: Sequence[Summary]) -> str:
    if runs:
        return ", ".join(summary.run for summary in runs)
    if any(table.run_rows for table in tables):
        return "weft"
    return "Published results"


def _escape_markdown(text: str) -> str:
    """Return text of models and datasets on one line, in which nothing is markup."""
    return " ".join(text.translate(MARKDOWN_ESCAPES).split())


def _render_csv(tables: Sequence[Table], runs: Sequence[Summary]) -> str:
    has_deviation = _has_standard_deviation(tables)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    if has_deviation:
        writer.writerow((*CSV_COLUMNS, "standard_deviation"))
    else:
        writer.writerow(CSV_COLUMNS)
    for table in tables:
        for row in table.rows:
            prefix = (escape_formula(table.title), escape_formula(row.label), int(row.kind == "published"))
            for column in table.columns:
                cell = row.cells.get(column)
                if cell is None or (cell.value is None and not cell.expected):
                    continue
                digits = _cell_digits(cell, table.digits)
                values = [_format_number(number, digits) for number in (cell.value, cell.low, cell.high)]
                record = [*prefix, column, *values, cell.scored, cell.expected]
                if has_deviation:
                    record.append(_format_number(cell.standard_deviation, digits))
                writer.writerow(record)
    return out.getvalue()


def _has_standard_deviation(tables: Sequence[Table]) -> bool:
    for table in tables:
        for row in table.rows:
            if any(cell.standard_deviation is not None for cell in row.cells.values()):
                return True
    return False


def _cell_digits(cell: Cell, table_digits: int) -> int:
    if cell.count:
        return 0
    if cell.digits is None:
        return table_digits
    return cell.digits


def _format_number(number: float | None, digits: int) -> str:
    if number is None:
        return ""
    return f"{number:.{digits}f}"


def escape_formula(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula."""
    if text[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return "'" + text
    return text


def _render_json(tables: Sequence[Table], runs: Sequence[Summary]) -> str:
    document: dict[str, Any] = {"runs": runs, "tables": tables_for_json(tables)}
    encoded = msgspec.json.encode(document, order="deterministic")
    return msgspec.json.format(encoded, indent=2).decode() + "\n"


RENDERERS: dict[str, Callable[[Sequence[Table], Sequence[Summary]], str]] = {
    "md": _render_markdown,
    "csv": _render_csv,
    "json": _render_json,
}
FORMATS = TEXT_FORMATS
