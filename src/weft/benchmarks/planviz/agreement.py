"""Table 2 of the paper: the judge's mean and people's, Pearson's r and the mean absolute error, for Cor, Vis and Ef."""

from collections.abc import Iterator
from typing import Any

from weft.benchmarks.agreed import Agreed, correlation, measured
from weft.benchmarks.planviz.rubric import SHORT
from weft.benchmarks.planviz.tables import JUDGE
from weft.benchmarks.rows import published
from weft.types import Cell, Row, Table

PRINTED = {"judge": "MLLM Mean", "people": "Human Mean", "r": "Human-MLLM r", "MAE": "Human-MLLM MAE"}
NOTE = (
    "MAE is that of single items; the published one is the difference of the two means in five of six cells (docs/errata.md). "
    "Published: ten people, 30% of the tasks."
)


def tables(found: Agreed) -> Iterator[Table]:
    cells: dict[str, Cell] = {}
    for name, metric in SHORT.items():
        some = found.where(lambda one, m=metric: one.metric == m)
        told = {"judge": some.judge, "people": some.truth, "r": some.pearson, "MAE": some.mae}
        cells |= {f"{name} {what}": (correlation if what == "r" else measured)(one, some.n) for what, one in told.items()}
    rows = [Row(found.name, cells, run=found.run, judge=found.judge)]
    paper: dict[str, Any] = published("weft.benchmarks.planviz")["table2"] if found.dataset == "planviz" else {}
    models = list(dict.fromkeys(str(row["model"]) for row in paper.get("rows", ())))
    by_place = {(row["model"], row["statistic"]): row for row in paper.get("rows", ())}
    for model in models:
        theirs = {f"{name} {what}": Cell(by_place[model, key][name], digits=2) for name in SHORT for what, key in PRINTED.items()}
        rows.append(Row(model, theirs, kind="published", judge=JUDGE))
    yield Table("Agreement as in PlanViz, Table 2", tuple(cells), tuple(rows), NOTE, 3, "mixed")
