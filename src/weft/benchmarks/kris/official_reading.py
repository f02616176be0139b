"""How the released scripts read a judge's reply, which depends on the script.

They take the first flat JSON object that names the score, and its number whatever the scale; else `4/5`, `4 out of 5`,
or, except of two scores in one reply, any lone digit from 1 to 5.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

OF_FIVE = (re.compile(r"([1-5])\s*/\s*5", re.IGNORECASE), re.compile(r"([1-5])\s+out\s+of\s+5", re.IGNORECASE))
LONE_DIGIT = re.compile(r"\b([1-5])\b")
NAMES = ("consistency", "quality", "instruction", "knowledge")
OBJECTS = {name: re.compile(r"\{[^{}]*" + name + r"_score[^{}]*\}") for name in NAMES}
AFTER_NAME = {name: re.compile(name + r"[_\s]*score\s*[:\uff1a]?\s*([1-5])", re.IGNORECASE) for name in NAMES}
AFTER_COLON = {name: re.compile(name + r"[_\s]*score\s*[:\uff1a]\s*([1-5])", re.IGNORECASE) for name in NAMES}
UNREADABLE = (ValueError, TypeError, OverflowError, AttributeError, RecursionError)
MAX_SCORE = 10**9  # a larger number is none


def read_scores(script: str, names: Sequence[str], text: str) -> Mapping[str, int | None]:
    """Return the scores of a reply as the script reads them; None where it finds none."""
    if len(names) > 1:
        return dict(zip(names, _read_two(text, names), strict=True))
    (name,) = names
    if script == "knowledge":
        return {name: _read_strictly(text, name)}
    prefixes = (AFTER_NAME[name],) if script in ("common", "view") else ()
    return {name: _read_loosely(text, name, prefixes)}


def _read_loosely(text: str, name: str, prefixes: Sequence[re.Pattern[str]]) -> int | None:
    """An object without the number, or with another thing in its place, does not end the search."""
    try:
        score = _find_in_object(text, name)
    except UNREADABLE:
        score = None
    if score is not None:
        return score
    return _search(text, (*prefixes, *OF_FIVE, LONE_DIGIT))


def _read_strictly(text: str, name: str) -> int | None:
    """An object with null, or without the number, ends the search; one that is no JSON does not."""
    if OBJECTS[name].search(text):
        try:
            return _find_in_object(text, name)
        except UNREADABLE:
            pass
    return _search(text, (AFTER_COLON[name], *OF_FIVE, LONE_DIGIT))


def _read_two(text: str, names: Sequence[str]) -> list[int | None]:
    """Both scores of one object, or each after its own name."""
    match = OBJECTS[names[0]].search(text)
    if match:
        try:
            data = json.loads(match[0])
            return [_to_number(data.get(f"{name}_score")) for name in names]
        except UNREADABLE:
            pass
    return [_search(text, (AFTER_COLON[name],)) for name in names]


def _find_in_object(text: str, name: str) -> int | None:
    match = OBJECTS[name].search(text)
    if match is None:
        return None
    return _to_number(json.loads(match[0]).get(f"{name}_score"))


def _to_number(value: Any) -> int | None:
    if value is None:
        return None
    number = int(value)
    if abs(number) > MAX_SCORE:
        raise OverflowError
    return number


def _search(text: str, patterns: Sequence[re.Pattern[str]]) -> int | None:
    for pattern in patterns:
        match = pattern.search(text)
        if match:
            return int(match[1])
    return None
