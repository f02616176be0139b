"""How the released scorer reads a judge's reply, and how weft reads it.

The scorer takes the last character of the reply for the score, divides it by the number of key points if the word
`Correctness` occurs anywhere, else by five, and leaves out what is no digit. Weft reads the number that ends a line
after `Key: `: that of the reply's last line, or the only one there is.
"""

import re
from typing import Any

from weft.calls.structured_output import UnusableReply
from weft.models.thinking import split_thinking
from weft.types import Question

AROUND = r"[\s*_`\"'\[(]*"  # a judge may put this around a key or a number
NUMBER = r"(?P<number>[-+\u2212]?\d+(?:\.\d+)?)(?:\s*(?:/|out\s+of|of)\s*(?P<of>\d+))?(?:\s*points?)?[ \t*_`\"'\])}.]*"
BARE = re.compile(AROUND + NUMBER, re.IGNORECASE)


def read_share(question: Question, text: str) -> float | None:
    """Return the score that the scorer counts; None where it leaves the item out."""
    try:
        last_digit = int(text[-1])
    except (ValueError, IndexError):
        return None
    if "Correctness" in text:
        return last_digit / len(question.gold.points)
    return last_digit / 5


def parse_score(text: str, key: str, max_score: int) -> dict[str, Any] | None:
    """Return the score and the explanation of a reply in text, outside of its thinking; None if it has no such key.

    A score below zero, which too many deductions lead to, is zero. Raises UnusableReply for a score above the scale, or
    for several that differ.
    """
    _, answer = split_thinking(text)
    if not answer:
        raise UnusableReply("it ends while it is still thinking")
    label = rf"\b{re.escape(key)}(?:\s+score)?{AROUND}[:=]"
    matches = list(re.finditer(rf"{label}{AROUND}{NUMBER}$", answer, re.IGNORECASE | re.MULTILINE))
    if not matches and re.search(rf"{label}{AROUND}[-+\u2212]?\d", answer, re.IGNORECASE):
        raise UnusableReply(f"`{key}:` must be followed by one number, which ends the line")
    bare = BARE.fullmatch(answer)
    if not matches and bare is not None:
        matches = [bare]
    if not matches:
        return None
    match = matches[-1]
    if len(set(map(_read_number, matches))) > 1 and match.end() < len(answer.rstrip()):
        raise UnusableReply(f"it gives {key} more than once, and not the same")
    score = _read_number(match)
    if match["of"] is not None and int(match["of"]) != max_score:
        raise UnusableReply(f"{key} is given out of {match['of']}; the scale is 0 to {max_score}")
    if score > max_score:
        raise UnusableReply(f"{key}: {score:g} is more than {max_score}")
    return {key: max(0.0, score), "explanation": answer[: match.start()].strip()}


def _read_number(match: re.Match[str]) -> float:
    return float(match["number"].replace("\u2212", "-"))
