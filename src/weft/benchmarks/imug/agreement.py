"""Table 7 of the paper: Pearson's correlation between the judge and people, for pictures and dynamic questions, by class."""

from collections.abc import Iterator
from typing import Any

from weft.benchmarks.agreed import Agreed, correlation, measured
from weft.benchmarks.imug.classes import CLASSES
from weft.benchmarks.imug.facts import is_dynamic
from weft.benchmarks.imug.tables import JUDGE, SHORT
from weft.benchmarks.rows import published, published_rows
from weft.stats.agreement import Measured
from weft.types import Cell, Row, Table, Verdict

KINDS = {"Img.": "Img", "Dynamic": "Dynamic"}
NOTE = "Pearson's r. Avg: the plain mean of the six. Published: two people; one response of each task, of five models."


def kind_of(verdict: Verdict) -> str:
    if verdict.metric == "points":
        return "Img."
    return "Dynamic" if is_dynamic(verdict) else ""


def tables(found: Agreed) -> Iterator[Table]:
    keys = {f"{name} {kind}": f"{SHORT[name]}_{key}" for name in CLASSES for kind, key in KINDS.items()}
    cells: dict[str, Cell] = {}
    for name in CLASSES:
        for kind in KINDS:

            def keep(one: Verdict, name: str = name, kind: str = kind) -> bool:
                return found.groups[one.sample].get("class") == name and kind_of(one) == kind

            some = found.where(keep)
            cells[f"{name} {kind}"] = correlation(some.pearson, some.n, found.verdicts(keep))
    values = [cell.value for cell in cells.values() if cell.value is not None]
    whole = Measured(sum(values) / len(values)) if len(values) == len(keys) else Measured(None)
    ours = Row(found.name, {**cells, "Avg": measured(whole, len(found.pairs), found.verdicts())}, run=found.run, judge=found.judge)
    paper: dict[str, Any] = published("weft.benchmarks.imug")["table7"] if found.dataset != "tabletop" else {}
    theirs = published_rows(paper, lambda row: row["model"], {**keys, "Avg": "Avg"}, JUDGE)
    yield Table("Agreement as in IMUG-Bench, Table 7", (*keys, "Avg"), (ours, *theirs), NOTE, 3, "mixed")
