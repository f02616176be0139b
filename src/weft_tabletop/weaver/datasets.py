"""Datasets about the micro world, in the benchmarks' own formats, for models that were trained in it."""

import random
from pathlib import Path

from msgspec.structs import replace

from weft_tabletop.make.weave import write_weave
from weft_tabletop.make.weaver import PROMPTS, QUESTION_KINDS, write_prompts
from weft_tabletop.weaver.memory import make_memory_dialogue
from weft_tabletop.weaver.tasks import question_args
from weft_tabletop.weaver.world import MICRO
from weft_tabletop.world.scenes import Scene, list_things

MICRO_PROMPTS = tuple(prompt for prompt in PROMPTS if prompt[0] in ("build", "draw", "question"))


def write_micro_weaver(out: Path, samples: int, seed: int) -> None:
    """WeaverBench's prompts: tables that are built object by object, single images, and questions."""
    write_prompts(out, samples, seed, MICRO_PROMPTS, _choose_content)


def write_micro_weave(out: Path, samples: int, seed: int) -> None:
    """WEAVE's dialogues, which ask for what earlier images showed."""
    made = [make_memory_dialogue(MICRO, random.Random(f"micro {seed} {number}")) for number in range(samples)]
    dialogues = [replace(dialogue, domain="recall") for dialogue in made]
    write_weave(out, dialogues)


def _choose_content(kind: str, rng: random.Random) -> tuple[dict[str, str], Scene | None]:
    if kind in QUESTION_KINDS:
        scene = MICRO.random_scene(rng)
        return question_args(kind, scene, MICRO, rng), scene
    scene = MICRO.random_scene(rng, 2 if kind == "build" else 1)
    args = {"background": scene.background, "things": list_things(scene)}
    if kind == "build":
        args["number"] = str(len(scene.things()))
    return args, None
