"""Rows of tables (those of runs, in both arithmetics, and those of papers) and cells with their intervals.

def cells(run, official):
    return {metric: build_mean_cell([v for v in run.verdicts if v.metric == metric]) for metric in METRICS}

Table("Mine", METRICS, build_rows(runs, cells))
"""

import importlib.resources
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from weft.benchmarks.base import RunResults
from weft.rounding import round_number
from weft.stats.intervals import mean_interval, mix_means
from weft.types import Cell, Row, Table, Verdict


class CountedVerdict(Struct, frozen=True):
    """A verdict that a table counts with another value, metric or sample than its own."""

    verdict: Verdict
    value: float | None
    metric: str
    sample: str  # what is not independent: one cluster of intervals


AnyVerdict = Verdict | CountedVerdict
VerdictT = TypeVar("VerdictT", bound=Verdict | CountedVerdict)
WeightedTerms = Sequence[tuple[float, Sequence[AnyVerdict]]]  # (weight, verdicts whose mean is weighted)
PUBLISHED_ABOUT = {  # keys of published rows, and what weft.toml calls them
    "params": "size",
    "open_source": "open",
    "group": "group",
    "type": "type",
    "in_context": "in_context",
    "modality": "modality",
    "image_format": "format",
}
NOISE = 1e-9  # two ways to compute one number differ by less
RunCells = Callable[[RunResults, bool], Mapping[str, Cell]]  # (run, official arithmetic or not) -> cells by column
RunBreakdown = Callable[[RunResults, bool], Mapping[str, Mapping[str, Cell]]]  # the same, by row


def build_rows(
    runs: Iterable[RunResults],
    cells: RunCells,
    of: str = "",
    paper: Sequence[Row] = (),
    released_digits: int | None = None,
) -> tuple[Row, ...]:
    """Build a row for each run, or two if strict and official differ in a number or in what it rests on.

    The rows of a paper follow. `of` names the part of each run that its row shows. `released_digits`: the decimals to
    which the released scripts round official cells. Omit the official row if it only rounds strict.
    """
    rows: list[Row] = []
    for run in runs:
        strict = cells(run, False)
        official = cells(run, True)
        if cells_agree(strict, official, released_digits):
            rows.append(Row(run.name, strict, subset=of, run=run.run, judge=run.judge))
        else:
            rows.append(Row(run.name, strict, arithmetic="strict", subset=of, run=run.run, judge=run.judge))
            rows.append(Row(run.name, official, arithmetic="official", subset=of, run=run.run, judge=run.judge))
    return (*rows, *paper)


def build_breakdown(
    run: RunResults,
    title: str,
    columns: tuple[str, ...],
    breakdown: RunBreakdown,
    digits: int = 3,
    released_digits: int | None = None,
) -> Iterator[Table]:
    """Build a table of a run's parts, or one for each arithmetic if strict and official differ, as in `build_rows`."""
    strict = breakdown(run, False)
    official = breakdown(run, True)
    tables = {", strict": strict, ", official": official}
    if strict.keys() == official.keys() and all(
        cells_agree(cells, official[name], released_digits) for name, cells in strict.items()
    ):
        tables = {"": strict}
    for suffix, parts in tables.items():
        if parts:
            rows = tuple(Row(name, cells, kind="part", run=run.run, judge=run.judge) for name, cells in parts.items())
            yield Table(f"{run.name}: {title}{suffix}", columns, rows, digits=digits, kind="breakdown")


def build_breakdowns(
    runs: Sequence[RunResults],
    data: str,
    title: str,
    columns: tuple[str, ...],
    breakdown: RunBreakdown,
    digits: int = 3,
    released_digits: int | None = None,
    shown: Sequence[str] = ("Avg",),
) -> Iterator[Table]:
    """Build the table of one run's parts; of several runs one table for each of the columns that are `shown`, with a
    row for each run and a column for each part. `data`: what the tables are of, as their titles begin."""
    if len(runs) == 1:
        yield from build_breakdown(runs[0], title, columns, breakdown, digits, released_digits)
        return
    parts: dict[tuple[str, bool], Mapping[str, Mapping[str, Cell]]] = {}
    names: dict[str, None] = {}
    for run in runs:
        for official in (False, True):
            parts[run.run or run.name, official] = breakdown(run, official)
            names.update(dict.fromkeys(parts[run.run or run.name, official]))
    for column in shown:

        def build_cells(run: RunResults, official: bool, column: str = column) -> dict[str, Cell]:
            of_run = parts[run.run or run.name, official]
            return {name: of_run.get(name, {}).get(column, Cell(None)) for name in names}

        rows = build_rows(runs, build_cells, released_digits=released_digits)
        if any(cell.expected for row in rows for cell in row.cells.values()):
            yield Table(f"{data}: {column} {title}", tuple(names), rows, digits=digits, kind="groups")


def cells_agree(strict: Mapping[str, Cell], official: Mapping[str, Cell], released_digits: int | None = None) -> bool:
    """Whether official cells have the numbers of strict ones, or those rounded to `released_digits`, and rest on as
    much: then one row stands for both."""
    if strict.keys() != official.keys():
        return False
    for column, cell in strict.items():
        if _count_gaps(cell) != _count_gaps(official[column]):
            return False
        other = official[column].value
        if cell.value is None or other is None:
            if cell.value is not other:
                return False
        else:
            value = cell.value
            if released_digits is not None and round_number(other, released_digits) == other:
                value = round_number(value, released_digits)
            if abs(value - other) > NOISE:
                return False
    return True


def _count_gaps(cell: Cell) -> tuple[int, int, int]:
    """Return how many verdicts a cell lacks, reads where weft cannot, and needs that were not asked."""
    return cell.expected - cell.scored, cell.unusable, cell.not_asked


def read_published(package: str) -> Mapping[str, Any]:
    """Read a benchmark's `published.json`: the numbers that its paper prints."""
    return msgspec.json.decode(importlib.resources.files(package).joinpath("published.json").read_bytes())


def build_published_rows(
    table: Mapping[str, Any], name: Callable[[Mapping[str, Any]], str], columns: Mapping[str, str], judge: str
) -> list[Row]:
    """Build the rows of a paper's table. `columns` maps each column to its key in `published.json`. A number that does
    not follow from those it is computed from has a note."""
    rows: list[Row] = []
    for published in table.get("rows", ()):
        cells = {column: Cell(published[key]) for column, key in columns.items()}
        recomputed: Mapping[str, float] = published.get("recomputed", {})
        notes = {column: f"its columns give {recomputed[key]}" for column, key in columns.items() if key in recomputed}
        about = describe_published(published)
        rows.append(Row(name(published), cells, kind="published", judge=judge, notes=notes, about=about))
    return rows


def describe_published(row: Mapping[str, Any]) -> dict[str, str]:
    """Return what a paper's table says of a model besides its numbers, under the names that weft.toml has for it."""
    about: dict[str, str] = {}
    for key, name in PUBLISHED_ABOUT.items():
        value = row.get(key)
        if value is None or (key == "modality" and "in_context" not in row):  # elsewhere it is that of the turns
            continue
        if isinstance(value, bool):
            value = "yes" if value else "no"
        about[name] = str(value)
    return about


def build_mean_cell(terms: WeightedTerms | Sequence[AnyVerdict], *, scale: float = 1.0) -> Cell:
    """Build the cell of a mean of verdicts, or of a weighted mean of such means (`[(weight, verdicts), ...]`).

    It has a 95% interval, by sample, and the number of verdicts behind it. If a term has no scored verdict,
    the cell has no value. Values are multiplied by `scale`.
    """
    weighted: WeightedTerms = terms  # pyright: ignore[reportAssignmentType]
    if not terms or isinstance(terms[0], AnyVerdict):
        weighted = [(1.0, terms)]  # pyright: ignore[reportAssignmentType]
    clusters: list[tuple[float, dict[str, list[float]]]] = []
    for weight, verdicts in weighted:
        values_by_sample: dict[str, list[float]] = {}
        for verdict in verdicts:
            if verdict.value is not None:
                values_by_sample.setdefault(verdict.sample, []).append(scale * verdict.value)
        clusters.append((weight, values_by_sample))
    counts = [sum(map(len, values_by_sample.values())) for _, values_by_sample in clusters]
    all_verdicts = flatten_verdicts([verdicts for _, verdicts in weighted])
    if not all(counts):
        return Cell(None, sum(counts), len(all_verdicts), verdicts=all_verdicts)
    means: list[tuple[float, float]] = []
    for (weight, values_by_sample), count in zip(clusters, counts, strict=True):
        means.append((weight, sum(map(sum, values_by_sample.values())) / count))
    low, high = mean_interval(clusters, (0.0, scale)) or (None, None)
    return Cell(mix_means(means), sum(counts), len(all_verdicts), low, high, verdicts=all_verdicts)


def flatten_verdicts(groups: Sequence[Sequence[AnyVerdict]]) -> Sequence[Verdict]:
    """Return all verdicts behind a number. A single group of plain verdicts is returned as the same object."""
    if len(groups) == 1 and all(isinstance(verdict, Verdict) for verdict in groups[0]):
        return groups[0]  # pyright: ignore[reportReturnType]
    return [unwrap_verdict(verdict) for group in groups for verdict in group]


def unwrap_verdict(verdict: AnyVerdict) -> Verdict:
    """Return the verdict itself of one that is counted differently."""
    if isinstance(verdict, CountedVerdict):
        return verdict.verdict
    return verdict
