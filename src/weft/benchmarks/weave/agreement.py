"""Figure 6d of the paper: Pearson's correlation between the judge and people, by metric. Its values are not printed."""

from collections.abc import Iterator

from weft.benchmarks.paired_verdicts import NOT_PRINTED, PairedVerdicts, build_correlation_cell
from weft.benchmarks.rows import read_published
from weft.benchmarks.weave.tables import SHORT_NAMES
from weft.types import Cell, Row, Table


def tables(found: PairedVerdicts) -> Iterator[Table]:
    cells: dict[str, Cell] = {}
    for metric, short in SHORT_NAMES.items():
        some, behind = found.measure_metric(metric)
        cells[short] = build_correlation_cell(some.pearson, some.n, behind)
    rows = [Row(found.name, cells, run=found.run, judge=found.judge)]
    note = ""
    if found.dataset != "tabletop":
        paper = read_published("weft.benchmarks.weave")["figure6d"]
        rows.append(
            Row(
                f"{paper['judge']} and {paper['raters']} experts: {NOT_PRINTED}",
                {},
                kind="published",
                judge=paper["judge"],
            )
        )
        note = f"Figure 6d has no printed values; the text says that all are above {paper['above']} ({paper['items']} items)."
    yield Table("Agreement as in WEAVE, Figure 6d (Pearson's r)", tuple(cells), tuple(rows), note, 3, "mixed")
