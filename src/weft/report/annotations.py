"""What people said, as a table: a row for each metric of each question that each of them answered. Pure."""

import csv
import io
from collections.abc import Sequence
from typing import Any

import msgspec

from weft.report.render import escape_formula
from weft.store.annotations import Annotation

COLUMNS = (
    *("run", "study", "item", "annotator", "sample", "turn", "metric", "variant", "value", "score", "reason"),
    *("attention", "seconds", "at", "answer"),
)


def annotation_rows(ratings: Sequence[Annotation]) -> list[dict[str, Any]]:
    """`turn` from 1; `value` is a share of full marks, `score` on the question's own scale; `answer` all that was
    filled in, as JSON."""
    made: list[dict[str, Any]] = []
    for rating in ratings:
        answer = msgspec.json.encode(rating.answer).decode()
        more = {
            "attention": int(rating.is_attention_check),
            "seconds": rating.seconds,
            "at": rating.created_at,
            "answer": answer,
        }
        told = {"run": rating.run, "study": rating.study, "item": rating.item, "annotator": rating.annotator}
        for one in rating.verdicts:
            place = {"sample": one.sample, "turn": one.turn + 1, "metric": one.metric, "variant": one.variant}
            said = {"value": one.value, "score": one.score, "reason": one.reason}
            made.append({**told, **place, **said, **more})
    return made


def format_csv(ratings: Sequence[Annotation]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in annotation_rows(ratings):
        writer.writerow(
            {name: escape_formula(value) if isinstance(value, str) else _figure(value) for name, value in row.items()}
        )
    return out.getvalue()


def _figure(value: float | None) -> str:
    """Every digit, so that it can be read back."""
    if value is None:
        return ""
    return repr(value)
