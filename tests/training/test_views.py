"""What a model is trained on is what an evaluation shows, and what a dataset's images show."""

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.benchmarks.weave.data import load
from weft.benchmarks.weave.views import plain_turn_view, single_turn_view
from weft.building.build import run_build
from weft.building.request import BuildRequest
from weft.errors import UserError
from weft.store.blobs import Blobs
from weft.types import Message, Part, Text
from weft_tabletop.make import make
from weft_tabletop.weaver.built_rows import dataset_rows, digest_dataset
from weft_tabletop.weaver.world import FULL, MICRO

RECIPE = f"{Path(__file__).parents[2] / 'bench' / 'memory_build.py'}:Memory"


def as_shown(part: Any) -> str:
    return part if isinstance(part, str) else hashlib.sha256(part.convert("RGB").tobytes()).hexdigest()


def test_single_turns_are_what_history_partial_shows(tmp_path: Path):
    data = make("tabletop-weave-micro", tmp_path / "data", samples=3, seed=1)
    asked: set[tuple[str, ...]] = set()

    def model(messages: Any, want: str) -> Any:
        asked.add(tuple(as_shown(part) for _, parts in messages for part in parts))
        return "nothing"

    weft.evaluate(
        "weave",
        data=data,
        model=model,
        judge="tabletop/exact",
        home=tmp_path / "home",
        options={"history": "partial", "past": "reference"},
    )
    blobs = Blobs(tmp_path / "blobs")

    def show(part: Part) -> str:
        return part.text if isinstance(part, Text) else as_shown(blobs.decode(part))

    def show_all(messages: tuple[Message, ...]) -> tuple[str, ...]:
        return tuple(show(part) for message in messages for part in message.parts)

    examples = [example for sample in load(data, blobs).samples for example in single_turn_view(sample)]
    assert {show_all(example.messages[:-1]) for example in examples} == asked


def test_plain_single_turns_name_one_image_at_most(tmp_path: Path):
    data = make("tabletop-weave-micro", tmp_path / "data", samples=8, seed=1)
    samples = load(data, Blobs(tmp_path / "blobs")).load_all().samples
    plain = [example for sample in samples for example in plain_turn_view(sample)]
    single = [example for sample in samples for example in single_turn_view(sample)]
    assert 0 < len(plain) < len(single)


def test_a_build_with_faults_is_learnt_as_it_is(tmp_path: Path):
    rows: dict[str, Any] = {}
    for name, rate in {"pure": "0", "impure": "0.5"}.items():
        request = BuildRequest(
            RECIPE, tmp_path / name, {"painter": "tabletop/faulty"}, 10, model_options={"painter.rate": rate}
        )
        outcome = asyncio.run(run_build(request))
        assert outcome.reason is None and not outcome.failed
        rows[name] = dataset_rows(tmp_path / name, MICRO, "single-turn")
    assert digest_dataset(tmp_path / "pure") != digest_dataset(tmp_path / "impure")
    assert len(rows["pure"]) == len(rows["impure"]) >= 30
    assert (rows["pure"].learn == rows["impure"].learn).all(), "the same turns"
    wrong = (rows["pure"].tokens != rows["impure"].tokens) & rows["pure"].learn
    assert 0.1 < wrong.any(axis=1).mean() < 0.9


def test_a_dataset_of_another_world_or_none_is_one_line(tmp_path: Path):
    data = make("tabletop-weave", tmp_path / "full", samples=3, seed=0)
    with pytest.raises(UserError, match="images show what the world micro does not have"):
        dataset_rows(data, MICRO, "single-turn")
    assert len(dataset_rows(data, FULL, "single-turn")) > 3
    with pytest.raises(UserError, match=r"there is no test\.json"):
        dataset_rows(tmp_path / "nowhere", MICRO, "single-turn")
    with pytest.raises(UserError, match="has no example of the view single-turn"):
        (tmp_path / "test.json").write_text("[]")
        dataset_rows(tmp_path / "test.json", MICRO, "single-turn")
