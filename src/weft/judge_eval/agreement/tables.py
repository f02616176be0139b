"""Tables of agreement. Pure: pairs in, tables out. Means, errors and bias are on the scale of the benchmark's paper."""

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from weft.benchmarks.agreed import FEWEST, Agreed, correlation, counted, measured
from weft.benchmarks.base import Benchmark
from weft.errors import UserError
from weft.stats.agreement import Measured, reliability
from weft.types import Cell, Row, Table, Verdict

ALL, TURN, NONE = "all metrics", "turn", "none"
BINS = 5
NOTE = (
    "n: verdicts; judge and OTHER: their means; MAE: mean absolute difference, verdict by verdict; bias: judge minus OTHER. "
    f"95% intervals resample dialogues. A dash: undefined, as where all values are the same, or fewer than {FEWEST} verdicts. "
    "No interval: drawing again changes nothing."
)


def columns(found: Agreed) -> tuple[str, ...]:
    return ("n", "dialogues", "judge", named(found), "Pearson", "Spearman", "Kendall", "MAE", "bias")


def named(found: Agreed) -> str:
    """What the others are called in a column."""
    return "people" if found.other == "people" else "other judge"


def cells(found: Agreed, keep: Callable[[Verdict], bool], benchmark: Benchmark) -> dict[str, Cell]:
    """How far they agree on some of it."""
    one, behind = found.where(keep), found.verdicts(keep)

    def points(value: Measured) -> Cell:
        return measured(value, one.n, behind, full=benchmark.presentation.max_score, digits=benchmark.presentation.digits)

    return {
        "n": counted(one.n, behind),
        "dialogues": counted(one.clusters, behind),
        "judge": points(one.judge),
        named(found): points(one.truth),
        "Pearson": correlation(one.pearson, one.n, behind),
        "Spearman": correlation(one.spearman, one.n, behind),
        "Kendall": correlation(one.kendall, one.n, behind),
        "MAE": points(one.mae),
        "bias": points(one.bias),
    }


def by_metric(found: Agreed, benchmark: Benchmark) -> Table:
    metrics = _metrics(found, benchmark)
    wanted: dict[str, Callable[[Verdict], bool]] = {ALL: lambda _: True} if len(metrics) > 1 else {}
    wanted |= {metric: lambda one, m=metric: one.metric == m for metric in metrics}
    return _table(found, benchmark, f"Agreement between {found.judge} and {found.other}, by metric", wanted)


def by_group(found: Agreed, benchmark: Benchmark, by: str = "") -> Iterator[Table]:
    """One table, by metric and group of an axis: the one that is named, or the benchmark's first."""
    axis = by or (benchmark.axes[0] if benchmark.axes else NONE)
    if axis not in (*benchmark.axes, TURN, NONE):
        raise UserError(f"--by {axis}: {benchmark.name} has {', '.join((*benchmark.axes, TURN, NONE))}")
    if axis == NONE:
        return

    def group(one: Verdict) -> str:
        return f"turn {one.turn + 1}" if axis == TURN else found.groups.get(one.sample, {}).get(axis, "")

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


def _metrics(found: Agreed, benchmark: Benchmark) -> list[str]:
    there = {one.metric for one, _ in found.pairs}
    ordered = [metric for metric in benchmark.metrics if metric in there]
    return ordered + sorted(there - set(ordered))


def _table(found: Agreed, benchmark: Benchmark, title: str, wanted: dict[str, Callable[[Verdict], bool]]) -> Table:
    rows = [Row(name, cells(found, keep, benchmark), kind="part", run=found.run, judge=found.judge) for name, keep in wanted.items()]
    return Table(title, columns(found), tuple(rows), NOTE.replace("OTHER", named(found)), benchmark.presentation.digits, "mixed")


def curve(found: Agreed, benchmark: Benchmark) -> Iterator[Table]:
    """What the judge gives, on average, where the others give so much."""
    rows: list[Row] = []
    full, digits = benchmark.presentation.max_score, benchmark.presentation.digits
    for one in reliability(found.by_dialogue(), BINS):
        low = min(BINS - 1, int(one.truth * BINS + 1e-9))
        label = f"{full * low / BINS:.{max(1, digits - 1)}f} to {full * (low + 1) / BINS:.{max(1, digits - 1)}f}"
        last = low == BINS - 1
        behind = [verdict for verdict, right in found.pairs if low / BINS <= right and (last or right < (low + 1) / BINS)]
        row = {
            "n": counted(one.n, behind),
            named(found): measured(Measured(one.truth), one.n, behind, full=full, digits=digits),
            "judge": measured(Measured(one.judge, one.low, one.high), one.n, behind, full=full, digits=digits),
        }
        rows.append(Row(label, row, kind="part", run=found.run, judge=found.judge))
    if len(rows) > 1:
        title = f"What the judge gives, by what {'people give' if found.other == 'people' else 'the other judge gives'}"
        yield Table(title, ("n", named(found), "judge"), tuple(rows), "", digits, "mixed")
