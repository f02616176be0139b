"""What a table counts of a run's verdicts, in either arithmetic."""

from collections.abc import Iterable, Sequence

from weft.benchmarks.official import Official, score_or_none
from weft.benchmarks.rows import CountedVerdict, VerdictT
from weft.types import Verdict


def count_verdicts(verdicts: Iterable[Verdict], official: Official | None) -> list[CountedVerdict]:
    """Return the verdicts with the values that an arithmetic averages: strict, or official if it is given.

    What the released scripts leave out by a rule of their own is not among official ones.
    """
    counted: list[CountedVerdict] = []
    for verdict in verdicts:
        value = verdict.value
        if official is not None:
            if not official.expects(verdict):
                continue
            value = score_or_none(official.score(verdict))
        counted.append(CountedVerdict(verdict, value, verdict.metric, verdict.sample))
    return counted


def select_metric(verdicts: Sequence[VerdictT], metric: str) -> list[VerdictT]:
    return [verdict for verdict in verdicts if verdict.metric == metric]
