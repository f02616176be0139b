"""Scores on the scale that the benchmark's paper prints, and the headline score of any set of verdicts.

Nothing is rounded here but texts: `weft.rounding` is the only rounding."""

from collections.abc import Sequence

from weft.benchmarks.base import Benchmark, SampleGroups
from weft.results.run import headline_parts, headline_terms, weighted_mean
from weft.rounding import format_number
from weft.stats.intervals import mix_means
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
    nothing of it, or of one of its parts."""
    others_by_key = {_key_of(verdict): verdict for verdict in others}
    shared = [verdict for verdict in verdicts if _key_of(verdict) in others_by_key]
    means: list[tuple[float, float]] = []
    for weight, members in headline_parts(benchmark, shared, groups):
        differences: list[float] = []
        for verdict in members:
            other = others_by_key[_key_of(verdict)]
            if verdict.value is not None and other.value is not None:
                differences.append(verdict.value - other.value)
        if not differences:
            return None
        means.append((weight, sum(differences) / len(differences)))
    return mix_means(means) if means else None


def _key_of(verdict: Verdict) -> tuple[str, int, str]:
    return verdict.sample, verdict.turn, verdict.metric


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
