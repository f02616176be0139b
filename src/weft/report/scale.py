"""The main number of some verdicts, the benchmark's own weighted means, as a share of full marks; and every number as the benchmark's paper
prints it. What people read is on that one scale."""

from collections.abc import Sequence

from weft.benchmarks.base import Benchmark, Groups
from weft.results.run import terms_of
from weft.types import Verdict


def share(benchmark: Benchmark, verdicts: Sequence[Verdict], groups: Groups) -> float | None:
    """0 to 1; None where nothing is scored."""
    scored = [verdict for verdict in verdicts if verdict.value is not None]
    if not scored:
        return None
    return round(sum(weight * sum(v.value or 0.0 for v in some) / len(some) for weight, some in terms_of(benchmark, scored, groups)), 4)


def ahead(benchmark: Benchmark, ours: Sequence[Verdict], theirs: Sequence[Verdict], groups: Groups) -> float | None:
    """By how much the main number of some verdicts is above that of others, over what both have scored; None where that is nothing."""
    mine, others = ({(v.sample, v.turn, v.metric): v for v in some if v.value is not None} for some in (ours, theirs))
    both = [place for place in mine if place in others]
    first, second = (share(benchmark, [side[place] for place in both], groups) for side in (mine, others))
    return None if first is None or second is None else round(first - second, 4)


def points(benchmark: Benchmark, value: float | None) -> float | None:
    """A share of full marks on the scale that the benchmark's paper prints."""
    return None if value is None else benchmark.presentation.max_score * value


def written(benchmark: Benchmark, value: float | None, *, sign: bool = False) -> str:
    """The same in figures; a dash where there is none."""
    if value is None:
        return "-"
    return figure(benchmark.presentation.max_score * value, benchmark.presentation.digits, sign=sign)


def figure(number: float, digits: int, *, sign: bool = False) -> str:
    """With so many decimals; what is rounded to nothing has no minus."""
    return f"{round(number, digits) + 0.0:{'+' if sign else ''}.{digits}f}"
