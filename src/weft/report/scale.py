"""The main number of some verdicts: the benchmark's own weighted means, as a share of full marks."""

from collections.abc import Sequence

from weft.benchmarks.base import Benchmark, Groups
from weft.benchmarks.headline import terms_of
from weft.types import Verdict


def share(benchmark: Benchmark, verdicts: Sequence[Verdict], groups: Groups) -> float | None:
    """0 to 1; None where nothing is scored."""
    scored = [verdict for verdict in verdicts if verdict.value is not None]
    if not scored:
        return None
    return round(sum(weight * sum(v.value or 0.0 for v in some) / len(some) for weight, some in terms_of(benchmark, scored, groups)), 4)


def points(benchmark: Benchmark, value: float | None) -> float | None:
    """A share of full marks on the scale that the benchmark's paper prints."""
    return None if value is None else benchmark.full * value


def written(benchmark: Benchmark, value: float | None, *, sign: bool = False) -> str:
    """The same in figures; a dash where there is none."""
    if value is None:
        return "-"
    return f"{benchmark.full * value:{'+' if sign else ''}.{benchmark.digits}f}"
