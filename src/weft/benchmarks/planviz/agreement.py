"""Table 2 of the paper: the judge's mean and people's, Pearson's r and the mean absolute error, for Cor, Vis and Ef."""

from collections.abc import Iterator
from typing import Any

from weft.benchmarks.agreed import Agreed, correlation, measured
from weft.benchmarks.planviz.rubric import SHORT
from weft.benchmarks.planviz.tables import JUDGE
from weft.benchmarks.rows import published
from weft.types import Cell, Row, Table

PRINTED = ("MLLM Mean", "Human Mean", "Human-MLLM r", "Human-MLLM MAE")
NOTE = "MAE is that of single items."
PAPER = "The published one is the difference of the two means in five of six cells (docs/errata.md); ten people, 30% of the tasks."


def tables(found: Agreed) -> Iterator[Table]:
    cells: dict[str, Cell] = {}
    whats = ("judge", "people" if found.other == "people" else "other", "r", "MAE")
    for name, metric in SHORT.items():
        some, behind = found.of_metric(metric)
        told = (some.judge, some.truth, some.pearson, some.mae)
        for what, one in zip(whats, told, strict=True):
            cells[f"{name} {what}"] = (correlation if what == "r" else measured)(one, some.n, behind)
    rows = [Row(found.name, cells, run=found.run, judge=found.judge)]
    paper: dict[str, Any] = published("weft.benchmarks.planviz")["table2"] if found.dataset == "planviz" else {}
    models = list(dict.fromkeys(str(row["model"]) for row in paper.get("rows", ())))
    by_place = {(row["model"], row["statistic"]): row for row in paper.get("rows", ())}
    for model in models:
        of = [(f"{name} {what}", by_place[model, key][name]) for name in SHORT for what, key in zip(whats, PRINTED, strict=True)]
        theirs = {column: Cell(value, digits=2) for column, value in of}
        rows.append(Row(model, theirs, kind="published", judge=JUDGE))
    yield Table("Agreement as in PlanViz, Table 2", tuple(cells), tuple(rows), f"{NOTE} {PAPER}" if models else NOTE, 3, "mixed")
