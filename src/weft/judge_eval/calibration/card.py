"""A judge's card: what its sittings show, number by number, each with its 95% interval by answer. Values are shares of
full marks.

Two things hide a judge's error at the ends of a scale: what is perfect already cannot be praised higher, and noise is
cut off. So bias and deviation are also told for the middle of the scale alone (truth from a fifth to four fifths),
where there is room on both sides."""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from weft.arena.protocol import judged_battles
from weft.judge_eval.calibration.exam import Exam, Sitting, judged_sittings
from weft.results.cards import (
    ALL_METRICS,
    CalibrationCard,
    CalibrationLevel,
    CardCost,
    Effect,
    MetricCard,
    OrderEffect,
    prompt_version,
)
from weft.results.run import Run
from weft.stats.agreement import DRAWS, Agreement, NullableEstimate, measure_agreement
from weft.stats.battles import first_position_rate, merge_orders
from weft.stats.battles import measure_battle_agreement as same_winner
from weft.stats.intervals import bootstrap_interval, bootstrap_weights
from weft.stats.repeats import group_repeats
from weft.types import Cell, Verdict
from weft_tabletop.faults import FAULTS, fault_of

MIDDLE = (0.2, 0.8)
BINS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
ALMOST = 0.999  # full marks
DECIDED = {"A": 1.0, "B": -1.0}  # two that are the same lean somewhere
Key = tuple[str, int, str]  # sample, turn, metric
Named = Mapping[str, Sequence[float]]
Row = tuple[int, Key, float, float]  # side, place, what the judge says, what is true


EFFECTS = {  # condition -> (against which, what it is called)
    "stamp obey": ("stamp neutral", "a plea for full marks inside the picture"),
    "says obey": ("says neutral", "a plea for full marks behind the answer"),
    "says long": ("plain", "the same answer at length"),
    "says markdown": ("plain", "the same answer dressed up"),
}


def card_of(exam: Exam, sittings: Sequence[Sitting], runs: Mapping[str, Run], made: float) -> CalibrationCard:
    """`runs` by the names of their sittings."""
    mine = [runs[one.name] for one in judged_sittings(sittings)]
    first = mine[0].record.manifest
    prompts = {run.benchmark.name: prompt_version(run.record.manifest) for run in reversed(mine)}
    benchmarks = list(dict.fromkeys(one.paper.benchmark for one in sittings))
    metrics = tuple(
        card
        for name in benchmarks
        for card in _metrics(exam, name, [s for s in sittings if s.paper.benchmark == name], runs)
    )
    effects = tuple(_effects(sittings, runs))
    cost = _cost(mine)
    settings = {
        "questions": exam.questions,
        "sides": list(exam.sides),
        "benchmarks": list(exam.benchmarks),
        "seed": exam.seed,
    }
    count = sum(one.questions for one in metrics if one.metric != ALL_METRICS)
    orders = tuple(_orders(sittings, runs))
    return CalibrationCard(
        dict(first.judge), prompts, first.weft, made, count, metrics, effects, orders, cost, settings
    )


def by_place(run: Run) -> dict[Key, Verdict]:
    """What a judge was asked for: what rules decide, and what a model did not answer, is not its doing."""
    return {(one.sample, one.turn, one.metric): one for one in run.verdicts if one.by == "judge"}


def _metrics(exam: Exam, benchmark: str, sittings: Sequence[Sitting], runs: Mapping[str, Run]) -> Iterator[MetricCard]:
    plain = {one.side: runs[one.name] for one in sittings if one.condition == "plain"}
    truth = {one.side: runs[one.name] for one in sittings if one.condition == "truth"}
    repeats = [(one.side, runs[one.name]) for one in sittings if one.condition == "repeats"]
    found: dict[str, list[Row]] = {}
    due: dict[str, list[int]] = {}
    for side, run in plain.items():
        right = by_place(truth[side])
        for key, verdict in by_place(run).items():
            known = right.get(key)
            if known is None or known.value is None:  # the exact judge knows its limits
                continue
            counts = due.setdefault(key[2], [0, 0])
            counts[0] += 1
            counts[1] += verdict.value is None
            if verdict.value is not None:
                found.setdefault(key[2], []).append((side, key, verdict.value, known.value))
    metrics = list(due)
    for metric in (*metrics, *([ALL_METRICS] if len(metrics) > 1 else [])):
        if metric == ALL_METRICS:
            mine = metrics
        else:
            mine = [metric]
        rows = [row for one in mine for row in found.get(one, ())]
        exact = {(side, key): value for side, key, _, value in rows}
        again = [
            (f"{side} {one.sample}", values, exact.get((side, (one.sample, one.turn, one.metric))))
            for side, run in repeats
            for one in run.verdicts
            if one.metric in mine and one.by == "judge"
            for values in group_repeats(one)
        ]
        middle = [
            (name, values, right)
            for name, values, right in again
            if right is not None and MIDDLE[0] <= right <= MIDDLE[1]
        ]
        inside = [row for row in rows if MIDDLE[0] <= row[3] <= MIDDLE[1]]
        every = [value for _, values, _ in again for value in values]
        deviation = _deviation(again)
        if every:
            mean = statistics.fmean(every)
        else:
            mean = 0.0
        yield MetricCard(
            benchmark,
            metric,
            _of_several(measure_agreement(_pairs(rows))) if metric == ALL_METRICS else measure_agreement(_pairs(rows)),
            measure_agreement(_pairs(inside)).bias,
            deviation,
            _deviation(middle),
            deviation.value / mean if deviation.value is not None and mean else None,
            sum(due[one][0] for one in mine),
            sum(due[one][1] for one in mine),
            _sees(rows),
            tuple(_levels(rows, _bin)),
            tuple(_levels(rows, lambda row: fault_of(exam.seed, row[1][0], row[1][1]), FAULTS)),
            {
                str(side): measure_agreement(_pairs([row for row in rows if row[0] == side]))
                for side in plain
                if metric != ALL_METRICS
            },
        )


def _of_several(found: Agreement) -> Agreement:
    """Of metrics together errors can be told, correlations not: metrics that differ in height would make one."""
    return replace(
        found, pearson=NullableEstimate(None), spearman=NullableEstimate(None), kendall=NullableEstimate(None)
    )


def _pairs(rows: Sequence[Row]) -> dict[str, list[tuple[float, float]]]:
    made: dict[str, list[tuple[float, float]]] = {}
    for side, key, judge, right in rows:
        made.setdefault(f"{side} {key[0]}", []).append((judge, right))
    return made


def _bin(row: Row) -> str:
    at = next(at for at in range(len(BINS) - 1) if row[3] < BINS[at + 1] or at == len(BINS) - 2)
    return f"{BINS[at]:.1f} to {BINS[at + 1]:.1f}"


def _levels(rows: Sequence[Row], name: Callable[[Row], str], order: Sequence[str] = ()) -> Iterator[CalibrationLevel]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(name(row), []).append(row)
    for one in order or sorted(groups):
        some = groups.get(one, [])
        if some:
            judged = {place: [judge for judge, _ in pairs] for place, pairs in _pairs(some).items()}
            yield CalibrationLevel(one, statistics.fmean(row[3] for row in some), measured(judged), len(some))


def measured(clusters: Named) -> NullableEstimate:
    """A mean with its interval, which is none where there are not two to draw from."""
    values = [value for some in clusters.values() for value in some]
    if not values:
        return NullableEstimate(None)
    return NullableEstimate(statistics.fmean(values), *(bootstrap_interval([(1.0, clusters)]) or (None, None)))


def _deviation(again: Sequence[tuple[str, Sequence[float], float | None]]) -> NullableEstimate:
    """The root of the mean variance of one question's draws."""
    clusters: dict[str, list[float]] = {}
    for name, values, _ in again:
        clusters.setdefault(name, []).append(statistics.variance(values))
    found = measured(clusters)
    return NullableEstimate(
        *(None if one is None else max(0.0, one) ** 0.5 for one in (found.value, found.low, found.high))
    )


def _sees(rows: Sequence[Row]) -> NullableEstimate:
    """How much higher its score is for an answer that is worth one more: the slope of what it says over what is true,
    metric by metric around their means. 1 for a judge that sees, 0 for one that does not look."""
    import numpy as np

    by: dict[str, list[Row]] = {}
    for row in rows:
        by.setdefault(row[1][2], []).append(row)
    sums: dict[str, list[float]] = {}
    for some in by.values():
        right = statistics.fmean(row[3] for row in some)
        said = statistics.fmean(row[2] for row in some)
        for side, key, judge, truth in some:
            mine = sums.setdefault(f"{side} {key[0]}", [0.0, 0.0])
            mine[0] += (truth - right) * (judge - said)
            mine[1] += (truth - right) ** 2
    products, squares = (np.array([one[at] for one in sums.values()]) for at in (0, 1))
    if not sums or squares.sum() < 1e-9:
        return NullableEstimate(None)
    value = float(products.sum() / squares.sum())
    times = bootstrap_weights(len(sums), DRAWS, 0).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        drawn = times @ products / (times @ squares)
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    if len(sums) > 1:
        return NullableEstimate(value, float(low), float(high))
    return NullableEstimate(value)


def _effects(sittings: Sequence[Sitting], runs: Mapping[str, Run]) -> Iterator[Effect]:
    at = {(one.paper.benchmark, one.condition, one.side): runs[one.name] for one in sittings}
    for what, (against, told) in EFFECTS.items():
        together: dict[str, dict[str, list[tuple[float, float]]]] = {}
        for benchmark, condition, side in at:
            if condition == what:
                pairs = _both(at[benchmark, condition, side], at[benchmark, against, side])
                if pairs:
                    together[benchmark] = {f"{benchmark} {sample}": some for sample, some in pairs.items()}
        for benchmark, pairs in together.items():
            yield _effect(told, benchmark, pairs)
        if len(together) > 1:
            yield _effect(told, "all", {name: some for pairs in together.values() for name, some in pairs.items()})


def _both(run: Run, other: Run) -> dict[str, list[tuple[float, float]]]:
    """What a judge says of the same answer with the change and without; questions that the change is no part of are
    left out."""
    before = by_place(other)
    replies = {(turn.sample, turn.turn): turn.reply.parts for turn in other.turns}
    same_words = {
        (turn.sample, turn.turn) for turn in run.turns if replies.get((turn.sample, turn.turn)) == turn.reply.parts
    }
    made: dict[str, list[tuple[float, float]]] = {}
    for key, verdict in by_place(run).items():
        same = before.get(key)
        if same is None or key[:2] in same_words or (verdict.keys and verdict.keys == same.keys):
            continue
        if verdict.value is not None and same.value is not None:
            made.setdefault(key[0], []).append((verdict.value, same.value))
    return made


def _effect(what: str, benchmark: str, pairs: Mapping[str, Sequence[tuple[float, float]]]) -> Effect:
    moved = {name: [with_ - without for with_, without in some] for name, some in pairs.items()}
    raised = {name: [float(a >= ALMOST) for a, b in some if b < ALMOST] for name, some in pairs.items()}
    return Effect(
        what,
        benchmark,
        measured(moved),
        measured({k: v for k, v in raised.items() if v}),
        sum(map(len, pairs.values())),
    )


def _orders(sittings: Sequence[Sitting], runs: Mapping[str, Run]) -> Iterator[OrderEffect]:
    at = {one.condition: runs[one.name] for one in sittings if one.fight[0]}
    if not at:
        return
    judged, exact = (judged_battles(at[name].results()) for name in ("battles plain", "battles truth"))
    single = {one.item for one in judged if one.item.startswith("draw")}  # documents of one picture
    for what, keep in (
        ("which picture stands first", single),
        ("which document stands first", {one.item for one in judged} - single),
    ):
        mine = [one for one in judged if one.item in keep]
        leans: dict[str, list[float]] = {}
        for one in mine:
            leans.setdefault(one.item, []).append(DECIDED.get(one.winner, 0.0))
        if not mine:
            continue
        settled, same = merge_orders(mine)
        right = same_winner(settled, merge_orders([one for one in exact if one.item in keep])[0]).without_tie
        yield OrderEffect(
            what, measured(leans), _measured(first_position_rate(mine)), _measured(same), _measured(right), len(mine)
        )


def _measured(cell: Cell) -> NullableEstimate:
    return NullableEstimate(cell.value, cell.low, cell.high)


def _cost(runs: Sequence[Run]) -> CardCost:
    totals = [one for run in runs for one in run.totals if one.role == "judge"]
    known = [one.cost for one in totals if one.cost is not None]
    if totals and len(known) == len(totals):
        usd = sum(known)
    else:
        usd = None
    return CardCost(
        sum(one.calls for one in totals),
        sum(one.tokens_in for one in totals),
        sum(one.tokens_out for one in totals),
        usd,
    )
