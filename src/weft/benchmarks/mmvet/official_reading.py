"""How the released evaluator asks its judge, and reads a reply.

The question is one line of a table that the judge is to complete with a number. Of the reply the text before the first
blank counts; it must be a number from 0 to 1.
"""

import math

from weft.benchmarks.mmvet.data import AND, OR

MAX_LENGTH = 1000  # characters of a number: a longer one is none


def build_prompt(prompt: str, question: str, answer: str, prediction: str) -> str:
    """Return the text that the evaluator sends."""
    answer = answer.replace(AND, f" {AND} ").replace(OR, f" {OR} ")
    return prompt + "\n" + " | ".join([question, answer, prediction, ""])


def read_number(text: str) -> float | None:
    """Return the number of a reply as the evaluator reads it, which may be nan; None where it would ask again."""
    word = text.split(" ")[0].strip()
    if len(word) > MAX_LENGTH:
        return None
    try:
        number = float(word)
    except ValueError:
        return None
    if number > 1.0 or number < 0.0:
        return None
    return number


def is_nan(number: float) -> bool:
    """Whether it is no number: nan passes the evaluator's test of the range, since it compares with nothing."""
    return math.isnan(number)
