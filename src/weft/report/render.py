"""One set of tables in every format. A cell shows its value; where items behind it are unscored, how many of how many stand behind it."""

import csv
import io
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from weft.errors import UserError
from weft.outside import visible
from weft.report.marks import marks
from weft.runs import Summary
from weft.types import Cell, Table

LATEX = {
    "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}", "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip


def shown(cell: Cell | None, digits: int = 3) -> str:
    if cell is None or (cell.value is None and not cell.due):
        return "-"
    value = "unscored" if cell.value is None else f"{cell.value:.{0 if cell.count else digits}f}"
    return value if cell.scored == cell.due else f"{value} ({cell.scored}/{cell.due})"


def with_range(cell: Cell | None, digits: int = 3) -> str:
    """The value with its 95% interval."""
    if cell is None or cell.low is None or cell.high is None or cell.value is None:
        return shown(cell, digits)
    return f"{shown(cell, digits)} [{cell.low:.{digits}f}, {cell.high:.{digits}f}]"


def render(tables: Sequence[Table], runs: Sequence[Summary], format: str) -> str:
    if format not in FORMATS:
        raise UserError(f"unknown format {format!r}; there are {', '.join(FORMATS)}")
    return visible(FORMATS[format](tables, runs))


def _markdown(tables: Sequence[Table], runs: Sequence[Summary]) -> str:
    out: list[str] = ["# " + (", ".join(summary.run for summary in runs) or "Published results"), ""]
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


def _latex(tables: Sequence[Table], runs: Sequence[Summary]) -> str:
    out: list[str] = ["% needs \\usepackage{booktabs}"]
    for summary in runs:
        out += [f"% {' '.join(line.split())}" for line in summary.lines]
    for table in tables:
        out += [
            r"\begin{table}",
            r"\centering",
            r"\small" if len(table.columns) < 7 else r"\scriptsize",
            rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
            r"\toprule",
        ]
        out += [" & ".join(["", *map(_tex, table.columns)]) + r" \\", r"\midrule"]
        ours, best = True, marks(table)
        for row in table.rows:
            if ours and row.kind == "published":
                ours = False
                out.append(r"\midrule")
            cells = {column: shown(row.cells.get(column), table.digits) for column in table.columns}
            values = [_marked(_tex(cell), best.get((row.label, column))) for column, cell in cells.items()]
            out.append(" & ".join([_tex(row.label), *values]) + r" \\")
        caption = _tex(table.title) + (". Best in bold, second underlined." if best else "")
        out += [r"\bottomrule", r"\end{tabular}", rf"\caption{{{caption}}}", r"\end{table}", ""]
    return "\n".join(out)


def _marked(text: str, mark: str | None) -> str:
    return text if mark is None else rf"\textbf{{{text}}}" if mark == "best" else rf"\underline{{{text}}}"


def _tex(text: str) -> str:
    return "".join(LATEX.get(char, char) for char in visible(" ".join(text.split())))


def _csv(tables: Sequence[Table], runs: Sequence[Summary]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["table", "row", "published", "column", "value", "low", "high", "scored", "due"])
    for table in tables:
        for row in table.rows:
            for column in table.columns:
                cell = row.cells.get(column)
                if cell is not None and (cell.value is not None or cell.due):
                    digits = 0 if cell.count else table.digits
                    values = ["" if one is None else f"{one:.{digits}f}" for one in (cell.value, cell.low, cell.high)]
                    place = [_safe(table.title), _safe(row.label), int(row.kind == "published"), column]
                    writer.writerow([*place, *values, cell.scored, cell.due])
    return out.getvalue()


def _safe(text: str) -> str:
    """A spreadsheet must not take a name for a formula."""
    return "'" + text if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def _json(tables: Sequence[Table], runs: Sequence[Summary]) -> str:
    made: dict[str, Any] = {"runs": runs, "tables": tables}
    return msgspec.json.format(msgspec.json.encode(made, order="deterministic"), indent=2).decode() + "\n"


FORMATS: dict[str, Callable[[Sequence[Table], Sequence[Summary]], str]] = {
    "md": _markdown,
    "latex": _latex,
    "csv": _csv,
    "json": _json,
}
