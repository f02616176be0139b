"""Figures 8 and 9 of the paper: Pearson's r and the mean absolute error between judge and people, by metric.

The figures have no printed values.
"""

from collections.abc import Iterator, Mapping

from weft.benchmarks.paired_verdicts import NOT_PRINTED, PairedVerdicts, build_correlation_cell, build_measure_cell
from weft.benchmarks.rows import read_published
from weft.types import Cell, Row, Table


def tables(paired: PairedVerdicts, metrics: Mapping[str, str], figure: str) -> Iterator[Table]:
    """Yield the judge's agreement with people. `metrics` maps the paper's names to metrics; `figure` is `figure8`."""
    cells: dict[str, Cell] = {}
    for name, metric in metrics.items():
        agreement, verdicts = paired.measure_metric(metric)
        cells[f"{name} r"] = build_correlation_cell(agreement.pearson, agreement.n, verdicts)
        cells[f"{name} MAE"] = build_measure_cell(agreement.mae, agreement.n, verdicts, full=4.0)
    rows = [Row(paired.name, cells, run=paired.run, judge=paired.judge)]
    number = figure.removeprefix("figure")
    note = "MAE in points of the scale from 1 to 5."
    if paired.dataset != "tabletop":
        paper = read_published("weft.benchmarks.rover")[figure]
        name = f"{paper['judge']} and {paper['raters']} experts: {NOT_PRINTED}"
        rows.append(Row(name, {}, kind="published", judge=paper["judge"]))
        note += f" Figure {number} has no printed values ({paper['items']} items of {paper['models']} models)."
    yield Table(f"Agreement as in ROVER, Figure {number}", tuple(cells), tuple(rows), note, 3, "mixed")
