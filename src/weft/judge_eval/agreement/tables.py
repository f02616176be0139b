"""Tables of agreement. Pure: pairs in, tables out. Means, errors and bias are on the scale of the benchmark's paper."""

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from weft.benchmarks.base import Benchmark
from weft.benchmarks.paired_verdicts import (
    MIN_VERDICTS,
    PairedVerdicts,
    build_correlation_cell,
    build_count_cell,
    build_measure_cell,
)
from weft.errors import UserError
from weft.stats.agreement import NullableEstimate, reliability_curve
from weft.types import Cell, Row, Table, Verdict

ALL = "all metrics"
TURN = "turn"
NONE = "none"
BINS = 5
NOTE = (
    "n: verdicts; judge and OTHER: their means; MAE: mean absolute difference, verdict by verdict; bias: judge minus OTHER. "
    f"95% intervals resample dialogues. A dash: undefined, as where all values are the same, or fewer than {MIN_VERDICTS} verdicts. "
    "No interval: drawing again changes nothing."
)


def columns(found: PairedVerdicts) -> tuple[str, ...]:
    return ("n", "dialogues", "judge", named(found), "Pearson", "Spearman", "Kendall", "MAE", "bias")


def named(found: PairedVerdicts) -> str:
    """What the others are called in a column."""
    if found.other == "people":
        return "people"
    return "other judge"


def cells(found: PairedVerdicts, keep: Callable[[Verdict], bool], benchmark: Benchmark) -> dict[str, Cell]:
    """How far they agree on some of it."""
    one = found.measure(keep)
    behind = found.verdicts(keep)

    def points(value: NullableEstimate) -> Cell:
        return build_measure_cell(
            value, one.n, behind, full=benchmark.presentation.max_score, digits=benchmark.presentation.digits
        )

    return {
        "n": build_count_cell(one.n, behind),
        "dialogues": build_count_cell(one.clusters, behind),
        "judge": points(one.judge),
        named(found): points(one.reference),
        "Pearson": build_correlation_cell(one.pearson, one.n, behind),
        "Spearman": build_correlation_cell(one.spearman, one.n, behind),
        "Kendall": build_correlation_cell(one.kendall, one.n, behind),
        "MAE": points(one.mae),
        "bias": points(one.bias),
    }


def by_metric(found: PairedVerdicts, benchmark: Benchmark) -> Table:
    metrics = _metrics(found, benchmark)
    if len(metrics) > 1:
        wanted: dict[str, Callable[[Verdict], bool]] = {ALL: lambda _: True}
    else:
        wanted = {}
    wanted |= {metric: lambda one, m=metric: one.metric == m for metric in metrics}
    return _table(found, benchmark, f"Agreement between {found.judge} and {found.other}, by metric", wanted)


def by_group(found: PairedVerdicts, benchmark: Benchmark, by: str = "") -> Iterator[Table]:
    """One table, by metric and group of an axis: the one that is named, or the benchmark's first."""
    axis = by or (benchmark.axes[0] if benchmark.axes else NONE)
    if axis not in (*benchmark.axes, TURN, NONE):
        raise UserError(f"--by {axis}: {benchmark.name} has {', '.join((*benchmark.axes, TURN, NONE))}")
    if axis == NONE:
        return

    def group(one: Verdict) -> str:
        if axis == TURN:
            return f"turn {one.turn + 1}"
        return found.groups.get(one.sample, {}).get(axis, "")

    there = list(dict.fromkeys(sorted(group(one) for one, _ in found.pairs)))
    if axis == TURN:
        there.sort(key=lambda name: int(name.split()[1]))
    wanted: dict[str, Callable[[Verdict], bool]] = {}
    for metric in _metrics(found, benchmark):
        for name in there:
            if name and any(one.metric == metric and group(one) == name for one, _ in found.pairs):
                wanted[f"{metric}, {name}"] = lambda one, m=metric, n=name: one.metric == m and group(one) == n
    if wanted:
        yield replace(_table(found, benchmark, f"By metric and {axis}", wanted), note="")


def _metrics(found: PairedVerdicts, benchmark: Benchmark) -> list[str]:
    there = {one.metric for one, _ in found.pairs}
    ordered = [metric for metric in benchmark.metrics if metric in there]
    return ordered + sorted(there - set(ordered))


def _table(
    found: PairedVerdicts, benchmark: Benchmark, title: str, wanted: dict[str, Callable[[Verdict], bool]]
) -> Table:
    rows = [
        Row(name, cells(found, keep, benchmark), kind="part", run=found.run, judge=found.judge)
        for name, keep in wanted.items()
    ]
    return Table(
        title, columns(found), tuple(rows), NOTE.replace("OTHER", named(found)), benchmark.presentation.digits, "mixed"
    )


def curve(found: PairedVerdicts, benchmark: Benchmark) -> Iterator[Table]:
    """What the judge gives, on average, where the others give so much."""
    rows: list[Row] = []
    full = benchmark.presentation.max_score
    digits = benchmark.presentation.digits
    for one in reliability_curve(found.group_by_cluster(), BINS):
        low = min(BINS - 1, int(one.reference * BINS + 1e-9))
        label = f"{full * low / BINS:.{max(1, digits - 1)}f} to {full * (low + 1) / BINS:.{max(1, digits - 1)}f}"
        last = low == BINS - 1
        behind = [
            verdict for verdict, right in found.pairs if low / BINS <= right and (last or right < (low + 1) / BINS)
        ]
        row = {
            "n": build_count_cell(one.n, behind),
            named(found): build_measure_cell(NullableEstimate(one.reference), one.n, behind, full=full, digits=digits),
            "judge": build_measure_cell(
                NullableEstimate(one.judge, one.low, one.high), one.n, behind, full=full, digits=digits
            ),
        }
        rows.append(Row(label, row, kind="part", run=found.run, judge=found.judge))
    if len(rows) > 1:
        title = f"What the judge gives, by what {'people give' if found.other == 'people' else 'the other judge gives'}"
        yield Table(title, ("n", named(found), "judge"), tuple(rows), "", digits, "mixed")
