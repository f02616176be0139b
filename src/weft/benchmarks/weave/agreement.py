"""Figure 6d of the paper: Pearson's correlation between judge and annotators, by metric. Its values are not printed."""

from collections.abc import Iterator

from weft.benchmarks.paired_verdicts import NOT_PRINTED, PairedVerdicts, build_correlation_cell
from weft.benchmarks.rows import read_published
from weft.benchmarks.weave.tables import SHORT_NAMES
from weft.types import Cell, Row, Table


def tables(paired: PairedVerdicts) -> Iterator[Table]:
    """Yield the agreement table of one run, with the paper's row if the data are WEAVEBench's own."""
    cells: dict[str, Cell] = {}
    for metric, column in SHORT_NAMES.items():
        agreement, verdicts = paired.measure_metric(metric)
        cells[column] = build_correlation_cell(agreement.pearson, agreement.n, verdicts)
    rows = [Row(paired.name, cells, run=paired.run, judge=paired.judge)]
    note = ""
    if paired.dataset != "tabletop":
        paper = read_published("weft.benchmarks.weave")["figure6d"]
        name = f"{paper['judge']} and {paper['raters']} experts: {NOT_PRINTED}"
        rows.append(Row(name, {}, kind="published", judge=paper["judge"]))
        note = (
            f"Figure 6d has no printed values; the text says that all are above {paper['above']} "
            f"({paper['items']} items)."
        )
    yield Table("Agreement as in WEAVE, Figure 6d (Pearson's r)", tuple(cells), tuple(rows), note, 3, "mixed")
