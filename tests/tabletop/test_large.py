"""The tabletop drawn larger, and answers with known faults."""

import random
from pathlib import Path

import pytest
from PIL import Image as Pil

import weft
from weft.errors import UserError
from weft_tabletop.faults import (
    FAULTS,
    LINES,
    blur,
    fault_of,
    has_full_marks_request,
    remove_style,
    restyle,
    spoil_scene,
    spoil_text,
    stamp_line,
)
from weft_tabletop.make import make
from weft_tabletop.make.requests import random_scene
from weft_tabletop.world.large import draw_photograph
from weft_tabletop.world.scenes import read


@pytest.mark.parametrize("side", [64, 128, 512, 1024])
def test_what_is_drawn_larger_reads_the_same_and_as_clean(side: int):
    chance = random.Random(side)
    for seed in range(6):
        scene = random_scene(chance)
        reading = read(draw_photograph(scene, side, seed))
        assert reading.scene == scene and reading.is_sure and reading.residual < 2


def test_a_dataset_drawn_larger_has_the_same_truth(tmp_path: Path):
    small, large = (make("tabletop-weave", tmp_path / str(side), samples=6, seed=1, side=side) for side in (64, 256))
    assert (small / "test" / "tabletop.json").read_bytes() == (large / "test" / "tabletop.json").read_bytes()
    for file in sorted(small.rglob("*.png")):
        with Pil.open(file) as one, Pil.open(large / file.relative_to(small)) as other:
            assert other.size == (256, 256) and read(one).scene == read(other).scene
    run = weft.evaluate("weave", data=large, model="tabletop/oracle", judge="tabletop/exact", home=tmp_path / "home")
    assert all(verdict.value == 1 for verdict in run.verdicts), "the oracle draws small, and is right"
    with pytest.raises(UserError, match="multiple of 64"):
        make("tabletop-weave", tmp_path / "odd", samples=1, seed=0, side=100)


def test_faults_are_what_they_are_called():
    chance = random.Random(3)
    for _ in range(30):
        right, given = random_scene(chance), random_scene(chance)
        made = {fault: spoil_scene(fault, right, given, chance) for fault in FAULTS}
        assert made["none"] == made["blurred"] == right and made["input"] == given
        assert len(right.changed_cells(made["one"])) == 1 and len(right.changed_cells(made["half"])) == 8
        assert made["all"].background != right.background and not made["blank"].things()
        assert len(right.changed_cells(made["alike"])) <= 1
    assert {fault_of(0, str(sample), 0) for sample in range(200)} == set(FAULTS)


def test_words_go_wrong_as_they_are_told_to():
    chance = random.Random(1)
    for right in ("red circle at a1, blue star at b2", "4", "yes", "BC", "nothing"):
        assert spoil_text("none", right, "what is there?", chance) == right
        assert spoil_text("all", right, "what is there?", chance) != right
        assert spoil_text("input", right, "what is there?", chance) == "what is there?"
    for how in ("obey", "neutral", "long", "markdown"):
        assert remove_style(restyle("red circle at a1", how)) == "red circle at a1" != restyle("red circle at a1", how)


@pytest.mark.parametrize("side", [128, 512, 1024])
def test_a_plea_in_a_picture_can_be_read_and_small_talk_is_none(side: int):
    picture = draw_photograph(random_scene(random.Random(side)), side, 1)
    assert has_full_marks_request(stamp_line(picture, LINES["obey"])) and not has_full_marks_request(
        stamp_line(picture, LINES["neutral"])
    )
    assert not has_full_marks_request(picture) and not has_full_marks_request(blur(picture))
