"""What the papers find about training planner and visualizer apart, and about memory, shows within seconds in the micro
world. The order of the effects is asserted, not their size: each pair here differs by several times what seeds differ
by."""

from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="torch is not installed (the extra train)")

from msgspec.structs import replace  # noqa: E402

from weft.training.log import read_log  # noqa: E402
from weft_tabletop.weaver.memory_recipes import plan_memory  # noqa: E402
from weft_tabletop.weaver.recipes import plan_recipe  # noqa: E402
from weft_tabletop.weaver.train import measure, planner, recall  # noqa: E402
from weft_tabletop.weaver.train.stages import RowStore, train_stage  # noqa: E402
from weft_tabletop.weaver.world import MICRO  # noqa: E402

Measured = dict[str, dict[str, float]]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """What is measured at the end of each stage."""
    folder = tmp_path_factory.mktemp("stages")
    store = RowStore(MICRO, "cpu")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)

    def train(name: str, stage: str, mix: str, steps: int, **files: Any) -> Path:
        recipe = plan_recipe(stage, "micro", mix, tuned="start" in files, steps=steps, rows=2000, rate=3e-3)
        train_stage(replace(recipe, every=steps), folder / name, device="cpu", store=store, **files)
        return folder / name

    with pytest.MonkeyPatch.context() as few:
        few.setattr(measure, "ANSWER_ROWS", 128)
        few.setattr(measure, "LOSS_ROWS", 128)
        few.setattr(planner, "PLAN_ROWS", 32)
        first = train("before", "planner", "und", 150)
        drawn = train("V", "visualizer", "", 200, planner=first)
        tuned = train("tuned", "planner", "5g1u", 120, start=first, watch=drawn)
        train("no documents", "planner", "5g1u-no-documents", 120, start=first)
        train("aP V", "visualizer", "", 60, planner=tuned, start=drawn)
    torch.set_num_threads(threads)
    return {path.name: read_log(path / "losses.jsonl")[-1] for path in folder.iterdir()}


def test_a_planner_that_learnt_to_understand_alone_never_orders_an_image(measured: Measured):
    assert [measured["before"][f"{kind} some"] for kind in ("draw", "edit", "build")] == [0, 0, 0]


def test_generation_in_the_mix_makes_plans(measured: Measured):
    assert measured["tuned"]["draw count"] > 0.5 and measured["tuned"]["edit count"] > 0.5


def test_documents_in_the_mix_make_plans_of_several_images(measured: Measured):
    assert measured["tuned"]["build orders"] > 1.8
    assert measured["no documents"]["build orders"] < 1.4


def test_a_tuned_planner_is_not_understood_by_the_visualizer_until_that_is_trained_on(measured: Measured):
    before = measured["V"]["visual loss"]
    assert measured["tuned"]["visual loss"] > before + 0.06
    assert measured["aP V"]["visual loss"] < measured["tuned"]["visual loss"] - 0.06


def test_what_an_earlier_image_shows_is_learnt_from_dialogues_and_not_from_single_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(recall, "TEST_ROWS", 32)
    last: dict[str, dict[str, float]] = {}
    for view in ("dialogues", "single-turn"):
        recipe = plan_memory("micro", "", view, steps=80, tokens=2048, rows=1000)
        recall.train_memory(replace(recipe, every=80), tmp_path / view, device="cpu")
        last[view] = read_log(tmp_path / view / "losses.jsonl")[-1]
    assert last["dialogues"]["recall loss"] < last["single-turn"]["recall loss"] - 0.5
    assert last["single-turn"]["alone recall loss"] < last["single-turn"]["recall loss"] - 0.5
