"""Tables for a paper, in LaTeX with booktabs, and graphicx where a table may have to shrink.

Each table is a float with its caption above and its notes below. A small table is one column wide; nothing leaves the
page: a table that is wider than a line is shrunk, and one that would become unreadable, or is longer than a page,
continues in another float. Best and second are those of the rows that are shown, or of those that compete."""

import re
from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from weft.errors import UserError
from weft.report.latex_notes import PAPER_TABLE, Ranks, build_notes, describe_ranks, mark_published
from weft.report.layout import COLUMN_WIDTH, MIN_SCALE, Column, Layout, plan_layout, span_columns, width_in_em
from weft.report.ranking import DEFAULT_RANKS, rank_cells
from weft.report.select import Choices, format_cell, format_interval, select_rivals
from weft.report.tex import escape_tex
from weft.results.summary import Summary, describe_runs
from weft.types import Cell, Row, Table

DEFAULT_LABEL = "tab:weft"
MAX_ABOUT = 40  # characters of a title in a label
MAX_FLOATS = 16  # floats that LaTeX holds before it must place them
RESIZE = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"


class PaperTable(Struct, frozen=True):
    """A table with what is printed around it."""

    number: int  # among the tables of the report
    table: Table
    caption: str  # in LaTeX
    label: str
    notes: Sequence[str]  # in LaTeX
    ranks: Ranks
    mark: str  # after the name of a published row, in LaTeX
    layout: Layout


def render_latex(
    tables: Mapping[int, Table],
    whole: Mapping[int, Table],
    runs: Sequence[Summary],
    choices: Choices,
    benchmark: str,
    published_judge: str,
) -> str:
    """Return the tables as LaTeX. `whole`: all tables, before rows and columns were chosen."""
    _check_choices(tables, choices)
    rivals = select_rivals(tables, choices.rank)
    floats: list[list[str]] = []
    for number, table in tables.items():
        label = _label_of(number, len(tables), choices.label, benchmark or table.title)
        floats += _build_floats(_plan(number, table, whole[number], label, choices, rivals, published_judge))
    lines = _header([line for float_lines in floats for line in float_lines])
    lines += map(_comment, describe_runs(runs))
    for count, float_lines in enumerate(floats, 1):
        lines += float_lines
        if count % MAX_FLOATS == 0 and count < len(floats):
            lines.append(r"\clearpage % LaTeX holds only so many floats")
        lines.append("")
    return "\n".join(lines)


def _check_choices(tables: Mapping[int, Table], choices: Choices) -> None:
    """Raise UserError for a label, a caption or a citation key that LaTeX cannot take."""
    for name, value in (("label", choices.label), ("cite", choices.cite)):
        if value and not re.fullmatch(r"[A-Za-z0-9:._/+,-]+", value):
            raise UserError(f"--{name} {value!r}: use only letters, digits and : . _ / + -")
    caption = choices.caption
    if caption and len(tables) > 1:
        raise UserError(f"--caption is for one table, and {len(tables)} are shown: add --tables with one number")
    special = re.search(r"(?<!\\)(?:\\\\)*([%#&])", caption)
    if special:
        raise UserError(f"--caption is LaTeX: write \\{special.group(1)} for {special.group(1)}")
    bare = re.sub(r"\\.", "", caption)
    if bare.count("{") != bare.count("}") or caption.endswith("\\"):
        raise UserError("--caption is LaTeX: its braces are not in pairs, or it ends in a backslash")


def _label_of(number: int, count: int, label: str, about: str) -> str:
    """Return the label of a table. A single table has the label that was chosen; else it begins with that. `about`: the
    benchmark or the table's title, so that tables of several files have labels of their own."""
    if label and count == 1:
        return label
    words = re.sub(r"[^A-Za-z0-9]+", "-", about).strip("-")[:MAX_ABOUT].strip("-")
    return "-".join(filter(None, (label or DEFAULT_LABEL, words.lower(), str(number))))


def _header(lines: Sequence[str]) -> list[str]:
    """Return comments on what the floats need."""
    packages = r"\usepackage{booktabs}"
    if RESIZE in lines:
        packages += r" and \usepackage{graphicx}"
    header = [f"% needs {packages}; plain ASCII, for pdflatex, xelatex and lualatex"]
    if any(line.startswith(r"\begin{table*}") for line in lines):
        header.append(
            "% a table* spans both columns of a two-column page; on a one-column page it is an ordinary table"
        )
    return header


def _comment(text: str) -> str:
    return "% " + " ".join(text.split()).encode("ascii", "backslashreplace").decode()


def _plan(
    number: int,
    table: Table,
    whole: Table,
    label: str,
    choices: Choices,
    rivals: Collection[str] | None,
    published_judge: str,
) -> PaperTable:
    ranks = rank_cells(table, rivals, choices.top or DEFAULT_RANKS)
    legend = describe_ranks(table, ranks, choices.rank)
    caption = choices.caption
    if not caption:
        caption = escape_tex(PAPER_TABLE.sub("", table.title), breaks=True)
        if legend:
            caption += f". {escape_tex(legend)}."
            legend = ""
    notes = build_notes(
        table, whole, intervals=choices.intervals, judge=published_judge, cite=choices.cite, legend=legend
    )
    mark = mark_published(table, choices.cite)
    layout = plan_layout(
        table,
        intervals=choices.intervals,
        below=sum(map(len, notes)),
        mark=width_in_em("[00]" if choices.cite else "*") if mark else 0.0,
    )
    return PaperTable(number, table, caption, label, notes, ranks, mark, layout)


def _build_floats(paper: PaperTable) -> list[list[str]]:
    layout = paper.layout
    environment = "table"
    if not layout.is_narrow and layout.width > COLUMN_WIDTH / MIN_SCALE:
        environment = "table*"
    total = len(layout.columns) * len(layout.rows)
    floats: list[list[str]] = []
    for columns in layout.columns:
        for rows in layout.rows:
            count = len(floats) + 1
            comment = f"table {paper.number}: {paper.table.title}"
            if total > 1:
                comment += f", piece {count} of {total}"
            lines = [_comment(comment), rf"\begin{{{environment}}}[tp]"]
            lines.append(rf"\centering{layout.size.command}\setlength{{\tabcolsep}}{{{layout.size.gap}pt}}")
            if count == 1:
                lines += [rf"\caption{{{paper.caption}}}", rf"\label{{{paper.label}}}"]
            else:
                lines.append(r"\addtocounter{table}{-1}")
                lines += [rf"\caption{{{paper.caption} (continued)}}", rf"\label{{{paper.label}-{count}}}"]
            lines.append(r"\par\vspace{4pt}")
            tabular = _build_tabular(paper, columns, rows)
            if layout.is_narrow:
                lines += tabular
            else:
                lines += [RESIZE, *tabular[:-1], tabular[-1] + "}"]
            if paper.notes:
                lines.append(r"\par\vspace{4pt}")
                lines.append(rf"\parbox{{\linewidth}}{{\footnotesize\raggedright {' '.join(paper.notes)}}}")
            lines.append(rf"\end{{{environment}}}")
            floats.append(lines)
    return floats


def _build_tabular(paper: PaperTable, columns: Sequence[Column], rows: Sequence[Row]) -> list[str]:
    layout = paper.layout
    label_column = "l"
    if layout.label_share is not None:
        label_column = rf"p{{{layout.label_share}\linewidth}}"
    lines = [rf"\begin{{tabular}}{{{label_column}{'r' * len(columns)}}}", r"\toprule"]
    lines += _build_head(columns)
    previous_kind = ""
    group = ""
    for row in rows:
        if row.group != group:
            if previous_kind:
                lines.append(r"\midrule")
            group = row.group
            previous_kind = ""
            lines.append(rf"\multicolumn{{{len(columns) + 1}}}{{l}}{{\textit{{{escape_tex(group)}}}}} \\")
        if row.kind == "published" and previous_kind not in ("", "published"):
            lines.append(r"\midrule")
        previous_kind = row.kind
        texts = [_format_label(row, paper)]
        for column in columns:
            rank = paper.ranks.get((row.label, column.name))
            texts.append(_format_cell(row.cells.get(column.name), paper.table.digits, column, rank))
        lines.append(" & ".join(texts) + r" \\")
    return [*lines, r"\bottomrule", r"\end{tabular}"]


def _build_head(columns: Sequence[Column]) -> list[str]:
    """Return the names of the columns, below the headers of their groups."""
    lines: list[str] = []
    if any(column.group for column in columns):
        texts = [""]
        rules: list[str] = []
        position = 2  # of a column in the table; the first has the labels
        for header, members in span_columns(columns):
            if not members[0].group:
                texts += [""] * len(members)
            else:
                text = _stack([escape_tex(line) for line in header], "b", "c")
                texts.append(rf"\multicolumn{{{len(members)}}}{{c}}{{{text}}}")
                rules.append(rf"\cmidrule(lr){{{position}-{position + len(members) - 1}}}")
            position += len(members)
        lines += [" & ".join(texts) + r" \\", "".join(rules)]
    return [*lines, " & ".join(["", *map(_format_head, columns)]) + r" \\", r"\midrule"]


def _format_label(row: Row, paper: PaperTable) -> str:
    mark = paper.mark if row.kind == "published" else ""
    if paper.layout.label_share is None:
        return escape_tex(row.label) + mark
    return rf"\raggedright\hangindent=1em {escape_tex(row.label, breaks=True)}{mark}"


def _format_head(column: Column) -> str:
    return _stack([escape_tex(line) for line in column.head], "b")


def _format_cell(cell: Cell | None, digits: int, column: Column, rank: str | None) -> str:
    """Return the value, marked by its rank, with the interval under it."""
    if cell is not None and cell.text:
        return escape_tex(cell.text)
    value = _escape_number(format_cell(cell, digits))
    if rank == "best":
        value = rf"\textbf{{{value}}}"
    elif rank == "second":
        value = rf"\underline{{{value}}}"
    elif rank == "third":
        value = rf"\textit{{{value}}}"
    interval = format_interval(cell, digits)
    if not column.range or not interval:
        return value
    return _stack([value, rf"{{\scriptsize {_escape_number(interval)}}}"], "t")


def _escape_number(text: str) -> str:
    return escape_tex(re.sub(r"-(?=\d)", "−", text))


def _stack(lines: Sequence[str], side: str, align: str = "r") -> str:
    if len(lines) == 1:
        return lines[0]
    return rf"\begin{{tabular}}[{side}]{{@{{}}{align}@{{}}}}" + r" \\ ".join(lines) + r"\end{tabular}"
