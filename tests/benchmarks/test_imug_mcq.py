"""The paper's multiple choice, and the released scorer defect for defect."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.benchmarks.imug import mcq
from weft.benchmarks.imug.mcq import LETTERS, find_options, read_choice, score_as_released, score_strict

QUESTION = "What colour is the pan?\nOptions:\nA. black\nB. silver\nC. red\nD. light blue\nE. None of the above."


@pytest.mark.parametrize(
    ("key", "response", "expected"),
    [
        *[("A", said, 1.0) for said in ("A", " A ", "A\n")],
        *[("A", said, 0.75) for said in ("A.", "A A")],
        *[("A", said, 0.5) for said in ("(A)", "A. Red", "**A**", "The answer is A.")],
        *[
            ("A", said, 0.0)
            for said in ("a", "H", "", "A_", "A和B", "AA", "AB", "A B", "A;B", "A/B", "A good question: B")
        ],
        ("BCD", "BCD", 0.0),
        ("B,C,D", "BCD", 0.0),
        ("B,C,D", "B, C, D", 0.75),
        ("B,C", "B,C,D", 0.375),
        ("B,C", "A,B,C,D", 0.0),
    ],
)
def test_the_official_reader_gives_what_the_released_script_gives(key: str, response: str, expected: float):
    assert score_as_released(response, key) == expected


@pytest.mark.parametrize(
    ("key", "response", "expected"),
    [
        ("BCD", "BCD", 1.0),
        ("B, C, D", "BCD", 1.0),
        ("BCD", "DCB", 1.0),
        ("BCD", "B, C, D", 0.75),
        ("BCD", "B and C and D", 0.5),
        ("BC", "BCD", 0.5),
        ("A", "AB", 0.0),
        ("A", "a", 0.75),
        ("A", "A. black", 0.75),
        ("A", "A. Black.", 0.75),
        ("A", "black", 0.75),
        ("D", "light blue", 0.75),
        ("AD", "A. black, D. light blue", 0.75),
        ("A", "A. silver", 0.5),
        ("A", "The answer is A.", 0.5),
        ("A", "**A**", 0.75),
        ("B", "A good question: B", 0.5),
        ("B", "答案是B。", 0.5),
        ("B", "B。", 0.75),
        ("A", "", 0.0),
        ("A", "H", 0.0),
        ("A", "I cannot tell", 0.0),
        ("A", "ERROR: timeout", 0.0),
        ("BC", "ABCD", 0.0),
    ],
)
def test_the_strict_reader_follows_the_paper(key: str, response: str, expected: float):
    assert score_strict(response, key, find_options(QUESTION)) == pytest.approx(expected)


def test_options_are_found_by_their_lines():
    assert find_options(QUESTION) == {
        "A": "black",
        "B": "silver",
        "C": "red",
        "D": "light blue",
        "E": "None of the above.",
    }


keys = st.sets(st.sampled_from(LETTERS), min_size=1, max_size=5)


@given(keys, keys, st.sampled_from(["", ", ", " ", ";"]))
def test_any_set_of_letters_is_read_whole_and_scored_by_the_formula(due: set[str], chosen: set[str], between: str):
    response = between.join(sorted(chosen))
    weight = 1.0 if between == "" or len(chosen) == 1 else 0.75
    share = max(0.0, (len(chosen & due) - len(chosen - due)) / len(due))
    assert score_strict(response, "".join(sorted(due)), {}) == pytest.approx(share * weight)


@given(st.text(max_size=60), keys)
def test_no_reply_scores_outside_the_range_or_crashes(response: str, due: set[str]):
    answer = "".join(sorted(due))
    assert (
        0 <= score_strict(response, answer, find_options(QUESTION)) <= 1
        and 0 <= score_as_released(response, answer) <= 1
    )
    assert read_choice(response)[0] <= set(LETTERS)


@given(st.text(alphabet="ABCDEFGabc ,.;-()H1", max_size=20), st.text(alphabet="ABCDEFG,", min_size=1, max_size=6))
def test_the_official_reader_equals_its_published_description(response: str, answer: str):
    """Written a second time from its description's five steps, so that a slip in either shows."""
    expected, predicted = (set(re.findall(r"\b([A-G])\b", text)) for text in (answer, response))
    if not expected or not response.strip():
        assert score_as_released(response, answer) == 0
        return
    raw = max(0, (len(predicted & expected) - len(predicted - expected)) / len(expected))
    form = response.strip()
    weight = 1.0 if re.fullmatch("[A-G]+", form) else 0.75 if re.fullmatch(r"[A-G\s,.;\-]+", form) else 0.5
    assert score_as_released(response, answer) == round(raw * weight, 4)


def test_a_key_without_a_letter_is_an_error_not_a_zero():
    with pytest.raises(ValueError, match="has no letter"):
        score_strict("A", "<DYNAMIC>", {})


TRICKY = {"A": "black", "B": "Vitamin C", "C": "red", "D": "Both A and C", "E": "None of the above."}


@pytest.mark.parametrize(
    ("key", "response", "expected"),
    [
        ("A", "Option A is correct.", 0.5),
        ("A", "A is correct", 0.5),
        ("A", "The answer is A because it is dark", 0.5),
        ("A", "A black", 0.75),
        ("B", "B. Vitamin C", 0.75),
        ("B", "Vitamin C", 0.75),
        ("B", "The answer is B. Vitamin C", 0.5),
        ("D", "D. Both A and C", 0.75),
        ("AC", "A and C", 0.5),
        ("AC", "A. black\nC. red", 0.75),
        ("A", "a.", 0.75),
        ("A", "(a)", 0.75),
        ("BC", "b, c", 0.75),
        ("BD", "bad", 0.0),
        ("C", "<think>It may be B, or A.</think>C", 1.0),
        ("B", "<think>It may be B, or", 0.0),
        ("A", "Ａ", 1.0),
        ("B", "A good question: B", 0.5),
        ("E", "E", 1.0),
    ],
)
def test_letters_inside_options_thoughts_and_sentences_are_read_as_people_read_them(
    key: str, response: str, expected: float
):
    assert mcq.score_strict(response, key, TRICKY) == pytest.approx(expected)


def test_options_stand_on_their_own_lines():
    assert mcq.find_options("Which?\nA.\nB. silver\n(C) red") == {"B": "silver", "C": "red"}


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("A shows the red box", {"A"}),
        ("Option A best matches", {"A"}),
        ("A only", {"A"}),
        ("The answer: A red one, as asked", {"A"}),
        ("A good question: B", {"B"}),
        ("A red box", set()),
        ("<think>A or B?</think>", set()),
        ("<think>A or B?</think>C", {"C"}),
        ("it may be A</think>\nC", {"C"}),
        ("[THINK]A[/THINK] C", {"C"}),
        ("<thought>A", set()),
    ],
)
def test_which_letters_strict_reads(response: str, expected: set[str]):
    assert mcq.read_choice(response)[0] == expected


@pytest.mark.parametrize(
    ("key", "letters"),
    [
        ("BCD", "BCD"),
        ("B, C and D", "BCD"),
        ("(b)", "B"),
        ("B.", "B"),
        ("Options: A/C", "AC"),
        ("None", None),
        ("bad", None),
        ("H", None),
        ("", None),
    ],
)
def test_keys_however_they_are_written(key: str, letters: str | None):
    assert mcq.parse_key(key) == (None if letters is None else set(letters))


def test_options_of_one_line_are_told_apart():
    found = {"A": "black", "B": "silver", "C": "red"}
    assert mcq.find_options("Which? A. black B. silver C. red") == found
    assert mcq.find_options("Which is it?\nOptions: (A) black, (B) silver; (C) red\nThink.") == found
    assert mcq.find_options("Vitamin A. is what?\nA. black\nB. silver\nC. red") == found
