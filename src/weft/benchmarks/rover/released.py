"""What ROVER's released code makes of a judge's reply, and of the scores it keeps. Both halves read replies alike, in
four ways one after the other; the second half (TG) takes digits from more places.

1. The whole reply is JSON, with a score that is 1 to 5 once it is cut to a whole number.
2. The same in doubled braces; 3. an object without inner braces anywhere in the reply: whatever whole number stands
there counts, 0 and 6
   included.
4. The first of a list of patterns that is found anywhere.

What none of them reads stays as it was found: a score that is no number is kept, and the summary stops at it. A score s
counts as (s - 1) * 25, whatever it is: 0 becomes -25."""

import json
import math
import re
from typing import Any, cast

from weft.types import OfficialReading

DIGIT = "([1-5])"
SIGN = r"\s*[:：]?\s*"
LARGEST = 1_000_000  # what is more is no score in any arithmetic
TRIES = 3


def read_score(text: str, key: str, *, loose: bool) -> Any:
    """The score that the released code takes from a reply; None where it finds none, and asks again."""
    said = text.strip()
    found: Any = None
    for way, candidate in _candidates(said, key):
        found = candidate
        number = _whole(candidate)
        if number is not None and (way != "whole" or 1 <= number <= 5):
            return number
    for pattern in _patterns(key, loose):
        match = re.search(pattern, said, re.IGNORECASE)
        if match:
            return int(match.group(1))
    return found


def _candidates(said: str, key: str) -> list[tuple[str, Any]]:
    """What stands under the key, by the three ways that look for JSON; where nothing does, a way says nothing."""
    texts = [("whole", said)]
    if said.startswith("{{") and said.endswith("}}"):
        texts.append(("doubled", said[1:-1]))
    inner = re.search(r"\{[^{}]*\"" + re.escape(key) + r"\"[^{}]*\}", said, re.IGNORECASE)
    if inner:
        texts.append(("inner", inner.group()))
    made: list[tuple[str, Any]] = []
    for way, text in texts:
        try:
            parsed: Any = json.loads(text)
        except (ValueError, RecursionError):
            continue
        if isinstance(parsed, dict):
            score: Any = cast(dict[str, Any], parsed).get(key)
            if score is not None:
                made.append((way, score))
            elif made:
                made.append((way, None))
    return made


def _whole(score: Any) -> int | None:
    try:
        return int(score)
    except (ValueError, TypeError, OverflowError):
        return None


def _patterns(key: str, loose: bool) -> list[str]:
    spoken = key.replace("_", " ")
    made = [key + SIGN + DIGIT, spoken + SIGN + DIGIT, rf"{spoken}\s+is\s+{DIGIT}", rf"{spoken}\s+=\s*{DIGIT}"]
    made += [DIGIT + after for after in (r"\s*/\s*5", r"\s+out\s+of\s+5")]
    made += [word + SIGN + DIGIT for word in ("score", "rating")]
    made += [DIGIT + after for after in (r"\s+points?", r"\s+stars?")]
    if loose:
        made += [DIGIT + r"\s*$", "^" + DIGIT + r"\s*", *(DIGIT + r"\s*" + re.escape(mark) for mark in ".,)]}")]
    return made


def build_reading(text: str, key: str, *, loose: bool) -> OfficialReading | None:
    """What is kept of a reply. A score that is no number is kept as text: the summary stops at it."""
    score = read_score(text, key, loose=loose)
    if score is None:
        return None
    if isinstance(score, bool) or not isinstance(score, (int, float)):
        return OfficialReading(text=str(score)[:40])
    if math.isfinite(score) and abs(score) <= LARGEST:
        return OfficialReading(score)
    return OfficialReading(text=str(score))


def to_points(score: float) -> float:
    """On the paper's scale."""
    return (score - 1) * 25
