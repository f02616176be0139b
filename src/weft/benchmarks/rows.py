"""Rows of tables: those of runs in both arithmetics, and those of papers; and cells with their intervals."""

import importlib.resources
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from weft.benchmarks.base import RunResults
from weft.stats.intervals import bootstrap_interval
from weft.types import Cell, Row, Table, Verdict


class CountedVerdict(Struct, frozen=True):
    """A verdict as a table counts it, where that is not by its own value, metric or sample."""

    verdict: Verdict
    value: float | None
    metric: str
    sample: str  # what is resampled together


AnyVerdict = Verdict | CountedVerdict
VerdictT = TypeVar("VerdictT", bound=Verdict | CountedVerdict)
WeightedTerms = Sequence[tuple[float, Sequence[AnyVerdict]]]  # with their weights
RunCells = Callable[[RunResults, bool], Mapping[str, Cell]]  # of a run, by the official arithmetic or not
RunBreakdown = Callable[[RunResults, bool], Mapping[str, Mapping[str, Cell]]]  # the same of its parts


def build_rows(runs: Iterable[RunResults], cells: RunCells, of: str = "", paper: Sequence[Row] = ()) -> tuple[Row, ...]:
    """A row for each run, two where strict and official differ; then those of a paper. `of` is the slice that ours
    show."""
    rows: list[Row] = []
    for run in runs:
        strict, official = cells(run, False), cells(run, True)
        if {name: cell.value for name, cell in strict.items()} == {name: cell.value for name, cell in official.items()}:
            rows.append(Row(run.name, strict, subset=of, run=run.run, judge=run.judge))
        else:
            rows.append(Row(run.name, strict, arithmetic="strict", subset=of, run=run.run, judge=run.judge))
            rows.append(Row(run.name, official, arithmetic="official", subset=of, run=run.run, judge=run.judge))
    return (*rows, *paper)


def build_breakdown(
    run: RunResults, title: str, columns: tuple[str, ...], parts: RunBreakdown, digits: int = 3
) -> Iterator[Table]:
    """A table of a run's parts; two, each of which says which it is, where strict and official differ."""
    strict, official = parts(run, False), parts(run, True)
    values = [
        {name: {column: cell.value for column, cell in cells.items()} for name, cells in some.items()}
        for some in (strict, official)
    ]
    ways = {"": strict} if values[0] == values[1] else {", strict": strict, ", official": official}
    for way, some in ways.items():
        if not some:
            continue
        rows = [Row(name, cells, kind="part", run=run.run, judge=run.judge) for name, cells in some.items()]
        yield Table(f"{run.name}: {title}{way}", columns, tuple(rows), digits=digits, kind="breakdown")


def read_published(package: str) -> Mapping[str, Any]:
    """A benchmark's `published.json`."""
    return msgspec.json.decode(importlib.resources.files(package).joinpath("published.json").read_bytes())


def build_published_rows(
    table: Mapping[str, Any], name: Callable[[Mapping[str, Any]], str], columns: Mapping[str, str], judge: str
) -> list[Row]:
    """Rows of a paper's table; `columns` says under which key of a row the value of a column stands."""
    rows: Sequence[Mapping[str, Any]] = table.get("rows", ())
    return [
        Row(name(row), {column: Cell(row[key]) for column, key in columns.items()}, kind="published", judge=judge)
        for row in rows
    ]


def build_mean_cell(terms: WeightedTerms | Sequence[AnyVerdict], *, digits: int = 3, scale: float = 1.0) -> Cell:
    """The mean of some verdicts, or a weighted sum of several such means (`[(weight, verdicts), ...]`), with its 95%
    interval by dialogue and how many items stand behind it. A term without a scored item leaves the cell without a
    value."""
    weighted: WeightedTerms = [(1.0, terms)] if not terms or isinstance(terms[0], AnyVerdict) else terms  # pyright: ignore[reportAssignmentType]
    clusters: list[tuple[float, dict[str, list[float]]]] = []
    for weight, counted in weighted:
        by_sample: dict[str, list[float]] = {}
        for one in counted:
            if one.value is not None:
                by_sample.setdefault(one.sample, []).append(scale * one.value)
        clusters.append((weight, by_sample))
    scored = [sum(map(len, some.values())) for _, some in clusters]
    behind = flatten_verdicts([counted for _, counted in weighted])
    if not all(scored):
        return Cell(None, sum(scored), len(behind), verdicts=behind)
    value = sum(
        weight * sum(map(sum, some.values())) / count for (weight, some), count in zip(clusters, scored, strict=True)
    )
    low, high = bootstrap_interval(clusters) or (None, None)
    bounds = (None if low is None else round(low, digits), None if high is None else round(high, digits))
    return Cell(round(value, digits), sum(scored), len(behind), *bounds, verdicts=behind)


def flatten_verdicts(groups: Sequence[Sequence[AnyVerdict]]) -> Sequence[Verdict]:
    """The verdicts behind a number: the sequence itself, where it is one of verdicts."""
    if len(groups) == 1 and all(isinstance(one, Verdict) for one in groups[0]):
        return groups[0]  # pyright: ignore[reportReturnType]
    return [unwrap_verdict(one) for group in groups for one in group]


def unwrap_verdict(one: AnyVerdict) -> Verdict:
    return one.verdict if isinstance(one, CountedVerdict) else one
