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
from weft.stats.intervals import bootstrap_interval
from weft.types import Cell, Row, Table, Verdict


class CountedVerdict(Struct, frozen=True):
    """A verdict that a table counts with another value, metric or sample than its own."""

    verdict: Verdict
    value: float | None
    metric: str
    sample: str  # what is resampled together


AnyVerdict = Verdict | CountedVerdict
VerdictT = TypeVar("VerdictT", bound=Verdict | CountedVerdict)
WeightedTerms = Sequence[tuple[float, Sequence[AnyVerdict]]]  # (weight, verdicts whose mean is weighted)
RunCells = Callable[[RunResults, bool], Mapping[str, Cell]]  # (run, official arithmetic or not) -> cells by column
RunBreakdown = Callable[[RunResults, bool], Mapping[str, Mapping[str, Cell]]]  # the same, by row


def build_rows(runs: Iterable[RunResults], cells: RunCells, of: str = "", paper: Sequence[Row] = ()) -> tuple[Row, ...]:
    """Build a row for each run, or two if strict and official differ, followed by the rows of a paper.

    `of` names the part of each run that its row shows.
    """
    rows: list[Row] = []
    for run in runs:
        strict = cells(run, False)
        official = cells(run, True)
        if _values(strict) == _values(official):
            rows.append(Row(run.name, strict, subset=of, run=run.run, judge=run.judge))
        else:
            rows.append(Row(run.name, strict, arithmetic="strict", subset=of, run=run.run, judge=run.judge))
            rows.append(Row(run.name, official, arithmetic="official", subset=of, run=run.run, judge=run.judge))
    return (*rows, *paper)


def build_breakdown(
    run: RunResults, title: str, columns: tuple[str, ...], breakdown: RunBreakdown, digits: int = 3
) -> Iterator[Table]:
    """Build a table of a run's parts, or one for each arithmetic if strict and official differ."""
    strict = breakdown(run, False)
    official = breakdown(run, True)
    tables = {", strict": strict, ", official": official}
    if _nested_values(strict) == _nested_values(official):
        tables = {"": strict}
    for suffix, parts in tables.items():
        if parts:
            rows = tuple(Row(name, cells, kind="part", run=run.run, judge=run.judge) for name, cells in parts.items())
            yield Table(f"{run.name}: {title}{suffix}", columns, rows, digits=digits, kind="breakdown")


def _values(cells: Mapping[str, Cell]) -> dict[str, float | None]:
    return {column: cell.value for column, cell in cells.items()}


def _nested_values(parts: Mapping[str, Mapping[str, Cell]]) -> dict[str, dict[str, float | None]]:
    return {name: _values(cells) for name, cells in parts.items()}


def read_published(package: str) -> Mapping[str, Any]:
    """Read a benchmark's `published.json`: the numbers that its paper prints."""
    return msgspec.json.decode(importlib.resources.files(package).joinpath("published.json").read_bytes())


def build_published_rows(
    table: Mapping[str, Any], name: Callable[[Mapping[str, Any]], str], columns: Mapping[str, str], judge: str
) -> list[Row]:
    """Build the rows of a paper's table. `columns` maps each column to its key in `published.json`."""
    rows: list[Row] = []
    for published in table.get("rows", ()):
        cells = {column: Cell(published[key]) for column, key in columns.items()}
        rows.append(Row(name(published), cells, kind="published", judge=judge))
    return rows


def build_mean_cell(terms: WeightedTerms | Sequence[AnyVerdict], *, digits: int = 3, scale: float = 1.0) -> Cell:
    """Build the cell of a mean of verdicts, or of a weighted sum of such means (`[(weight, verdicts), ...]`).

    It has a 95% interval, resampled by sample, and the number of verdicts behind it. If a term has no scored verdict,
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
    value = 0.0
    for (weight, values_by_sample), count in zip(clusters, counts, strict=True):
        value += weight * sum(map(sum, values_by_sample.values())) / count
    low: float | None = None
    high: float | None = None
    interval = bootstrap_interval(clusters)
    if interval is not None:
        low = round(interval[0], digits)
        high = round(interval[1], digits)
    return Cell(round(value, digits), sum(counts), len(all_verdicts), low, high, verdicts=all_verdicts)


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
