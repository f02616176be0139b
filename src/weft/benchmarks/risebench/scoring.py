"""The metrics of an edit, and the score that follows from them: 1 to 5, a weighted mean (arXiv 2504.02826)."""

from weft.benchmarks.risebench.facts import EditRules

CONSISTENCY = "consistency"
REASONING = "reasoning"
PLAUSIBILITY = "plausibility"
JUDGED = (CONSISTENCY, REASONING, PLAUSIBILITY)
SCORE = "score"
ACCURACY = "accuracy"
OLD_ACCURACY = "accuracy_until_april_2026"
DERIVED = (SCORE, ACCURACY, OLD_ACCURACY)
FULL = 5.0


def combine(
    consistency: float | None, reasoning: float, plausibility: float | None, *, is_logical: bool, is_free: bool
) -> float | None:
    """Return the score of an edit from 1 to 5, halved if the reasoning is wrong altogether; None if a part is
    missing."""
    if is_logical:
        terms = [(0.3, consistency), (0.7, reasoning)]
    elif is_free:
        terms = [(0.2, plausibility), (0.8, reasoning)]
    else:
        terms = [(0.3, consistency), (0.5, reasoning), (0.2, plausibility)]
    score = 0.0
    for weight, part in terms:
        if part is None:
            return None
        score += weight * part
    if reasoning == 1:
        score = max(1.0, score / 2)
    return score


def list_metrics(rules: EditRules) -> tuple[str, ...]:
    """Return the metrics that the judge is asked about an edit."""
    if rules.is_logical:
        return (CONSISTENCY, REASONING)
    if rules.is_consistency_free:
        return (REASONING, PLAUSIBILITY)
    return JUDGED
