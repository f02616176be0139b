"""A judge's verdicts paired with other scores of the same outputs (people's, or another judge's), for agreement tables.

pairs.measure_metric("accuracy")     # the agreement on one metric, and the judge's verdicts behind it
"""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from weft.benchmarks.base import SampleGroups
from weft.stats.agreement import Agreement, NullableEstimate, measure_agreement
from weft.types import Cell, Verdict

DIGITS = 3  # decimals of a correlation
ROUNDING_WIDTH = 1e-9  # an interval that is no wider is a rounding error
MIN_VERDICTS = 5  # fewer verdicts show no correlation: that of two points is always 1 or -1
NOT_PRINTED = "not printed"  # stands for numbers that a paper shows only in a figure


def _keep_all(verdict: Verdict) -> bool:
    return True


class PairedVerdicts(Struct, frozen=True):
    """One run's judged verdicts, each with the other side's score."""

    name: str  # the run's title
    pairs: Sequence[tuple[Verdict, float]]  # the judge's verdict, the other score as a share of full marks
    groups: SampleGroups
    clusters: Mapping[str, str]  # sample id -> its cluster: what is not independent
    judge: str
    other: str = "people"  # who gave the other scores
    dataset: str = ""
    run: str = ""

    def measure(self, keep: Callable[[Verdict], bool] = _keep_all) -> Agreement:
        """Measure the agreement on the verdicts that `keep` accepts."""
        return measure_agreement(self.group_by_cluster(keep))

    def verdicts(self, keep: Callable[[Verdict], bool] = _keep_all) -> list[Verdict]:
        """Return the judge's verdicts that `keep` accepts."""
        return [verdict for verdict, _ in self.pairs if keep(verdict)]

    def measure_metric(self, metric: str) -> tuple[Agreement, list[Verdict]]:
        """Measure the agreement on one metric; return it with the judge's verdicts."""

        def keep(verdict: Verdict) -> bool:
            return verdict.metric == metric

        return self.measure(keep), self.verdicts(keep)

    def group_by_cluster(self, keep: Callable[[Verdict], bool] = _keep_all) -> dict[str, list[tuple[float, float]]]:
        """Return (judge's value, other score) by cluster, of the verdicts that `keep` accepts."""
        clusters: dict[str, list[tuple[float, float]]] = {}
        for verdict, other_score in self.pairs:
            if keep(verdict):
                cluster = self.clusters.get(verdict.sample, verdict.sample)
                clusters.setdefault(cluster, []).append((verdict.value or 0.0, other_score))
        return clusters


def build_measure_cell(
    estimate: NullableEstimate, n: int, verdicts: Sequence[Verdict] = (), *, full: float = 1.0, digits: int = DIGITS
) -> Cell:
    """Build the cell of an estimate over `n` items, scaled so that 1 becomes `full`. An undefined one is a dash.

    `verdicts` are the judge's that were compared. A resampled interval without width is left out: nothing changed.
    """
    if estimate.value is None:
        return Cell(None)
    low: float | None = None
    high: float | None = None
    if (estimate.high or 0.0) - (estimate.low or 0.0) > ROUNDING_WIDTH:
        low = full * (estimate.low or 0.0)
        high = full * (estimate.high or 0.0)
    return Cell(full * estimate.value, n, n, low, high, digits=digits, verdicts=verdicts)


def build_correlation_cell(estimate: NullableEstimate, n: int, verdicts: Sequence[Verdict] = ()) -> Cell:
    """Build the cell of a correlation: a dash if fewer than `MIN_VERDICTS` items were compared."""
    if n < MIN_VERDICTS:
        return Cell(None)
    return build_measure_cell(estimate, n, verdicts)


def build_count_cell(number: int, verdicts: Sequence[Verdict] = ()) -> Cell:
    """Build the cell of a count, which has no decimals and no interval."""
    return Cell(float(number), number, number, count=True, verdicts=verdicts)
