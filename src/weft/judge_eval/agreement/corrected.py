"""A run's headline score, corrected: by people who annotated some of what its judge judged, or by the judge's
calibration card.

The corrected score is shown next to the plain one and never replaces it. Corrected by people it is prediction-powered
(`stats/prediction_powered.py`): unbiased whatever the judge does, provided that the annotated questions were drawn at
random. Corrected by a calibration card it assumes that the judge errs on this run as it did on the card's answers."""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from weft.benchmarks.paired_verdicts import build_count_cell, build_measure_cell
from weft.errors import UserError
from weft.judge_eval.agreement.pairs import mean_scores, verdict_key
from weft.judge_eval.agreement.scores import HumanScores, VerdictKey
from weft.results.run import Run, find_cluster, headline_score, headline_terms
from weft.stats.agreement import NullableEstimate
from weft.stats.prediction_powered import (
    PoweredEstimate,
    WeightedMean,
    estimate_powered_sum,
    subtract_bias,
    weigh_rated_items,
)
from weft.types import Cell, Row, Table, Verdict

HEADLINE = "headline score"
NOTE = (
    "plain: as everywhere else in this report. corrected by people: an estimate of the score that people would have "
    "given to everything, from their annotations of a part and the judge's verdicts on all (prediction-powered; "
    "lambda: the weight of the judge, 0 to 1). It assumes that the annotated questions were drawn at random. by people "
    "alone: without the judge. Verdicts by rule and model failures are not changed."
)
CARD_NOTE = (
    "No person has annotated this run. The bias is the judge's on its calibration card ({source}), measured on other "
    "replies: the corrected score assumes that the judge errs here as it does there."
)


class Bias(Struct, frozen=True):
    """How much too high a judge scores, as a share of full marks, according to its calibration card."""

    value: float
    low: float | None  # bounds of the 95% interval
    high: float | None
    source: str  # which card, in words


Cards = Callable[[Run], Bias | None]  # finds the bias of a run's judge


def no_cards(run: Run) -> Bias | None:
    return None


class Corrected(Struct, frozen=True):
    """A headline score before and after correction, as shares of full marks. Either `people` or `card` is there."""

    name: str  # of the run in tables
    run: str  # its id
    judge: str
    plain: NullableEstimate
    people: PoweredEstimate | None = None  # corrected by annotations
    annotators: int = 0
    card: NullableEstimate | None = None  # corrected by the judge's calibration card
    bias: Bias | None = None  # what the card says
    full: float = 1.0  # full marks on the paper's scale
    digits: int = 3

    def table(self) -> Table:
        return table([self])

    def __str__(self) -> str:
        return str(self.table())


def corrected(run: Run, scores: HumanScores, cards: Cards = no_cards, name: str = "") -> Corrected:
    """Correct the headline score of a run by human scores where there are any, else by its judge's calibration card.

    Raises UserError where there is neither, or where they do not cover every part of the headline score."""
    presentation = run.benchmark.presentation
    if presentation.pairwise:
        raise UserError(
            f"{run.id} is a run of battles, in which no model has a score of its own to correct; "
            f"`weft agree {run.id}` compares its judge with people"
        )
    headline = headline_score(run.benchmark, run.verdicts, run.groups)
    if headline is None:
        raise UserError(f"{run.id} has no headline score to correct: nothing of it, or of a part of it, is scored")
    judge = run.record.manifest.judge.name
    plain = NullableEstimate(*headline)
    label = name or run.name
    full = presentation.max_score
    digits = presentation.digits
    if scores:
        people = by_people(run, mean_scores(scores))
        annotators = len(_annotators(scores))
        return Corrected(label, run.id, judge, plain, people, annotators, full=full, digits=digits)
    bias = cards(run)
    if bias is None:
        raise UserError(
            f"there is nothing to correct the score of {run.id} by: `weft rate {run.id}` collects annotations, "
            f"`weft judge check` makes the calibration card of its judge, {judge}"
        )
    unbiased = NullableEstimate(*subtract_bias(*headline, bias.value, bias.low, bias.high))
    return Corrected(label, run.id, judge, plain, card=unbiased, bias=bias, full=full, digits=digits)


def _annotators(scores: HumanScores) -> set[str]:
    names: set[str] = set()
    for by_annotator in scores.values():
        names.update(by_annotator)
    return names


def by_people(run: Run, human: Mapping[VerdictKey, float]) -> PoweredEstimate:
    """Estimate the headline score from mean human scores. Raises UserError where a part of it has no annotation."""
    scored = [verdict for verdict in run.verdicts if verdict.value is not None]
    terms = headline_terms(run.benchmark, scored, run.groups)
    _check_coverage(run.id, terms, human)
    clusters = {sample: find_cluster(run.benchmark, sample, facts) for sample, facts in run.groups.items()}
    weights = _item_weights(terms, human, clusters)
    means = [_build_mean(weight, verdicts, human, clusters, weights) for weight, verdicts in terms]
    estimate = estimate_powered_sum(means)
    if estimate is None:
        raise UserError(f"{run.id}: people annotated nothing that its judge judged")
    return estimate


def _check_coverage(
    run: str, terms: Sequence[tuple[float, Sequence[Verdict]]], human: Mapping[VerdictKey, float]
) -> None:
    has_judged = False
    uncovered: list[Sequence[Verdict]] = []
    for _, verdicts in terms:
        judged = [verdict for verdict in verdicts if verdict.by == "judge"]
        if judged:
            has_judged = True
        if judged and not any(verdict_key(verdict) in human for verdict in judged):
            uncovered.append(verdicts)
    if not has_judged:
        raise UserError(f"{run}: no judge contributes to its headline score, so there is nothing to correct")
    if uncovered:
        metrics = ", ".join(sorted({verdict.metric for verdict in uncovered[0]}))
        raise UserError(
            f"{run}: people annotated nothing of {len(uncovered)} of the {len(terms)} parts of the headline score "
            f"(such as {metrics}, {len(uncovered[0])} verdicts); collect more annotations: `weft rate {run}`"
        )


def _item_weights(
    terms: Sequence[tuple[float, Sequence[Verdict]]], human: Mapping[VerdictKey, float], clusters: Mapping[str, str]
) -> dict[str, float]:
    """By dialogue, how many judged verdicts an annotated one stands for.

    Annotators draw from as many dialogues as they can, so a greater share of the short ones is annotated."""
    judged: dict[VerdictKey, Verdict] = {}
    for _, verdicts in terms:
        for verdict in verdicts:
            if verdict.by == "judge":
                judged[verdict_key(verdict)] = verdict
    sizes: dict[str, int] = {}
    annotated: dict[str, int] = {}
    for key, verdict in judged.items():
        cluster = clusters[verdict.sample]
        sizes[cluster] = sizes.get(cluster, 0) + 1
        annotated[cluster] = annotated.get(cluster, 0) + (key in human)
    return weigh_rated_items(sizes, annotated)


def _build_mean(
    weight: float,
    verdicts: Sequence[Verdict],
    human: Mapping[VerdictKey, float],
    clusters: Mapping[str, str],
    item_weights: Mapping[str, float],
) -> WeightedMean:
    judge_values: dict[str, list[float]] = {}
    exact_values: dict[str, list[float]] = {}
    pairs: dict[str, list[tuple[float, float]]] = {}
    for verdict in verdicts:
        value = verdict.value or 0.0
        cluster = clusters[verdict.sample]
        if verdict.by != "judge":
            exact_values.setdefault(cluster, []).append(value)
            continue
        judge_values.setdefault(cluster, []).append(value)
        key = verdict_key(verdict)
        if key in human:
            pairs.setdefault(cluster, []).append((value, human[key]))
    return WeightedMean(weight, judge_values, pairs, exact_values, item_weights)


def tables(scores: Sequence[Corrected]) -> list[Table]:
    """One table for the runs that people annotated, one for those that have only a card; none that is empty."""
    by_annotation = [score for score in scores if score.people is not None]
    by_card = [score for score in scores if score.card is not None]
    built: list[Table] = []
    if by_annotation:
        built.append(table(by_annotation))
    if by_card:
        built.append(_card_table(by_card))
    return built


def table(scores: Sequence[Corrected]) -> Table:
    """The plain score, the score corrected by people, and the score by people alone."""
    if not any(score.people is not None for score in scores):
        return _card_table(scores)
    rows: list[Row] = []
    for score in scores:
        if score.people is not None:
            rows += _people_rows(score, score.people, _prefix(score, scores))
    columns = (HEADLINE, "verdicts judged", "verdicts annotated", "annotators", "dialogues", "lambda")
    return Table("Headline score, corrected", columns, tuple(rows), NOTE, _max_digits(scores), "mixed")


def _people_rows(score: Corrected, people: PoweredEstimate, prefix: str) -> list[Row]:
    annotated = {
        "verdicts annotated": build_count_cell(people.n),
        "annotators": build_count_cell(score.annotators),
        "dialogues": build_count_cell(people.clusters),
    }
    judged = {"verdicts judged": build_count_cell(people.total)}
    powered = NullableEstimate(people.value, people.low, people.high)
    weighted = {**annotated, "lambda": Cell(people.weight, digits=2)}
    return [
        _row(score, f"{prefix}plain, judged by {score.judge}", score.plain, people.n, judged),
        _row(score, f"{prefix}corrected by people", powered, people.n, weighted),
        _row(score, f"{prefix}by people alone", people.people_only, people.n, annotated),
    ]


def _row(score: Corrected, label: str, estimate: NullableEstimate, n: int, cells: Mapping[str, Cell]) -> Row:
    headline = build_measure_cell(estimate, n, full=score.full, digits=score.digits)
    return Row(label, {HEADLINE: headline, **cells}, run=score.run, judge=score.judge)


def _prefix(score: Corrected, scores: Sequence[Corrected]) -> str:
    """The name of the run, where the table has several."""
    if len(scores) == 1:
        return ""
    return f"{score.name}: "


def _max_digits(scores: Sequence[Corrected]) -> int:
    return max((score.digits for score in scores), default=3)


def _card_table(scores: Sequence[Corrected]) -> Table:
    rows: list[Row] = []
    sources: list[str] = []
    for score in scores:
        if score.card is None or score.bias is None:
            continue
        bias = NullableEstimate(score.bias.value, score.bias.low, score.bias.high)
        bias_cell = build_measure_cell(bias, 0, full=score.full, digits=score.digits)
        prefix = _prefix(score, scores)
        rows.append(_row(score, f"{prefix}plain, judged by {score.judge}", score.plain, 0, {}))
        rows.append(_row(score, f"{prefix}minus the bias on its card", score.card, 0, {"bias": bias_cell}))
        if score.bias.source not in sources:
            sources.append(score.bias.source)
    return Table(
        "Headline score, minus the bias on the judge's calibration card",
        (HEADLINE, "bias"),
        tuple(rows),
        CARD_NOTE.format(source="; ".join(sources)),
        _max_digits(scores),
        "mixed",
    )
