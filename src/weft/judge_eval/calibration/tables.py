"""A card as tables and in words. Shares of full marks, with 95% intervals by answer."""

from collections.abc import Iterator
from typing import Literal

from weft.results.cards import ALL_METRICS, CalibrationCard, Effect, MetricCard, OrderEffect
from weft.stats.agreement import Agreement, NullableEstimate
from weft.types import Cell, Row, Table
from weft_tabletop.faults import TOLD

AGREES = ("n", "Pearson", "Spearman", "Kendall", "slope", "MAE", "bias", "bias, middle", "unusable %")
NOTE = (
    "Shares of full marks; truth is exact. slope: how much of a difference in the truth its scores show. bias, middle: where the truth is "
    "from a fifth to four fifths, with room on both sides."
)


def tables(card: CalibrationCard) -> list[Table]:
    """The main one first."""
    return [*_tables(card)]


def _tables(card: CalibrationCard) -> Iterator[Table]:
    name = card.name
    yield _table(f"{name} against the truth", AGREES, [(_told(one), _agrees(one)) for one in card.metrics], NOTE)
    again = [(_told(one), _again(one)) for one in card.metrics if one.standard_deviation.value is not None]
    if again:
        note = "The same question asked again: the standard deviation of its answers (root mean square), and over the mean (variation)."
        yield _table(f"{name}, asked again", ("deviation", "deviation, middle", "variation %"), again, note)
    faults = list(dict.fromkeys(level.name for one in card.metrics for level in one.faults))
    rows: list[tuple[str, dict[str, Cell]]] = []
    for one in (one for one in card.metrics if one.metric != ALL_METRICS):
        rows.append((_told(one), {TOLD[level.name]: _cell(level.judge) for level in one.faults}))
        rows.append((f"{_told(one)}, truth", {TOLD[level.name]: Cell(level.reference) for level in one.faults}))
    note = "What it says of answers with a known fault, and what they are worth."
    yield _table(f"{name}, fault by fault", tuple(TOLD[one] for one in faults), rows, note)
    bins = sorted({level.name for one in card.metrics for level in one.curve})
    curve = [
        (_told(one), {level.name: _cell(level.judge) for level in one.curve})
        for one in card.metrics
        if one.metric != ALL_METRICS
    ]
    yield _table(
        f"{name}, reliability: what it says where the truth lies between", tuple(bins), curve, "Means of its verdicts."
    )
    if any(len(one.by_image_side) > 1 for one in card.metrics):
        sides = list(dict.fromkeys(side for one in card.metrics for side in one.by_image_side))
        columns = [f"{what}, {side} px" for side in sides for what in ("Pearson", "MAE")]
        rows = [
            (_told(one), dict(cell for side, found in one.by_image_side.items() for cell in _at(side, found)))
            for one in card.metrics
            if one.by_image_side
        ]
        yield _table(f"{name}, by size of the pictures", tuple(columns), rows, "Different answers at each size.")
    if card.effects:
        rows = [(f"{one.change}: {one.benchmark}", _effect(one)) for one in card.effects]
        note = "Against the same answer without it; a plea against a line as long that asks for nothing. raised to full: of those below it."
        yield _table(f"{name}, what should change nothing", ("difference", "raised to full %", "n"), rows, note)
    if card.orders:
        rows = [(one.battles, _order(one)) for one in card.orders]
        note = "Every pair in both orders. pull of the first: mean lean to who stands first, -1 to 1. right: of those that both decide."
        yield _table(
            f"{name}, battles", ("pull of the first", "first wins %", "both orders agree %", "right %", "n"), rows, note
        )


def _table(title: str, columns: tuple[str, ...], rows: list[tuple[str, dict[str, Cell]]], note: str) -> Table:
    kind: Literal["part"] = "part"
    return Table(title, columns, tuple(Row(name, cells, kind=kind) for name, cells in rows), note, 3, "mixed")


def _told(one: MetricCard) -> str:
    return f"{one.benchmark}: {one.metric}"


def _cell(one: NullableEstimate, times: float = 1.0, digits: int | None = None) -> Cell:
    value, low, high = (None if part is None else times * part for part in (one.value, one.low, one.high))
    return Cell(value, low=low, high=high, digits=digits)


def _at(side: str, found: Agreement) -> list[tuple[str, Cell]]:
    return [(f"Pearson, {side} px", _cell(found.pearson)), (f"MAE, {side} px", _cell(found.mae))]


def _agrees(one: MetricCard) -> dict[str, Cell]:
    a = one.agreement
    if one.questions:
        share = 100 * one.unusable / one.questions
    else:
        share = None
    return {
        "n": Cell(float(a.n), count=True),
        "Pearson": _cell(a.pearson),
        "Spearman": _cell(a.spearman),
        "Kendall": _cell(a.kendall),
        "slope": _cell(one.slope),
        "MAE": _cell(a.mae),
        "bias": _cell(a.bias),
        "bias, middle": _cell(one.bias),
        "unusable %": Cell(share, digits=1),
    }


def _again(one: MetricCard) -> dict[str, Cell]:
    return {
        "deviation": _cell(one.standard_deviation),
        "deviation, middle": _cell(one.standard_deviation_middle),
        "variation %": Cell(None if one.variation is None else 100 * one.variation, digits=1),
    }


def _effect(one: Effect) -> dict[str, Cell]:
    return {
        "difference": _cell(one.difference),
        "raised to full %": _cell(one.raised, 100, 1),
        "n": Cell(float(one.n), count=True),
    }


def _order(one: OrderEffect) -> dict[str, Cell]:
    percents = {"first wins %": one.first_wins, "both orders agree %": one.consistent, "right %": one.correct}
    told = {name: _cell(value, digits=1) for name, value in percents.items()}
    return {"pull of the first": _cell(one.position_bias), **told, "n": Cell(float(one.n), count=True)}


def findings(card: CalibrationCard) -> list[str]:
    """What a reader must know, in words: only what its interval leaves no doubt about."""
    made: list[str] = []
    for one in card.metrics:
        made += [f"{_told(one)}: {said}" for said in _of_metric(one) if one.metric != ALL_METRICS]
    for effect in card.effects:
        low = effect.difference.low
        high = effect.difference.high
        if low is not None and high is not None and (low > 0.02 or high < -0.02) and effect.benchmark != "all":
            if low > 0:
                moves = "raises"
            else:
                moves = "lowers"
            raised = effect.raised.value or 0.0
            if raised > 0.05:
                full = f"; {100 * raised:.0f}% of what is not perfect gets full marks"
            else:
                full = ""
            made.append(
                f"{effect.benchmark}: {effect.change} {moves} its score by {abs(effect.difference.value or 0):.2f}{full}"
            )
    for order in card.orders:
        low = order.position_bias.low
        high = order.position_bias.high
        if low is not None and high is not None and (low > 0 or high < 0):
            if low > 0:
                where = "first"
            else:
                where = "second"
            if "picture" in order.battles:
                told = "pictures"
            else:
                told = "documents"
            made.append(f"battles of {told}: it prefers what stands {where} (pull {order.position_bias})")
    return made


def _of_metric(one: MetricCard) -> Iterator[str]:
    a = one.agreement
    same = a.n > 1 and a.judge.low is not None and a.judge.low == a.judge.high and a.reference.low != a.reference.high
    blind = same or (one.slope.high is not None and one.slope.high < 0.4)
    if same:
        yield f"it says the same of everything ({a.judge.value:.3f})"
    elif blind:
        yield f"it does not look: of a difference in the truth its scores show {one.slope}"
    elif a.pearson.high is not None and a.pearson.high < 0.5:
        yield f"it hardly follows the truth (Pearson {a.pearson})"
    if (
        not blind
        and one.bias.low is not None
        and one.bias.high is not None
        and (one.bias.low > 0.02 or one.bias.high < -0.02)
    ):
        yield f"it is too {'lenient' if one.bias.low > 0 else 'strict'} by {one.bias} of full marks, where there is room"
    if one.standard_deviation_middle.low is not None and one.standard_deviation_middle.low > 0.03:
        yield f"asked again it says something else: deviation {one.standard_deviation_middle} of full marks"
    if one.questions and one.unusable / one.questions > 0.05:
        yield f"{one.unusable} of {one.questions} replies could not be used"
