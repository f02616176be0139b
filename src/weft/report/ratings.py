"""What people said, as a table: a row for each metric of each question that each of them answered. Pure."""

import csv
import io
from collections.abc import Sequence
from typing import Any

import msgspec

from weft.report.render import safe
from weft.store.annotations import Rating

COLUMNS = (
    *("run", "study", "item", "rater", "sample", "turn", "metric", "variant", "value", "score", "reason"),
    *("attention", "seconds", "at", "answer"),
)


def rows(ratings: Sequence[Rating]) -> list[dict[str, Any]]:
    """`turn` from 1; `value` is a share of full marks, `score` on the question's own scale; `answer` all that was filled in, as JSON."""
    made: list[dict[str, Any]] = []
    for rating in ratings:
        answer = msgspec.json.encode(rating.answer).decode()
        more = {"attention": int(rating.attention), "seconds": rating.seconds, "at": rating.at, "answer": answer}
        told = {"run": rating.run, "study": rating.study, "item": rating.item, "rater": rating.rater}
        for one in rating.verdicts:
            place = {"sample": one.sample, "turn": one.turn + 1, "metric": one.metric, "variant": one.variant}
            said = {"value": one.value, "score": one.score, "reason": one.reason}
            made.append({**told, **place, **said, **more})
    return made


def as_csv(ratings: Sequence[Rating]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rows(ratings):
        writer.writerow({name: safe(value) if isinstance(value, str) else _figure(value) for name, value in row.items()})
    return out.getvalue()


def _figure(value: float | None) -> str:
    """Every digit, so that it can be read back."""
    return "" if value is None else repr(value)
