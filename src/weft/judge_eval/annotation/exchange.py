"""Annotations from CSV files. Every line is checked against the run's own questions before anything is stored: a file
is imported as a whole or not at all.

A filled-in answer is parsed like a judge's reply; a bare number must be on the question's scale. Importing the same
file twice adds nothing."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from weft.benchmarks.base import read_score_range
from weft.calls.structured_output import UnusableReply
from weft.errors import UserError
from weft.judge_eval.annotation import attention
from weft.judge_eval.annotation.questions import AnnotatedQuestion, StudySource, group_by_verdict
from weft.judge_eval.annotation.study import AnnotationItem, annotation_of, check_item, encode_checks, question_item
from weft.report.csv_table import remove_guard
from weft.store.annotations import Annotation, Annotations, Study
from weft.store.blobs import Blobs
from weft.store.records import is_time, read_clock
from weft.types import Question, Verdict
from weft.untrusted import dict_or_empty, read_text_file

REQUIRED_COLUMNS = ("sample", "turn", "metric", "annotator")


class ImportCounts(Struct, frozen=True):
    """What an import did."""

    found: int  # annotations in the file
    new: int
    changed: int


class KnownItems:
    """All items of a run by their ids: its questions, and the attention checks that can be made from them."""

    def __init__(self, source: StudySource, blobs: Blobs) -> None:
        self.source = source
        self._blobs = blobs
        self._questions = {question.item: question for question in source.questions}
        self._checks = {attention.check_id(question): question for question in source.questions}
        self.by_verdict = group_by_verdict(source.questions)

    def item(self, item: str) -> AnnotationItem | None:
        if item in self._questions:
            return question_item(self._questions[item])
        if item in self._checks:
            return check_item(self._checks[item], self._blobs)
        return None

    def settings(self, items: Iterable[str]) -> dict[str, Any]:
        """Settings of a study of which only answers are known: the attention checks among these items."""
        checks = {item: self._checks[item] for item in items if item in self._checks}
        return {"imported": True, "known": encode_checks(checks)}


def default_study(run: str) -> str:
    """The study of annotations that come without one."""
    return f"imported-{run.rpartition('-')[2]}"


def import_annotations(known: KnownItems, store: Annotations, imported: Sequence[Annotation]) -> ImportCounts:
    """Store annotations, all at once. Of two that differ the later one counts; an annotation without a time counts as
    made now."""
    run = known.source.run.id
    stored = {_identity(annotation): annotation for annotation in store.find(run)}
    to_store: list[Annotation] = []
    changed = 0
    for annotation in imported:
        existing = stored.get(_identity(annotation))
        if existing is None:
            to_store.append(annotation)
            continue
        differs = (existing.verdicts, existing.answer) != (annotation.verdicts, annotation.answer)
        is_later = (annotation.created_at or read_clock()) > existing.created_at
        if differs and is_later:
            to_store.append(annotation)
            changed += 1
    store.add_all(to_store, _missing_studies(known, store, imported, to_store))
    return ImportCounts(len(imported), len(to_store) - changed, changed)


def _identity(annotation: Annotation) -> tuple[str, str, str]:
    return annotation.study, annotation.item, annotation.annotator


def _missing_studies(
    known: KnownItems, store: Annotations, imported: Sequence[Annotation], to_store: Sequence[Annotation]
) -> list[Study]:
    """New studies for annotations whose study is not in the journal."""
    run = known.source.run.id
    existing = {study.id for study in store.studies(run)}
    studies: list[Study] = []
    for name in dict.fromkeys(annotation.study for annotation in to_store):
        if name not in existing:
            items = [annotation.item for annotation in imported if annotation.study == name]
            studies.append(Study(name, run, read_clock(), known.settings(items)))
    return studies


class _Line(Struct, frozen=True):
    """One line of the file: its cells by column, and where it is."""

    cells: dict[str, str]
    where: str


def read_csv_of_runs(path: Path, known: Sequence[KnownItems]) -> list[list[Annotation]]:
    """Read the annotations of each of several runs from one CSV file, whose column `run` has their ids."""
    ids = [items.source.run.id for items in known]
    found = [read_csv(path, items, [run for run in ids if run != items.source.run.id]) for items in known]
    if not any(found):
        raise UserError(f"{path}: there is no annotation in it")
    return found


def read_csv(path: Path, known: KnownItems, other_runs: Sequence[str] = ()) -> list[Annotation]:
    """Read the annotations of a CSV file. Lines about `other_runs` are left to those. Raises UserError with the line
    that is wrong."""
    reader = csv.DictReader(io.StringIO(read_text_file(path), newline=""))
    lines: dict[tuple[str, str, str], list[_Line]] = {}  # by study, item and annotator
    try:
        reader.fieldnames = _read_columns(reader.fieldnames or (), path)
        for row in reader:
            where = f"{path}: line {reader.line_num}"
            if None in row or None in row.values():
                raise UserError(f"{where}: the number of cells is not the number of columns")
            cells = {name: remove_guard(value) for name, value in row.items()}
            if cells.get("run", "") in other_runs:
                continue
            if other_runs and not cells.get("run"):
                raise UserError(f"{where}: it names no run, and the file is for {len(other_runs) + 1}")
            item = _find_item(cells, known, where)
            annotator = " ".join(cells["annotator"].split())
            if not annotator:
                raise UserError(f"{where}: it has no annotator")
            study = cells.get("study", "") or default_study(known.source.run.id)
            lines.setdefault((study, item, annotator), []).append(_Line(cells, where))
    except csv.Error as error:
        raise UserError(f"{path}: line {reader.line_num}: {error}") from None
    if not lines and not other_runs:
        raise UserError(f"{path}: there is no annotation in it")
    return [_build_annotation(known, *key, own_lines) for key, own_lines in lines.items()]


def _read_columns(names: Sequence[str], path: Path) -> list[str]:
    columns = [name.strip().lower() for name in names]
    missing = [name for name in REQUIRED_COLUMNS if name not in columns]
    if not {"value", "score", "answer"} & set(columns):
        missing.append("value or score")
    if missing:
        raise UserError(f"{path}: it has no column {missing[0]!r}; it has {', '.join(columns) or 'none'}")
    return columns


def _find_item(cells: Mapping[str, str], known: KnownItems, where: str) -> str:
    """The id of the item that a line is about. Raises UserError for none."""
    run = known.source.run.id
    if cells.get("run") not in (None, "", run):
        raise UserError(f"{where}: it is of the run {cells['run']}, not of {run}")
    if cells.get("item"):
        return _check_item_cell(cells, known, where)
    sample = cells["sample"]
    turn = cells["turn"]
    metric = cells["metric"]
    if not any(key[0] == sample for key in known.by_verdict):
        raise UserError(f"{where}: sample {sample!r} has no question in {run}")
    turns = sorted({key[1] + 1 for key in known.by_verdict if key[0] == sample})
    if not turn.isdecimal() or int(turn) not in turns:
        available = ", ".join(map(str, turns))
        raise UserError(f"{where}: sample {sample!r} has no question about turn {turn!r}; there is {available}")
    questions = known.by_verdict.get((sample, int(turn) - 1, metric), [])
    if not questions:
        available = ", ".join(key[2] for key in known.by_verdict if key[:2] == (sample, int(turn) - 1))
        raise UserError(f"{where}: {sample!r}, turn {turn}, has no metric {metric!r}; there is {available}")
    return _pick_variant(questions, cells.get("variant", ""), where).item


def _check_item_cell(cells: Mapping[str, str], known: KnownItems, where: str) -> str:
    """The item that a line names, if it is one of the run and about the line's sample, turn and metric."""
    item = known.item(cells["item"])
    if item is None:
        run = known.source.run.id
        raise UserError(f"{where}: item {cells['item']!r} is not a question of {run}: is it of another run?")
    turn_ref = item.question.turn_ref
    metrics = item.question.metrics
    is_same_turn = (cells["sample"], cells["turn"]) == (turn_ref.sample, str(turn_ref.turn + 1))
    if not is_same_turn or cells["metric"] not in metrics:
        raise UserError(
            f"{where}: item {item.id} is about {turn_ref.sample}, turn {turn_ref.turn + 1}, {', '.join(metrics)}"
        )
    return item.id


def _pick_variant(questions: Sequence[AnnotatedQuestion], variant: str, where: str) -> AnnotatedQuestion:
    matching = [question for question in questions if question.question.variant == variant]
    if len(matching) != 1:
        variants = ", ".join(question.question.variant or "(none)" for question in questions)
        raise UserError(f"{where}: variant {variant!r} does not pick one of its questions; give one of {variants}")
    return matching[0]


def _build_annotation(
    known: KnownItems, study: str, item_id: str, annotator: str, lines: Sequence[_Line]
) -> Annotation:
    """One question by one annotator, from all its lines."""
    item = known.item(item_id)
    assert item is not None
    _check_metrics_once(annotator, lines)
    first = lines[0].cells
    where = lines[0].where
    created_at = _read_number(first.get("at", ""), "at", where) or 0.0
    if not is_time(created_at):
        raise UserError(f"{where}: at: {first['at'][:40]!r} is not a Unix time")
    seconds = _read_number(first.get("seconds", ""), "seconds", where) or 0.0
    if first.get("answer", "") not in ("", "{}"):
        answer = _read_object(first["answer"], where)
        return annotation_from_answer(
            known.source, study, item, annotator, answer, where, created_at=created_at, seconds=seconds
        )
    verdicts = tuple(_read_verdict(item.question, line) for line in lines)
    return Annotation(
        known.source.run.id, study, item_id, annotator, verdicts, {}, created_at, seconds, item.is_attention_check
    )


def _check_metrics_once(annotator: str, lines: Sequence[_Line]) -> None:
    metrics: set[str] = set()
    for line in lines:
        metric = line.cells["metric"]
        if metric in metrics:
            raise UserError(
                f"{line.where}: {annotator} has annotated {metric} of {line.cells['sample']!r}, "
                f"turn {line.cells['turn']}, in an earlier line"
            )
        metrics.add(metric)


def annotation_from_answer(
    source: StudySource,
    study: str,
    item: AnnotationItem,
    annotator: str,
    answer: dict[str, Any],
    where: str,
    *,
    created_at: float,
    seconds: float = 0.0,
) -> Annotation:
    """The annotation of an imported answer, parsed as if it had been given here. Raises UserError.

    Its time is as imported, also where that is 0: not the time of the import."""
    try:
        annotation = annotation_of(source, study, item, annotator, answer, seconds=seconds)
    except UnusableReply as error:
        raise UserError(f"{where}: {error}") from None
    return replace(annotation, created_at=created_at)


def _read_object(text: str, where: str) -> dict[str, Any]:
    try:
        return dict_or_empty(msgspec.json.decode(text))
    except (msgspec.MsgspecError, RecursionError) as error:
        raise UserError(f"{where}: answer: {error}") from None


def _read_verdict(question: Question, line: _Line) -> Verdict:
    """The verdict of a line that has a value or a score. Raises UserError where both are missing or do not match."""
    metric = line.cells["metric"]
    value = _read_number(line.cells.get("value", ""), "value", line.where)
    score = _read_number(line.cells.get("score", ""), "score", line.where)
    if score is not None:
        share = _share_of(question, metric, score, line.where)
        if value is not None and abs(value - share) > 0.001:
            raise UserError(f"{line.where}: value {value:g} does not match score {score:g}, which is {share:.4g}")
        if value is None:
            value = share
    if value is None:
        raise UserError(f"{line.where}: it has neither value nor score")
    if not 0 <= value <= 1:
        raise UserError(
            f"{line.where}: value {value:g} is not a share of full marks, from 0 to 1; a score belongs in the column "
            "score"
        )
    turn_ref = question.turn_ref
    return Verdict(
        turn_ref.sample,
        turn_ref.turn,
        metric,
        value,
        line.cells.get("reason", ""),
        "person",
        variant=question.variant,
        score=score,
    )


def _share_of(question: Question, metric: str, score: float, where: str) -> float:
    """A score as a share of full marks. Raises UserError for a score that is not on the question's scale."""
    low, high = _score_range(question, metric, where)
    if not low <= score <= high:
        raise UserError(f"{where}: score {score:g} is not on the scale of {metric}, from {low:g} to {high:g}")
    return (score - low) / (high - low)


def _score_range(question: Question, metric: str, where: str) -> tuple[float, float]:
    try:
        properties = question.schema["properties"]
        if len(question.metrics) > 1:
            properties = properties[metric]["properties"]
        return read_score_range(properties[question.value_key])
    except (KeyError, TypeError, ValueError):
        raise UserError(
            f"{where}: {metric} has no single scale for a score: give its share of full marks in the column value"
        ) from None


def _read_number(text: str, column: str, where: str) -> float | None:
    if not text.strip():
        return None
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not -1e12 < number < 1e12:
        raise UserError(f"{where}: {column} {text[:40]!r} is not a number")
    return number
