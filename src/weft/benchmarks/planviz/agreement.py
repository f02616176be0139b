"""Table 2 of the paper: the judge's mean and people's, Pearson's r and the mean absolute error, for Cor, Vis and Ef."""

from collections.abc import Iterator, Mapping
from typing import Any

from weft.benchmarks.paired_verdicts import PairedVerdicts, build_correlation_cell, build_measure_cell
from weft.benchmarks.planviz.rubric import COLUMNS
from weft.benchmarks.planviz.tables import JUDGE
from weft.benchmarks.rows import read_published
from weft.types import Cell, Row, Table

PUBLISHED_STATISTICS = ("MLLM Mean", "Human Mean", "Human-MLLM r", "Human-MLLM MAE")
NOTE = "MAE is that of single items."
PUBLISHED_NOTE = (
    "The published one is the difference of the two means in five of six cells "
    "(docs/reference/errata-printed-numbers.md); ten people, 30% of the tasks."
)


def tables(paired: PairedVerdicts) -> Iterator[Table]:
    """Yield the judge's agreement with people as in Table 2, with the published rows where the data are PlanViz's."""
    other = "other"
    if paired.other == "people":
        other = "people"
    cells: dict[str, Cell] = {}
    for name, metric in COLUMNS.items():
        agreement, verdicts = paired.measure_metric(metric)
        cells[f"{name} judge"] = build_measure_cell(agreement.judge, agreement.n, verdicts)
        cells[f"{name} {other}"] = build_measure_cell(agreement.reference, agreement.n, verdicts)
        cells[f"{name} r"] = build_correlation_cell(agreement.pearson, agreement.n, verdicts)
        cells[f"{name} MAE"] = build_measure_cell(agreement.mae, agreement.n, verdicts)
    rows = [Row(paired.name, cells, run=paired.run, judge=paired.judge)]
    note = NOTE
    if paired.dataset == "planviz":
        rows += _build_published_rows(("judge", other, "r", "MAE"))
        note = f"{NOTE} {PUBLISHED_NOTE}"
    yield Table("Agreement as in PlanViz, Table 2", tuple(cells), tuple(rows), note, 3, "mixed")


def _build_published_rows(columns: tuple[str, ...]) -> list[Row]:
    """Return a row for each model of the paper, whose table has a line for each model and statistic."""
    column_of = dict(zip(PUBLISHED_STATISTICS, columns, strict=True))
    cells_by_model: dict[str, dict[str, Cell]] = {}
    lines: list[Mapping[str, Any]] = read_published("weft.benchmarks.planviz")["table2"]["rows"]
    for line in lines:
        cells = cells_by_model.setdefault(str(line["model"]), {})
        for name in COLUMNS:
            cells[f"{name} {column_of[line['statistic']]}"] = Cell(line[name], digits=2)
    return [Row(model, cells, kind="published", judge=JUDGE) for model, cells in cells_by_model.items()]
