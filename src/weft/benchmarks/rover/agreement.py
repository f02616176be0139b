"""Figures 8 and 9 of the paper: Pearson's r and the mean absolute error between judge and people, by metric. Their
values are not printed."""

from collections.abc import Iterator, Mapping

from weft.benchmarks.paired_verdicts import NOT_PRINTED, PairedVerdicts, build_correlation_cell, build_measure_cell
from weft.benchmarks.rows import read_published
from weft.types import Cell, Row, Table


def tables(found: PairedVerdicts, metrics: Mapping[str, str], figure: str) -> Iterator[Table]:
    """`metrics` by what the paper calls them."""
    cells: dict[str, Cell] = {}
    for name, metric in metrics.items():
        some, behind = found.measure_metric(metric)
        cells[f"{name} r"] = build_correlation_cell(some.pearson, some.n, behind)
        cells[f"{name} MAE"] = build_measure_cell(some.mae, some.n, behind, full=4.0)
    rows = [Row(found.name, cells, run=found.run, judge=found.judge)]
    note = "MAE in points of the scale from 1 to 5."
    if found.dataset != "tabletop":
        paper = read_published("weft.benchmarks.rover")[figure]
        rows.append(
            Row(
                f"{paper['judge']} and {paper['raters']} experts: {NOT_PRINTED}",
                {},
                kind="published",
                judge=paper["judge"],
            )
        )
        note += f" Figure {figure.removeprefix('figure')} has no printed values ({paper['items']} items of {paper['models']} models)."
    yield Table(
        f"Agreement as in ROVER, Figure {figure.removeprefix('figure')}", tuple(cells), tuple(rows), note, 3, "mixed"
    )
