"""The tables in which a paper compares models over several benchmarks, with our rows below the paper's.

    build_paper_table("weave-4", card.runs, journal, imported)

A column comes from a benchmark's own table, whose published rows it takes, or from what other tools measured
(`weft suite import`). Which one is data: `paper_cards.json`. Two papers' columns are never one, even of one benchmark:
each paper is a table of its own. A run on other data than the paper's stands in none.
"""

import importlib.resources
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from weft.benchmarks.base import load_benchmark
from weft.errors import UserError
from weft.evaluation.imports.score import ImportedScore
from weft.results.run import Run, build_tables, load_run
from weft.store.journal import Journal
from weft.types import Cell, Row, Table

OURS = "ours"
Arithmetic = Literal["", "strict", "official"]
EMPTY = Cell(None)


class CardColumn(Struct, frozen=True, forbid_unknown_fields=True):
    """A column of a paper's table: of a benchmark here, or of tasks that other tools run."""

    name: str
    digits: int
    benchmark: str = ""
    table: str = ""  # words of the title of the benchmark's table that has the column
    column: str = ""
    tasks: tuple[str, ...] = ()  # what tools call the task, in lower case
    printed: Mapping[str, float] = {}  # the paper's numbers, by model, where no benchmark here has them


class PaperCard(Struct, frozen=True, forbid_unknown_fields=True):
    """A paper's table."""

    source: str  # the paper, and the number of its table
    what: str
    models: tuple[str, ...]  # in the paper's order
    columns: tuple[CardColumn, ...]
    notes: tuple[str, ...] = ()  # what a reader must know of the paper's numbers


class OurRun(Struct, frozen=True):
    """A run of ours and its tables, those with published rows alone: the others are over other data."""

    model: str
    section: str
    run: Run
    tables: Sequence[Table]


def list_papers() -> dict[str, PaperCard]:
    """Return the papers' tables by the names that users give them."""
    data = importlib.resources.files("weft.report").joinpath("paper_cards.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, PaperCard])


def parse_papers(text: str) -> list[PaperCard]:
    """Return the papers' tables that a user names, with commas between them. Raises UserError for an unknown name."""
    known = list_papers()
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        wrong = f"there is no {unknown[0]!r}" if unknown else "give a name"
        raise UserError(f"--published: {wrong}; there is {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(names)]


def build_paper_tables(
    cards: Iterable[PaperCard],
    runs: Mapping[str, Mapping[str, str]],
    journal: Journal | None,
    imported: Sequence[ImportedScore] = (),
    benchmarks: Any = None,
) -> list[Table]:
    """Build the tables of these papers. `runs`: the ids of the runs of suites, by model and section."""
    cards = list(cards)
    used = {column.benchmark for card in cards for column in card.columns if column.benchmark}
    own_runs: list[OurRun] = []
    if journal is not None:
        own_runs = [run for run in _load_runs(runs, journal, benchmarks) if run.run.benchmark.name in used]
    published = {name: list(load_benchmark(name).tables([])) for name in used}
    return [_build_table(card, own_runs, imported, published) for card in cards]


def _load_runs(runs: Mapping[str, Mapping[str, str]], journal: Journal, benchmarks: Any) -> Iterator[OurRun]:
    for model, ids in runs.items():
        for section, run_id in ids.items():
            run = load_run(journal, run_id, benchmarks)
            tables = [table for table in build_tables({model: run}) if table.published_rows]
            yield OurRun(model, section, run, tables)


def _build_table(
    card: PaperCard,
    own_runs: Sequence[OurRun],
    imported: Sequence[ImportedScore],
    published: Mapping[str, Sequence[Table]],
) -> Table:
    notes: dict[str, None] = dict.fromkeys(card.notes)
    theirs = list(_build_published_rows(card, published))
    ours: list[Row] = []
    for model in dict.fromkeys([run.model for run in own_runs] + [score.model for score in imported]):
        of_model = [run for run in own_runs if run.model == model]
        measured = [score for score in imported if score.model == model]
        ours += _build_our_rows(card, model, of_model, measured)
    notes.update(dict.fromkeys(_describe_sources(card, own_runs, imported, published)))
    columns = tuple(column.name for column in card.columns)
    title = f"{card.source}: {card.what}"
    digits = max(column.digits for column in card.columns)
    return Table(title, columns, (*theirs, *ours), " ".join(notes), digits)


def _build_published_rows(card: PaperCard, published: Mapping[str, Sequence[Table]]) -> Iterator[Row]:
    for model in card.models:
        cells: dict[str, Cell] = {}
        notes: dict[str, str] = {}
        for column in card.columns:
            cells[column.name] = replace(Cell(column.printed.get(model)), digits=column.digits)
            table = _find_table(column, published.get(column.benchmark, ()))
            row = next((row for row in table.published_rows if row.name == model), None) if table else None
            if row is not None:
                cells[column.name] = replace(row.cells[column.column], digits=column.digits)
                if column.column in row.notes:
                    notes[column.name] = row.notes[column.column]
        yield Row(model, cells, kind="published", notes=notes, group=card.source)


def _find_table(column: CardColumn, tables: Iterable[Table]) -> Table | None:
    if not column.benchmark:
        return None
    return next((table for table in tables if column.table in table.title), None)


def _build_our_rows(
    card: PaperCard, model: str, runs: Sequence[OurRun], imported: Sequence[ImportedScore]
) -> Iterator[Row]:
    """Yield a model's row, or two where strict and official differ; then a row for each further tool of one task."""
    found = {column.name: _find_our_rows(column, runs) for column in card.columns}
    scores = {column.name: _find_imported(column, imported) for column in card.columns}
    if not any(found.values()) and not any(scores.values()):
        return
    differ = any(row.arithmetic for rows in found.values() for row in rows)
    arithmetics: tuple[Arithmetic, ...] = ("strict", "official") if differ else ("",)
    for arithmetic in arithmetics:
        cells: dict[str, Cell] = {}
        for column in card.columns:
            rows = [row for row in found[column.name] if row.arithmetic in ("", arithmetic)]
            cells[column.name] = EMPTY
            if rows:
                cells[column.name] = replace(rows[0].cells[column.column], digits=column.digits)
            elif scores[column.name]:
                cells[column.name] = _build_imported_cell(scores[column.name][0], column)
        yield Row(model, cells, arithmetic=arithmetic, group=OURS)
    for column in card.columns:
        for score in scores[column.name][1:]:
            empty = {other.name: EMPTY for other in card.columns}
            cells = {**empty, column.name: _build_imported_cell(score, column)}
            yield Row(model, cells, subset=score.column, group=OURS)


def _find_our_rows(column: CardColumn, runs: Iterable[OurRun]) -> list[Row]:
    """Return the rows of the first run that has a number in the column."""
    for run in runs:
        table = _find_table(column, run.tables) if run.run.benchmark.name == column.benchmark else None
        if table is not None and any(row.cells[column.column].expected for row in table.run_rows):
            return list(table.run_rows)
    return []


def _find_imported(column: CardColumn, imported: Iterable[ImportedScore]) -> list[ImportedScore]:
    return [score for score in imported if score.task.lower() in column.tasks]


def _build_imported_cell(score: ImportedScore, column: CardColumn) -> Cell:
    return Cell(score.value, score.scored, score.expected, score.low, score.high, digits=column.digits)


def _describe_sources(
    card: PaperCard,
    own_runs: Sequence[OurRun],
    imported: Sequence[ImportedScore],
    published: Mapping[str, Sequence[Table]],
) -> Iterator[str]:
    """Yield what must be known of each column: its table's note, our judges, tools, and runs that stand in none."""
    for benchmark in dict.fromkeys(column.benchmark for column in card.columns if column.benchmark):
        columns = [column for column in card.columns if column.benchmark == benchmark]
        runs = [run for run in own_runs if run.run.benchmark.name == benchmark]
        of_paper = [run for run in runs if run.tables]
        for run in runs:
            if not run.tables:
                yield f"{run.model}: {run.section} is not on the paper's data, and stands in no column."
        tables = [table for run in of_paper for table in run.tables] or published[benchmark]
        title = load_benchmark(benchmark).presentation.title or benchmark
        table = _find_table(columns[0], tables)
        if table is not None:
            yield f"{title}: {table.note}"
        judges = dict.fromkeys(run.run.record.manifest.judge.name for run in of_paper)
        if judges:
            yield f"{title}, our rows: judged by {', '.join(judges)}."
    for column in card.columns:
        for score in _find_imported(column, imported):
            yield f"{column.name}, {score.model}: imported; {score.describe()}."
