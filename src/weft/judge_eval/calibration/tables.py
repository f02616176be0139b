"""A calibration card as tables and as findings in words. Values are shares of full marks, with 95% intervals by
answer."""

from collections.abc import Iterator, Mapping, Sequence

from weft.results.cards import ALL_METRICS, CalibrationCard, CalibrationLevel, Effect, MetricCard, OrderEffect
from weft.rounding import format_number
from weft.stats.agreement import NullableEstimate
from weft.types import Cell, Row, Table
from weft_tabletop.faults import FAULT_NAMES

AGREEMENT_COLUMNS = ("n", "Pearson", "Spearman", "Kendall", "slope", "MAE", "bias", "bias, middle", "unusable %")
REPEAT_COLUMNS = ("standard deviation", "standard deviation, middle", "variation %")
EFFECT_COLUMNS = ("difference", "raised to full %", "n")
ORDER_COLUMNS = ("position bias", "first wins %", "both orders agree %", "correct %", "n")
AGREEMENT_NOTE = (
    "Shares of full marks; the reference is exact. slope: the rise of its score per point of the reference. bias, "
    "middle: where the reference is from 0.2 to 0.8, with room on both sides."
)
REPEAT_NOTE = (
    "The same question asked again: the standard deviation of its scores (root mean square), and over their mean "
    "(variation)."
)
EFFECT_NOTE = (
    "Against the same answer without the change; a request for full marks is compared with a line as long that asks "
    "for nothing. raised to full: of the answers below full marks."
)
ORDER_NOTE = (
    "Every pair in both orders. position bias: the mean lean to the first place, -1 to 1. correct: of the battles that "
    "both the judge and the reference decide."
)
MIN_DIFFERENCE = 0.02  # of full marks: smaller effects are no findings
MIN_DEVIATION = 0.03
MIN_RAISED = 0.05
MAX_UNUSABLE = 0.05
BLIND_SLOPE = 0.4
LOW_PEARSON = 0.5
Cells = Mapping[str, Cell]


def tables(card: CalibrationCard) -> list[Table]:
    """All tables of a card, agreement with the reference first."""
    return [*_build_tables(card)]


def _build_tables(card: CalibrationCard) -> Iterator[Table]:
    name = card.name
    metrics = [metric for metric in card.metrics if metric.metric != ALL_METRICS]
    agreement = {_label(metric): _agreement_cells(metric) for metric in card.metrics}
    yield _build_table(f"{name} against the reference", AGREEMENT_COLUMNS, agreement, AGREEMENT_NOTE)
    repeated = [metric for metric in card.metrics if metric.standard_deviation.value is not None]
    if repeated:
        rows = {_label(metric): _repeat_cells(metric) for metric in repeated}
        yield _build_table(f"{name}, asked again", REPEAT_COLUMNS, rows, REPEAT_NOTE)
    yield _fault_table(name, card.metrics, metrics)
    bins = sorted({level.name for metric in card.metrics for level in metric.curve})
    curves = {_label(metric): _level_cells(metric.curve) for metric in metrics}
    title = f"{name}, reliability: its mean verdict where the reference lies between"
    yield _build_table(title, tuple(bins), curves, "Means of its verdicts.")
    if any(len(metric.by_image_side) > 1 for metric in card.metrics):
        yield _image_size_table(name, card.metrics)
    if card.effects:
        rows = {f"{effect.change}: {effect.benchmark}": _effect_cells(effect) for effect in card.effects}
        yield _build_table(f"{name}, changes that should not matter", EFFECT_COLUMNS, rows, EFFECT_NOTE)
    if card.orders:
        rows = {order.battles: _order_cells(order) for order in card.orders}
        yield _build_table(f"{name}, battles", ORDER_COLUMNS, rows, ORDER_NOTE)


def _fault_table(name: str, all_metrics: Sequence[MetricCard], metrics: Sequence[MetricCard]) -> Table:
    faults: dict[str, None] = {}
    for metric in all_metrics:
        faults |= dict.fromkeys(level.name for level in metric.faults)
    rows: dict[str, Cells] = {}
    for metric in metrics:
        rows[_label(metric)] = {FAULT_NAMES[level.name]: _cell(level.judge) for level in metric.faults}
        rows[f"{_label(metric)}, reference"] = {
            FAULT_NAMES[level.name]: Cell(level.reference) for level in metric.faults
        }
    note = "Its mean verdict on answers with a known fault, and the reference."
    return _build_table(f"{name}, fault by fault", tuple(FAULT_NAMES[fault] for fault in faults), rows, note)


def _image_size_table(name: str, metrics: Sequence[MetricCard]) -> Table:
    columns: dict[str, None] = {}
    rows: dict[str, Cells] = {}
    for metric in metrics:
        cells: dict[str, Cell] = {}
        for side, agreement in metric.by_image_side.items():
            cells[f"Pearson, {side} px"] = _cell(agreement.pearson)
            cells[f"MAE, {side} px"] = _cell(agreement.mae)
        if cells:
            columns |= dict.fromkeys(cells)
            rows[_label(metric)] = cells
    return _build_table(f"{name}, by size of the images", tuple(columns), rows, "Different answers at each size.")


def _build_table(title: str, columns: tuple[str, ...], rows: Mapping[str, Cells], note: str) -> Table:
    built = tuple(Row(label, cells, kind="part") for label, cells in rows.items())
    return Table(title, columns, built, note, 3, "mixed")


def _label(metric: MetricCard) -> str:
    return f"{metric.benchmark}: {metric.metric}"


def _cell(estimate: NullableEstimate, factor: float = 1.0, digits: int | None = None) -> Cell:
    value = _scale(estimate.value, factor)
    return Cell(value, low=_scale(estimate.low, factor), high=_scale(estimate.high, factor), digits=digits)


def _scale(number: float | None, factor: float) -> float | None:
    if number is None:
        return None
    return factor * number


def _count_cell(count: int) -> Cell:
    return Cell(float(count), count=True)


def _level_cells(levels: Sequence[CalibrationLevel]) -> Cells:
    return {level.name: _cell(level.judge) for level in levels}


def _agreement_cells(metric: MetricCard) -> Cells:
    agreement = metric.agreement
    unusable = None
    if metric.questions:
        unusable = 100 * metric.unusable / metric.questions
    return {
        "n": _count_cell(agreement.n),
        "Pearson": _cell(agreement.pearson),
        "Spearman": _cell(agreement.spearman),
        "Kendall": _cell(agreement.kendall),
        "slope": _cell(metric.slope),
        "MAE": _cell(agreement.mae),
        "bias": _cell(agreement.bias),
        "bias, middle": _cell(metric.bias),
        "unusable %": Cell(unusable, digits=1),
    }


def _repeat_cells(metric: MetricCard) -> Cells:
    return {
        "standard deviation": _cell(metric.standard_deviation),
        "standard deviation, middle": _cell(metric.standard_deviation_middle),
        "variation %": Cell(_scale(metric.variation, 100), digits=1),
    }


def _effect_cells(effect: Effect) -> Cells:
    return {
        "difference": _cell(effect.difference),
        "raised to full %": _cell(effect.raised, 100, 1),
        "n": _count_cell(effect.n),
    }


def _order_cells(order: OrderEffect) -> Cells:
    return {
        "position bias": _cell(order.position_bias),
        "first wins %": _cell(order.first_wins, digits=1),
        "both orders agree %": _cell(order.consistent, digits=1),
        "correct %": _cell(order.correct, digits=1),
        "n": _count_cell(order.n),
    }


def findings(card: CalibrationCard) -> list[str]:
    """What a reader must know, in words: only what the 95% intervals leave no doubt about."""
    lines: list[str] = []
    for metric in card.metrics:
        if metric.metric != ALL_METRICS:
            lines += [f"{_label(metric)}: {finding}" for finding in _metric_findings(metric)]
    for effect in card.effects:
        if effect.benchmark != "all":
            lines += _effect_findings(effect)
    for order in card.orders:
        lines += _order_findings(order)
    return lines


def _metric_findings(metric: MetricCard) -> Iterator[str]:
    is_blind = _is_constant(metric) or (metric.slope.high is not None and metric.slope.high < BLIND_SLOPE)
    pearson = metric.agreement.pearson
    if _is_constant(metric):
        yield f"it gives everything the same score ({format_number(metric.agreement.judge.value or 0.0, 3)})"
    elif is_blind:
        yield f"it does not look: per point of the reference its score rises by {metric.slope}"
    elif pearson.high is not None and pearson.high < LOW_PEARSON:
        yield f"it hardly follows the reference (Pearson {pearson})"
    if not is_blind and _excludes(metric.bias, MIN_DIFFERENCE):
        direction = "lenient" if (metric.bias.low or 0.0) > 0 else "strict"
        yield f"it is too {direction} by {metric.bias} of full marks, in the middle of the scale"
    deviation = metric.standard_deviation_middle
    if deviation.low is not None and deviation.low > MIN_DEVIATION:
        yield f"asked again it gives other scores: standard deviation {deviation} of full marks"
    if metric.questions and metric.unusable / metric.questions > MAX_UNUSABLE:
        yield f"{metric.unusable} of {metric.questions} replies were unusable"


def _is_constant(metric: MetricCard) -> bool:
    """Whether the judge gives one score to answers whose references differ."""
    return metric.agreement.n > 1 and metric.agreement.pearson.value is None and metric.slope.value is not None


def _excludes(estimate: NullableEstimate, margin: float) -> bool:
    """Whether the interval is farther than the margin from zero."""
    if estimate.low is None or estimate.high is None:
        return False
    return estimate.low > margin or estimate.high < -margin


def _effect_findings(effect: Effect) -> Iterator[str]:
    if not _excludes(effect.difference, MIN_DIFFERENCE):
        return
    verb = "raises" if (effect.difference.low or 0.0) > 0 else "lowers"
    line = (
        f"{effect.benchmark}: {effect.change} {verb} its score by {format_number(abs(effect.difference.value or 0), 2)}"
    )
    raised = effect.raised.value or 0.0
    if raised > MIN_RAISED:
        line += f"; {format_number(100 * raised, 0)}% of the answers below full marks get full marks"
    yield line


def _order_findings(order: OrderEffect) -> Iterator[str]:
    if not _excludes(order.position_bias, 0.0):
        return
    place = "first" if (order.position_bias.low or 0.0) > 0 else "second"
    contestants = "images" if "image" in order.battles else "documents"
    yield f"battles of {contestants}: it prefers the {place} of two (position bias {order.position_bias})"
