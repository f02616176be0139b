"""Results of DPG-Bench's released script: what is read, what is mended, what is refused.

The files here are in the shape of those that the script writes; its rules are applied to them in its own words."""

import csv
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from weft.errors import UserError
from weft.evaluation.imports.score import ImportedScore
from weft.evaluation.imports.store import read_results

Rows = Sequence[tuple[str, int, str, str]]  # item, number, dependency, tuple
ROWS: Rows = (
    ("first", 1, "0", "entity - whole (a cat)"),
    ("first", 2, "0", "attribute - color (red)"),
    ("second", 1, "0", "entity - whole (a dog)"),
    ("second", 2, "1", "attribute - color (black)"),
    ("third", 1, "0", "entity - whole (a hat)"),
)
# of each image: by item and question number
ANSWERS: Mapping[str, Sequence[Mapping[int, str]]] = {
    "first": [{2: "yes"}, {2: "no"}],
    "second": [{1: "no", 2: "yes"}, {1: "yes", 2: "yes"}],
    "third": [{1: "yes"}, {1: "yes"}],
}


def write(folder: Path, *, answers: Mapping[str, Sequence[Mapping[int, str]]] = ANSWERS, cut: bool = False) -> Path:
    """The files of a run over these answers, with images in a folder whose name has a comma."""
    folder.mkdir(exist_ok=True)
    with (folder / "dpg_bench.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["item_id", "proposition_id", "dependency", "tuple", "question_natural_language"])
        rows.writerows([*row, ask(row[0], row[1])] for row in ROWS)
    lines: list[str] = []
    details: list[str] = []
    means: list[float] = []
    for item, images in answers.items():
        image = f"/out, new/{item}.png"
        scores: list[float] = []
        for place, said in enumerate(images):
            details += [f"{image}, ({place}, 0, 64, 64), {ask(item, n)}, {word}" for n, word in said.items()]
            fulfilled = {number: word == "yes" for number, word in said.items()}
            if item == "second":
                fulfilled[2] &= fulfilled[1]
            scores.append(sum(fulfilled.values()) / len(fulfilled))
        means.append(sum(scores) / len(scores))
        lines.append(", ".join([image, *map(str, scores), str(means[-1])]))
    tail = ["Model: mine", "L1 category scores:", "\tattribute: 50.0", "\tentity: 100.0", "L2 category scores:"]
    tail += ["\tentity - whole: 100.0", "Image path: /out, new", "Save results to: x"]
    total = [] if cut else [f"DPG-Bench score: {100 * sum(means) / len(means)}"]
    path = folder / "dpg-bench_1_results.txt"
    path.write_text("\n".join([*lines, *tail, *total, ""]))
    (folder / "dpg-bench_1_results_detail.txt").write_text("".join(f"{line}\n" for line in details))
    return path


def ask(item: str, number: int) -> str:
    return f"Is thing {number}, of {item}, there?"


def read(path: Path) -> list[ImportedScore]:
    return read_results(path, "mine")


def test_the_printed_score_has_its_interval_and_the_mended_one_stands_beside_it(tmp_path: Path):
    printed, mended = read(write(tmp_path))
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
    _, mended = read(write(tmp_path))
    assert "entity 75.00 (printed 100.00)" in mended.notes and "attribute 50.00 (printed 50.00)" in mended.notes


def test_an_item_that_the_script_dropped_is_unscored(tmp_path: Path):
    printed, mended = read(write(tmp_path, answers={"second": ANSWERS["second"]}))
    assert (printed.scored, printed.expected, mended.scored, mended.expected) == (1, 3, 1, 3)


@pytest.mark.parametrize("name", ["dpg_bench.csv", "dpg-bench_1_results_detail.txt"])
def test_without_questions_or_answers_nothing_is_mended(tmp_path: Path, name: str):
    path = write(tmp_path)
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
    path = write(tmp_path)
    change(tmp_path / name, old, new)
    with pytest.raises(UserError, match=why):
        read(path)


def test_a_run_that_has_not_finished_is_refused(tmp_path: Path):
    with pytest.raises(UserError, match="has not finished"):
        read(write(tmp_path, cut=True))


def test_a_child_of_a_child_of_a_no_is_no():
    from weft.evaluation.imports.dpg_questions import AskedQuestion, Item

    questions = tuple(AskedQuestion(number, "", "", (number - 1,) if number > 1 else ()) for number in (1, 2, 3))
    for answers in itertools.product([True, False], repeat=3):
        fulfilled = Item("one", questions).zero_dependents(answers)
        assert fulfilled == [all(answers[: number + 1]) for number in range(3)]
