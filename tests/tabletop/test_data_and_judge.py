"""World, data, histories, judge and tables against each other: who does everything right scores 1 everywhere."""

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.errors import UserError
from weft_tabletop.exact.weave import score_answer
from weft_tabletop.make import make
from weft_tabletop.make.sidecar import stream_sidecar


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    return make("tabletop-weave", tmp_path / "tables", samples=48, seed=0)


def evaluate(data: Path, home: Path, model: str, **options: Any) -> weft.Run:
    return weft.evaluate("weave", data=data, model=model, judge="tabletop/exact", home=home, **options)


def test_same_seed_same_bytes_and_another_seed_other_dialogues(tables: Path, tmp_path: Path):
    again = make("tabletop-weave", tmp_path / "again", samples=48, seed=0)
    files = sorted(path.relative_to(tables) for path in tables.rglob("*") if path.is_file())
    assert files and all((tables / file).read_bytes() == (again / file).read_bytes() for file in files)
    other = make("tabletop-weave", tmp_path / "other", samples=48, seed=1)
    assert (other / "test" / "test.json").read_bytes() != (tables / "test" / "test.json").read_bytes()


def test_the_data_is_whole_in_the_official_format(tables: Path):
    records = json.loads((tables / "test" / "test.json").read_text())
    assert len({record["domain"] for record in records}) == 16
    assert {len(record["chats"]) // 2 for record in records} == {2, 3, 4, 5, 6}
    keys = {key.split(" #")[0] for record in records for chat in record["chats"] for key in chat.get("key_point") or ()}
    assert keys == {"GT", "Image", "Text"}


@pytest.mark.parametrize("history", ["none", "partial", "full", "dialogue"])
@pytest.mark.parametrize("placement", ["all-first", "inline"])
def test_the_oracle_scores_one_in_every_cell_in_every_history(
    tables: Path, tmp_path: Path, history: str, placement: str
):
    run = evaluate(tables, tmp_path / "home", "tabletop/oracle", history=history, placement=placement)
    values = [cell.value for table in run.tables() for row in table.run_rows for cell in row.cells.values()]
    assert values and set(values) == {1.0} and len(run.table().cells(run.name)) == 5


def test_the_truth_scores_one_too(tables: Path, tmp_path: Path):
    run = evaluate(tables, tmp_path / "home", "reference")
    assert {cell.value for cell in run.table().cells(run.name).values()} == {1.0}


def test_copy_keeps_everything_and_does_nothing(tables: Path, tmp_path: Path):
    run = evaluate(tables, tmp_path / "home", "copy")
    overall = next(table for table in run.tables() if table.title.endswith("by domain, strict")).cells("overall")
    assert overall["KP"].value < 0.15 and overall["VC"].value > 0.85 and overall["ACC"].value == 0.0


def test_an_oracle_with_an_error_rate_scores_what_the_rate_implies(tmp_path: Path):
    data = make("tabletop-weave", tmp_path / "many", samples=160, seed=3)
    run = evaluate(data, tmp_path / "home", "tabletop/oracle", model_options={"error": 0.3, "seed": 1})
    accuracies = [verdict.value for verdict in run.verdicts if verdict.metric == "accuracy"]
    assert sum(value == 1 for value in accuracies) / len(accuracies) == pytest.approx(0.7, abs=0.1)
    again = evaluate(data, tmp_path / "home2", "tabletop/oracle", model_options={"error": 0.3, "seed": 1})
    assert again.report("csv") == run.report("csv"), "its mistakes are reproducible"


def test_doing_it_right_to_ones_own_wrong_picture_is_right(tmp_path: Path):
    """Key points that show the model's own picture are judged against that picture, as WEAVE does."""
    data = make("tabletop-weave", tmp_path / "many", samples=64, seed=5)
    run = evaluate(
        data, tmp_path / "home", "tabletop/oracle", model_options={"error": 0.5, "seed": 2}, where={"domain": "optics"}
    )
    by_turn = [verdict for verdict in run.verdicts if verdict.metric == "key_point" and verdict.turn >= 2]
    assert any(verdict.value == 1 for verdict in by_turn)


@pytest.mark.parametrize(
    ("said", "due", "score"),
    [
        ("a red circle", "a red circle", 10),
        ("A red circle.", "a red circle", 10),
        ("red circle", "a red circle", 10),
        ("a blue circle", "a red circle", 0),
        ("BD", "BD", 10),
        ("B", "BD", 5),
        ("ABD", "BD", 0),
        ("no, at b2 there should be a red ring", "no, at c2 there should be a red ring", 5),
        ("yes", "no, at c2 there should be a red ring", 0),
        ("", "2", 0),
    ],
)
def test_answers_are_exact_partly_right_or_wrong(said: str, due: str, score: float):
    assert score_answer(said, due)[0] == score


def test_the_exact_judge_wants_tabletop_data(toy: Path, tmp_path: Path):
    with pytest.raises(UserError, match="judges tabletop data alone"):
        evaluate(toy, tmp_path / "home", "copy")


def test_recall_without_a_mention_needs_the_dialogue(tmp_path: Path):
    data = make("tabletop-weave-memory", tmp_path / "memory", samples=30, seed=0)
    whole, none = (
        evaluate(data, tmp_path / "home", "tabletop/oracle", history=h, past="reference") for h in ("dialogue", "none")
    )
    score = {run.name: run.tables()[-1].cells("overall")["KP"].value for run in (whole, none)}
    assert score[whole.name] == 1.0 and score[none.name] < 0.9


@pytest.mark.parametrize("samples", [{}, {"1": {"turns": [None, {"a": [1, {"b": "c\nd"}], "e": {}}]}, "é": []}])
def test_a_sidecar_is_written_sample_by_sample_as_one_json_object(tmp_path: Path, samples: dict[str, Any]):
    stream_sidecar(tmp_path, iter(samples.items()))
    whole = json.dumps({"version": 1, "samples": samples}, indent=1) + "\n"
    assert (tmp_path / "tabletop.json").read_text(encoding="utf-8") == whole


def test_a_sidecar_of_many_samples_takes_no_memory(tmp_path: Path):
    tracemalloc.start()
    try:
        stream_sidecar(tmp_path, ((str(number), {"turns": [{"text": "x" * 20_000}]}) for number in range(500)))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (tmp_path / "tabletop.json").stat().st_size > 500 * 20_000 and peak < 2_000_000
