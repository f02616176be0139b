"""A CSV file of human scores, and scales inferred from scores.

Each line of the file has the columns `sample`, `turn` (from 1), `metric`, `annotator`, and either `value` (a share of
full marks, 0 to 1) or `score` (on the question's own scale). A line that does not fit the run is an error that names
the line; no annotation is dropped silently."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from weft.errors import UserError
from weft.types import Verdict
from weft.untrusted import read_text_file

VerdictKey = tuple[str, int, str]  # sample, turn (from 0), metric
HumanScores = dict[VerdictKey, dict[str, float]]  # by verdict and annotator, the share of full marks
Scale = tuple[float, float]  # lowest and highest score
RUN_COLUMN = "run"  # of a file about several runs
REQUIRED_COLUMNS = ("sample", "turn", "metric", "annotator")
TOLERANCE = 1e-6


def read_human_scores(path: Path, verdicts: Sequence[Verdict]) -> HumanScores:
    """Read a file of human scores about a run with these verdicts. Raises UserError with the line that is wrong."""
    return _read_scores(path, {"": verdicts}, "")[""]


def read_scores_of_runs(path: Path, verdicts: Mapping[str, Sequence[Verdict]]) -> dict[str, HumanScores]:
    """Read a file of human scores about several runs, whose verdicts are given by id. Its column `run` has the ids."""
    return _read_scores(path, verdicts, RUN_COLUMN)


def _read_scores(path: Path, verdicts: Mapping[str, Sequence[Verdict]], run_column: str) -> dict[str, HumanScores]:
    """Read the scores by run; without a run column all lines are about the only run."""
    keys = {run: {(one.sample, one.turn, one.metric) for one in own} for run, own in verdicts.items()}
    scales = {run: infer_scales(own) for run, own in verdicts.items()}
    reader = csv.reader(io.StringIO(read_text_file(path), newline=""), strict=True)
    scores: dict[str, HumanScores] = {run: {} for run in verdicts}
    try:
        header = _read_header(next(reader, list[str]()), path, run_column)
        for row in reader:
            if not any(cell.strip() for cell in row):
                continue
            where = f"{path}: line {reader.line_num}"
            if len(row) != len(header):
                raise UserError(f"{where}: it has {len(row)} columns, the first line {len(header)}")
            cells = {name: cell.strip() for name, cell in zip(header, row, strict=True)}
            run = cells[run_column] if run_column else ""
            if run not in scores:
                raise UserError(f"{where}: run {run!r} is none of {', '.join(scores)}")
            _add_score(scores[run], cells, keys[run], scales[run], where)
    except csv.Error as error:
        raise UserError(f"{path}: line {reader.line_num}: invalid CSV: {error}") from None
    if not any(scores.values()):
        raise UserError(f"{path} has no annotations")
    return scores


def _read_header(row: Sequence[str], path: Path, run_column: str) -> list[str]:
    header = [name.strip().lower() for name in row]
    missing = [name for name in REQUIRED_COLUMNS if name not in header]
    if "value" not in header and "score" not in header:
        missing.append("value or score")
    if run_column and run_column not in header:
        raise UserError(f"{path}: line 1: there is no column {run_column}: a file about several runs needs their ids")
    if missing:
        raise UserError(
            f"{path}: line 1: there is no column {missing[0]}; give sample,turn,metric,annotator,value (or score)"
        )
    return header


def _add_score(
    scores: HumanScores,
    cells: Mapping[str, str],
    keys: set[VerdictKey],
    scales: Mapping[str, Scale | None],
    where: str,
) -> None:
    key = _read_key(cells, keys, where)
    annotator = cells["annotator"]
    if not annotator:
        raise UserError(f"{where}: it names no annotator")
    by_annotator = scores.setdefault(key, {})
    if annotator in by_annotator:
        sample, turn, metric = key
        raise UserError(
            f"{where}: {annotator} has annotated {metric} of sample {sample}, turn {turn + 1}, in an earlier line"
        )
    by_annotator[annotator] = _read_share(cells, scales, where)


def _read_key(cells: Mapping[str, str], keys: set[VerdictKey], where: str) -> VerdictKey:
    turn = cells["turn"]
    sample = cells["sample"]
    metric = cells["metric"]
    if not (turn.isascii() and turn.isdecimal()) or len(turn) > 9 or not int(turn):
        raise UserError(f"{where}: turn {turn!r} is not a number from 1 up")
    key = (sample, int(turn) - 1, metric)
    if key in keys:
        return key
    if not any(known[0] == sample for known in keys):
        raise UserError(f"{where}: the run has no sample {sample!r}")
    metrics = sorted({known[2] for known in keys if known[:2] == key[:2]})
    if metrics:
        hint = f"it has {', '.join(metrics)}"
    else:
        hint = "the run has no verdict about that turn"
    raise UserError(f"{where}: sample {sample!r}, turn {turn}: no metric {metric!r}; {hint}")


def _read_share(cells: Mapping[str, str], scales: Mapping[str, Scale | None], where: str) -> float:
    value = cells.get("value", "")
    score = cells.get("score", "")
    metric = cells["metric"]
    if value and score:
        raise UserError(f"{where}: give a value or a score, not both")
    if not value and not score:
        raise UserError(f"{where}: give a value or a score")
    try:
        number = float(value or score)
    except ValueError:
        raise UserError(f"{where}: {value or score!r} is not a number") from None
    if value:
        if not 0 <= number <= 1:
            raise UserError(f"{where}: value {value} is not a share of full marks, from 0 to 1; did you mean a score?")
        return number
    scale = scales.get(metric)
    if scale is None:
        raise UserError(
            f"{where}: the scale of {metric} cannot be inferred from this run; give value, a share from 0 to 1"
        )
    low, high = scale
    if not low - TOLERANCE <= number <= high + TOLERANCE:
        raise UserError(f"{where}: score {score} is not on the scale of {metric}, from {low:g} to {high:g}")
    return min(1.0, max(0.0, (number - low) / (high - low)))


def infer_scales(verdicts: Iterable[Verdict]) -> dict[str, Scale | None]:
    """By metric, the lowest and the highest score, inferred from scores and their shares; None where that is not
    possible."""
    points: dict[str, set[tuple[float, float]]] = {}
    for verdict in verdicts:
        metric_points = points.setdefault(verdict.metric, set())
        for source in verdict.merged_from or (verdict,):
            if source.score is not None and source.value is not None:
                metric_points.add((source.score, source.value))
    return {metric: infer_scale(metric_points) for metric, metric_points in points.items()}


def infer_scale(points: Iterable[tuple[float, float]]) -> Scale | None:
    """From pairs of score and share: the scores at which the share is 0 and 1. None unless all lie on one rising
    line."""
    ordered = sorted(set(points))
    if len(ordered) < 2 or ordered[-1][0] == ordered[0][0]:
        return None
    first_score, first_share = ordered[0]
    last_score, last_share = ordered[-1]
    slope = (last_share - first_share) / (last_score - first_score)
    if slope <= 0:
        return None
    for score, share in ordered:
        if abs(first_share + slope * (score - first_score) - share) > TOLERANCE:
            return None
    return round(first_score - first_share / slope, 9), round(first_score + (1 - first_share) / slope, 9)
