"""How far a study is: for each rater what is done, how many questions with known answers were answered right, how long
one takes."""

import statistics
from collections.abc import Sequence
from typing import Any, cast

from msgspec import Struct

from weft.judge_eval.annotation import attention
from weft.store.annotations import Annotation, Study


class AnnotatorProgress(Struct, frozen=True):
    """`assigned` is None where only answers are known, read in from elsewhere."""

    rater: str
    done: int
    assigned: int | None
    passed: int
    known: int  # questions with known answers that are answered
    seconds: float | None

    @property
    def doubtful(self) -> bool:
        return self.known - self.passed > self.known / 2


def progress(study: Study, ratings: Sequence[Annotation]) -> list[AnnotatorProgress]:
    orders: dict[str, list[str]] = study.settings.get("orders", {})
    known = attention.read(study.settings)
    made: list[AnnotatorProgress] = []
    for rater in dict.fromkeys([*orders, *(one.annotator for one in ratings)]):
        mine = [one for one in ratings if one.annotator == rater]
        checks = [known[one.item].passed(one) for one in mine if one.is_attention_check and one.item in known]
        took = [one.seconds for one in mine if one.seconds > 0]
        if took:
            median = statistics.median(took)
        else:
            median = None
        if rater in orders:
            due = len(orders[rater])
        else:
            due = None
        made.append(AnnotatorProgress(rater, len(mine), due, sum(checks), len(checks), median))
    return made


def describe_progress(study: Study, ratings: Sequence[Annotation]) -> list[str]:
    """As lines: what the study is, a table, and who is to be doubted."""
    found = progress(study, ratings)
    table = [("rater", "done", "attention passed", "median seconds")]
    for one in found:
        if one.assigned is not None:
            done = f"{one.done} of {one.assigned}"
        else:
            done = str(one.done)
        if one.known:
            passed = f"{one.passed} of {one.known}"
        else:
            passed = "-"
        table.append((one.rater, done, passed, "-" if one.seconds is None else f"{one.seconds:.1f}"))
    widths = [max(len(row[at]) for row in table) for at in range(4)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
    wrong = [
        f"warning: {one.rater} got {one.known - one.passed} of {one.known} attention questions wrong: look before you use what they said"
        for one in found
        if one.doubtful
    ]
    return [f"{study.id}: {_settings(study.settings)}", *(f"  {line}" for line in lines), *wrong]


def _settings(settings: dict[str, Any]) -> str:
    if "orders" not in settings:
        return "read in from a file"
    raters = cast(list[str], settings["raters"])
    if settings["each"] == len(raters):
        each = ""
    else:
        each = f", each by {settings['each']}"
    known = len(settings["known"])
    if known:
        extra = f", {known} attention question{'s' * (known != 1)} besides"
    else:
        extra = ""
    return f"{settings['questions']} questions for {len(raters)} rater{'s' * (len(raters) != 1)}{each}, seed {settings['seed']}{extra}"
