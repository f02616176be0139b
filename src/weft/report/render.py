"""One set of tables in every text format."""

import csv
import io
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from weft.benchmarks.base import Benchmark
from weft.errors import UserError
from weft.report.caveats import published_judge
from weft.report.latex import latex
from weft.report.select import TEXTS, Choices, as_json, select, with_range
from weft.results.run import Summary
from weft.types import Table
from weft.untrusted import visible


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
    some = select(tables, chosen)
    if format == "latex":
        about = (benchmark.name, published_judge(benchmark)) if benchmark is not None else ("", "")
        return visible(latex(some, runs, chosen, *about))
    return visible(MAKERS[format](list(some.values()), runs))


def _markdown(tables: Sequence[Table], runs: Sequence[Summary]) -> str:
    title = ", ".join(summary.run for summary in runs) or ("weft" if any(table.ours for table in tables) else "Published results")
    out: list[str] = [f"# {title}", ""]
    for summary in runs:
        out += [f"- {_md(line)}" for line in summary.lines] + [""]
    for table in tables:
        out += [f"## {_md(table.title)}", "", f"| | {' | '.join(table.columns)} |", "| --- |" + " ---: |" * len(table.columns)]
        for row in table.rows:
            values = [with_range(row.cells.get(column), table.digits) for column in table.columns]
            label = _md(row.label) if row.kind == "published" else f"**{_md(row.label)}**"
            out.append(f"| {label} | {' | '.join(values)} |")
        out += ["", *([table.note, ""] if table.note else [])]
    return "\n".join(out)


def _md(text: str) -> str:
    """Text from models and datasets must not become markup."""
    for char in "\\|*_`<>[]#":
        text = text.replace(char, "\\" + char) if char not in "<>" else text.replace(char, "&lt;" if char == "<" else "&gt;")
    return " ".join(text.split())


def _csv(tables: Sequence[Table], runs: Sequence[Summary]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    over = any(cell.deviation is not None for table in tables for row in table.rows for cell in row.cells.values())
    writer.writerow(["table", "row", "published", "column", "value", "low", "high", "scored", "due", *(["deviation"] if over else [])])
    for table in tables:
        for row in table.rows:
            for column in table.columns:
                cell = row.cells.get(column)
                if cell is not None and (cell.value is not None or cell.due):
                    digits = 0 if cell.count else table.digits if cell.digits is None else cell.digits
                    values = ["" if one is None else f"{one:.{digits}f}" for one in (cell.value, cell.low, cell.high)]
                    place = [safe(table.title), safe(row.label), int(row.kind == "published"), column]
                    more = ["" if cell.deviation is None else f"{cell.deviation:.{digits}f}"] if over else []
                    writer.writerow([*place, *values, cell.scored, cell.due, *more])
    return out.getvalue()


def safe(text: str) -> str:
    """A spreadsheet must not take a name for a formula."""
    return "'" + text if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def _json(tables: Sequence[Table], runs: Sequence[Summary]) -> str:
    made: dict[str, Any] = {"runs": runs, "tables": as_json(tables)}
    return msgspec.json.format(msgspec.json.encode(made, order="deterministic"), indent=2).decode() + "\n"


MAKERS: dict[str, Callable[[Sequence[Table], Sequence[Summary]], str]] = {"md": _markdown, "csv": _csv, "json": _json}
FORMATS = TEXTS
