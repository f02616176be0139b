"""ROVER's two halves on the tabletop, as JSON lines with images: `ROVER-IG.jsonl`, `ROVER-TG.jsonl`, `images/`, and the
sidecar.

IG: drift for time, mirrors and turns for space, falling for causes, doubling for numbers, traits of another object for
imagination; row patterns and sums for logic. TG: what is under a cover (jigsaw), how long the shortest way is
(logical), what is where after something happened (physical). The image that shows the answer is the reference."""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from weft_tabletop.make.dialogues import DialogueMaker, TableTurn
from weft_tabletop.make.files import write_lines, write_named_image
from weft_tabletop.make.sidecar import write_sidecar
from weft_tabletop.make.start_scenes import start_scene
from weft_tabletop.world import answers
from weft_tabletop.world.language import TableRequest, describe_scene, phrase_request
from weft_tabletop.world.scenes import Scene

# For each reasoning type: what it asks for on a table, and what one must know to do it.
KINDS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "temporal": (("hours", "drift"), "drift, steps, hours"),
    "spatial": (("mirror", "rotate"), "mirror image, quarter turn"),
    "causal": (("gravity",), "gravity, support"),
    "quantitative": (("double",), "counting, doubling"),
    "imaginative": (("trait",), "colour, shape, combination"),
    "mathematical": (("sum",), "counting, addition"),
    "abstract": (("pattern",), "repetition, order"),
}
COMMON_TYPES = ("temporal", "spatial", "causal", "quantitative", "imaginative")  # every dimension but logic has these
TASKS = [
    *((dimension, kind) for kind in COMMON_TYPES for dimension in ("science", "culture", "common_sense")),
    *(("logic", "mathematical"), ("logic", "abstract")),
]
PUZZLES = {"jigsaw": "hidden", "logical": "way", "physical": "then"}
TARGET_RATE = 0.5  # how often a task has a reference image beside its description


def write_rover(out: Path, samples: int, seed: int) -> None:
    """Write so many samples: two thirds ask for an image (IG), one third are questions (TG)."""
    (out / "images").mkdir(parents=True, exist_ok=True)
    tasks = -(-2 * samples // 3)
    references: dict[str, Any] = {}
    write_lines(out / "ROVER-IG.jsonl", [_write_task(out, number, seed, references) for number in range(tasks)])
    puzzles = [_write_puzzle(out, number, seed, references) for number in range(samples - tasks)]
    write_lines(out / "ROVER-TG.jsonl", puzzles)
    write_sidecar(out, references)


def _write_task(out: Path, number: int, seed: int, references: dict[str, Any]) -> dict[str, Any]:
    """Write the images of an IG task; add its reference, and return its record."""
    dimension, reasoning_type = TASKS[number % len(TASKS)]
    short_type = "math" if reasoning_type == "mathematical" else reasoning_type
    name = f"{dimension}_{short_type}_{number // len(TASKS) + 1}"
    rng = random.Random(f"rover {seed} {name}")
    kinds, keywords = KINDS[reasoning_type]
    turn, base = _make_turn(rng.choice(kinds), rng)
    assert turn.scene is not None
    references[name] = {"turns": [{"kind": turn.kind, "args": turn.args, "type": reasoning_type}]}
    target: str | None = None
    if rng.random() < TARGET_RATE:
        target = write_named_image(out, f"{name}_target", turn.scene)
    return {
        "id": name,
        "dimension": dimension,
        "reasoning_type": reasoning_type,
        "prompt": turn.text,
        "target_description": describe_scene(turn.scene),
        "keywords": keywords,
        "image": write_named_image(out, name, base),
        "target_image": target,
    }


def _write_puzzle(out: Path, number: int, seed: int, references: dict[str, Any]) -> dict[str, Any]:
    """Write the images of a TG question; add its reference, and return its record."""
    problem = tuple(PUZZLES)[number % len(PUZZLES)]
    name = f"{problem}_{number // len(PUZZLES) + 1}"
    rng = random.Random(f"rover {seed} {name}")
    turn, base = _make_turn(PUZZLES[problem], rng)
    reference = {"kind": turn.kind, "args": turn.args, "type": problem, "answer": turn.answer}
    references[name] = {"turns": [reference, reference]}  # with an image first, and in words alone
    return {
        "id": name,
        "problem_type": problem,
        "prompt": turn.text,
        "image": write_named_image(out, name, base),
        "image2": None,
        "example_image": None,
        "reasoning_image": write_named_image(out, f"{name}_reasoning", _helper_scene(turn, base)),
        "answer": turn.answer,
    }


def _make_turn(kind: str, rng: random.Random) -> tuple[TableTurn, Scene]:
    """Make a request, or a question whose helper image is not the table itself, and the table that it is about."""
    while True:
        maker = DialogueMaker("", [start_scene([kind], rng)], rng)
        if not maker.try_turn(kind, 1):
            continue
        turn = maker.turns[-1]
        base = maker.inputs[0]
        if turn.scene is None:
            is_useful = _helper_scene(turn, base) != base
        else:
            is_useful = bool(turn.scene.things())
        if is_useful:
            text = phrase_request(kind, turn.args, dict.fromkeys(turn.images, "the table"), rng)
            return replace(turn, text=text), base


def _helper_scene(turn: TableTurn, base: Scene) -> Scene:
    return answers.helper_scene(TableRequest(turn.kind, turn.args, {}), {"image": base})
