"""The main number of some verdicts: the benchmark's own weighted means, as a share of full marks."""

from collections.abc import Sequence

from weft.benchmarks.base import Benchmark, Groups
from weft.types import Verdict


def share(benchmark: Benchmark, verdicts: Sequence[Verdict], groups: Groups) -> float | None:
    """0 to 1; None where nothing is scored."""
    scored = [verdict for verdict in verdicts if verdict.value is not None]
    if not scored:
        return None
    terms = [(weight, some) for weight, some in benchmark.headline(scored, groups) if some]
    total = sum(weight * sum(v.value or 0.0 for v in some) / len(some) for weight, some in terms)
    return round(total / sum(weight for weight, _ in terms), 4)
