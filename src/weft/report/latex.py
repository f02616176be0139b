"""Tables for a paper. Each is a float with its caption above, and under it what a reader must know: its note, and other
judges. Nothing leaves the page: what is wider than a line is shrunk to it, and what would be unreadable then or longer
than a page, is continued in another float. Best and second are those of the rows that are shown. What it needs is
booktabs and graphicx."""

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
    r"% a table* goes over both columns of a page that has two; where there is one column, it is a table like any other",
)
LABEL = "tab:weft"
COLUMN = 240.0  # points of one column of two
MANY = 16  # floats that LaTeX is left to place by itself

Marks = Mapping[tuple[str, str], str]


def render_latex(
    tables: Mapping[int, Table], runs: Sequence[Summary], chosen: Choices, benchmark: str, published_judge: str
) -> str:
    """`tables` by their numbers, which are in their labels."""
    prefix = chosen.label or LABEL
    if not re.fullmatch(r"[A-Za-z0-9:._/+-]+", prefix):
        raise UserError(f"--label {prefix!r}: a label has letters, digits and : . _ / + - alone")
    stem = "-".join([prefix, *([re.sub(r"[^A-Za-z0-9]+", "-", benchmark)] if benchmark else [])])
    out = [*HEADER, *(_comment(line) for summary in runs for line in summary.lines)]
    floats = [
        one
        for number, table in tables.items()
        for one in _floats(table, number, f"{stem}-{number}", chosen.intervals, published_judge)
    ]
    for count, one in enumerate(floats, 1):
        out += one
        out += (
            [r"\clearpage % LaTeX keeps only so many floats", ""] if count % MANY == 0 and count < len(floats) else [""]
        )
    return "\n".join(out)


def _comment(text: str) -> str:
    return "% " + " ".join(text.split()).encode("ascii", "backslashreplace").decode()


def _floats(table: Table, number: int, label: str, intervals: bool, published_judge: str) -> list[list[str]]:
    best = rank_cells(table)
    below = _below(table, intervals, published_judge)
    plan = plan_layout(table, intervals=intervals, below=len(below))
    pieces = [(columns, rows) for columns in plan.columns for rows in plan.rows]
    made: list[list[str]] = []
    for count, (columns, rows) in enumerate(pieces, 1):
        caption = escape_tex(table.title, breaks=True) + (" (continued)" if count > 1 else "")
        caption += ". Best in bold, second underlined." if best else ""
        if plan.width > COLUMN / MIN_SCALE:
            kind = "table*"
        else:
            kind = "table"
        made.append(
            [
                _comment(
                    f"table {number}: {table.title}" + (f", piece {count} of {len(pieces)}" if len(pieces) > 1 else "")
                ),
                rf"\begin{{{kind}}}[tp]",
                rf"\centering{plan.size.command}\setlength{{\tabcolsep}}{{{plan.size.gap}pt}}",
                *([r"\addtocounter{table}{-1}"] if count > 1 else []),
                rf"\caption{{{caption}}}",
                rf"\label{{{label}{f'-{count}' if count > 1 else ''}}}",
                r"\par\vspace{4pt}",
                r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
                *_tabular(table, plan, columns, rows, best),
                *(
                    [
                        r"\par\vspace{4pt}",
                        rf"\parbox{{\linewidth}}{{\footnotesize\raggedright {escape_tex(below, breaks=True)}}}",
                    ]
                    if below
                    else []
                ),
                rf"\end{{{kind}}}",
            ]
        )
    return made


def _for_readers(note: str, intervals: bool) -> str:
    """A note without what is said to who runs weft, and without what is said of intervals that are not shown."""
    parts = re.split(r"(?<=\.) (?=[A-Z±`])", note)
    return " ".join(part for part in parts if "--" not in part and (intervals or not part.startswith("Intervals ")))


def _below(table: Table, intervals: bool, published_judge: str) -> str:
    told = [_for_readers(table.note, intervals), *table_caveats(table, published_judge)]
    told += [ARITHMETIC_NOTE] if any(row.arithmetic == "official" for row in table.rows) else []
    ranged = intervals and any(format_interval(cell) for row in table.rows for cell in row.cells.values())
    return " ".join(text for text in (*told, "In brackets: 95% intervals." if ranged else "") if text)


def _tabular(table: Table, plan: Layout, columns: Sequence[Column], rows: Sequence[Row], best: Marks) -> list[str]:
    if plan.label_share is None:
        first = "l"
    else:
        first = rf"p{{{plan.label_share}\linewidth}}"
    out = [
        rf"\begin{{tabular}}{{{first}{'r' * len(columns)}}}",
        r"\toprule",
        " & ".join(["", *map(_head, columns)]) + r" \\",
        r"\midrule",
    ]
    before = ""
    for row in rows:
        if row.kind == "published" and before not in ("", "published"):
            out.append(r"\midrule")
        before = row.kind
        if plan.label_share is None:
            label = escape_tex(row.label)
        else:
            label = rf"\raggedright\hangindent=1em {escape_tex(row.label, breaks=True)}"
        cells = [_cell(row.cells.get(one.name), table.digits, one, best.get((row.label, one.name))) for one in columns]
        out.append(" & ".join([label, *cells]) + r" \\")
    return [*out, r"\bottomrule", r"\end{tabular}}"]


def _head(column: Column) -> str:
    return _stack([escape_tex(line) for line in column.head], "b")


def _cell(cell: Cell | None, digits: int, column: Column, mark: str | None) -> str:
    """What a number looks like: the value with its mark, and its interval under it."""
    value = _number(format_cell(cell, digits))
    if mark is not None:
        if mark == "best":
            value = rf"\textbf{{{value}}}"
        else:
            value = rf"\underline{{{value}}}"
    if column.range:
        around = format_interval(cell, digits)
    else:
        around = ""
    return _stack([value, *([rf"{{\scriptsize {_number(around)}}}"] if around else [])], "t")


def _number(text: str) -> str:
    return escape_tex(re.sub(r"-(?=\d)", "−", text))


def _stack(lines: Sequence[str], side: str) -> str:
    if len(lines) == 1:
        return lines[0]
    return rf"\begin{{tabular}}[{side}]{{@{{}}r@{{}}}}" + r" \\ ".join(lines) + r"\end{tabular}"
