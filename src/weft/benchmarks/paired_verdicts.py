"""A judge's verdicts beside what others say of the very same, for tables of agreement: a paper's own, and those of
all."""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from weft.benchmarks.base import SampleGroups
from weft.stats.agreement import Agreement, NullableEstimate, measure_agreement
from weft.types import Cell, Verdict

DIGITS = 3  # of a correlation
FLAT = 1e-9  # an interval's width that is rounding
MIN_VERDICTS = 5  # verdicts behind a correlation that is shown: of two points it is always 1 or -1
NOT_PRINTED = "not printed"  # what a paper has in a figure alone


class PairedVerdicts(Struct, frozen=True):
    """`pairs` are a judge's verdict and what the others say, as a share of full marks; `clusters` what each sample
    belongs to."""

    name: str
    pairs: Sequence[tuple[Verdict, float]]
    groups: SampleGroups
    clusters: Mapping[str, str]
    judge: str
    other: str = "people"
    dataset: str = ""
    run: str = ""

    def measure(self, keep: Callable[[Verdict], bool] = lambda _: True) -> Agreement:
        """How far they agree on some of it."""
        return measure_agreement(self.group_by_cluster(keep))

    def verdicts(self, keep: Callable[[Verdict], bool] = lambda _: True) -> list[Verdict]:
        """The judge's, of some of it."""
        return [verdict for verdict, _ in self.pairs if keep(verdict)]

    def measure_metric(self, metric: str) -> tuple[Agreement, list[Verdict]]:
        """How far they agree on a metric, and the judge's verdicts."""
        return self.measure(lambda one: one.metric == metric), self.verdicts(lambda one: one.metric == metric)

    def group_by_cluster(
        self, keep: Callable[[Verdict], bool] = lambda _: True
    ) -> dict[str, list[tuple[float, float]]]:
        made: dict[str, list[tuple[float, float]]] = {}
        for verdict, right in self.pairs:
            if keep(verdict):
                made.setdefault(self.clusters.get(verdict.sample, verdict.sample), []).append(
                    (verdict.value or 0.0, right)
                )
        return made


def build_measure_cell(
    one: NullableEstimate, n: int, verdicts: Sequence[Verdict] = (), *, full: float = 1.0, digits: int = DIGITS
) -> Cell:
    """On the paper's scale, with so many decimals; a dash where it is undefined. An interval of no width is none: where
    drawing again changes nothing, it says nothing. `verdicts` are the `n` of a run's judge that were compared, where it
    is of those."""
    if one.value is None:
        return Cell(None)
    if (one.high or 0.0) - (one.low or 0.0) > FLAT:
        bounds = (one.low, one.high)
    else:
        bounds = (None, None)
    low, high = (None if bound is None else _rounded(full * bound, digits) for bound in bounds)
    return Cell(_rounded(full * one.value, digits), n, n, low, high, digits=digits, verdicts=verdicts)


def build_correlation_cell(one: NullableEstimate, n: int, verdicts: Sequence[Verdict] = ()) -> Cell:
    """A dash where there is too little."""
    if n >= MIN_VERDICTS:
        return build_measure_cell(one, n, verdicts)
    return Cell(None)


def _rounded(value: float, digits: int) -> float:
    """With two decimals more than are shown; what is shown as nothing has no minus."""
    if round(value, digits):
        return round(value, digits + 2)
    return 0.0


def build_count_cell(number: int, verdicts: Sequence[Verdict] = ()) -> Cell:
    return Cell(float(number), number, number, count=True, verdicts=verdicts)
