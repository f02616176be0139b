"""Table 2 of the paper: the judge's mean and people's, Pearson's r and the mean absolute error, for Cor, Vis and Ef."""

from collections.abc import Iterator
from typing import Any

from weft.benchmarks.paired_verdicts import PairedVerdicts, build_correlation_cell, build_measure_cell
from weft.benchmarks.planviz.rubric import COLUMNS
from weft.benchmarks.planviz.tables import JUDGE
from weft.benchmarks.rows import read_published
from weft.types import Cell, Row, Table

PRINTED = ("MLLM Mean", "Human Mean", "Human-MLLM r", "Human-MLLM MAE")
NOTE = "MAE is that of single items."
PAPER = "The published one is the difference of the two means in five of six cells (docs/errata.md); ten people, 30% of the tasks."


def tables(found: PairedVerdicts) -> Iterator[Table]:
    cells: dict[str, Cell] = {}
    whats = ("judge", "people" if found.other == "people" else "other", "r", "MAE")
    for name, metric in COLUMNS.items():
        some, behind = found.measure_metric(metric)
        told = (some.judge, some.reference, some.pearson, some.mae)
        for what, one in zip(whats, told, strict=True):
            cells[f"{name} {what}"] = (build_correlation_cell if what == "r" else build_measure_cell)(
                one, some.n, behind
            )
    rows = [Row(found.name, cells, run=found.run, judge=found.judge)]
    if found.dataset == "planviz":
        paper: dict[str, Any] = read_published("weft.benchmarks.planviz")["table2"]
    else:
        paper = {}
    models = list(dict.fromkeys(str(row["model"]) for row in paper.get("rows", ())))
    by_place = {(row["model"], row["statistic"]): row for row in paper.get("rows", ())}
    for model in models:
        of = [
            (f"{name} {what}", by_place[model, key][name])
            for name in COLUMNS
            for what, key in zip(whats, PRINTED, strict=True)
        ]
        theirs = {column: Cell(value, digits=2) for column, value in of}
        rows.append(Row(model, theirs, kind="published", judge=JUDGE))
    yield Table(
        "Agreement as in PlanViz, Table 2", tuple(cells), tuple(rows), f"{NOTE} {PAPER}" if models else NOTE, 3, "mixed"
    )
