"""Figure 6d of the paper: Pearson's correlation between the judge and people, by metric. Its values are not printed."""

from collections.abc import Iterator

from weft.benchmarks.agreed import NOT_PRINTED, Agreed, correlation
from weft.benchmarks.rows import published
from weft.benchmarks.weave.tables import SHORT
from weft.types import Cell, Row, Table


def tables(found: Agreed) -> Iterator[Table]:
    cells: dict[str, Cell] = {}
    for metric, short in SHORT.items():
        some, behind = found.of_metric(metric)
        cells[short] = correlation(some.pearson, some.n, behind)
    rows = [Row(found.name, cells, run=found.run, judge=found.judge)]
    note = ""
    if found.dataset != "tabletop":
        paper = published("weft.benchmarks.weave")["figure6d"]
        rows.append(Row(f"{paper['judge']} and {paper['raters']} experts: {NOT_PRINTED}", {}, kind="published", judge=paper["judge"]))
        note = f"Figure 6d has no printed values; the text says that all are above {paper['above']} ({paper['items']} items)."
    yield Table("Agreement as in WEAVE, Figure 6d (Pearson's r)", tuple(cells), tuple(rows), note, 3, "mixed")
