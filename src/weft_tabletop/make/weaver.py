"""WeaverBench on the tabletop: tables that are built thing by thing, tables that drift picture by picture, single
pictures, and questions, in WeaverBench's format with the sidecar. Every picture and every sentence that is due follows
from the prompt, and is the reference."""

import itertools
import json
import random
from pathlib import Path
from typing import Any

from weft.store.images import encode_png
from weft_tabletop.make.dialogues import DialogueMaker, start_scene
from weft_tabletop.make.requests import MAKERS
from weft_tabletop.make.sidecar import write_sidecar
from weft_tabletop.world import answers
from weft_tabletop.world.language import QUESTIONS, WORDINGS, TableRequest, wording
from weft_tabletop.world.operations import Operation, frames
from weft_tabletop.world.scenes import Scene, draw

# what is asked, in which of its wordings (the first of `build` says `exactly`), and where a prompt of that kind belongs
KINDS = (
    ("build", 0, "Education Tutorial"),
    ("film", 0, "Document Guides"),
    ("build", 1, "Daily Life"),
    ("film", 1, "Reasoning"),
    ("draw", 0, "Art Creation"),
    ("question", 0, "Encyclopedic Knowledge"),
)
ASKED = ("count", "what", "colour")


def write_weaver(out: Path, samples: int, seed: int) -> None:
    (out / "images").mkdir(parents=True, exist_ok=True)
    truth: dict[str, Any] = {}
    lines = [_prompt(out, number, seed, truth) for number in range(samples)]
    (out / "weaverbench.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    write_sidecar(out, truth)


def _prompt(out: Path, number: int, seed: int, truth: dict[str, Any]) -> dict[str, Any]:
    what, which, category = KINDS[number % len(KINDS)]
    name = f"{what}-{number // len(KINDS) + 1:03}" + (
        "-free" if (what, which) == ("build", 1) else "-told" if which else ""
    )
    rng = random.Random(f"weaver {seed} {name}")
    if what == "question":
        kind = rng.choice(ASKED)
    else:
        kind = what
    args, base = _made(kind, rng)
    text = wording(WORDINGS[kind][which], args, {"image": "the table"})
    asked: list[dict[str, str]] = [{"text": text}]
    if base is not None:
        asked.append({"image": _picture(out, f"{name}-i-0", base)})
    due = steps(kind, args, base)
    output: list[dict[str, str]] = []
    for at, (words, scene) in enumerate(due):
        output += [*([{"text": words}] if words else []), {"image": _picture(out, f"{name}-o-{at}", scene)}]
    if kind in QUESTIONS:
        answer = answers.answer(TableRequest(kind, args, {}), {"image": base or Scene("white")})
    else:
        answer = ""
    truth[name] = {"turns": [{"kind": kind, "args": args, **({"answer": answer} if answer else {})}]}
    if (what, which) == ("build", 1):
        required = None
    else:
        required = len(due)
    return {
        "id": name,
        "category": category,
        "input": asked,
        "required_images": required,
        "length": "short",
        "output": output or [{"text": answer}],
    }


def _made(kind: str, rng: random.Random) -> tuple[dict[str, str], Scene | None]:
    """Arguments, and the table that they are about, if any. A film shows something move in each of its pictures."""
    while True:
        if kind in ("build", "draw"):
            base = None
        else:
            base = start_scene([kind], rng)
        made = MAKERS[kind](DialogueMaker("", [base] if base else [], rng), 1 if base else 0)
        if made is None:
            continue
        scenes = [base, *(scene for _, scene in steps(kind, made[0], base))]
        if kind != "film" or all(a != b for a, b in itertools.pairwise(scenes)):
            return made[0], base


def steps(kind: str, args: dict[str, str], base: Scene | None) -> list[tuple[str, Scene]]:
    """What is due: what each step says, and what it shows."""
    if kind in QUESTIONS:
        return []
    if kind == "draw":
        return [("", Operation(kind, args).apply(Scene("white")))]
    return frames(kind, args, base)


def _picture(out: Path, name: str, scene: Scene) -> str:
    (out / "images" / f"{name}.png").write_bytes(encode_png(draw(scene)))
    return f"images/{name}.png"
