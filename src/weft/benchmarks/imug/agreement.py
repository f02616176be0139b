"""Table 7 of the paper: Pearson's correlation between the judge and people, for pictures and dynamic questions, by
class."""

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
    if verdict.metric == "points":
        return "Img."
    if is_dynamic(verdict):
        return "Dynamic"
    return ""


def tables(found: PairedVerdicts) -> Iterator[Table]:
    keys = {f"{name} {kind}": f"{SHORT_NAMES[name]}_{key}" for name in CLASSES for kind, key in KINDS.items()}
    cells: dict[str, Cell] = {}
    for name in CLASSES:
        for kind in KINDS:

            def keep(one: Verdict, name: str = name, kind: str = kind) -> bool:
                return found.groups[one.sample].get("class") == name and kind_of(one) == kind

            some = found.measure(keep)
            cells[f"{name} {kind}"] = build_correlation_cell(some.pearson, some.n, found.verdicts(keep))
    values = [cell.value for cell in cells.values() if cell.value is not None]
    if len(values) == len(keys):
        whole = NullableEstimate(sum(values) / len(values))
    else:
        whole = NullableEstimate(None)
    ours = Row(
        found.name,
        {**cells, "Avg": build_measure_cell(whole, len(found.pairs), found.verdicts())},
        run=found.run,
        judge=found.judge,
    )
    if found.dataset != "tabletop":
        paper: dict[str, Any] = read_published("weft.benchmarks.imug")["table7"]
    else:
        paper = {}
    theirs = build_published_rows(paper, lambda row: row["model"], {**keys, "Avg": "Avg"}, JUDGE)
    yield Table("Agreement as in IMUG-Bench, Table 7", (*keys, "Avg"), (ours, *theirs), NOTE, 3, "mixed")
