"""Scores on the scale that the benchmark's paper prints, and the headline score of any set of verdicts.

Every number that people read goes through `format_share` or `format_number`."""

from collections.abc import Mapping, Sequence

from weft.benchmarks.base import Benchmark, SampleGroups
from weft.results.run import headline_terms, weighted_mean
from weft.types import Verdict


def headline_share(benchmark: Benchmark, verdicts: Sequence[Verdict], groups: SampleGroups) -> float | None:
    """Return the headline score as a share of full marks, 0 to 1; None if nothing is scored."""
    scored = [verdict for verdict in verdicts if verdict.value is not None]
    if not scored:
        return None
    return round(weighted_mean(headline_terms(benchmark, scored, groups)), 4)


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
    return round(first - second, 4)


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


def format_number(number: float, digits: int, *, sign: bool = False) -> str:
    """Return a number with this many decimals. Zero never has a minus; `sign` adds a plus."""
    rounded = round(number, digits) + 0.0
    if sign:
        return f"{rounded:+.{digits}f}"
    return f"{rounded:.{digits}f}"
