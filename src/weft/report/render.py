"""One set of tables in every text format."""

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
from weft.types import Table
from weft.untrusted import escape_control_characters


def render(
    tables: Sequence[Table],
    runs: Sequence[Summary],
    format: str,
    chosen: Choices = Choices(),
    benchmark: Benchmark | None = None,
) -> str:
    """The tables that are chosen, as text."""
    if format not in FORMATS:
        raise UserError(f"unknown format {format!r}; there are {', '.join(FORMATS)}")
    some = select_tables(tables, chosen)
    if format == "latex":
        if benchmark is not None:
            about = (benchmark.name, published_judge_of(benchmark))
        else:
            about = ("", "")
        return escape_control_characters(render_latex(some, runs, chosen, *about))
    return escape_control_characters(MAKERS[format](list(some.values()), runs))


def _markdown(tables: Sequence[Table], runs: Sequence[Summary]) -> str:
    title = ", ".join(summary.run for summary in runs) or (
        "weft" if any(table.run_rows for table in tables) else "Published results"
    )
    out: list[str] = [f"# {title}", ""]
    for summary in runs:
        out += [f"- {_md(line)}" for line in summary.lines] + [""]
    for table in tables:
        out += [
            f"## {_md(table.title)}",
            "",
            f"| | {' | '.join(table.columns)} |",
            "| --- |" + " ---: |" * len(table.columns),
        ]
        for row in table.rows:
            values = [format_with_interval(row.cells.get(column), table.digits) for column in table.columns]
            if row.kind == "published":
                label = _md(row.label)
            else:
                label = f"**{_md(row.label)}**"
            out.append(f"| {label} | {' | '.join(values)} |")
        out += ["", *([table.note, ""] if table.note else [])]
    return "\n".join(out)


def _md(text: str) -> str:
    """Text from models and datasets must not become markup."""
    for char in "\\|*_`<>[]#":
        if char not in "<>":
            text = text.replace(char, "\\" + char)
        else:
            text = text.replace(char, "&lt;" if char == "<" else "&gt;")
    return " ".join(text.split())


def _csv(tables: Sequence[Table], runs: Sequence[Summary]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    over = any(
        cell.standard_deviation is not None for table in tables for row in table.rows for cell in row.cells.values()
    )
    writer.writerow(
        [
            "table",
            "row",
            "published",
            "column",
            "value",
            "low",
            "high",
            "scored",
            "due",
            *(["deviation"] if over else []),
        ]
    )
    for table in tables:
        for row in table.rows:
            for column in table.columns:
                cell = row.cells.get(column)
                if cell is not None and (cell.value is not None or cell.expected):
                    if cell.count:
                        digits = 0
                    else:
                        if cell.digits is None:
                            digits = table.digits
                        else:
                            digits = cell.digits
                    values = ["" if one is None else f"{one:.{digits}f}" for one in (cell.value, cell.low, cell.high)]
                    place = [
                        escape_formula(table.title),
                        escape_formula(row.label),
                        int(row.kind == "published"),
                        column,
                    ]
                    more = (
                        ["" if cell.standard_deviation is None else f"{cell.standard_deviation:.{digits}f}"]
                        if over
                        else []
                    )
                    writer.writerow([*place, *values, cell.scored, cell.expected, *more])
    return out.getvalue()


def escape_formula(text: str) -> str:
    """A spreadsheet must not take a name for a formula."""
    if text[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return "'" + text
    return text


def _json(tables: Sequence[Table], runs: Sequence[Summary]) -> str:
    made: dict[str, Any] = {"runs": runs, "tables": tables_for_json(tables)}
    return msgspec.json.format(msgspec.json.encode(made, order="deterministic"), indent=2).decode() + "\n"


MAKERS: dict[str, Callable[[Sequence[Table], Sequence[Summary]], str]] = {"md": _markdown, "csv": _csv, "json": _json}
FORMATS = TEXT_FORMATS
