"""What the released scorer makes of a judge's reply, and what stands there.

The scorer takes the last character of the reply for the score, divides it by the number of key points if the word `Correctness` occurs
anywhere, else by five, and leaves out what is no digit. What stands there is the number behind the last `Key: `, whatever is around it.
"""

import re
from collections.abc import Mapping
from typing import Any

from weft.judges.parse import Unusable
from weft.types import Question

NUMBER = r"(?P<number>[-+\u2212]?\d+(?:\.\d+)?)(?:\s*(?:/|out\s+of|of)\s*(?P<of>\d+)\b)?(?![\w/]|\.\d)"
AROUND = r"[\s*_`\"'\[(]*"  # what a judge may put around a key or a number
BARE = re.compile(rf"{AROUND}{NUMBER}[\s*_`\"'\])./]*", re.IGNORECASE)


def as_released(question: Question, text: str) -> Mapping[str, Any]:
    """By metric, for the verdict's detail: its share, or None where the scorer leaves the item out. It is never asked again."""
    (metric,) = question.metrics
    try:
        last = int(text[-1])
    except (ValueError, IndexError):
        return {metric: None}
    return {metric: last / (len(question.gold.points) if "Correctness" in text else 5)}


def found(text: str, key: str, full: int) -> dict[str, Any] | None:
    """What a reply in words says under its key; None where it says nothing. Below zero, which is what too many deductions come to, is
    zero; a number above the scale is none."""
    matches = list(re.finditer(rf"\b{re.escape(key)}(?:\s+score)?{AROUND}[:=]{AROUND}{NUMBER}", text, re.IGNORECASE))
    match = matches[-1] if matches else BARE.fullmatch(text)
    if match is None:
        return None
    score = float(match["number"].replace("\u2212", "-"))
    if match["of"] is not None and int(match["of"]) != full:
        raise Unusable(f"{key} is given out of {match['of']}; the scale is 0 to {full}")
    if score > full:
        raise Unusable(f"{key}: {score:g} is more than {full}")
    return {key: max(0.0, score), "explanation": text[: match.start()].strip()}
