"""Annotations as CSV: a row per metric of each question that an annotator answered."""

from collections.abc import Sequence
from typing import Any

import msgspec

from weft.report.csv_table import format_csv
from weft.store.annotations import Annotation
from weft.types import Verdict

COLUMNS = (
    *("run", "study", "item", "annotator", "sample", "turn", "metric", "variant", "value", "score", "reason"),
    *("attention", "seconds", "at", "answer"),
)


def annotation_rows(annotations: Sequence[Annotation]) -> list[dict[str, Any]]:
    """Return the rows. `turn` counts from 1; `value` is a share of full marks, `score` is on the question's own scale;
    `answer` is the whole form as JSON."""
    rows: list[dict[str, Any]] = []
    for annotation in annotations:
        rows += [_build_row(annotation, verdict) for verdict in annotation.verdicts]
    return rows


def _build_row(annotation: Annotation, verdict: Verdict) -> dict[str, Any]:
    return {
        "run": annotation.run,
        "study": annotation.study,
        "item": annotation.item,
        "annotator": annotation.annotator,
        "sample": verdict.sample,
        "turn": verdict.turn + 1,
        "metric": verdict.metric,
        "variant": verdict.variant,
        "value": verdict.value,
        "score": verdict.score,
        "reason": verdict.reason,
        "attention": int(annotation.is_attention_check),
        "seconds": annotation.seconds,
        "at": annotation.created_at,
        "answer": msgspec.json.encode(annotation.answer).decode(),
    }


def format_annotations(annotations: Sequence[Annotation]) -> str:
    """Return the rows as CSV."""
    rows = annotation_rows(annotations)
    return format_csv(COLUMNS, [[row[column] for column in COLUMNS] for row in rows])
