"""MM-Vet on the tabletop: a table, a question about it, and the right answer, in the format of its records.

Each kind of question stands for the capabilities that it needs. Some right answers have several elements."""

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from weft_tabletop.make.dialogues import DialogueMaker, TableTurn
from weft_tabletop.make.files import write_named_image
from weft_tabletop.make.sidecar import write_sidecar
from weft_tabletop.make.start_scenes import start_scene
from weft_tabletop.world.language import phrase_request
from weft_tabletop.world.scenes import Scene

CAPABILITIES: Mapping[str, tuple[str, ...]] = {  # by kind of question
    "what": ("rec", "spat"),
    "count": ("rec", "math"),
    "colour": ("rec", "spat"),
    "which": ("rec", "ocr"),
}


def write_mmvet(out: Path, samples: int, seed: int) -> None:
    """Write so many questions, the kinds in turn: `mm-vet.json`, `images/`, and the sidecar."""
    (out / "images").mkdir(parents=True, exist_ok=True)
    kinds = tuple(CAPABILITIES)
    records: dict[str, Any] = {}
    references: dict[str, Any] = {}
    for number in range(samples):
        kind = kinds[number % len(kinds)]
        rng = random.Random(f"mmvet {seed} {kind} {number // len(kinds)}")
        turn, scene = _make_question(kind, rng)
        sample_id = f"v1_{number}"
        path = write_named_image(out, sample_id, scene)
        records[sample_id] = {
            "imagename": path.removeprefix("images/"),
            "question": turn.text,
            "answer": _write_answer(kind, turn.answer),
            "capability": list(CAPABILITIES[kind]),
        }
        references[sample_id] = {"turns": [{"kind": kind, "answer": turn.answer}]}
    (out / "mm-vet.json").write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    write_sidecar(out, references)


def _make_question(kind: str, rng: random.Random) -> tuple[TableTurn, Scene]:
    """Make a question of this kind, and the table that it is about."""
    while True:
        maker = DialogueMaker("", [start_scene((), rng)], rng)
        if maker.try_turn(kind, 1):
            turn = maker.turns[-1]
            text = phrase_request(kind, turn.args, dict.fromkeys(turn.images, "the table"), rng)
            return replace(turn, text=text), maker.inputs[0]


def _write_answer(kind: str, answer: str) -> str:
    """Return an answer with the marks of MM-Vet: letters are each needed."""
    return "<AND>".join(answer) if kind == "which" else answer
