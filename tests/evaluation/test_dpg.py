"""Results of DPG-Bench's released script: what is read, what is mended, what is refused.

The files here are in the shape of those that the script writes; its rules are applied to them in its own words."""

import itertools
from pathlib import Path

import pytest

from tool_results import DPG_ANSWERS, dpg_run
from weft.errors import UserError
from weft.evaluation.imports.score import ImportedScore
from weft.evaluation.imports.store import read_results


def read(path: Path) -> list[ImportedScore]:
    return read_results(path, "mine")


def test_the_printed_score_has_its_interval_and_the_mended_one_stands_beside_it(tmp_path: Path):
    printed, mended = read(dpg_run(tmp_path))
    assert (printed.task, printed.value, printed.scored, printed.expected) == (
        "DPG-Bench",
        pytest.approx(200 / 3),
        3,
        3,
    )
    assert printed.low is not None and printed.served_model == "mine" and printed.judge == "mPLUG-large"
    assert (mended.task, mended.value, mended.scored, mended.expected) == ("DPG-Bench, mended", 75.0, 2, 3)
    assert "without first" in mended.describe()
    assert read(tmp_path) == [printed, mended], "the folder stands for the file"


def test_categories_are_over_all_images_and_without_what_depends_on_a_no(tmp_path: Path):
    _, mended = read(dpg_run(tmp_path))
    assert "entity 75.00 (printed 100.00)" in mended.notes and "attribute 50.00 (printed 50.00)" in mended.notes


def test_an_item_that_the_script_dropped_is_unscored(tmp_path: Path):
    printed, mended = read(dpg_run(tmp_path, answers={"second": DPG_ANSWERS["second"]}))
    assert (printed.scored, printed.expected, mended.scored, mended.expected) == (1, 3, 1, 3)


@pytest.mark.parametrize("name", ["dpg_bench.csv", "dpg-bench_1_results_detail.txt"])
def test_without_questions_or_answers_nothing_is_mended(tmp_path: Path, name: str):
    path = dpg_run(tmp_path)
    (tmp_path / name).unlink()
    (score,) = read(path)
    assert score.value == pytest.approx(200 / 3) and f"there is no {name}" in score.describe()
    assert score.expected == (1065 if name.endswith("csv") else 3)


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("name", "old", "new", "why"),
    [
        ("dpg-bench_1_results.txt", "/third.png", "/second.png", "second stands there twice"),
        ("dpg-bench_1_results.txt", ", 1.0, 1.0, 1.0", ", 1.0, 1.0, 0.9", "not the mean of the others"),
        ("dpg-bench_1_results.txt", ", 1.0, 1.0, 1.0", ", nan, nan, nan", "must be an image"),
        ("dpg-bench_1_results.txt", "DPG-Bench score: 6", "DPG-Bench score: 6e9", "no number from 0 to 100"),
        ("dpg-bench_1_results_detail.txt", "of second, there?, no", "of second, there?, yes", "do not follow"),
        ("dpg-bench_1_results_detail.txt", "thing 1, of third", "thing 9, of third", "other questions"),
        ("dpg-bench_1_results_detail.txt", ", (0, 0, 64, 64)", "", "line 1: must be an image, a place"),
        ("dpg_bench.csv", "second,2,1", "second,2,7", "depends on 7, which is none"),
        ("dpg_bench.csv", "second,2,1", "second,1,1", "two questions of one number"),
        ("dpg_bench.csv", "second,2,1", "second,two,1", "line 5: proposition_id"),
        ("dpg_bench.csv", "item_id", "item", "has no column item_id"),
    ],
)
def test_files_that_contradict_themselves_are_refused(tmp_path: Path, name: str, old: str, new: str, why: str):
    path = dpg_run(tmp_path)
    change(tmp_path / name, old, new)
    with pytest.raises(UserError, match=why):
        read(path)


def test_a_run_that_has_not_finished_is_refused(tmp_path: Path):
    with pytest.raises(UserError, match="has not finished"):
        read(dpg_run(tmp_path, cut=True))


def test_a_child_of_a_child_of_a_no_is_no():
    from weft.evaluation.imports.dpg_questions import AskedQuestion, Item

    questions = tuple(AskedQuestion(number, "", "", (number - 1,) if number > 1 else ()) for number in (1, 2, 3))
    for answers in itertools.product([True, False], repeat=3):
        fulfilled = Item("one", questions).zero_dependents(answers)
        assert fulfilled == [all(answers[: number + 1]) for number in range(3)]


def test_a_field_that_has_no_end_is_named(tmp_path: Path):
    path = dpg_run(tmp_path)
    (tmp_path / "dpg_bench.csv").write_text("x" * 500_000)
    with pytest.raises(UserError, match=r"dpg_bench\.csv, line \d: field larger than"):
        read(path)
