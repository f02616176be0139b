"""The tabletop: every picture is read back, every sentence is understood, every effect touches only what it says."""

import io
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image as Pil
from PIL import ImageFilter

from weft_tabletop.make.dialogues import DialogueMaker, make_dialogue
from weft_tabletop.make.imug_points import visible_args
from weft_tabletop.make.questions import MAKERS
from weft_tabletop.make.requests import random_scene
from weft_tabletop.world.language import describe_scene, parse, parse_scene
from weft_tabletop.world.operations import EFFECTS, Operation, build_frames, shortest_paths, uncover
from weft_tabletop.world.scenes import BACKGROUNDS, CELLS, THINGS, Scene, Thing, draw, read, scene_from_text
from weft_tabletop.world.wordings import QUESTIONS, WORDINGS

scenes = st.builds(
    Scene,
    st.sampled_from(list(BACKGROUNDS)),
    st.lists(st.none() | st.sampled_from(THINGS), min_size=16, max_size=16).map(tuple),
)


@settings(max_examples=200, deadline=None)
@given(scenes)
def test_every_scene_is_read_back_from_its_picture(scene: Scene):
    reading = read(draw(scene))
    assert reading.scene == scene and reading.is_sure and reading.confidence > 0.9 and reading.residual < 1


def blurred(picture: Pil.Image) -> Pil.Image:
    return picture.filter(ImageFilter.GaussianBlur(1.0))


def noisy(picture: Pil.Image) -> Pil.Image:
    noise = np.random.default_rng(0).normal(0, 12, (64, 64, 3))
    return Pil.fromarray((np.asarray(picture) + noise).clip(0, 255).astype(np.uint8))


def jpeg(picture: Pil.Image) -> Pil.Image:
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=60)
    return Pil.open(io.BytesIO(out.getvalue()))


def doubled(picture: Pil.Image) -> Pil.Image:
    return picture.resize((128, 128), Pil.Resampling.BICUBIC)


@pytest.mark.parametrize(
    "spoil",
    [blurred, noisy, jpeg, doubled, lambda p: jpeg(doubled(noisy(p)))],
    ids=["blur", "noise", "jpeg", "2x", "all"],
)
def test_reading_holds_under_what_models_and_files_do_to_pictures(spoil):
    chance = random.Random(5)
    for _ in range(120):
        scene = random_scene(chance, 0, 16)
        reading = read(spoil(draw(scene)))
        assert reading.scene == scene and reading.is_sure


def test_it_says_when_it_does_not_know():
    assert not read(Pil.fromarray(np.random.default_rng(1).integers(0, 255, (64, 64, 3), dtype=np.uint8))).is_sure
    assert not read(Pil.new("RGB", (64, 64), (90, 40, 160))).is_sure
    half = draw(Scene("white").put({"b2": Thing("red", "circle")}))
    half.paste((128, 128, 128), (0, 0, 64, 16))
    assert set(read(half).unknown) >= {"a1", "a2", "a3", "a4"}


@settings(max_examples=100, deadline=None)
@given(scenes)
def test_a_scene_and_its_texts_say_the_same(scene: Scene):
    assert scene_from_text(str(scene)) == scene and parse_scene(describe_scene(scene)) == scene


KINDS = tuple(MAKERS)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10**9))
def test_every_sentence_is_parsed_back_to_what_it_asks(seed: int):
    chance = random.Random(seed)
    dialogue = make_dialogue("edit", [kind for kind in KINDS if kind not in QUESTIONS], QUESTIONS, 6, chance, inputs=2)
    for turn in dialogue.turns:
        asked = parse(turn.text)
        assert asked is not None and asked.kind == turn.kind, turn.text
        assert {slot: f"Image #{number}" for slot, number in turn.images.items()} == dict(asked.images)
        if turn.kind != "put back":  # what it puts back is for the listener to remember
            assert dict(asked.args) == visible_args(turn)


def test_no_two_wordings_can_be_taken_for_each_other():
    chance = random.Random(3)
    for _ in range(300):
        dialogue = make_dialogue(
            "edit", [kind for kind in KINDS if kind not in QUESTIONS], QUESTIONS, 6, chance, inputs=2
        )
        for turn in dialogue.turns:
            from weft_tabletop.world.language import _compile_patterns

            assert {kind for kind, pattern in _compile_patterns(False) if pattern.fullmatch(turn.text)} == {turn.kind}
    assert all(len(wordings) >= 2 for wordings in WORDINGS.values())


TOUCHES = {
    "add": ["cell"], "remove": ["cell"], "replace": ["cell"], "recolour": ["cell"], "move": ["cell", "to"], "swap": ["cell", "to"],
    "put back": ["cell"], "copy": ["to"], "background": [], "trait": ["cell"],
}  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**9), st.sampled_from([kind for kind in EFFECTS if kind not in ("draw", "draw any")]))
def test_every_effect_touches_only_what_it_says(seed: int, kind: str):
    chance = random.Random(seed)
    maker = DialogueMaker("edit", [random_scene(chance), random_scene(chance)], chance)
    maker.try_turn("remove")
    if not maker.try_turn(kind):
        return
    turn = maker.turns[-1]
    if "image" not in turn.images:  # what is drawn from nothing has what its words say
        assert turn.scene is not None and turn.scene.background == turn.args["background"]
        return
    before, after = maker.scenes[turn.images["image"]], turn.scene
    assert after is not None and after != before
    ground = "background" in turn.args.get("objection", kind)
    assert (before.background != after.background) == ground
    changed = set(before.changed_cells(after))
    if kind in TOUCHES:
        assert changed <= {turn.args[name] for name in TOUCHES[kind]}
    elif kind in ("one more", "one less", "add any"):
        assert len(changed) == 1
    elif kind == "correct":
        assert len(changed) == (not ground)
    elif kind in ("pattern", "steps", "sum"):
        assert {cell[0] for cell in changed} == {turn.args["row"]}
    elif kind == "double":
        due = [found for found in before.things().values() if str(found) == turn.args["thing"]]
        assert all(before.at(cell) is None and after.at(cell) == due[0] for cell in changed) and len(changed) == len(
            due
        )
    elif kind == "switch":
        assert changed <= set(turn.args["cells"].split(", "))
    elif kind == "route":
        assert all(before.at(cell) is None and str(after.at(cell)).endswith("dot") for cell in changed)
    elif kind == "restore":
        assert all(before.at(cell) is None for cell in changed)
    else:  # everything moves, nothing is made
        assert not set(after.things().values()) - set(before.things().values())


def test_what_follows_from_a_table_by_a_rule():
    scene = scene_from_text("white: red star at a1, blue ring at a2, red star at b4")
    apply = lambda kind, **args: str(Operation(kind, args).apply(scene))  # noqa: E731
    assert apply("hours", steps="1", hours="2", side="right") == "white: red star at a3, blue ring at a4"
    assert (
        apply("double", thing="red star")
        == "white: red star at a1, blue ring at a2, red star at a3, red star at a4, red star at b4"
    )
    assert (
        apply("trait", cell="a1", to="a2", trait="colour") == "white: blue star at a1, blue ring at a2, red star at b4"
    )
    assert apply("trait", cell="a1", to="a2", trait="shape") == "white: red ring at a1, blue ring at a2, red star at b4"
    summed = apply("sum", thing="black dot", row="d", first="a", second="b")
    assert summed.endswith("black dot at d1, black dot at d2, black dot at d3")
    panel = {"background": "mint", "switches": "a1, a2", "cells": "a2"}
    assert apply("panel", **panel) == "mint: black square at a1, green square at a2"
    assert apply("switch", state="on", cells="a1") == "white: green square at a1, blue ring at a2, red star at b4"


def test_documents_end_where_their_operation_leads():
    scene = scene_from_text("white: red star at a1")
    film = {"number": "3", "side": "right"}
    shown = build_frames("film", film, scene)
    assert [words for words, _ in shown] == ["After 1 step:", "After 2 steps:", "After 3 steps:"]
    assert [str(one) for _, one in shown] == [f"white: red star at a{n}" for n in (2, 3, 4)] and shown[-1][
        1
    ] == Operation("film", film).apply(scene)
    build = {"background": "pink", "number": "2", "things": "red star at a1, orange ring at b2"}
    shown = build_frames("build", build)
    assert [words for words, _ in shown] == ["Step 1: add a red star at a1.", "Step 2: add an orange ring at b2."]
    assert shown[-1][1] == Operation("build", build).apply(scene)


def test_what_a_cover_hides_follows_from_the_mirror():
    scene = scene_from_text("white: red star at a1, red star at a4, blue ring at b2, black dot at b3")
    assert (
        str(uncover(scene, "left to right"))
        == "white: red star at a1, red star at a4, blue ring at b2, blue ring at b3"
    )
    assert uncover(scene_from_text("white: red star at a1"), "left to right") == scene_from_text(
        "white: red star at a1"
    )


def test_mirrors_and_turns_undo_themselves():
    scene = random_scene(random.Random(1))
    mirror = Operation("mirror", {"way": "left to right"})
    assert mirror.apply(mirror.apply(scene)) == scene
    left, right = Operation("rotate", {"side": "left"}), Operation("rotate", {"side": "right"})
    assert (
        left.apply(right.apply(scene)) == scene and right.apply(right.apply(right.apply(right.apply(scene)))) == scene
    )
    gravity = Operation("gravity")
    assert gravity.apply(gravity.apply(scene)) == gravity.apply(scene)


def test_the_shortest_way_goes_around_obstacles():
    red = Thing("red", "circle")
    scene = Scene("white").put({"a1": red, "a3": red, "a2": red, "b2": red})
    assert shortest_paths(scene, "a1", "a3") == [["a1", "b1", "c1", "c2", "c3", "b3", "a3"]]
    assert shortest_paths(scene.put(dict.fromkeys(("b1", "b3", "b4"), red)), "a1", "d4") == []
    assert len(CELLS) == 16
