"""Table 7 of the paper: Pearson's correlation between judge and annotators.

It is shown for images and for dynamic questions, by class.
"""

from collections.abc import Iterator
from typing import Any

from weft.benchmarks.imug.classes import CLASSES
from weft.benchmarks.imug.facts import is_dynamic
from weft.benchmarks.imug.tables import JUDGE, SHORT_NAMES
from weft.benchmarks.paired_verdicts import PairedVerdicts, build_correlation_cell, build_measure_cell
from weft.benchmarks.rows import build_published_rows, read_published
from weft.stats.agreement import NullableEstimate
from weft.types import Cell, Row, Table, Verdict

KINDS = {"Img.": "Img", "Dynamic": "Dynamic"}
NOTE = "Pearson's r. Avg: the plain mean of the six. Published: two people; one response of each task, of five models."


def kind_of(verdict: Verdict) -> str:
    """Return the table's kind of a verdict, or "" for a static question, which no judge scores."""
    if verdict.metric == "points":
        return "Img."
    if is_dynamic(verdict):
        return "Dynamic"
    return ""


def tables(paired: PairedVerdicts) -> Iterator[Table]:
    """Yield the agreement table of one run, with the paper's rows if the data are IMUG-Bench's own."""
    keys: dict[str, str] = {}
    cells: dict[str, Cell] = {}
    for class_name in CLASSES:
        for kind, key in KINDS.items():
            column = f"{class_name} {kind}"
            keys[column] = f"{SHORT_NAMES[class_name]}_{key}"

            def keep(verdict: Verdict, class_name: str = class_name, kind: str = kind) -> bool:
                return paired.groups[verdict.sample].get("class") == class_name and kind_of(verdict) == kind

            agreement = paired.measure(keep)
            cells[column] = build_correlation_cell(agreement.pearson, agreement.n, paired.verdicts(keep))
    values = [cell.value for cell in cells.values() if cell.value is not None]
    mean = NullableEstimate(None)
    if len(values) == len(keys):
        mean = NullableEstimate(sum(values) / len(values))
    cells["Avg"] = build_measure_cell(mean, len(paired.pairs), paired.verdicts())
    row = Row(paired.name, cells, run=paired.run, judge=paired.judge)
    paper: dict[str, Any] = {}
    if paired.dataset != "tabletop":
        paper = read_published("weft.benchmarks.imug")["table7"]
    published = build_published_rows(paper, lambda row: row["model"], {**keys, "Avg": "Avg"}, JUDGE)
    yield Table("Agreement as in IMUG-Bench, Table 7", (*keys, "Avg"), (row, *published), NOTE, 3, "mixed")
