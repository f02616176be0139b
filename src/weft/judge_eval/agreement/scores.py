"""A file of ratings: one line each, with the columns `sample`, `turn` (from 1), `metric`, `rater`, and `value` (a share
of full marks, 0 to 1) or `score` (on the question's own scale). Whatever does not fit the run is an error with its
line: no rating is dropped unseen."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from weft.errors import UserError
from weft.types import Verdict
from weft.untrusted import read_text_file

Place = tuple[str, int, str]  # sample, turn (from 0), metric
Said = dict[Place, dict[str, float]]  # what each rater says, as a share of full marks
NEEDED = ("sample", "turn", "metric", "rater")
CLOSE = 1e-6


def read_ratings(path: Path, verdicts: Sequence[Verdict]) -> Said:
    known = {(one.sample, one.turn, one.metric) for one in verdicts}
    scales = scales_of(verdicts)
    rows = csv.reader(io.StringIO(read_text_file(path), newline=""), strict=True)
    made: Said = {}
    try:
        head = [name.strip().lower() for name in next(rows, list[str]())]
        missing = [name for name in NEEDED if name not in head]
        if missing or not {"value", "score"} & set(head):
            if missing:
                lacks = missing[0]
            else:
                lacks = "value or score"
            raise UserError(
                f"{path}: line 1: there is no column {lacks}; give sample,turn,metric,rater,value (or score)"
            )
        for row in rows:
            if not any(cell.strip() for cell in row):
                continue
            told = f"{path}: line {rows.line_num}"
            if len(row) != len(head):
                raise UserError(f"{told}: it has {len(row)} columns, the first line {len(head)}")
            facts = {name: cell.strip() for name, cell in zip(head, row, strict=True)}
            place = _place(facts, known, told)
            rater = facts["rater"]
            if not rater:
                raise UserError(f"{told}: it names no rater")
            by_rater = made.setdefault(place, {})
            if rater in by_rater:
                raise UserError(
                    f"{told}: {rater} has rated {place[2]} of sample {place[0]}, turn {place[1] + 1}, in an earlier line"
                )
            by_rater[rater] = _share(facts, scales, told)
    except csv.Error as error:
        raise UserError(f"{path}: line {rows.line_num}: no CSV: {error}") from None
    if not made:
        raise UserError(f"{path} has no rating")
    return made


def _place(facts: Mapping[str, str], known: set[Place], told: str) -> Place:
    turn = facts["turn"]
    sample = facts["sample"]
    metric = facts["metric"]
    if not (turn.isascii() and turn.isdecimal()) or len(turn) > 9 or not int(turn):
        raise UserError(f"{told}: turn {turn!r} is no number from 1 up")
    place = (sample, int(turn) - 1, metric)
    if place in known:
        return place
    if not any(one[0] == sample for one in known):
        raise UserError(f"{told}: the run has no sample {sample!r}")
    metrics = sorted({one[2] for one in known if one[:2] == place[:2]})
    if metrics:
        there = f"it has {', '.join(metrics)}"
    else:
        there = "the run has no verdict about that turn"
    raise UserError(f"{told}: sample {sample!r}, turn {turn}: no metric {metric!r}; {there}")


def _share(facts: Mapping[str, str], scales: Mapping[str, tuple[float, float] | None], told: str) -> float:
    value = facts.get("value", "")
    score = facts.get("score", "")
    metric = facts["metric"]
    if bool(value) == bool(score):
        raise UserError(f"{told}: give a value or a score" + (", not both" if value else ""))
    try:
        number = float(value or score)
    except ValueError:
        raise UserError(f"{told}: {value or score!r} is no number") from None
    if value:
        if not 0 <= number <= 1:
            raise UserError(f"{told}: value {value} is no share of full marks, from 0 to 1; give it as a score?")
        return number
    scale = scales.get(metric)
    if scale is None:
        raise UserError(
            f"{told}: the run does not say on what scale {metric} is scored; give value, a share from 0 to 1"
        )
    low, high = scale
    if not low - CLOSE <= number <= high + CLOSE:
        raise UserError(f"{told}: score {score} is not on the scale of {metric}, from {low:g} to {high:g}")
    return min(1.0, max(0.0, (number - low) / (high - low)))


def scales_of(verdicts: Iterable[Verdict]) -> dict[str, tuple[float, float] | None]:
    """By metric, the lowest and the highest score, from what scores came to; None where that cannot be told."""
    points: dict[str, set[tuple[float, float]]] = {}
    for one in verdicts:
        for each in one.merged_from or (one,):
            some = points.setdefault(one.metric, set())
            if each.score is not None and each.value is not None:
                some.add((each.score, each.value))
    return {metric: scale_of(some) for metric, some in points.items()}


def scale_of(points: Iterable[tuple[float, float]]) -> tuple[float, float] | None:
    """From scores and their shares: where the share is 0 and where it is 1, if all lie on one rising line."""
    some = sorted(set(points))
    if len(some) < 2 or some[-1][0] == some[0][0]:
        return None
    (first, a), (last, b) = some[0], some[-1]
    slope = (b - a) / (last - first)
    if slope <= 0 or any(abs(a + slope * (score - first) - share) > CLOSE for score, share in some):
        return None
    return round(first - a / slope, 9), round(first + (1 - a) / slope, 9)
