"""ROVER's two halves on the tabletop, as JSON lines with pictures: `ROVER-IG.jsonl`, `ROVER-TG.jsonl`, `images/`, and
the sidecar.

IG: drift for time, mirrors and turns for space, falling for causes, doubling for numbers, traits of another object for
new ones; row patterns and sums for logic. TG: what is under a cover (jigsaw), how long the shortest way is (logical),
what is where after something happened (physical); the picture that shows the answer is the reference."""

import json
import random
from pathlib import Path
from typing import Any

from weft.store.images import encode_png
from weft_tabletop.make.dialogues import DialogueMaker, TableTurn, start_scene
from weft_tabletop.make.sidecar import write_sidecar
from weft_tabletop.world import answers
from weft_tabletop.world.language import TableRequest, describe_scene, phrase_request
from weft_tabletop.world.scenes import Scene, draw

KINDS = {  # what a reasoning type asks for on a table, and what it takes to know
    "temporal": (("hours", "drift"), "drift, steps, hours"),
    "spatial": (("mirror", "rotate"), "mirror image, quarter turn"),
    "causal": (("gravity",), "gravity, support"),
    "quantitative": (("double",), "counting, doubling"),
    "imaginative": (("trait",), "colour, shape, combination"),
    "mathematical": (("sum",), "counting, addition"),
    "abstract": (("pattern",), "repetition, order"),
}
EVERYWHERE = ("temporal", "spatial", "causal", "quantitative", "imaginative")
TASKS = [
    *((dimension, kind) for kind in EVERYWHERE for dimension in ("science", "culture", "common_sense")),
    *(("logic", "mathematical"), ("logic", "abstract")),
]
PUZZLES = {"jigsaw": "hidden", "logical": "way", "physical": "then"}


def write_rover(out: Path, samples: int, seed: int) -> None:
    """Two thirds of them pictures to make (IG), one third questions (TG)."""
    (out / "images").mkdir(parents=True, exist_ok=True)
    tasks = -(-2 * samples // 3)
    truth: dict[str, Any] = {}
    lines = [_task(out, number, seed, truth) for number in range(tasks)]
    _write(out / "ROVER-IG.jsonl", lines)
    puzzles = [_puzzle(out, number, seed, truth) for number in range(samples - tasks)]
    _write(out / "ROVER-TG.jsonl", puzzles)
    write_sidecar(out, truth)


def _write(file: Path, records: list[dict[str, Any]]) -> None:
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def _task(out: Path, number: int, seed: int, truth: dict[str, Any]) -> dict[str, Any]:
    dimension, kind = TASKS[number % len(TASKS)]
    name = f"{dimension}_{'math' if kind == 'mathematical' else kind}_{number // len(TASKS) + 1}"
    rng = random.Random(f"rover {seed} {name}")
    kinds, keywords = KINDS[kind]
    turn, base = _made(rng.choice(kinds), rng)
    assert turn.scene is not None
    truth[name] = {"turns": [{"kind": turn.kind, "args": turn.args, "type": kind}]}
    if rng.random() < 0.5:
        target = _picture(out, f"{name}_target", turn.scene)
    else:
        target = None
    return {
        "id": name,
        "dimension": dimension,
        "reasoning_type": kind,
        "prompt": turn.text,
        "target_description": describe_scene(turn.scene),
        "keywords": keywords,
        "image": _picture(out, name, base),
        "target_image": target,
    }


def _puzzle(out: Path, number: int, seed: int, truth: dict[str, Any]) -> dict[str, Any]:
    problem = tuple(PUZZLES)[number % len(PUZZLES)]
    name = f"{problem}_{number // len(PUZZLES) + 1}"
    rng = random.Random(f"rover {seed} {name}")
    turn, base = _made(PUZZLES[problem], rng)
    helper = answers.helper_scene(TableRequest(turn.kind, turn.args, {}), {"image": base})
    told = {"kind": turn.kind, "args": turn.args, "type": problem, "answer": turn.answer}
    truth[name] = {"turns": [told, told]}
    return {
        "id": name,
        "problem_type": problem,
        "prompt": turn.text,
        "image": _picture(out, name, base),
        "image2": None,
        "example_image": None,
        "reasoning_image": _picture(out, f"{name}_reasoning", helper),
        "answer": turn.answer,
    }


def _made(kind: str, rng: random.Random) -> tuple[TableTurn, Scene]:
    """A request, or a question whose helper picture is not the table itself, about a table of its own."""
    while True:
        maker = DialogueMaker("", [start_scene([kind], rng)], rng)
        if not maker.try_turn(kind, 1):
            continue
        turn = maker.turns[-1]
        base = maker.inputs[0]
        if turn.scene is None and answers.helper_scene(TableRequest(turn.kind, turn.args, {}), {"image": base}) == base:
            continue
        if turn.scene is not None and not turn.scene.things():
            continue
        text = phrase_request(kind, turn.args, dict.fromkeys(turn.images, "the table"), rng)
        return TableTurn(kind, turn.args, turn.images, text, turn.image_number, turn.scene, turn.answer), base


def _picture(out: Path, name: str, scene: Scene) -> str:
    path = f"images/{name}.png"
    (out / path).write_bytes(encode_png(draw(scene)))
    return path
