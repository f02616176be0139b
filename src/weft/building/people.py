"""What share of a build's dialogues is right, by people who looked at a sample: `people.json` in its folder.

The build's own checker scored every image, so the share that people found is corrected by what the checker gave the
dialogues that they did not look at (prediction-powered inference, `stats/prediction_powered.py`).
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from weft.building.draft import Row
from weft.errors import UserError
from weft.stats.prediction_powered import estimate_powered_mean
from weft.store.blobs import write_file
from weft.untrusted import read_file

FILE = "people.json"
MAX_BYTES = 1 << 20
USUAL_PASS = 0.7  # of full marks, from which on a reference is right, if the recipe has no score of its own
JUDGE = "judge"  # the gate whose values the share is corrected by


Scores = Mapping[int, Mapping[str, Sequence[float]]]  # shares of full marks by turn (from 0) and annotator


class PassRate(Struct, frozen=True):
    """The share of dialogues in which people found every reference right."""

    run: str  # whose references were rated
    annotators: int
    rated: int  # dialogues of which every reference was rated
    passed: int
    total: int  # dialogues of the part when they were rated
    part: str  # of the dataset that was rated: `train` or `test`
    value: float  # corrected by the checker's scores, where there are any
    low: float | None  # with `high` the 95% interval
    high: float | None
    least: float  # share of full marks from which on a reference is right

    @property
    def share(self) -> str:
        """The estimated share with its interval, in words."""
        if self.low is None or self.high is None:
            return f"{self.value:.1%}"
        return f"{self.value:.1%} ({self.low:.1%} to {self.high:.1%})"


def estimate_pass_rate(
    run: str, part: str, scores: Mapping[str, Scores], rows: Iterable[Row], least: float
) -> PassRate:
    """Return the share of right dialogues among the rows of a part. `scores` are by sample.

    A dialogue of which every turn was rated is right if each turn's lowest score, averaged over annotators, is high
    enough. Raises UserError if there is none.
    """
    judged: dict[str, list[float]] = {}
    pairs: dict[str, list[tuple[float, float]]] = {}
    annotators: set[str] = set()
    for row in rows:
        if row.draft is None or row.draft.split != part:
            continue
        sample = str(row.number + 1)
        value = _checker_value(row)
        judged[sample] = [value]
        by_turn = scores.get(sample, {})
        if all(by_turn.get(turn) for turn in range(len(row.draft.turns))):
            annotators.update(name for by_annotator in by_turn.values() for name in by_annotator)
            is_right = all(_mean_lowest(by_annotator) >= least for by_annotator in by_turn.values())
            pairs[sample] = [(value, float(is_right))]
    estimate = estimate_powered_mean(judged, pairs)
    if estimate is None:
        raise UserError(f"{run}: there is no dialogue of which every reference was rated, so none is known to be right")
    passed = int(sum(right for ((_, right),) in pairs.values()))
    return PassRate(
        run=run,
        annotators=len(annotators),
        rated=len(pairs),
        passed=passed,
        total=len(judged),
        part=part,
        value=estimate.value,
        low=estimate.low,
        high=estimate.high,
        least=least,
    )


def _mean_lowest(by_annotator: Mapping[str, Sequence[float]]) -> float:
    lowest = [min(values) for values in by_annotator.values()]
    return sum(lowest) / len(lowest)


def _checker_value(row: Row) -> float:
    """Return the lowest score that the checker gave one of a dialogue's images; 1 where it looked at none."""
    digests: set[str] = set()
    if row.draft is not None:
        digests.update(image.digest for image in row.draft.images)
    values = [
        verdict.value
        for attempt in row.attempts
        if attempt.chosen and attempt.image is not None and attempt.image.digest in digests
        for verdict in attempt.verdicts
        if verdict.gate == JUDGE and verdict.value is not None
    ]
    return min(values, default=1.0)


def write_pass_rate(out: Path, rate: PassRate) -> None:
    """Keep the rate in a build's folder, for the cards that are written later."""
    write_file(out / FILE, msgspec.json.format(msgspec.json.encode(rate), indent=1) + b"\n", world_readable=True)


def read_pass_rate(out: Path) -> PassRate | None:
    """Return the rate in a build's folder; None if nobody rated it. Raises UserError for a file that is none."""
    try:
        return msgspec.json.decode(read_file(out / FILE, MAX_BYTES), type=PassRate)
    except FileNotFoundError:
        return None
    except (OSError, UserError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise UserError(f"{out / FILE} cannot be read: {error}; remove it, and rate again") from None
