"""Tables of agreement between a judge and others. Pure: pairs in, tables out.

Means, errors and bias are on the scale of the benchmark's paper."""

from collections.abc import Callable, Iterator, Mapping, Sequence

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
from weft.rounding import format_number
from weft.stats.agreement import NullableEstimate, ReliabilityBin, reliability_curve
from weft.types import Cell, Row, Table, Verdict

ALL = "all metrics"
TURN = "turn"
NONE = "none"
BINS = 5
TOLERANCE = 1e-9
NOTE = (
    "n: verdicts; judge and OTHER: their means; MAE: mean absolute difference, verdict by verdict; bias: judge minus "
    "OTHER. 95% intervals are by dialogue. A dash: undefined, as where all values are the same, or fewer than "
    f"{MIN_VERDICTS} verdicts. A correlation without interval: resampling changes nothing."
)
POOLED_NOTE = "all models: the verdicts about all of them; a dialogue that several answered is one in the intervals."
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


def build_model_table(compared: Sequence[PairedVerdicts], benchmark: Benchmark) -> Table:
    """Agreement on all metrics together, with a row for each of several comparisons by their names."""
    first = compared[0]
    rows = [_build_row(paired.name, paired, lambda _: True, benchmark) for paired in compared]
    title = f"Agreement between {first.judge} and {first.other}, by model"
    note = _fill_note(first)
    if len(compared) > 1:
        note += f" {POOLED_NOTE}"
    return Table(title, _columns(first), tuple(rows), note, benchmark.presentation.digits, "mixed")


def build_measure_table(compared: Sequence[PairedVerdicts], benchmark: Benchmark) -> Table:
    """Pearson's r and the mean absolute error by metric, with a row for each of several comparisons."""
    pooled = replace(compared[0], pairs=[pair for paired in compared for pair in paired.pairs])
    metrics = _metrics(pooled, benchmark)
    rows: list[Row] = []
    for paired in compared:
        cells: dict[str, Cell] = {}
        for metric in metrics:
            measured = _build_cells(paired, _metric_filter(metric), benchmark)
            cells[f"{metric} r"] = measured["Pearson"]
            cells[f"{metric} MAE"] = measured["MAE"]
        rows.append(Row(paired.name, cells, kind="part", run=paired.run, judge=paired.judge))
    columns = tuple(f"{metric} {measure}" for metric in metrics for measure in ("r", "MAE"))
    title = "Pearson's r and MAE, by model and metric"
    return Table(title, columns, tuple(rows), POOLED_NOTE, benchmark.presentation.digits, "mixed")


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
    rows = [_build_row(label, paired, keep, benchmark) for label, keep in filters.items()]
    return Table(title, _columns(paired), tuple(rows), _fill_note(paired), benchmark.presentation.digits, "mixed")


def _build_row(label: str, paired: PairedVerdicts, keep: VerdictFilter, benchmark: Benchmark) -> Row:
    return Row(label, _build_cells(paired, keep, benchmark), kind="part", run=paired.run, judge=paired.judge)


def _columns(paired: PairedVerdicts) -> tuple[str, ...]:
    return ("n", "dialogues", "judge", _other_column(paired), "Pearson", "Spearman", "Kendall", "MAE", "bias")


def _fill_note(paired: PairedVerdicts) -> str:
    return NOTE.replace("OTHER", _other_column(paired))


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
    label = f"{format_number(full * index / BINS, decimals)} to {format_number(full * (index + 1) / BINS, decimals)}"
    judge = NullableEstimate(point.judge, point.low, point.high)
    reference = NullableEstimate(point.reference)
    cells = {
        "n": build_count_cell(point.n, verdicts),
        _other_column(paired): build_measure_cell(reference, point.n, verdicts, full=full, digits=digits),
        "judge": build_measure_cell(judge, point.n, verdicts, full=full, digits=digits),
    }
    return Row(label, cells, kind="part", run=paired.run, judge=paired.judge)
