"""The share of a right answer that an answer has, in tenths, for MM-Vet."""

import re

from weft_tabletop.exact.weave import score_answer

LETTERS = re.compile(r"[A-E]+")
LETTER_LIST = re.compile(r"[A-E ,.]+")


def score_elements(answer: str, expected: str) -> tuple[int, str]:
    """Score an answer from 0 to 10 tenths. Of several letters each counts alike, if none that are given is wrong."""
    if not LETTERS.fullmatch(expected):
        score, reason = score_answer(answer, expected)
        return int(score), reason
    given = set(re.findall(r"[A-E]", answer)) if LETTER_LIST.fullmatch(answer.strip()) else set[str]()
    if not given or not given <= set(expected):
        return 0, f"expected {' and '.join(expected)}"
    return round(10 * len(given) / len(expected)), f"{len(given)} of {len(expected)} letters"
