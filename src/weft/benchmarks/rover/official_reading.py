"""How ROVER's released code reads a judge's reply, and what it computes of the scores it stores.

Both subsets read replies alike, in four ways one after the other; ROVER-TG takes digits from more places.

1. The whole reply is JSON, with a score that is 1 to 5 once it is cut to a whole number.
2. The same in doubled braces.
3. An object without inner braces anywhere in the reply: any whole number counts, 0 and 6 included.
4. The first of a list of patterns that matches anywhere.

What none of them reads stays as it is: a score that is no number is stored, and the summary stops at it. A score s
counts as (s - 1) * 25, whatever it is: 0 becomes -25.
"""

import json
import math
import re
from typing import Any, cast

from weft.types import OfficialReading

DIGIT = "([1-5])"
SEPARATOR = r"\s*[:：]?\s*"
MAX_SCORE = 1_000_000  # a larger number is no score in any arithmetic
TRIES = 3


def read_score(text: str, key: str, *, loose: bool) -> Any:
    """Return the score that the released code takes from a reply; None where it finds none, and asks again."""
    text = text.strip()
    score: Any = None
    for way, candidate in _find_candidates(text, key):
        score = candidate
        number = _to_whole_number(candidate)
        if number is not None and (way != "whole" or 1 <= number <= 5):
            return number
    for pattern in _list_patterns(key, loose):
        match = re.search(pattern, text, re.IGNORECASE)
        if match:
            return int(match.group(1))
    return score


def _find_candidates(text: str, key: str) -> list[tuple[str, Any]]:
    """Return what is under the key, by the three ways that look for JSON. A way that finds nothing after another found
    something gives None."""
    documents = [("whole", text)]
    if text.startswith("{{") and text.endswith("}}"):
        documents.append(("doubled", text[1:-1]))
    inner = re.search(r"\{[^{}]*\"" + re.escape(key) + r"\"[^{}]*\}", text, re.IGNORECASE)
    if inner:
        documents.append(("inner", inner.group()))
    candidates: list[tuple[str, Any]] = []
    for way, document in documents:
        try:
            parsed: Any = json.loads(document)
        except (ValueError, RecursionError):
            continue
        if isinstance(parsed, dict):
            score: Any = cast(dict[str, Any], parsed).get(key)
            if score is not None or candidates:
                candidates.append((way, score))
    return candidates


def _to_whole_number(score: Any) -> int | None:
    try:
        return int(score)
    except (ValueError, TypeError, OverflowError):
        return None


def _list_patterns(key: str, loose: bool) -> list[str]:
    words = key.replace("_", " ")
    patterns = [
        key + SEPARATOR + DIGIT,
        words + SEPARATOR + DIGIT,
        rf"{words}\s+is\s+{DIGIT}",
        rf"{words}\s+=\s*{DIGIT}",
        DIGIT + r"\s*/\s*5",
        DIGIT + r"\s+out\s+of\s+5",
        "score" + SEPARATOR + DIGIT,
        "rating" + SEPARATOR + DIGIT,
        DIGIT + r"\s+points?",
        DIGIT + r"\s+stars?",
    ]
    if loose:
        patterns += [DIGIT + r"\s*$", "^" + DIGIT + r"\s*"]
        patterns += [DIGIT + r"\s*" + re.escape(mark) for mark in ".,)]}"]
    return patterns


def build_reading(text: str, key: str, *, loose: bool) -> OfficialReading | None:
    """Return what is stored of a reply. A score that is no number is stored as text: the summary stops at it."""
    score = read_score(text, key, loose=loose)
    if score is None:
        return None
    if isinstance(score, bool) or not isinstance(score, (int, float)):
        return OfficialReading(text=str(score)[:40])
    if not math.isfinite(score) or abs(score) > MAX_SCORE:
        return OfficialReading(text=str(score))
    return OfficialReading(score)


def to_points(score: float) -> float:
    """Convert a score to the paper's scale."""
    return (score - 1) * 25
