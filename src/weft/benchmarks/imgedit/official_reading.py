"""How the released scripts read a judge's reply, and weft's own reading of a reply in text.

The scripts take every line `name: digits` for a score, whatever its name, and average what they find: `4/5` is nothing,
and neither is a line in bold. Weft reads the scores by the names that the prompt asks for.
"""

import re
from typing import Any

from weft.calls.structured_output import UnusableReply
from weft.models.thinking import split_thinking

ASKED_SCORE = re.compile(r"^(?P<name>[^\n:]{1,80}): A number from 1 to 5", re.MULTILINE)  # in the released prompts
AROUND = r"[\s*_`\"'\[(]*"
NUMBER = r"(?P<number>\d+(?:\.\d+)?)(?!\.?\d)(?:\s*(?:/|out\s+of)\s*(?P<of>\d+))?"
ONE_SCORE = re.compile(rf"\b(?:final\s+)?score{AROUND}[:=]{AROUND}{NUMBER}", re.IGNORECASE)
MAX_SCORE = 5
MAX_DIGITS = 300  # of a number; a longer one is none: it is beyond floating point


def read_average(text: str) -> float | None:
    """Return the average that the scripts make of a reply, of two decimals; None if they find no score.

    Raises ValueError where they stop: at a digit that is no number, such as a superscript.
    """
    scores: list[int] = []
    for line in text.splitlines():
        parts = line.strip().split(": ")
        if len(parts) == 2 and parts[1].isdigit():
            if len(parts[1]) > MAX_DIGITS:
                return None
            scores.append(int(parts[1]))
    if not scores:
        return None
    return round(sum(scores) / len(scores), 2)


def find_names(prompt: str) -> list[str]:
    """Return the names of the scores that a released prompt asks for, in order."""
    return [match["name"].strip() for match in ASKED_SCORE.finditer(prompt)]


def parse_scores(text: str, names: list[str]) -> dict[str, Any] | None:
    """Return the scores of a reply in text, by name; None if it has none of them.

    Raises UnusableReply if one is missing, twice there with other numbers, or on another scale.
    """
    answer = _strip_thinking(text)
    scores: dict[str, Any] = {}
    for name in names:
        pattern = re.compile(rf"{re.escape(name)}{AROUND}[:=]{AROUND}{NUMBER}", re.IGNORECASE)
        matches = list(pattern.finditer(answer))
        if matches:
            scores[name] = _read_one(matches, name)
    if not scores:
        return None
    missing = [name for name in names if name not in scores]
    if missing:
        raise UnusableReply(f"it has no score for {', '.join(missing)}")
    return {**scores, "reasoning": answer.strip()}


def parse_one_score(text: str) -> dict[str, Any] | None:
    """Return the one score of a reply in text, in a line `Score: 4`; None if there is none."""
    answer = _strip_thinking(text)
    matches = list(ONE_SCORE.finditer(answer))
    if not matches:
        return None
    return {"score": _read_one(matches, "score"), "reasoning": answer.strip()}


def _strip_thinking(text: str) -> str:
    _, answer = split_thinking(text)
    if not answer:
        raise UnusableReply("it ends while it is still thinking")
    return answer


def _read_one(matches: list[re.Match[str]], name: str) -> float:
    numbers = {float(match["number"]) for match in matches}
    scales = {int(match["of"]) for match in matches if match["of"] is not None}
    if scales - {MAX_SCORE}:
        raise UnusableReply(f"{name} is given out of {scales.pop()}; the scale is 1 to {MAX_SCORE}")
    if len(numbers) > 1:
        raise UnusableReply(f"it gives {name} more than once, and not the same")
    return numbers.pop()
