"""Tables of agreement between a judge and others. Pure: pairs in, tables out.

Means, errors and bias are on the scale of the benchmark's paper."""

from collections.abc import Callable, Iterator, Mapping

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
from weft.stats.agreement import NullableEstimate, ReliabilityBin, reliability_curve
from weft.types import Cell, Row, Table, Verdict

ALL = "all metrics"
TURN = "turn"
NONE = "none"
BINS = 5
TOLERANCE = 1e-9
NOTE = (
    "n: verdicts; judge and OTHER: their means; MAE: mean absolute difference, verdict by verdict; bias: judge minus "
    "OTHER. 95% intervals resample dialogues. A dash: undefined, as where all values are the same, or fewer than "
    f"{MIN_VERDICTS} verdicts. No interval: resampling changes nothing."
)
VerdictFilter = Callable[[Verdict], bool]


def build_metric_table(paired: PairedVerdicts, benchmark: Benchmark) -> Table:
    """Agreement on all metrics together, where there are several, and on each."""
    metrics = _metrics(paired, benchmark)
    filters: dict[str, VerdictFilter] = {}
    if len(metrics) > 1:
        filters[ALL] = lambda _: True
    for metric in metrics:
        filters[metric] = _metric_filter(metric)
    return _build_table(paired, benchmark, f"Agreement between {paired.judge} and {paired.other}, by metric", filters)


def _metric_filter(metric: str) -> VerdictFilter:
    return lambda verdict: verdict.metric == metric


def build_group_tables(paired: PairedVerdicts, benchmark: Benchmark, by: str = "") -> Iterator[Table]:
    """Yield one table by metric and group of an axis: `by`, or the benchmark's first axis."""
    axis = by or next(iter(benchmark.axes), NONE)
    choices = (*benchmark.axes, TURN, NONE)
    if axis not in choices:
        raise UserError(f"--by {axis}: {benchmark.name} has {', '.join(choices)}")
    if axis == NONE:
        return
    filters: dict[str, VerdictFilter] = {}
    groups = _groups(paired, axis)
    for metric in _metrics(paired, benchmark):
        for group in groups:
            keep = _group_filter(paired, axis, metric, group)
            if group and any(keep(verdict) for verdict, _ in paired.pairs):
                filters[f"{metric}, {group}"] = keep
    if filters:
        yield replace(_build_table(paired, benchmark, f"By metric and {axis}", filters), note="")


def _group_of(paired: PairedVerdicts, axis: str, verdict: Verdict) -> str:
    if axis == TURN:
        return f"turn {verdict.turn + 1}"
    return paired.groups.get(verdict.sample, {}).get(axis, "")


def _groups(paired: PairedVerdicts, axis: str) -> list[str]:
    """The groups of an axis in alphabetical order, turns by number."""
    groups = sorted({_group_of(paired, axis, verdict) for verdict, _ in paired.pairs})
    if axis == TURN:
        groups.sort(key=lambda group: int(group.split()[1]))
    return groups


def _group_filter(paired: PairedVerdicts, axis: str, metric: str, group: str) -> VerdictFilter:
    return lambda verdict: verdict.metric == metric and _group_of(paired, axis, verdict) == group


def _metrics(paired: PairedVerdicts, benchmark: Benchmark) -> list[str]:
    """The metrics that were compared: the benchmark's in its order, then the others."""
    compared = {verdict.metric for verdict, _ in paired.pairs}
    ordered = [metric for metric in benchmark.metrics if metric in compared]
    return ordered + sorted(compared - set(ordered))


def _build_table(
    paired: PairedVerdicts, benchmark: Benchmark, title: str, filters: Mapping[str, VerdictFilter]
) -> Table:
    other = _other_column(paired)
    columns = ("n", "dialogues", "judge", other, "Pearson", "Spearman", "Kendall", "MAE", "bias")
    rows: list[Row] = []
    for label, keep in filters.items():
        cells = _build_cells(paired, keep, benchmark)
        rows.append(Row(label, cells, kind="part", run=paired.run, judge=paired.judge))
    return Table(title, columns, tuple(rows), NOTE.replace("OTHER", other), benchmark.presentation.digits, "mixed")


def _other_column(paired: PairedVerdicts) -> str:
    """The column of those whom the judge is compared with."""
    if paired.other == "people":
        return "people"
    return "other judge"


def _build_cells(paired: PairedVerdicts, keep: VerdictFilter, benchmark: Benchmark) -> dict[str, Cell]:
    """Measures of agreement on the verdicts that `keep` accepts."""
    agreement = paired.measure(keep)
    verdicts = paired.verdicts(keep)
    n = agreement.n

    def measure(estimate: NullableEstimate) -> Cell:
        presentation = benchmark.presentation
        return build_measure_cell(estimate, n, verdicts, full=presentation.max_score, digits=presentation.digits)

    return {
        "n": build_count_cell(n, verdicts),
        "dialogues": build_count_cell(agreement.clusters, verdicts),
        "judge": measure(agreement.judge),
        _other_column(paired): measure(agreement.reference),
        "Pearson": build_correlation_cell(agreement.pearson, n, verdicts),
        "Spearman": build_correlation_cell(agreement.spearman, n, verdicts),
        "Kendall": build_correlation_cell(agreement.kendall, n, verdicts),
        "MAE": measure(agreement.mae),
        "bias": measure(agreement.bias),
    }


def build_reliability_tables(paired: PairedVerdicts, benchmark: Benchmark) -> Iterator[Table]:
    """Yield one table of the judge's mean score by bins of the others' score, where there are two bins or more."""
    points = reliability_curve(paired.group_by_cluster(), BINS)
    rows = [_reliability_row(paired, benchmark, point) for point in points]
    if len(rows) < 2:
        return
    other = _other_column(paired)
    if other == "people":
        title = "The judge's mean score, by the score that people gave"
    else:
        title = "The judge's mean score, by the score that the other judge gave"
    yield Table(title, ("n", other, "judge"), tuple(rows), "", benchmark.presentation.digits, "mixed")


def _reliability_row(paired: PairedVerdicts, benchmark: Benchmark, point: ReliabilityBin) -> Row:
    full = benchmark.presentation.max_score
    digits = benchmark.presentation.digits
    index = min(BINS - 1, int(point.reference * BINS + TOLERANCE))
    low = index / BINS
    high = (index + 1) / BINS
    is_last = index == BINS - 1
    verdicts = [verdict for verdict, score in paired.pairs if low <= score and (is_last or score < high)]
    decimals = max(1, digits - 1)
    label = f"{full * index / BINS:.{decimals}f} to {full * (index + 1) / BINS:.{decimals}f}"
    judge = NullableEstimate(point.judge, point.low, point.high)
    reference = NullableEstimate(point.reference)
    cells = {
        "n": build_count_cell(point.n, verdicts),
        _other_column(paired): build_measure_cell(reference, point.n, verdicts, full=full, digits=digits),
        "judge": build_measure_cell(judge, point.n, verdicts, full=full, digits=digits),
    }
    return Row(label, cells, kind="part", run=paired.run, judge=paired.judge)
