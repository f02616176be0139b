"""Verdicts of any benchmark on one scale: shares of full marks. A set of verdicts comes to its benchmark's own main number."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from weft.benchmarks import Benchmark, full_marks, headline
from weft.types import Verdict

if TYPE_CHECKING:
    from weft.api import Run


def full_of(runs: "Iterable[Run]") -> float:
    """Full marks, or the highest value there is, if a benchmark gives more than it says."""
    every = list(runs)
    values = [verdict.value for run in every for verdict in run.verdicts if verdict.value is not None]
    return max([full_marks(every[0].benchmark), *values])


def share(benchmark: Benchmark, verdicts: Sequence[Verdict], full: float) -> float | None:
    """The main number of some verdicts, 0 to 1; None where nothing is scored."""
    scored = [verdict for verdict in verdicts if verdict.value is not None]
    if not scored:
        return None
    terms = [(weight, some) for weight, some in headline(benchmark, scored) if some]
    total = sum(weight * sum(v.value or 0.0 for v in some) / len(some) for weight, some in terms)
    return round(total / full / sum(weight for weight, _ in terms), 4)
