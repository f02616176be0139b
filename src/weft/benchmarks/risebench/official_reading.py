"""How the released script reads a judge's reply, and weft's own reading of a reply in text.

The script takes every number that follows the first `Final Score` with one, over line ends and list items: `4` and the
`1.` of a list after it are two scores. Weft takes the number itself.
"""

import re
from typing import Any

from weft.calls.structured_output import UnusableReply
from weft.models.thinking import split_thinking

AFTER = r"([\d*\s,\n]*)"  # what may stand behind the words: digits, stars, spaces and commas
FINAL_SCORE = re.compile(rf"Final Score\*?\*?:?\s*{AFTER}", re.IGNORECASE)
FINAL_SCORES = re.compile(rf"Final Scores\*?\*?:?\s*{AFTER}", re.IGNORECASE)
DIGITS = re.compile(r"\d+")
MAX_DIGITS = 300  # of a number; a longer one is none: it is beyond floating point
VERDICT = re.compile(
    r"\bfinal\s+scores?\b[\s*_:=`\"'(\[]*(?P<number>\d+(?:\.\d+)?)(?:\s*(?:/|out\s+of)\s*(?P<of>\d+))?", re.IGNORECASE
)


def read_numbers(text: str) -> list[int]:
    """Return the numbers that the script reads as scores; empty if there are none."""
    for pattern in (FINAL_SCORE, FINAL_SCORES):
        for match in pattern.finditer(text):
            numbers = [int(digits) for digits in DIGITS.findall(match[1]) if len(digits) <= MAX_DIGITS]
            if numbers:
                return numbers
    return []


def parse_score(text: str, max_score: int) -> dict[str, Any] | None:
    """Return the score of a reply in text, outside of its thinking; None if it has none.

    Raises UnusableReply for a score on another scale, or for several that differ.
    """
    _, answer = split_thinking(text)
    if not answer:
        raise UnusableReply("it ends while it is still thinking")
    matches = list(VERDICT.finditer(answer))
    if not matches:
        return None
    numbers = {float(match["number"]) for match in matches}
    if len(numbers) > 1:
        raise UnusableReply("it gives a final score more than once, and not the same")
    last = matches[-1]
    if last["of"] is not None and int(last["of"]) != max_score:
        raise UnusableReply(f"the final score is given out of {last['of']}; the scale ends at {max_score}")
    return {"score": numbers.pop(), "reasoning": answer[: last.start()].strip()}
