"""The main number of some verdicts, the benchmark's own weighted means, as a share of full marks; and every number as
the benchmark's paper prints it. What people read is on that one scale."""

from collections.abc import Sequence

from weft.benchmarks.base import Benchmark, SampleGroups
from weft.results.run import headline_terms
from weft.types import Verdict


def headline_share(benchmark: Benchmark, verdicts: Sequence[Verdict], groups: SampleGroups) -> float | None:
    """0 to 1; None where nothing is scored."""
    scored = [verdict for verdict in verdicts if verdict.value is not None]
    if not scored:
        return None
    return round(
        sum(
            weight * sum(v.value or 0.0 for v in some) / len(some)
            for weight, some in headline_terms(benchmark, scored, groups)
        ),
        4,
    )


def headline_difference(
    benchmark: Benchmark, ours: Sequence[Verdict], theirs: Sequence[Verdict], groups: SampleGroups
) -> float | None:
    """By how much the main number of some verdicts is above that of others, over what both have scored; None where that
    is nothing."""
    mine, others = ({(v.sample, v.turn, v.metric): v for v in some if v.value is not None} for some in (ours, theirs))
    both = [place for place in mine if place in others]
    first, second = (headline_share(benchmark, [side[place] for place in both], groups) for side in (mine, others))
    if first is None or second is None:
        return None
    return round(first - second, 4)


def to_points(benchmark: Benchmark, value: float | None) -> float | None:
    """A share of full marks on the scale that the benchmark's paper prints."""
    if value is None:
        return None
    return benchmark.presentation.max_score * value


def format_share(benchmark: Benchmark, value: float | None, *, sign: bool = False) -> str:
    """The same in figures; a dash where there is none."""
    if value is None:
        return "-"
    return format_number(benchmark.presentation.max_score * value, benchmark.presentation.digits, sign=sign)


def format_number(number: float, digits: int, *, sign: bool = False) -> str:
    """With so many decimals; what is rounded to nothing has no minus."""
    return f"{round(number, digits) + 0.0:{'+' if sign else ''}.{digits}f}"
