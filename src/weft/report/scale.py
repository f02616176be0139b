"""Scores on the scale that the benchmark's paper prints, and the headline score of any set of verdicts.

Nothing is rounded here but texts: `weft.rounding` is the only rounding."""

from collections.abc import Mapping, Sequence

from weft.benchmarks.base import Benchmark, SampleGroups
from weft.results.run import headline_terms, weighted_mean
from weft.rounding import format_number
from weft.types import Verdict


def headline_share(benchmark: Benchmark, verdicts: Sequence[Verdict], groups: SampleGroups) -> float | None:
    """Return the headline score as a share of full marks, 0 to 1; None if nothing of it, or of one of its parts, is
    scored."""
    terms = headline_terms(benchmark, verdicts, groups)
    if not terms:
        return None
    return weighted_mean(terms)


def headline_difference(
    benchmark: Benchmark, verdicts: Sequence[Verdict], others: Sequence[Verdict], groups: SampleGroups
) -> float | None:
    """Return the headline score of `verdicts` minus that of `others`, over what both have scored; None if that is
    nothing."""
    scored = _scored_by_key(verdicts)
    others_scored = _scored_by_key(others)
    common = [key for key in scored if key in others_scored]
    first = headline_share(benchmark, [scored[key] for key in common], groups)
    second = headline_share(benchmark, [others_scored[key] for key in common], groups)
    if first is None or second is None:
        return None
    return first - second


def _scored_by_key(verdicts: Sequence[Verdict]) -> Mapping[tuple[str, int, str], Verdict]:
    by_key: dict[tuple[str, int, str], Verdict] = {}
    for verdict in verdicts:
        if verdict.value is not None:
            by_key[verdict.sample, verdict.turn, verdict.metric] = verdict
    return by_key


def to_points(benchmark: Benchmark, share: float | None) -> float | None:
    """Return a share of full marks on the paper's scale."""
    if share is None:
        return None
    return benchmark.presentation.max_score * share


def format_share(benchmark: Benchmark, share: float | None, *, sign: bool = False) -> str:
    """Return a share of full marks as the paper would print it; a dash for None."""
    if share is None:
        return "-"
    presentation = benchmark.presentation
    return format_number(presentation.max_score * share, presentation.digits, sign=sign)
