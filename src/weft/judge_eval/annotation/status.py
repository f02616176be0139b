"""The progress of a study: what each annotator has answered, how many attention checks they passed, and how long one
question takes."""

import statistics
from collections.abc import Sequence
from typing import Any, cast

from msgspec import Struct

from weft.judge_eval.annotation import attention
from weft.judge_eval.annotation.joint import JOINT
from weft.store.annotations import Annotation, Study

COLUMNS = ("annotator", "done", "attention passed", "median seconds")


class AnnotatorProgress(Struct, frozen=True):
    """How far one annotator is in a study."""

    annotator: str
    done: int  # questions answered, attention checks included
    assigned: int | None  # None where answers were imported, and nothing was assigned
    checks_passed: int
    checks_answered: int
    seconds: float | None  # the median of a question

    @property
    def is_doubtful(self) -> bool:
        """Whether more than half of the attention checks were answered wrongly."""
        return self.checks_answered - self.checks_passed > self.checks_answered / 2


def measure_progress(study: Study, annotations: Sequence[Annotation]) -> list[AnnotatorProgress]:
    """One record for each annotator: those of the study in its order, then others whose answers were imported."""
    orders: dict[str, list[str]] = study.settings.get("orders", {})
    checks = attention.decode_checks(study.settings)
    names = dict.fromkeys([*orders, *(annotation.annotator for annotation in annotations)])
    progress: list[AnnotatorProgress] = []
    for name in names:
        own = [annotation for annotation in annotations if annotation.annotator == name]
        passed: list[bool] = []
        seconds: list[float] = []
        for annotation in own:
            if annotation.is_attention_check and annotation.item in checks:
                passed.append(checks[annotation.item].passed(annotation))
            if annotation.seconds > 0:
                seconds.append(annotation.seconds)
        assigned = len(orders[name]) if name in orders else None
        median = statistics.median(seconds) if seconds else None
        progress.append(AnnotatorProgress(name, len(own), assigned, sum(passed), len(passed), median))
    return progress


def describe_progress(study: Study, annotations: Sequence[Annotation]) -> list[str]:
    """Lines for the terminal: the study, a table, and warnings about annotators who failed attention checks."""
    progress = measure_progress(study, annotations)
    rows = [COLUMNS, *map(_table_row, progress)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [f"{study.id}: {_describe_settings(study.settings)}"]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        lines.append(f"  {'  '.join(cells)}".rstrip())
    for annotator in progress:
        if annotator.is_doubtful:
            failed = annotator.checks_answered - annotator.checks_passed
            lines.append(
                f"warning: {annotator.annotator} failed {failed} of {annotator.checks_answered} attention checks: "
                "look at the answers before you use them"
            )
    return lines


def _table_row(progress: AnnotatorProgress) -> tuple[str, str, str, str]:
    done = str(progress.done)
    if progress.assigned is not None:
        done += f" of {progress.assigned}"
    passed = "-"
    if progress.checks_answered:
        passed = f"{progress.checks_passed} of {progress.checks_answered}"
    seconds = "-"
    if progress.seconds is not None:
        seconds = f"{progress.seconds:.1f}"
    return progress.annotator, done, passed, seconds


def _describe_settings(settings: dict[str, Any]) -> str:
    if "orders" not in settings:
        return "imported from a file"
    annotators = len(cast(list[str], settings["annotators"]))
    checks = len(settings["known"])
    text = f"{settings['questions']} questions for {annotators} {_plural('annotator', annotators)}"
    if settings["each"] != annotators:
        text += f", each by {settings['each']}"
    text += f", seed {settings['seed']}"
    if JOINT in settings:
        text += f", of {len(settings[JOINT]['runs'])} runs together"
    if checks:
        text += f", {checks} {_plural('attention check', checks)} in addition"
    return text


def _plural(noun: str, count: int) -> str:
    if count == 1:
        return noun
    return f"{noun}s"
