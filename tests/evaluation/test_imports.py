"""Results of evalscope, lmms-eval and VLMEvalKit on a score card: what is read, what is unscored, what is refused."""

import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tool_results import evalscope_run, lmms_run, vlmevalkit_run, write_lines, write_sheet
from weft.errors import UserError
from weft.evaluation.imports.score import ImportedScore, SampleScore, combine
from weft.evaluation.imports.store import load, read_results, save
from weft.evaluation.suite import build_score_card

FAILED = "[LMMS_EVAL_REQUEST_FAILED after 3 retries] Connection error."


def read_one(path: Path, **more: Any) -> ImportedScore:
    (score,) = read_results(path, "mine", **more)
    return score


def test_a_run_of_evalscope_is_read_with_its_interval(tmp_path: Path):
    score = read_one(evalscope_run(tmp_path / "run", [1.0] * 30 + [0.0] * 10))
    assert (score.column, score.value, score.scored, score.expected) == ("mmmu (evalscope)", 75.0, 40, 40)
    assert score.low is not None and score.high is not None and 55 < score.low < 75 < score.high < 90
    assert "evalscope 1.14.1" in score.describe() and "judged by no model" in score.describe()
    assert read_one(tmp_path / "run" / "reports" / "tiny" / "mmmu.json") == score


def test_requests_that_evalscope_left_out_are_unscored(tmp_path: Path):
    score = read_one(evalscope_run(tmp_path, [1.0, 0.0, 1.0], errored=2))
    assert (score.scored, score.expected) == (3, 5) and "2 requests failed" in score.describe()


def test_a_run_of_evalscope_that_stopped_has_no_score(tmp_path: Path):
    folder = evalscope_run(tmp_path, [1.0, 0.0])
    write_lines(folder / "predictions" / "tiny" / "math_vista_default.jsonl", [{"index": n} for n in range(7)])
    finished, stopped = read_results(folder, "mine")
    assert finished.value == 50.0
    assert stopped.task == "math_vista" and stopped.value is None and (stopped.scored, stopped.expected) == (0, 7)
    assert "stopped after 7 replies" in stopped.describe()


@pytest.mark.parametrize(
    ("change", "why"),
    [({"limit": "10"}, "without a limit"), ({"metric": "f1"}, "give --metric: it has accuracy")],
)
def test_evalscope_results_that_mislead_are_refused(tmp_path: Path, change: dict[str, str], why: str):
    folder = evalscope_run(tmp_path, [1.0, 0.0], limit=change.get("limit", "null"))
    with pytest.raises(UserError, match=why):
        read_results(folder, "mine", change.get("metric", ""))


def test_failed_requests_of_lmms_eval_are_unscored(tmp_path: Path):
    """The tool scores the text of an error as an answer, and guesses a letter."""
    samples = [(1.0, "A"), (0.0, "B"), (1.0, FAILED), (1.0, FAILED)]
    score = read_one(lmms_run(tmp_path, "acc", 0.75, samples))
    assert score.value == 50.0 and (score.scored, score.expected) == (2, 4)
    assert "the tool counted them and printed 0.75" in score.describe()
    assert read_one(tmp_path) == score


def test_nobody_answered(tmp_path: Path):
    score = read_one(lmms_run(tmp_path, "acc", 2 / 3, [(1.0, FAILED), (1.0, FAILED), (0.0, FAILED)]))
    assert score.value is None and (score.scored, score.expected) == (0, 3)


def test_mmmu_of_lmms_eval_is_worked_out_from_its_answers(tmp_path: Path):
    def answer(right: str, parsed: str) -> dict[str, Any]:
        return {"question_type": "multiple-choice", "answer": right, "parsed_pred": [parsed]}

    samples = [(answer("A", "A"), "A"), (answer("B", "C"), "C"), (answer("D", "D"), "D"), (answer("A", "B"), FAILED)]
    score = read_one(lmms_run(tmp_path, "mmmu_acc", 0.5, samples))
    assert score.value == pytest.approx(200 / 3) and (score.scored, score.expected) == (3, 4)


def test_a_number_that_is_no_mean_of_its_samples_has_no_interval_and_no_repair(tmp_path: Path):
    kept = read_one(lmms_run(tmp_path / "a", "acc", 0.9, [(1.0, "A"), (0.0, "B")]), full=1.0)
    assert kept.value == 90.0 and kept.low is None
    lost = read_one(lmms_run(tmp_path / "b", "acc", 0.9, [(1.0, "A"), (0.0, FAILED)]), full=1.0)
    assert lost.value is None and "no score" in lost.describe()


@pytest.mark.parametrize(
    ("more", "why"),
    [({"original": 900}, "run on 2 of 900 samples"), ({"with_samples": False}, "--log_samples")],
)
def test_lmms_eval_results_that_mislead_are_refused(tmp_path: Path, more: dict[str, Any], why: str):
    with pytest.raises(UserError, match=why):
        read_results(lmms_run(tmp_path, "acc", 0.5, [(1.0, "A"), (0.0, "B")], **more), "mine")


def test_a_share_or_a_percentage_is_never_guessed(tmp_path: Path):
    path = lmms_run(tmp_path, "acc", 0.9, [({}, "A"), ({}, "B")])
    with pytest.raises(UserError, match="--full 1 or --full 100"):
        read_results(path, "mine")
    assert read_one(path, full=1.0).value == 90.0 and read_one(path, full=100.0).value == 0.9


@pytest.mark.parametrize("suffix", [".tsv", ".json", ".xlsx"])
def test_failed_requests_of_vlmevalkit_leave_no_score(tmp_path: Path, suffix: str):
    whole = read_one(vlmevalkit_run(tmp_path / "whole", 55.25, ["A", "B", "C"], suffix))
    assert (whole.value, whole.judge, whole.expected) == (55.25, "gpt-4o-mini", 3)
    broken = read_one(
        vlmevalkit_run(tmp_path / "broken", 55.25, ["A", "Failed to obtain answer via API.", "C"], suffix)
    )
    assert broken.value is None and "1 of 3 requests failed" in broken.describe()


def test_vlmevalkit_results_without_replies_or_an_end_are_no_scores(tmp_path: Path):
    unfinished = read_one(vlmevalkit_run(tmp_path / "a", 55.0, ["A"], status="infer", error_message="judge: 401"))
    assert unfinished.value is None and "judge: 401" in unfinished.describe()
    path = vlmevalkit_run(tmp_path / "b", 55.0, ["A"], prediction_file="../../../etc/passwd")
    (tmp_path / "b" / "tiny_MMMU_DEV_VAL.tsv").unlink()
    with pytest.raises(UserError, match="whole folder"):
        read_results(path, "mine")


@pytest.mark.parametrize("text", ["", "[]", '{"results": 5}', "\x00", '{"results": {"a": {}}, "n-samples": {"a": 1}}'])
def test_files_that_are_something_else_are_refused(tmp_path: Path, text: str):
    path = tmp_path / "x_results.json"
    path.write_text(text)
    with pytest.raises(UserError):
        read_results(path, "mine")


def test_an_import_stands_on_the_card_beside_its_tool(tmp_path: Path):
    first = read_one(evalscope_run(tmp_path / "one", [1.0, 0.0, 1.0, 1.0]))
    second = read_one(evalscope_run(tmp_path / "two", [1.0, 0.0, 0.0, 1.0]))
    other = read_one(lmms_run(tmp_path / "three", "acc", 0.5, [(1.0, "A"), (0.0, "B")]))
    home = tmp_path / "home"
    for when, score in enumerate([first, second, other, other]):
        save(score, home, float(when))
    assert len(list((home / "imported").iterdir())) == 3
    card = build_score_card(None, imported=load(home))
    (row,) = card.scores.rows
    assert card.scores.columns == ("mmmu (evalscope)", "mmmu_val (lmms-eval)")
    assert row.cells["mmmu (evalscope)"].value == 50.0  # that of the later import
    assert "imported, not measured by weft" in card.scores.note


@pytest.mark.parametrize("damage", [b"{}", b"\xff", b'{"score": 5, "imported_at": 1}'])
def test_a_damaged_import_is_named(tmp_path: Path, damage: bytes):
    (tmp_path / "imported").mkdir()
    (tmp_path / "imported" / "bad.json").write_bytes(damage)
    with pytest.raises(UserError, match=r"bad\.json is no imported score"):
        load(tmp_path)


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.booleans()), min_size=1, max_size=30),
    st.sampled_from([1.0, 100.0]),
)
def test_a_score_is_always_the_mean_of_what_was_answered(rows: list[tuple[float, bool]], full: float):
    samples = [SampleScore(str(at), value * full, failed) for at, (value, failed) in enumerate(rows)]
    printed = sum(value for value, _ in rows) / len(rows) * full
    outcome = combine(printed, samples, full, len(samples))
    answered = [value for value, failed in rows if not failed]
    assert outcome.expected == len(rows) and outcome.scored == len(answered)
    if not answered:
        assert outcome.value is None
        return
    assert outcome.value is not None and outcome.value == pytest.approx(100 * sum(answered) / len(answered))
    assert outcome.low is not None and outcome.high is not None and outcome.low <= outcome.value + 1e-9
    assert outcome.value <= outcome.high + 1e-9


def a_task_elsewhere(folder: Path) -> Path:
    path = lmms_run(folder, "acc", 0.5, [(1.0, "A"), (0.0, "B")])
    path.write_text(path.read_text().replace("mmmu_val", "../" * 9 + "etc/passwd"))
    return path


def an_endless_name(folder: Path) -> Path:
    return vlmevalkit_run(folder, 55.0, ["A"], prediction_file="x" * 5000)


def a_name_that_is_a_pattern(folder: Path) -> Path:
    report = evalscope_run(folder, [1.0]) / "reports" / "tiny" / "mmmu.json"
    report.rename(report.with_name("a**b.json"))
    (folder / "reports" / "tiny" / "c.json").write_text('{"schema_version": "\\n' + "x" * 10_000 + '"}')
    return folder


def more_samples_than_there_are_numbers(folder: Path) -> Path:
    return lmms_run(folder, "acc", 0.5, [(1.0, "A")], original=10**300)


def an_index_that_is_none(folder: Path) -> Path:
    path = vlmevalkit_run(folder, 55.0, ["A"], ".xlsx")
    write_sheet(folder / "tiny_MMMU_DEV_VAL.xlsx", [["index"]], "<v>", "<v>x")
    return path


def entities_in_another_alphabet(folder: Path) -> Path:
    path = vlmevalkit_run(folder, 55.0, ["A"], ".xlsx")
    with zipfile.ZipFile(folder / "tiny_MMMU_DEV_VAL.xlsx", "w") as archive:
        entities = '<!DOCTYPE a [<!ENTITY b "prediction">]><a>&b;</a>'
        archive.writestr(
            "xl/worksheets/sheet1.xml", b'<?xml version="1.0" encoding="cp037"?>' + entities.encode("cp037")
        )
    return path


@pytest.mark.parametrize(
    "make",
    [
        a_task_elsewhere,
        an_endless_name,
        a_name_that_is_a_pattern,
        more_samples_than_there_are_numbers,
        an_index_that_is_none,
        entities_in_another_alphabet,
    ],
)
def test_results_that_lie_are_refused_in_one_line(make: Any, tmp_path: Path):
    with pytest.raises(UserError) as refused:
        read_results(make(tmp_path / "run"), "mine", full=1.0)
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 1000


def test_a_score_beyond_full_marks_is_made_of_no_samples(tmp_path: Path):
    lost = read_one(lmms_run(tmp_path, "acc", 0.5, [(60.0, "A"), (-59.0, "B"), (0.5, FAILED)]), full=1.0)
    assert lost.value is None
