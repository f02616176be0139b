"""The main number of some verdicts: the benchmark's own weighted means."""

from collections.abc import Sequence

from weft.benchmarks.base import Benchmark, Groups, Terms
from weft.errors import blamed
from weft.stats.intervals import spread
from weft.types import Verdict


def terms_of(benchmark: Benchmark, verdicts: Sequence[Verdict], groups: Groups) -> Terms:
    """The main number of a benchmark as means with their weights, which add up to one over those that have something to average."""
    try:
        terms = [(weight, some) for weight, some in benchmark.headline(verdicts, groups) if some]
    except Exception as error:
        raise blamed(f"benchmark {benchmark.name}: its headline", error) from error
    total = sum(weight for weight, _ in terms)
    return [(weight / total, some) for weight, some in terms]


def main_number(benchmark: Benchmark, verdicts: Sequence[Verdict], groups: Groups) -> tuple[float, float | None, float | None] | None:
    """As a share of full marks, with its 95% interval by dialogue; None where nothing is scored."""
    scored = [verdict for verdict in verdicts if verdict.value is not None]
    terms = terms_of(benchmark, scored, groups) if scored else []
    if not terms:
        return None
    clusters: list[tuple[float, dict[str, list[float]]]] = []
    for weight, some in terms:
        by_sample: dict[str, list[float]] = {}
        for verdict in some:
            of = benchmark.cluster_of(verdict.sample, groups.get(verdict.sample, {}))
            by_sample.setdefault(of, []).append(verdict.value or 0.0)
        clusters.append((weight, by_sample))
    value = sum(weight * sum(v.value or 0.0 for v in some) / len(some) for weight, some in terms)
    low, high = spread(clusters) or (None, None)
    return value, low, high
