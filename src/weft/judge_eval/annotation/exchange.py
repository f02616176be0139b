"""Ratings that come from files. Each is checked against the run's own questions before any is taken: all of a file, or
nothing of it.

What was filled in goes the way of a judge's reply again; where a file has a number alone, it must be on the question's
scale. Taking the same file twice adds nothing."""

import csv
import io
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from weft.benchmarks.base import read_score_range
from weft.calls.structured_output import UnusableReply
from weft.errors import UserError
from weft.judge_eval.annotation import attention
from weft.judge_eval.annotation.questions import AnnotatedQuestion, StudySource, places_of
from weft.judge_eval.annotation.study import AnnotationItem, annotation_of, item_of, known_item
from weft.store.annotations import Annotation, Annotations, Study
from weft.store.blobs import Blobs
from weft.types import Question, Verdict
from weft.untrusted import dict_or_empty, read_text_file

NEEDED = ("sample", "turn", "metric", "rater")
GUARD = ("=", "+", "-", "@", "\t", "\r")  # before which an apostrophe keeps a spreadsheet from reckoning


class ImportCounts(Struct, frozen=True):
    found: int
    new: int
    changed: int


class KnownItems:
    """All questions of a run by their names, those with known answers as well."""

    def __init__(self, source: StudySource, blobs: Blobs) -> None:
        self.source = source
        self._blobs = blobs
        self._asked = {one.item: one for one in source.asked}
        self._known = {attention.name_of(one): one for one in source.asked}
        self.places = places_of(source.asked)

    def item(self, name: str) -> AnnotationItem | None:
        if name in self._asked:
            return item_of(self._asked[name])
        if name in self._known:
            return known_item(self._known[name], self._blobs)
        return None

    def settings(self, items: Iterable[str]) -> dict[str, Any]:
        """Of a study of which only answers are known: what their questions with known answers must be answered."""
        some = {name: self._known[name] for name in items if name in self._known}
        return {
            "imported": True,
            "known": {name: attention.kept(attention.known_of(one)) for name, one in some.items()},
        }


def default_study(run: str) -> str:
    """The study of what comes without one."""
    return f"imported-{run.rpartition('-')[2]}"


def import_annotations(known: KnownItems, ratings: Annotations, read: Sequence[Annotation]) -> ImportCounts:
    """Keep what was read, all at once. Of two that differ the later one counts; what has no time of its own is as late
    as now."""
    run = known.source.run.id
    there = {(one.study, one.item, one.annotator): one for one in ratings.find(run)}
    fresh: list[Annotation] = []
    changed = 0
    for one in read:
        mine = there.get((one.study, one.item, one.annotator))
        if mine is None:
            fresh.append(one)
        elif (mine.verdicts, mine.answer) != (one.verdicts, one.answer) and (
            one.created_at or time.time()
        ) > mine.created_at:
            fresh.append(one)
            changed += 1
    begun = {study.id for study in ratings.studies(run)}
    missing = [name for name in dict.fromkeys(one.study for one in fresh) if name not in begun]
    studies = [
        Study(name, run, time.time(), known.settings(one.item for one in read if one.study == name)) for name in missing
    ]
    ratings.add_all(fresh, studies)
    return ImportCounts(len(read), len(fresh) - changed, changed)


def read_csv(path: Path, known: KnownItems) -> list[Annotation]:
    """Raises UserError with the line of what is wrong."""
    reader = csv.DictReader(io.StringIO(read_text_file(path), newline=""))
    try:
        columns = [name.strip().lower() for name in reader.fieldnames or ()]
        reader.fieldnames = columns
        missing = [name for name in NEEDED if name not in columns]
        if missing or not {"value", "score", "answer"} & set(columns):
            raise UserError(
                f"{path}: it has no column {missing[0] if missing else 'value or score'!r}; it has {', '.join(columns) or 'none'}"
            )
        made: dict[tuple[str, str, str], tuple[str, list[dict[str, str]]]] = {}
        for row in reader:
            where = f"{path}: line {reader.line_num}"
            if None in row or None in row.values():
                raise UserError(f"{where}: it has not as many cells as there are columns")
            cells = {name: _unguarded(value) for name, value in row.items()}
            asked = _question(cells, known, where)
            rater = " ".join(cells["rater"].split())
            if not rater:
                raise UserError(f"{where}: it has no rater")
            study = cells.get("study", "") or default_study(known.source.run.id)
            made.setdefault((study, asked, rater), (where, []))[1].append({**cells, "where": where})
    except csv.Error as error:
        raise UserError(f"{path}: line {reader.line_num}: {error}") from None
    if not made:
        raise UserError(f"{path}: there is no rating in it")
    return [_rating(known, *key, where, cells) for key, (where, cells) in made.items()]


def _unguarded(cell: str) -> str:
    if cell[:1] == "'" and cell[1:2] in GUARD:
        return cell[1:]
    return cell


def _question(cells: Mapping[str, str], known: KnownItems, where: str) -> str:
    """The question that a row is about. Raises UserError for none."""
    sample = cells["sample"]
    turn = cells["turn"]
    metric = cells["metric"]
    if cells.get("run") not in (None, "", known.source.run.id):
        raise UserError(f"{where}: it is of the run {cells['run']}, not of {known.source.run.id}")
    if cells.get("item"):
        item = known.item(cells["item"])
        if item is None:
            raise UserError(
                f"{where}: item {cells['item']!r} is no question of {known.source.run.id}: is it another run's?"
            )
        place = item.question.turn_ref
        if (sample, turn) != (place.sample, str(place.turn + 1)) or metric not in item.question.metrics:
            raise UserError(
                f"{where}: item {item.id} is about {place.sample}, turn {place.turn + 1}, {', '.join(item.question.metrics)}"
            )
        return item.id
    if not any(place[0] == sample for place in known.places):
        raise UserError(f"{where}: sample {sample!r} has no question in {known.source.run.id}")
    if not turn.isdecimal() or not any(place[:2] == (sample, int(turn) - 1) for place in known.places):
        there = sorted({place[1] + 1 for place in known.places if place[0] == sample})
        raise UserError(
            f"{where}: sample {sample!r} has no question about turn {turn!r}; there is {', '.join(map(str, there))}"
        )
    found = known.places.get((sample, int(turn) - 1, metric), [])
    if not found:
        there = [place[2] for place in known.places if place[:2] == (sample, int(turn) - 1)]
        raise UserError(
            f"{where}: metric {metric!r} is no metric of {sample!r}, turn {turn}; there is {', '.join(there)}"
        )
    return _variant(found, cells.get("variant", ""), where).item


def _variant(found: Sequence[AnnotatedQuestion], wanted: str, where: str) -> AnnotatedQuestion:
    some = [one for one in found if one.question.variant == wanted]
    if len(some) != 1:
        raise UserError(
            f"{where}: which of its questions? variant is one of {', '.join(one.question.variant or '(none)' for one in found)}"
        )
    return some[0]


def _rating(
    known: KnownItems, study: str, name: str, rater: str, where: str, cells: Sequence[Mapping[str, str]]
) -> Annotation:
    """One question by one rater, of all its rows."""
    item = known.item(name)
    assert item is not None
    first = cells[0]
    at, seconds = (_figure(first.get(column, ""), column, where) or 0.0 for column in ("at", "seconds"))
    metrics = [one["metric"] for one in cells]
    twice = next((one for number, one in enumerate(cells) if one["metric"] in metrics[:number]), None)
    if twice is not None:
        raise UserError(
            f"{twice['where']}: {rater} has rated {twice['metric']} of {twice['sample']!r}, turn {twice['turn']}, before"
        )
    if first.get("answer", "") not in ("", "{}"):
        return answered(
            known.source, study, item, rater, _object(first["answer"], where), where, at=at, seconds=seconds
        )
    said = tuple(_verdict(item.question, one) for one in cells)
    return Annotation(known.source.run.id, study, name, rater, said, {}, at, seconds, item.known)


def answered(
    source: StudySource,
    study: str,
    item: AnnotationItem,
    rater: str,
    answer: dict[str, Any],
    where: str,
    *,
    at: float,
    seconds: float = 0.0,
) -> Annotation:
    """A rating from what was filled in, as if it had been filled in here."""
    try:
        return msgspec.structs.replace(annotation_of(source, study, item, rater, answer, seconds=seconds, at=at), at=at)
    except UnusableReply as error:
        raise UserError(f"{where}: {error}") from None


def _object(text: str, where: str) -> dict[str, Any]:
    try:
        return dict_or_empty(msgspec.json.decode(text))
    except (msgspec.MsgspecError, RecursionError) as error:
        raise UserError(f"{where}: answer: {error}") from None


def _verdict(question: Question, cells: Mapping[str, str]) -> Verdict:
    metric = cells["metric"]
    where = cells["where"]
    value, score = (_figure(cells.get(column, ""), column, where) for column in ("value", "score"))
    if score is not None:
        low, high = _scale(question, metric, where)
        if not low <= score <= high:
            raise UserError(
                f"{where}: score {score:g} is not on the scale of {metric}, which goes from {low:g} to {high:g}"
            )
        share = (score - low) / (high - low)
        if value is not None and abs(value - share) > 0.001:
            raise UserError(f"{where}: value {value:g} is not what score {score:g} comes to, {share:.4g}")
        if value is None:
            value = share
    if value is None:
        raise UserError(f"{where}: it has neither value nor score")
    if not 0 <= value <= 1:
        raise UserError(
            f"{where}: value {value:g} is no share of full marks, which go from 0 to 1; a score stands in the column score"
        )
    place = question.turn_ref
    return Verdict(
        place.sample,
        place.turn,
        metric,
        value,
        cells.get("reason", ""),
        "person",
        variant=question.variant,
        score=score,
    )


def _scale(question: Question, metric: str, where: str) -> tuple[float, float]:
    try:
        schema = question.schema["properties"]
        return read_score_range(
            schema[metric]["properties"][question.value_key]
            if len(question.metrics) > 1
            else schema[question.value_key]
        )
    except (KeyError, TypeError, ValueError):
        raise UserError(
            f"{where}: {metric} has no one scale for a score: give its share of full marks in the column value"
        ) from None


def _figure(text: str, column: str, where: str) -> float | None:
    if not text.strip():
        return None
    try:
        found = float(text)
    except ValueError:
        found = float("nan")
    if not -1e12 < found < 1e12:
        raise UserError(f"{where}: {column} {text[:40]!r} is no number")
    return found
