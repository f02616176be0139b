"""What the released scorer makes of a judge's reply, and what stands there.

The scorer takes the last character of the reply for the score, divides it by the number of key points if the word
`Correctness` occurs anywhere, else by five, and leaves out what is no digit. What stands there is the number that ends
a line behind `Key: `: that of the reply's last line, or the only one that there is."""

import re
from typing import Any

from weft.calls.structured_output import UnusableReply
from weft.models.thinking import split_thinking
from weft.types import Question

AROUND = r"[\s*_`\"'\[(]*"  # what a judge may put around a key or a number
NUMBER = r"(?P<number>[-+\u2212]?\d+(?:\.\d+)?)(?:\s*(?:/|out\s+of|of)\s*(?P<of>\d+))?(?:\s*points?)?[ \t*_`\"'\])}.]*"
BARE = re.compile(AROUND + NUMBER, re.IGNORECASE)


def read_share(question: Question, text: str) -> float | None:
    """What the scorer counts; None where it leaves the item out."""
    try:
        last = int(text[-1])
    except (ValueError, IndexError):
        return None
    return last / (len(question.gold.points) if "Correctness" in text else 5)


def parse_score(text: str, key: str, full: int) -> dict[str, Any] | None:
    """What a reply in words says under its key, outside of thinking; None where it does not name the key. Below zero,
    which is what too many deductions come to, is zero; a number above the scale is none."""
    _, said = split_thinking(text)
    if not said:
        raise UnusableReply("it ends while it is still thinking")
    named = rf"\b{re.escape(key)}(?:\s+score)?{AROUND}[:=]"
    matches = list(re.finditer(rf"{named}{AROUND}{NUMBER}$", said, re.IGNORECASE | re.MULTILINE))
    if not matches and re.search(rf"{named}{AROUND}[-+\u2212]?\d", said, re.IGNORECASE):
        raise UnusableReply(f"`{key}:` must be followed by one number, which ends the line")
    bare = BARE.fullmatch(said)
    if matches:
        match = matches[-1]
    else:
        match = bare
    if match is None:
        return None
    scores = {float(one["number"].replace("\u2212", "-")) for one in matches or [match]}
    if len(scores) > 1 and match.end() < len(said.rstrip()):
        raise UnusableReply(f"it gives {key} more than once, and not the same")
    score = float(match["number"].replace("\u2212", "-"))
    if match["of"] is not None and int(match["of"]) != full:
        raise UnusableReply(f"{key} is given out of {match['of']}; the scale is 0 to {full}")
    if score > full:
        raise UnusableReply(f"{key}: {score:g} is more than {full}")
    return {key: max(0.0, score), "explanation": said[: match.start()].strip()}
