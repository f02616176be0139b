"""Tables for a paper, in LaTeX with booktabs and graphicx.

Each table is a float with its caption above and its notes below. Nothing leaves the page: a table that is wider than a
line is shrunk, and one that would become unreadable, or is longer than a page, continues in another float. Best and
second are those of the rows that are shown."""

import re
from collections.abc import Mapping, Sequence

from weft.errors import UserError
from weft.report.caveats import ARITHMETIC_NOTE, table_caveats
from weft.report.layout import MIN_SCALE, Column, Layout, plan_layout
from weft.report.ranking import rank_cells
from weft.report.select import Choices, format_cell, format_interval
from weft.report.tex import escape_tex
from weft.results.summary import Summary
from weft.types import Cell, Row, Table

HEADER = (
    r"% needs \usepackage{booktabs} and \usepackage{graphicx}; plain ASCII, for pdflatex, xelatex and lualatex",
    r"% a table* spans both columns of a two-column page; on a one-column page it is an ordinary table",
)
DEFAULT_LABEL = "tab:weft"
COLUMN_WIDTH = 240.0  # points of one column of two
MAX_FLOATS = 16  # floats that LaTeX holds before it must place them

Ranks = Mapping[tuple[str, str], str]


def render_latex(
    tables: Mapping[int, Table], runs: Sequence[Summary], choices: Choices, benchmark: str, published_judge: str
) -> str:
    """Return the tables as LaTeX. A table's number is part of its label."""
    prefix = choices.label or DEFAULT_LABEL
    if not re.fullmatch(r"[A-Za-z0-9:._/+-]+", prefix):
        raise UserError(f"--label {prefix!r}: use only letters, digits and : . _ / + -")
    if benchmark:
        prefix += "-" + re.sub(r"[^A-Za-z0-9]+", "-", benchmark)
    lines: list[str] = [*HEADER]
    for summary in runs:
        lines += map(_comment, summary.lines)
    floats: list[list[str]] = []
    for number, table in tables.items():
        floats += _build_floats(table, number, f"{prefix}-{number}", choices.intervals, published_judge)
    for count, float_lines in enumerate(floats, 1):
        lines += float_lines
        if count % MAX_FLOATS == 0 and count < len(floats):
            lines.append(r"\clearpage % LaTeX holds only so many floats")
        lines.append("")
    return "\n".join(lines)


def _comment(text: str) -> str:
    return "% " + " ".join(text.split()).encode("ascii", "backslashreplace").decode()


def _build_floats(table: Table, number: int, label: str, intervals: bool, published_judge: str) -> list[list[str]]:
    ranks = rank_cells(table)
    notes = _build_notes(table, intervals, published_judge)
    layout = plan_layout(table, intervals=intervals, below=len(notes))
    caption = escape_tex(table.title, breaks=True)
    legend = ". Best in bold, second underlined." if ranks else ""
    environment = "table*" if layout.width > COLUMN_WIDTH / MIN_SCALE else "table"
    total = len(layout.columns) * len(layout.rows)
    floats: list[list[str]] = []
    for columns in layout.columns:
        for rows in layout.rows:
            count = len(floats) + 1
            comment = f"table {number}: {table.title}"
            if total > 1:
                comment += f", piece {count} of {total}"
            lines = [_comment(comment), rf"\begin{{{environment}}}[tp]"]
            lines.append(rf"\centering{layout.size.command}\setlength{{\tabcolsep}}{{{layout.size.gap}pt}}")
            if count == 1:
                lines += [rf"\caption{{{caption}{legend}}}", rf"\label{{{label}}}"]
            else:
                lines.append(r"\addtocounter{table}{-1}")
                lines += [rf"\caption{{{caption} (continued){legend}}}", rf"\label{{{label}-{count}}}"]
            lines.append(r"\par\vspace{4pt}")
            lines.append(r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%")
            lines += _build_tabular(table, layout, columns, rows, ranks)
            if notes:
                lines.append(r"\par\vspace{4pt}")
                lines.append(rf"\parbox{{\linewidth}}{{\footnotesize\raggedright {escape_tex(notes, breaks=True)}}}")
            lines.append(rf"\end{{{environment}}}")
            floats.append(lines)
    return floats


def _build_notes(table: Table, intervals: bool, published_judge: str) -> str:
    """Return what a reader of the paper must know of a table."""
    notes = [*_reader_sentences(table.note, intervals), *table_caveats(table, published_judge)]
    if any(row.arithmetic == "official" for row in table.rows):
        notes.append(ARITHMETIC_NOTE)
    if intervals and any(map(_has_interval, table.rows)):
        notes.append("In brackets: 95% intervals.")
    return " ".join(notes)


def _reader_sentences(note: str, intervals: bool) -> list[str]:
    """Return the sentences of a note, without those about weft's options and about intervals that are not printed."""
    sentences: list[str] = []
    for sentence in re.split(r"(?<=\.) (?=[A-Z±`])", note):
        is_about_intervals = sentence.startswith("Intervals ")
        if sentence and "--" not in sentence and (intervals or not is_about_intervals):
            sentences.append(sentence)
    return sentences


def _has_interval(row: Row) -> bool:
    return any(map(format_interval, row.cells.values()))


def _build_tabular(
    table: Table, layout: Layout, columns: Sequence[Column], rows: Sequence[Row], ranks: Ranks
) -> list[str]:
    label_column = "l"
    if layout.label_share is not None:
        label_column = rf"p{{{layout.label_share}\linewidth}}"
    lines = [rf"\begin{{tabular}}{{{label_column}{'r' * len(columns)}}}", r"\toprule"]
    lines += [" & ".join(["", *map(_format_head, columns)]) + r" \\", r"\midrule"]
    previous_kind = ""
    for row in rows:
        if row.kind == "published" and previous_kind not in ("", "published"):
            lines.append(r"\midrule")
        previous_kind = row.kind
        if layout.label_share is None:
            texts = [escape_tex(row.label)]
        else:
            texts = [rf"\raggedright\hangindent=1em {escape_tex(row.label, breaks=True)}"]
        for column in columns:
            rank = ranks.get((row.label, column.name))
            texts.append(_format_cell(row.cells.get(column.name), table.digits, column, rank))
        lines.append(" & ".join(texts) + r" \\")
    return [*lines, r"\bottomrule", r"\end{tabular}}"]


def _format_head(column: Column) -> str:
    return _stack([escape_tex(line) for line in column.head], "b")


def _format_cell(cell: Cell | None, digits: int, column: Column, rank: str | None) -> str:
    """Return the value, marked by its rank, with the interval under it."""
    value = _escape_number(format_cell(cell, digits))
    if rank == "best":
        value = rf"\textbf{{{value}}}"
    elif rank == "second":
        value = rf"\underline{{{value}}}"
    interval = format_interval(cell, digits)
    if not column.range or not interval:
        return value
    return _stack([value, rf"{{\scriptsize {_escape_number(interval)}}}"], "t")


def _escape_number(text: str) -> str:
    return escape_tex(re.sub(r"-(?=\d)", "−", text))


def _stack(lines: Sequence[str], side: str) -> str:
    if len(lines) == 1:
        return lines[0]
    return rf"\begin{{tabular}}[{side}]{{@{{}}r@{{}}}}" + r" \\ ".join(lines) + r"\end{tabular}"
