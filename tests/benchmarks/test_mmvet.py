"""MM-Vet: what its records need, what the judge is asked, tenths, capabilities, and what the released evaluator makes of
the same replies."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import weft
from edits import Saying, cells, evaluate, paint, table
from weft.benchmarks import load_benchmark
from weft.benchmarks.mmvet import official_reading
from weft.errors import UserError
from weft.workspace import open_blobs

RECORDS: dict[str, dict[str, Any]] = {
    "v1_0": {"question": "What is x?", "answer": "-1<AND>-5", "capability": ["math", "ocr"]},
    "v1_1": {"question": "What lies left?", "answer": "a pen<OR>a pencil", "capability": ["spat", "rec"]},
    "v1_2": {"question": "What is joked about?", "answer": "The names mislead.", "capability": ["ocr"]},
}


def write(folder: Path, records: Mapping[str, Mapping[str, Any]] = RECORDS) -> Path:
    for number, name in enumerate(records):
        paint(folder / "images" / f"{name}.png", "white", mark=number)
    with_images = {name: {"imagename": f"{name}.png", **record} for name, record in records.items()}
    (folder / "mm-vet.json").write_text(json.dumps(with_images))
    return folder


class Answering:
    """Says what is asked of it, so that every answer differs."""

    name, version = "answering", "1"

    def __call__(self, messages: Any, want: str) -> Any:
        text = "".join(part for _, parts in messages for part in parts if isinstance(part, str))
        return weft.Reply("refused", reason="not this one") if "joked" in text else f"I see: {text}"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "MM-Vet"
    folder.mkdir()
    (folder / "mm-vet_evaluator.py").write_text("prompt = 'Complete the line.\\n--- | ---\\n'\n")
    return folder


def judged(scores: Mapping[str, Any], other: Any = "1.0") -> Saying:
    return Saying(lambda question: scores.get(question.turn_ref.sample, other))


def test_a_question_counts_in_each_capability_and_a_refusal_is_zero(tmp_path: Path):
    judge = judged({"v1_0": {"reasoning": "one of two", "tenths": 5}}, {"reasoning": "yes", "tenths": 10})
    run = evaluate("mmvet", write(tmp_path / "data"), tmp_path, judge, Answering())
    found = cells(run, "by capability")
    assert found == {"Rec": 100, "OCR": 25, "Know": None, "Gen": None, "Spat": 100, "Math": 50, "Total": 50}
    assert cells(run, "by combination")["Total"] is not None and len(judge.asked) == 2
    combinations = [row.name for row in table(run, "by combination").rows]
    assert combinations == ["ocr", "ocr + math", "rec + spat"]


def test_the_judge_reads_words_alone_and_is_told_how_to_read_the_reference(tmp_path: Path):
    judge = judged({}, {"reasoning": "yes", "tenths": 10})
    evaluate("mmvet", write(tmp_path / "data"), tmp_path, judge, Answering())
    texts = {question.turn_ref.sample: "".join(shown) for question, shown in zip(judge.asked, judge.shown, strict=True)}
    assert "2 elements with <AND> between them" in texts["v1_0"] and "any one of which" not in texts["v1_0"]
    assert "one element; <OR> stands between alternatives" in texts["v1_1"]
    assert "I see: What is x?" in texts["v1_0"]


def test_a_number_that_is_no_tenth_is_asked_for_again_and_then_unscored(tmp_path: Path):
    for number in (5.5, 11, -1):
        judge = judged({"v1_0": {"reasoning": "hm", "tenths": number}}, {"reasoning": "yes", "tenths": 10})
        home = tmp_path / str(number)
        run = evaluate("mmvet", write(home / "data"), home, judge, Answering())
        cell = table(run, "by capability").run_rows[0].cells["Total"]
        assert (cell.value, cell.scored, cell.expected) == (50, 2, 3)
        assert [question.turn_ref.sample for question in judge.asked].count("v1_0") == 2


def test_the_released_prompt_is_a_line_of_a_table(tmp_path: Path, checkout: Path):
    judge = judged({"v1_0": "0.5", "v1_1": "0.75"})
    run = evaluate("mmvet", write(tmp_path / "data"), tmp_path, judge, Answering(), prompts=f"official:{checkout}")
    first = next(
        shown for question, shown in zip(judge.asked, judge.shown, strict=True) if question.gold.answer[0] == "-"
    )
    assert first == ["Complete the line.\n--- | ---\n\nWhat is x? | -1 <AND> -5 | I see: What is x? | "]
    strict, official = table(run, "by capability").run_rows
    assert (strict.cells["Total"].value, official.cells["Total"].value) == (25, 41.7), "0.75 is a number there"
    assert official.cells["Total"].unusable == 1


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0.5", 0.5),
        (" 1.0", None),
        ("1.0 because", 1.0),
        ("0.5\n", 0.5),
        ("0.5\nbecause", None),
        ("0.5.", None),
        ("1.1", None),
        ("-0.1", None),
        ("", None),
        ("1e-1", 0.1),
        ("inf", None),
        ("9" * 5000, None),
    ],
)
def test_the_evaluator_reads_what_stands_before_the_first_blank(text: str, number: float | None):
    assert official_reading.read_number(text) == number


def test_nan_passes_for_a_number_and_then_there_is_no_official_mean(tmp_path: Path, checkout: Path):
    judge = judged({"v1_0": "nan"})
    run = evaluate("mmvet", write(tmp_path / "data"), tmp_path, judge, Answering(), prompts=f"official:{checkout}")
    strict, official = table(run, "by capability").run_rows
    assert strict.cells["Total"].value == 50 and official.cells["Total"].value is None
    assert official.cells["Spat"].value == 100


def test_records_with_faults_are_named(tmp_path: Path):
    records = {
        "v1_0": {**RECORDS["v1_0"], "capability": ["smell"]},
        "v1_1": {**RECORDS["v1_1"], "answer": ""},
        "v1_2": {**RECORDS["v1_2"], "imagename": "../../secret.png"},
        "v1_3": RECORDS["v1_0"],
    }
    dataset = load_benchmark("mmvet").load(write(tmp_path / "data", records), open_blobs(tmp_path / "home")).load_all()
    assert [sample.id for sample in dataset.samples] == ["v1_3"]
    problems = "\n".join(map(str, dataset.problems))
    assert "'smell'; there is rec, ocr" in problems and "answer: is missing" in problems and "leads out" in problems


def test_a_table_with_images_is_read_too(tmp_path: Path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    image = paint(tmp_path / "one.png", "white").read_bytes()
    row = {"question_id": "v1_0", "image": {"bytes": image, "path": None}, "question": "What?", "answer": "so",
           "capability": "ocr,math"}  # fmt: skip
    (tmp_path / "data").mkdir()
    parquet.write_table(arrow.Table.from_pylist([row]), tmp_path / "data" / "test-0.parquet")
    dataset = load_benchmark("mmvet").load(tmp_path / "data", open_blobs(tmp_path / "home")).load_all()
    assert dataset.samples[0].groups == {"capabilities": "ocr + math"} and not dataset.problems


def test_the_authors_file_of_answers_is_scored(tmp_path: Path):
    data = write(tmp_path / "data")
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "llava.json").write_text(json.dumps({"v1_0": "-1 and -5", "v1_1": ""}))
    judge = judged({}, {"reasoning": "yes", "tenths": 10})
    run = evaluate("mmvet", data, tmp_path, judge, f"folder/{tmp_path / 'results'}")
    assert cells(run, "by capability")["Total"] == pytest.approx(100 / 3) and len(judge.asked) == 1
    (tmp_path / "results" / "other.json").write_text("{}")
    with pytest.raises(UserError, match=r"answers of 2 models \(llava.json, other.json\)"):
        evaluate("mmvet", data, tmp_path, judge, f"folder/{tmp_path / 'results'}")
