"""What stands under a table of a paper: only what is about rows, columns and marks that the table shows.

Notes of tables are written for whole tables. A sentence about published rows goes where there are none, the example of
an incomplete cell where all are complete, the meaning of a column where it is not shown."""

import re
from collections.abc import Collection, Mapping, Sequence

from weft.report.caveats import ARITHMETIC_NOTE, row_notes, table_caveats
from weft.report.ranking import part_of
from weft.report.select import format_interval
from weft.report.tex import escape_tex
from weft.types import Cell, Row, Table

DAGGER = r"$^{\dagger}$"
PAPER_TABLE = re.compile(r" \(paper, (Tables? [^)]*)\)")
WITH_INTERVALS = re.compile(r", with 95% intervals( by dialogue)?")
INTERVALS = ("Intervals ", "95% intervals ", "A correlation without interval")  # how sentences about them begin
SENTENCE_END = re.compile(r"(?<=\.) (?=[A-Z±`]|95%|[a-z]+: )")
INCOMPLETE = re.compile(r"A cell `[^`]*\(\d+/\d+\)`")
Ranks = Mapping[tuple[str, str], str]


def build_notes(table: Table, whole: Table, *, intervals: bool, judge: str, cite: str, legend: str) -> list[str]:
    """Return the notes in LaTeX. `whole`: the table before rows and columns were chosen. `judge`: of published rows."""
    sentences = [*_relevant_sentences(table, whole, intervals=intervals), *table_caveats(table, judge)]
    if any(row.arithmetic == "official" for row in table.rows):
        sentences.append(ARITHMETIC_NOTE)
    sentences += row_notes(table)
    if intervals and any(map(_has_interval, table.rows)):
        sentences.append("In brackets: 95% intervals.")
    if legend:
        sentences.append(f"{legend}.")
    notes = [escape_tex(sentence, breaks=True) for sentence in sentences]
    return [note for note in (describe_source(table, cite), *notes) if note]


def describe_source(table: Table, cite: str) -> str:
    """Return where the published rows are from, in LaTeX."""
    if not table.published_rows:
        return ""
    source = "as published"
    printed = PAPER_TABLE.search(table.title)
    if printed is not None:
        source += f" ({escape_tex(printed.group(1))} of the benchmark's paper)"
    if cite:
        source += rf"~\cite{{{cite}}}"
    if not table.run_rows:
        return f"All rows {source}."
    if cite:
        return f"Rows with a citation: {source}."
    return f"{DAGGER} {source[0].upper()}{source[1:]}."


def mark_published(table: Table, cite: str) -> str:
    """Return what follows the name of a published row, in LaTeX. A table of them alone needs no mark."""
    if not table.run_rows or not table.published_rows:
        return ""
    return rf"~\cite{{{cite}}}" if cite else DAGGER


def describe_ranks(table: Table, ranks: Ranks, rank: Sequence[str]) -> str:
    """Return what bold and underlined mean, without a full stop; an empty text if nothing is ranked."""
    if not ranks:
        return ""
    text = "Best in bold"
    if "second" in ranks.values():
        text += ", second underlined"
    if "third" in ranks.values():
        text += ", third in italics"
    if list(rank) == ["ours"]:
        text += ", among our rows"
    elif list(rank) == ["published"]:
        text += ", among published rows"
    elif rank:
        text += f", among {', '.join(rank)}"
    labels = {label for label, _ in ranks}
    parts = dict.fromkeys(part_of(table, row) for row in table.rows if row.label in labels)
    if len(parts) > 1:
        text += f"; separately for {', '.join(parts)}"
    return text


def _relevant_sentences(table: Table, whole: Table, *, intervals: bool) -> list[str]:
    absent = _absent_names(table, whole)
    note = table.note if intervals else WITH_INTERVALS.sub("", table.note)
    sentences: list[str] = []
    for sentence in _split_sentences(note):
        if sentence and "--" not in sentence and _is_relevant(sentence, table, intervals=intervals):
            clauses = [clause for clause in sentence.rstrip(".").split("; ") if not _defines(clause, absent)]
            if not intervals:
                clauses = [clause for clause in clauses if not clause.endswith("in the intervals")]
            if clauses:
                sentences.append("; ".join(clauses) + ".")
    return sentences


def _split_sentences(note: str) -> list[str]:
    """Return the sentences. A single word before a definition belongs to its name, as in `Align. held: ...`."""
    sentences: list[str] = []
    for piece in SENTENCE_END.split(note):
        if sentences and " " not in sentences[-1] and piece[:1].islower():
            sentences[-1] += f" {piece}"
        else:
            sentences.append(piece)
    return sentences


def _is_relevant(sentence: str, table: Table, *, intervals: bool) -> bool:
    """Whether a sentence is about something that the table shows. Sentences about weft's options are not."""
    if sentence.startswith("Published rows"):
        return bool(table.published_rows)
    if sentence.startswith(INTERVALS):
        return intervals
    if sentence.startswith("A cell `not asked"):
        return any(cell.not_asked for cell in _cells(table))
    if INCOMPLETE.match(sentence):
        return any(cell.value is not None and cell.scored != cell.expected for cell in _cells(table))
    if sentence.startswith("±"):
        return any(cell.standard_deviation is not None for cell in _cells(table))
    if sentence.startswith("A dash"):
        return any(_is_dash(row.cells.get(column)) for row in table.rows for column in table.columns)
    if sentence in ("Outputs are missing.", "Images are missing."):
        return any(row.arithmetic == "official" for row in table.rows)
    return True


def _absent_names(table: Table, whole: Table) -> set[str]:
    """Return the columns, and the parts of runs, that were not chosen."""
    columns = set(whole.columns) - set(table.columns)
    parts = {part_of(whole, row) for row in whole.rows} - {part_of(table, row) for row in table.rows}
    return columns | parts - {""}


def _defines(clause: str, absent: Collection[str]) -> bool:
    """Whether a clause says what one of these names means."""
    text = clause.removeprefix("`")
    for name in absent:
        if text.startswith(name) and re.match(r"( and \w+)?`?(:| is | are | pools )", text[len(name) :]):
            return True
    return False


def _cells(table: Table) -> list[Cell]:
    return [row.cells[column] for row in table.rows for column in table.columns if column in row.cells]


def _is_dash(cell: Cell | None) -> bool:
    return cell is None or (cell.value is None and not cell.expected)


def _has_interval(row: Row) -> bool:
    return any(map(format_interval, row.cells.values()))
