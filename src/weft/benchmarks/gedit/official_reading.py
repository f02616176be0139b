"""How the released scripts read a judge's reply.

They take what stands between two delimiters, or from the first brace to the last, as JSON; a bare pair of numbers, or
one number from 0 to 10, counts as well. Of several scores the least counts. Of what cannot be read twice they make a
random number: here it is none.
"""

import json
import math
import re
from typing import Any, cast

DELIMITER = "||V^=^V||"
RATE_LIMITED = "rate_limit_exceeded"  # the whole reply, which ends the try
PAIR = re.compile(r"\[\d+, ?\d+\]")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
WORD = re.compile(r"(?:true|false|null)", re.IGNORECASE)
KEY = re.compile(r"(\w+):")
ENTRY = re.compile(r'(".*?"):(.*?)(,|})')
MAX_LENGTH = 100_000  # characters of a reply that are mended: the pattern of entries takes long on longer ones


def read_score(text: str) -> float | None:
    """Return the least score of a reply; None where the scripts would ask again, or guess."""
    scores = _read_scores(text)
    if not scores:
        return None
    numbers = [score for score in scores if isinstance(score, (int, float)) and math.isfinite(score)]
    if len(numbers) < len(scores):
        return None
    return float(min(numbers))


def _read_scores(text: str) -> list[Any] | None:
    if text == RATE_LIMITED:
        return None
    if text.count(DELIMITER) == 2:
        return _parse(text[text.find(DELIMITER) + len(DELIMITER) : text.rfind(DELIMITER)])
    start = text.find("{")
    end = text.rfind("}")
    if start >= 0 and end >= 0:
        return _parse(text[start : end + 1])
    start = text.find("[")
    pair = text[start : text.rfind("]") + 1]
    if PAIR.fullmatch(pair.removesuffix("\n")):
        return json.loads(pair)
    try:
        number = int(text)
    except ValueError:
        return None
    return [number] if 0 <= number <= 10 else None


def _parse(text: str) -> list[Any] | None:
    """Parse an object with a score; one that is no JSON is mended first."""
    text = text.strip().replace("\n", "")
    try:
        score: Any = json.loads(text)["score"]
        if isinstance(score, list):
            return cast(list[Any], score)
        return [score]
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        pass
    if len(text) > MAX_LENGTH:
        return None
    try:
        score = json.loads(_mend(text))["score"]
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        return None
    if isinstance(score, list):
        return cast(list[Any], score)
    return None


def _mend(text: str) -> str:
    """Put words before a colon in quotes, numbers in lists, and everything else in quotes, as the scripts do."""
    return ENTRY.sub(_mend_entry, KEY.sub(r'"\1":', text))


def _mend_entry(match: re.Match[str]) -> str:
    key, value, end = match.groups()
    value = value.strip()
    if NUMBER.fullmatch(value):
        value = f"[{value}]"
    elif not WORD.fullmatch(value):
        value = f'"{value}"'
    return f"{key}: {value}{end}"
