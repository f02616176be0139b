"""IMUG-Bench's numbers from verdicts: paper against released scripts, intervals, slope, published rows."""

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from weft.benchmarks import RunResults
from weft.benchmarks.imug.facts import ChoiceFacts, PointsFacts
from weft.benchmarks.imug.official import OFFICIAL
from weft.benchmarks.imug.tables import PER_TURN, tables
from weft.types import OfficialReading, Table, Verdict

CLASSES = {"Cooking": "Hybrid", "Apparel": "Static Spatial", "Physics": "Temporal Causal"}


def choice(
    response: str, key: str, value: float, *, dynamic: bool = False, by: Any = "rule", sample: str = "Cooking/x/1"
) -> Verdict:
    return Verdict(sample, 0, "choice", value, "", by, detail=ChoiceFacts(response, key, dynamic))


def picture(points: Sequence[int], *, turn: int = 0, by: Any = "judge", sample: str = "Cooking/x/1") -> Verdict:
    return Verdict(sample, turn, "points", sum(points) / 5 / len(points), "", by, detail=PointsFacts(tuple(points)))


def finished(verdicts: Sequence[Verdict], dataset: str = "imug") -> RunResults:
    groups = {
        v.sample: {
            "domain": v.sample.split("/")[0],
            "task": v.sample.split("/")[1],
            "class": CLASSES[v.sample.split("/")[0]],
        }
        for v in verdicts
    }
    return RunResults("mine", groups, verdicts, dataset)


@pytest.mark.parametrize(
    ("response", "key", "strict", "by_script", "why"),
    [
        ("BCD", "BCD", 1.0, 0.0, "a key of several letters parses to none"),
        ("B, C, D", "BCD", 0.75, 0.0, "the key again"),
        ("AC", "A", 0.0, 0.0, "one right, one wrong"),
        ("b", "B", 0.75, 0.0, "a small letter is none to the script"),
        ("B. silver", "B", 0.75, 0.5, "a letter with its own option is separated, not explained"),
        ("A good question: B", "B", 0.5, 0.0, "the English article counts as option A"),
        ("silver", "B", 0.75, 0.0, "an option told in its own words"),
        ("B", "B", 1.0, 1.0, "no difference"),
    ],
)
def test_each_documented_difference_of_the_choice_scorers_on_one_reply(
    response: str, key: str, strict: float, by_script: float, why: str
):
    from weft.benchmarks.imug import mcq

    offered = {"A": "black", "B": "silver", "C": "red", "D": "blue"}
    value = mcq.score_strict(response, key, offered)
    verdict = choice(response, key, value)
    assert (value, OFFICIAL.score(verdict)) == (pytest.approx(strict), pytest.approx(100 * by_script)), why


def test_a_missing_picture_is_zero_and_what_the_judge_makes_of_the_rest_in_official():
    missing = picture([0, 0], turn=1, by="failure")
    run = finished([picture([5, 5]), missing, picture([4, 3], turn=2)])
    main = next(iter(tables([run])))
    strict, by_script = main.cells("mine (strict)")["Hybrid Gen."], main.cells("mine (official)")["Hybrid Gen."]
    assert (strict.value, strict.expected) == (pytest.approx(170 / 3), 3) and (
        by_script.value,
        by_script.scored,
        by_script.expected,
    ) == (None, 2, 3)
    assert "a run with --official asks as they do" in main.note
    run = finished([picture([5, 5]), replace(missing, variant_reading=OfficialReading(1.0)), picture([4, 3], turn=2)])
    assert next(iter(tables([run]))).cells("mine (official)")["Hybrid Gen."].value == 63.33


def test_a_question_that_the_model_did_not_answer_is_zero_for_both():
    run = finished([choice("", "<DYNAMIC>", 0.0, dynamic=True, by="failure"), choice("B", "B", 1.0, dynamic=True)])
    cell = list(tables([run]))[2].cells("mine")["Dynamic MCQ"]
    assert (cell.value, cell.scored, cell.expected) == (50.0, 2, 2)


def test_what_could_not_be_scored_is_in_neither_and_shown_in_both():
    lost = Verdict("Cooking/x/1", 1, "choice", None, "our fault", "rule", detail=ChoiceFacts("", "B"))
    run = finished([choice("B", "B", 1.0), lost])
    cell = next(iter(tables([run]))).cells("mine")["Hybrid Und."]
    assert (cell.value, cell.scored, cell.expected) == (100.0, 1, 2)


def test_a_fall_by_ten_points_a_turn_is_a_slope_of_minus_ten_whichever_dialogues_are_long():
    verdicts: list[Verdict] = []
    for number in range(12):
        start = 10 if number < 6 else 5  # the hard dialogues are the long ones
        for turn in range(2 if number < 6 else 5):
            score = start - turn
            verdicts.append(
                Verdict(f"Cooking/x/{number}", turn, "points", score / 10, detail=PointsFacts((score // 2,)))
            )
    cell = list(tables([finished(verdicts)]))[1].cells("mine (strict), image")[PER_TURN]
    assert cell.value == pytest.approx(-10.0) and cell.low is not None and cell.high is not None
    assert -20 < cell.low < -10 < cell.high < 5, "twelve dialogues are few, however alike"


def test_intervals_are_beside_every_number_of_ours():
    verdicts = [picture([(n * 7) % 6], sample=f"Cooking/x/{n}") for n in range(40)]
    cell = next(iter(tables([finished(verdicts)]))).cells("mine")["Hybrid Gen."]
    assert (
        cell.low is not None and cell.high is not None and cell.value is not None and cell.low < cell.value < cell.high
    )


def test_published_rows_stand_beside_the_benchmarks_own_data_alone():
    verdicts = [picture([5]), choice("B", "B", 1.0)]

    def theirs(made: list[Table]) -> list[int]:
        return [len(table.published_rows) for table in made[:4]]

    assert theirs(list(tables([finished(verdicts)]))) == [8, 16, 8, 9]
    assert theirs(list(tables([finished(verdicts, "tabletop")]))) == [0, 0, 0, 0]


def test_the_published_strategies_are_the_papers_table():
    table = list(tables([finished([picture([5])])]))[3]
    row = table.cells("BAGEL, Chain-of-Thought")
    assert [row[name].value for name in table.columns] == [72.0, 60.1, 60.4, 65.9]


def test_what_is_certain_and_none_of_the_above_exclude_each_other():
    from weft.benchmarks.imug import rubric
    from weft.benchmarks.imug.data import ChoiceGold
    from weft.types import Question, TurnRef

    asked = "Which?\nA. black\nB. silver\nC. red\nD. blue\nE. None of the above."
    schema = {"properties": {"determined_answer": {"enum": ["A", "E"]}}}
    question = Question(
        ("choice",), (), schema, TurnRef("s", 0), gold=(ChoiceGold(asked, "A", "A+<DYNAMIC>", True, (1,)), "A")
    )
    mark = rubric.score_choice(question, {"determined_answer": "E", "reasoning": ""})
    assert mark.value == 1.0 and (mark.detail.key, mark.detail.union) == ("A", "AE")
    assert OFFICIAL.score(Verdict("s", 0, "choice", mark.value, detail=mark.detail)) == 0.0, (
        "the script keeps both letters, and reads neither"
    )
