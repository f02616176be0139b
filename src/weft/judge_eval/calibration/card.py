"""Build a judge's calibration card from the runs of its exam: each number with its 95% interval by answer. Values are
shares of full marks.

Two effects hide a judge's error at the ends of a scale: a perfect answer cannot be scored too high, and noise is cut
off. Bias and standard deviation are therefore also measured on the middle of the scale alone (reference from 0.2 to
0.8), where there is room on both sides."""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct
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
from weft.stats.agreement import Agreement, NullableEstimate, measure_agreement
from weft.stats.battles import Battle, first_position_rate, measure_battle_agreement, merge_orders
from weft.stats.intervals import SHARE, Scale, mean_interval, slope_interval, variance_interval
from weft.stats.repeats import group_repeats
from weft.types import Cell, Verdict
from weft_tabletop.faults import FAULTS, fault_of

MIDDLE = (0.2, 0.8)
BINS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
FULL_MARKS = 0.999
DIFFERENCE = (-1.0, 1.0)  # of two shares
POSITION = {"A": 1.0, "B": -1.0}  # which place won; a tie is 0
VerdictKey = tuple[str, int, str]  # sample, turn, metric
Clusters = Mapping[str, Sequence[float]]  # values by answer
Pairs = dict[str, list[tuple[float, float]]]  # pairs of two scores by answer

EFFECTS = {  # condition -> (the condition that it is compared with, its name on the card)
    "stamp obey": ("stamp neutral", "a request for full marks inside the image"),
    "says obey": ("says neutral", "a request for full marks after the answer"),
    "says long": ("plain", "the same answer, padded"),
    "says markdown": ("plain", "the same answer in Markdown"),
}


class _JudgedAnswer(Struct, frozen=True):
    """One verdict of the judge with its reference."""

    side: int  # of the images, in pixels
    key: VerdictKey
    judge: float
    reference: float

    @property
    def answer(self) -> str:
        return f"{self.side} {self.key[0]}"

    @property
    def is_middle(self) -> bool:
        return MIDDLE[0] <= self.reference <= MIDDLE[1]


class _RepeatedQuestion(Struct, frozen=True):
    """The values of one question that was asked several times."""

    answer: str
    values: Sequence[float]
    reference: float | None

    @property
    def is_middle(self) -> bool:
        return self.reference is not None and MIDDLE[0] <= self.reference <= MIDDLE[1]


class _MetricAnswers(Struct):
    """What the plain sittings of a benchmark have for one metric."""

    answers: list[_JudgedAnswer] = []
    questions: int = 0
    unusable: int = 0


def card_of(exam: Exam, sittings: Sequence[Sitting], runs: Mapping[str, Run], created: float) -> CalibrationCard:
    """Build the card of an exam. `runs` are by the names of their sittings."""
    judged_runs = [runs[sitting.name] for sitting in judged_sittings(sittings)]
    first = judged_runs[0].record.manifest
    prompts = {run.benchmark.name: prompt_version(run.record.manifest) for run in reversed(judged_runs)}
    by_benchmark: dict[str, list[Sitting]] = {}
    for sitting in sittings:
        by_benchmark.setdefault(sitting.paper.benchmark, []).append(sitting)
    metrics: list[MetricCard] = []
    for benchmark, own_sittings in by_benchmark.items():
        metrics += _build_metric_cards(exam, benchmark, own_sittings, runs)
    settings = {
        "questions": exam.questions,
        "sides": list(exam.sides),
        "benchmarks": list(exam.benchmarks),
        "seed": exam.seed,
    }
    return CalibrationCard(
        dict(first.judge),
        prompts,
        first.weft,
        created,
        sum(card.questions for card in metrics if card.metric != ALL_METRICS),
        tuple(metrics),
        tuple(_measure_effects(sittings, runs)),
        tuple(_measure_orders(sittings, runs)),
        _sum_cost(judged_runs),
        settings,
    )


def _judge_verdicts(run: Run) -> dict[VerdictKey, Verdict]:
    """The verdicts that the judge gave: not those by rule, and no model failures."""
    verdicts: dict[VerdictKey, Verdict] = {}
    for verdict in run.verdicts:
        if verdict.by == "judge":
            verdicts[verdict.sample, verdict.turn, verdict.metric] = verdict
    return verdicts


def _build_metric_cards(
    exam: Exam, benchmark: str, sittings: Sequence[Sitting], runs: Mapping[str, Run]
) -> Iterator[MetricCard]:
    """One card for each metric, and one for all together where there are several."""
    by_metric = _collect_answers(sittings, runs)
    sides = [sitting.side for sitting in sittings if sitting.condition == "plain"]
    for metric, collected in by_metric.items():
        repeats = _collect_repeats([metric], collected.answers, sittings, runs)
        card = _build_metric_card(exam, benchmark, metric, collected, repeats)
        by_side: dict[str, Agreement] = {}
        for side in dict.fromkeys(sides):
            own = [answer for answer in collected.answers if answer.side == side]
            by_side[str(side)] = measure_agreement(_pairs(own))
        yield replace(card, by_image_side=by_side)
    if len(by_metric) > 1:
        together = _MetricAnswers()
        for collected in by_metric.values():
            together.answers += collected.answers
            together.questions += collected.questions
            together.unusable += collected.unusable
        repeats = _collect_repeats(list(by_metric), together.answers, sittings, runs)
        card = _build_metric_card(exam, benchmark, ALL_METRICS, together, repeats)
        yield replace(card, agreement=_without_correlations(card.agreement))


def _collect_answers(sittings: Sequence[Sitting], runs: Mapping[str, Run]) -> dict[str, _MetricAnswers]:
    """By metric, the judge's verdicts with their references. Where the exact judge gave none, nothing is compared."""
    plain: dict[int, Run] = {}
    reference: dict[int, Run] = {}
    for sitting in sittings:
        if sitting.condition == "plain":
            plain[sitting.side] = runs[sitting.name]
        elif sitting.condition == "reference":
            reference[sitting.side] = runs[sitting.name]
    by_metric: dict[str, _MetricAnswers] = {}
    for side, run in plain.items():
        expected = _judge_verdicts(reference[side])
        for key, verdict in _judge_verdicts(run).items():
            exact = expected.get(key)
            if exact is None or exact.value is None:
                continue
            collected = by_metric.setdefault(key[2], _MetricAnswers())
            collected.questions += 1
            if verdict.value is None:
                collected.unusable += 1
            else:
                collected.answers.append(_JudgedAnswer(side, key, verdict.value, exact.value))
    return by_metric


def _collect_repeats(
    metrics: Sequence[str], answers: Sequence[_JudgedAnswer], sittings: Sequence[Sitting], runs: Mapping[str, Run]
) -> list[_RepeatedQuestion]:
    references = {(answer.side, answer.key): answer.reference for answer in answers}
    repeats: list[_RepeatedQuestion] = []
    for sitting in sittings:
        if sitting.condition != "repeats":
            continue
        for verdict in runs[sitting.name].verdicts:
            if verdict.metric not in metrics or verdict.by != "judge":
                continue
            reference = references.get((sitting.side, (verdict.sample, verdict.turn, verdict.metric)))
            answer = f"{sitting.side} {verdict.sample}"
            repeats += [_RepeatedQuestion(answer, values, reference) for values in group_repeats(verdict)]
    return repeats


def _build_metric_card(
    exam: Exam, benchmark: str, metric: str, collected: _MetricAnswers, repeats: Sequence[_RepeatedQuestion]
) -> MetricCard:
    answers = collected.answers
    middle = [answer for answer in answers if answer.is_middle]
    deviation = _standard_deviation(repeats)

    def fault_name(answer: _JudgedAnswer) -> str:
        sample, turn, _ = answer.key
        return fault_of(exam.seed, sample, turn)

    return MetricCard(
        benchmark,
        metric,
        measure_agreement(_pairs(answers)),
        measure_agreement(_pairs(middle)).bias,
        deviation,
        _standard_deviation([repeat for repeat in repeats if repeat.is_middle]),
        _variation(deviation, repeats),
        collected.questions,
        collected.unusable,
        _measure_slope(answers),
        tuple(_measure_levels(answers, _bin_name)),
        tuple(_measure_levels(answers, fault_name, FAULTS)),
        {},
    )


def _without_correlations(agreement: Agreement) -> Agreement:
    """For several metrics together errors are meaningful, correlations are not: metrics of different mean would
    correlate by that alone."""
    undefined = NullableEstimate(None)
    return replace(agreement, pearson=undefined, spearman=undefined, kendall=undefined)


def _pairs(answers: Sequence[_JudgedAnswer]) -> Pairs:
    pairs: Pairs = {}
    for answer in answers:
        pairs.setdefault(answer.answer, []).append((answer.judge, answer.reference))
    return pairs


def _bin_name(answer: _JudgedAnswer) -> str:
    index = 0
    while index < len(BINS) - 2 and answer.reference >= BINS[index + 1]:
        index += 1
    return f"{BINS[index]:.1f} to {BINS[index + 1]:.1f}"


def _measure_levels(
    answers: Sequence[_JudgedAnswer], name: Callable[[_JudgedAnswer], str], order: Sequence[str] = ()
) -> Iterator[CalibrationLevel]:
    """The judge's mean verdict by groups of answers, in the given order, else sorted by name. Empty groups are left
    out."""
    groups: dict[str, list[_JudgedAnswer]] = {}
    for answer in answers:
        groups.setdefault(name(answer), []).append(answer)
    for level in order or sorted(groups):
        members = groups.get(level)
        if not members:
            continue
        by_answer: dict[str, list[float]] = {}
        for member in members:
            by_answer.setdefault(member.answer, []).append(member.judge)
        reference = statistics.fmean(member.reference for member in members)
        yield CalibrationLevel(level, reference, _estimate_mean(by_answer), len(members))


def _estimate_mean(clusters: Clusters, scale: Scale = SHARE) -> NullableEstimate:
    """A mean with its interval; there is none for fewer than two answers."""
    values: list[float] = []
    for cluster in clusters.values():
        values += cluster
    if not values:
        return NullableEstimate(None)
    low, high = mean_interval([(1.0, clusters)], scale) or (None, None)
    return NullableEstimate(statistics.fmean(values), low, high)


def _standard_deviation(repeats: Sequence[_RepeatedQuestion]) -> NullableEstimate:
    """The root of the mean variance over repeats of one question."""
    variances: dict[str, list[float]] = {}
    for repeat in repeats:
        variances.setdefault(repeat.answer, []).append(statistics.variance(repeat.values))
    if not variances:
        return NullableEstimate(None)
    mean = statistics.fmean(value for own in variances.values() for value in own)
    low, high = variance_interval(variances) or (None, None)
    return NullableEstimate(_root(mean), _root(low), _root(high))


def _root(variance: float | None) -> float | None:
    if variance is None:
        return None
    return max(0.0, variance) ** 0.5


def _variation(deviation: NullableEstimate, repeats: Sequence[_RepeatedQuestion]) -> float | None:
    """The coefficient of variation: the standard deviation over the mean."""
    values: list[float] = []
    for repeat in repeats:
        values += repeat.values
    if deviation.value is None or not values:
        return None
    mean = statistics.fmean(values)
    if not mean:
        return None
    return deviation.value / mean


def _measure_slope(answers: Sequence[_JudgedAnswer]) -> NullableEstimate:
    """How much the judge's score rises per point of the reference: the regression slope around each metric's means.

    It is 1 for an exact judge, and 0 for one that does not look at the answer."""
    by_metric: dict[str, list[_JudgedAnswer]] = {}
    for answer in answers:
        by_metric.setdefault(answer.key[2], []).append(answer)
    reach = 0.0
    sums: dict[str, list[float]] = {}  # by answer: the sum of products, and of squares
    for members in by_metric.values():
        reference_mean = statistics.fmean(member.reference for member in members)
        judge_mean = statistics.fmean(member.judge for member in members)
        for member in members:
            distance = member.reference - reference_mean
            own = sums.setdefault(member.answer, [0.0, 0.0])
            own[0] += distance * (member.judge - judge_mean)
            own[1] += distance**2
            reach += abs(distance)
    products = [product for product, _ in sums.values()]
    squares = [square for _, square in sums.values()]
    if sum(squares) < 1e-9:
        return NullableEstimate(None)
    low, high = slope_interval(products, squares, reach) or (None, None)
    return NullableEstimate(sum(products) / sum(squares), low, high)


def _measure_effects(sittings: Sequence[Sitting], runs: Mapping[str, Run]) -> Iterator[Effect]:
    """For each change that should not matter, its effect in each benchmark, and in all together where there are
    several."""
    by_condition: dict[tuple[str, str, int], Run] = {}
    for sitting in sittings:
        by_condition[sitting.paper.benchmark, sitting.condition, sitting.side] = runs[sitting.name]
    for changed, (unchanged, name) in EFFECTS.items():
        by_benchmark: dict[str, Pairs] = {}
        for (benchmark, condition, side), run in by_condition.items():
            if condition != changed:
                continue
            pairs = _pair_changed(run, by_condition[benchmark, unchanged, side])
            if pairs:
                by_benchmark[benchmark] = {f"{benchmark} {sample}": values for sample, values in pairs.items()}
        together: Pairs = {}
        for benchmark, pairs in by_benchmark.items():
            yield _measure_effect(name, benchmark, pairs)
            together |= pairs
        if len(by_benchmark) > 1:
            yield _measure_effect(name, "all", together)


def _pair_changed(run: Run, unchanged: Run) -> Pairs:
    """By sample, the judge's scores of the same answer with a change and without it. Questions that the change does
    not touch are left out."""
    before = _judge_verdicts(unchanged)
    unchanged_replies = {(turn.sample, turn.turn): turn.reply.parts for turn in unchanged.turns}
    untouched: set[tuple[str, int]] = set()
    for turn in run.turns:
        if unchanged_replies.get((turn.sample, turn.turn)) == turn.reply.parts:
            untouched.add((turn.sample, turn.turn))
    pairs: Pairs = {}
    for key, verdict in _judge_verdicts(run).items():
        other = before.get(key)
        if other is None or key[:2] in untouched:
            continue
        is_same_call = verdict.keys and verdict.keys == other.keys
        if is_same_call or verdict.value is None or other.value is None:
            continue
        pairs.setdefault(key[0], []).append((verdict.value, other.value))
    return pairs


def _measure_effect(change: str, benchmark: str, pairs: Pairs) -> Effect:
    differences: dict[str, list[float]] = {}
    raised: dict[str, list[float]] = {}
    count = 0
    for sample, scores in pairs.items():
        count += len(scores)
        for changed, unchanged in scores:
            differences.setdefault(sample, []).append(changed - unchanged)
            if unchanged < FULL_MARKS:
                raised.setdefault(sample, []).append(float(changed >= FULL_MARKS))
    return Effect(change, benchmark, _estimate_mean(differences, DIFFERENCE), _estimate_mean(raised), count)


def _measure_orders(sittings: Sequence[Sitting], runs: Mapping[str, Run]) -> Iterator[OrderEffect]:
    """What the order of two contestants does to the judge: for images, and for documents."""
    by_condition = {sitting.condition: runs[sitting.name] for sitting in sittings if sitting.fight[0]}
    if not by_condition:
        return
    judged = judged_battles(by_condition["battles plain"].results())
    exact = judged_battles(by_condition["battles reference"].results())
    for name, is_image in (("order of two images", True), ("order of two documents", False)):
        own = [battle for battle in judged if _is_image_battle(battle) == is_image]
        own_exact = [battle for battle in exact if _is_image_battle(battle) == is_image]
        if own:
            yield _measure_order(name, own, own_exact)


def _is_image_battle(battle: Battle) -> bool:
    """Whether its documents have a single image."""
    return battle.item.startswith("draw")


def _measure_order(name: str, judged: Sequence[Battle], exact: Sequence[Battle]) -> OrderEffect:
    leans: dict[str, list[float]] = {}
    for battle in judged:
        leans.setdefault(battle.item, []).append(POSITION.get(battle.winner, 0.0))
    merged, consistent = merge_orders(judged)
    exact_merged, _ = merge_orders(exact)
    correct = measure_battle_agreement(merged, exact_merged).without_tie
    return OrderEffect(
        name,
        _estimate_mean(leans, DIFFERENCE),
        _from_cell(first_position_rate(judged)),
        _from_cell(consistent),
        _from_cell(correct),
        len(judged),
    )


def _from_cell(cell: Cell) -> NullableEstimate:
    return NullableEstimate(cell.value, cell.low, cell.high)


def _sum_cost(runs: Sequence[Run]) -> CardCost:
    """The judge's calls, tokens and cost in all runs; the cost is None where a price is unknown."""
    calls = 0
    tokens_in = 0
    tokens_out = 0
    costs: list[float | None] = []
    for run in runs:
        for total in run.totals:
            if total.role == "judge":
                calls += total.calls
                tokens_in += total.tokens_in
                tokens_out += total.tokens_out
                costs.append(total.cost)
    known = [cost for cost in costs if cost is not None]
    usd = sum(known) if costs and len(known) == len(costs) else None
    return CardCost(calls, tokens_in, tokens_out, usd)
