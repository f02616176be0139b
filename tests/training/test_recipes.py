"""What is trained on follows from a few words; words that mean nothing are one clear line."""

from typing import Any

import pytest

from weft.errors import UserError
from weft_tabletop.weaver.memory_recipes import plan_memory
from weft_tabletop.weaver.recipes import find_mix, plan_recipe
from weft_tabletop.weaver.world import FULL, MICRO


def shares(stage: str, mix: str, world: Any = MICRO) -> dict[str, float]:
    made = find_mix(plan_recipe(stage, world.name, mix, tuned=False), world)
    return {source.data: round(share, 3) for source, share in zip(made.sources, made.shares(), strict=True)}


def test_5g1u_is_five_of_each_kind_of_generation_to_three_of_understanding():
    assert shares("planner", "5g1u") == {
        "words": 0.083,
        "image": 0.083,
        "draw": 0.278,
        "edit": 0.194,
        "copy": 0.083,
        "build": 0.278,
    }
    assert "build" not in shares("planner", "5g1u-no-documents")
    assert {"build", "film"} <= set(shares("planner", "5g1u", FULL))
    assert set(shares("planner", "")) == {"words", "image"}


def test_a_visualizer_learns_what_of_a_mix_is_drawn():
    assert shares("visualizer", "t2i=1,i2i=1") == {"draw": 0.5, "edit": 0.35, "copy": 0.15}
    assert shares("visualizer", "") == {"draw": 0.4, "edit": 0.4, "copy": 0.2}


def test_a_stage_that_starts_from_weights_is_shorter():
    whole = plan_recipe("planner", "micro", "5g1u", tuned=False)
    tuned = plan_recipe("planner", "micro", "5g1u", tuned=True)
    assert tuned.steps < whole.steps and tuned.rate < whole.rate
    assert plan_recipe("planner", "micro", "5g1u", tuned=True, steps=7).steps == 7


@pytest.mark.parametrize(
    ("stage", "world", "mix", "given", "why"),
    [
        ("painter", "micro", "", {}, "there is planner, visualizer, joint"),
        ("planner", "nano", "", {}, "there is micro, full"),
        ("planner", "micro", "7u", {}, "5g1u-no-documents"),
        ("planner", "micro", "0g1u", {}, "5g1u-no-documents"),
        ("planner", "micro", "und=1,art=2", {}, "no source 'art'"),
        ("visualizer", "micro", "und", {}, "nothing in it is drawn"),
        ("visualizer", "micro", "", {"rank": 4}, "only a planner"),
        ("planner", "micro", "", {"rank": 4}, "give --start"),
        ("joint", "micro", "", {"tuned": True}, "from nothing"),
    ],
)
def test_a_recipe_that_cannot_be_is_one_clear_line(stage: str, world: str, mix: str, given: dict[str, Any], why: str):
    with pytest.raises(UserError, match=why) as raised:
        plan_recipe(stage, world, mix, **{"tuned": False, **given})
    assert "\n" not in str(raised.value)


def test_a_share_of_dialogues_leaves_the_rest_to_a_view_of_single_turns():
    assert plan_memory("micro", "dialogues=.25", "").share == 0.25
    assert plan_memory("micro", "dialogues=.25", "").view == "single-turn"
    assert plan_memory("micro", "dialogues=.25", "plain").view == "plain"
    assert plan_memory("micro", "dialogues=1,plain=3", "").share == 0.25
    assert plan_memory("micro", "dialogues=0", "").share == 0.0
    assert plan_memory("micro", "", "single-turn").share == 0.0
    assert plan_memory("micro", "", "dialogues").share == 1.0


@pytest.mark.parametrize(
    ("mix", "view", "why"),
    [
        ("dialogues=2", "", "at most 1"),
        ("dialogues=.5,plain=1,single-turn=1", "", "one view of single turns"),
        ("dialogues=.5,plain=1", "single-turn", "one view of single turns"),
        ("talks=1", "", "no source 'talks'"),
        ("", "double", "there is dialogues, single-turn, plain"),
    ],
)
def test_a_mix_of_views_that_cannot_be_is_one_clear_line(mix: str, view: str, why: str):
    with pytest.raises(UserError, match=why):
        plan_memory("micro", mix, view)
