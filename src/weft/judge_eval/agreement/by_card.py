"""The bias of a run's judge as its calibration card measured it, weighted by metric as in the headline score.

The interval bounds of the metrics are summed as they are: the same answers stand behind all of them, so their errors
are correlated."""

from collections.abc import Sequence

from weft.judge_eval.agreement.corrected import Bias
from weft.results.cards import CalibrationCard, find_card
from weft.results.run import Run, headline_terms
from weft.types import Verdict


def bias_of(run: Run) -> Bias | None:
    """Return the judge's bias on the headline score, or None where its card is missing or lacks one of the metrics."""
    card = find_card(run.home, run.record.manifest)
    if card is None:
        return None
    scored = [verdict for verdict in run.verdicts if verdict.value is not None]
    value = 0.0
    low = 0.0
    high = 0.0
    for weight, verdicts in headline_terms(run.benchmark, scored, run.groups):
        for metric, count in _count_judged(verdicts).items():
            bounds = _metric_bias(card, run.benchmark.name, metric)
            if bounds is None:
                return None
            share = weight * count / len(verdicts)
            value += share * bounds[0]
            low += share * bounds[1]
            high += share * bounds[2]
    return Bias(value, low, high, f"of {card.name}, {card.questions} verdicts")


def _count_judged(verdicts: Sequence[Verdict]) -> dict[str, int]:
    """By metric, the number of verdicts that the judge gave."""
    counts: dict[str, int] = {}
    for verdict in verdicts:
        if verdict.by == "judge":
            counts[verdict.metric] = counts.get(verdict.metric, 0) + 1
    return counts


def _metric_bias(card: CalibrationCard, benchmark: str, metric: str) -> tuple[float, float, float] | None:
    """The value and the bounds of the bias; a missing bound is the value itself."""
    metric_card = card.for_metric(benchmark, metric)
    if metric_card is None or metric_card.agreement.bias.value is None:
        return None
    bias = metric_card.agreement.bias
    value = metric_card.agreement.bias.value
    low = value if bias.low is None else bias.low
    high = value if bias.high is None else bias.high
    return value, low, high
