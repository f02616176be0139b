"""Dialogues written in WEAVEBench's official files: `test/test.json`, `test/imgs/`, and the sidecar for the exact
judge."""

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weft.store.images import encode_png
from weft_tabletop.make.dialogues import DialogueMaker, TableDialogue, TableTurn, make_dialogue, start_scene
from weft_tabletop.make.domains import MEMORY, WEAVE, Mix
from weft_tabletop.make.sidecar import write_sidecar
from weft_tabletop.world.language import describe_scene, phrase_request
from weft_tabletop.world.scenes import draw


def weave_dialogues(samples: int, seed: int, mixes: Mapping[str, Mix] = WEAVE) -> list[TableDialogue]:
    """Domains in turn, 2 to 6 turns each."""
    domains = list(mixes)
    made: list[TableDialogue] = []
    for number in range(samples):
        domain = domains[number % len(domains)]
        rng = random.Random(f"{seed} {number} {domain}")
        made.append(
            make_dialogue(
                domain,
                mixes[domain].kinds,
                mixes[domain].questions,
                2 + (number // len(domains) + number) % 5,
                rng,
                inputs=mixes[domain].inputs,
            )
        )
    return made


def memory_dialogues(samples: int, seed: int) -> list[TableDialogue]:
    """Recall without a mention: something is removed, other things happen, and it is to be put back at the end."""
    made: list[TableDialogue] = []
    number = 0
    while len(made) < samples:
        rng = random.Random(f"memory {seed} {number}")
        number += 1
        dialogue = make_dialogue("recall", MEMORY.kinds, (), 4, rng)
        if dialogue.turns and any(turn.kind == "put back" for turn in dialogue.turns):
            made.append(dialogue)
    return made


def single_dialogues(samples: int, seed: int) -> list[TableDialogue]:
    """One turn each, two of three a picture and the third a question: every answer is judged by itself."""
    made: list[TableDialogue] = []
    domains = [name for name, mix in WEAVE.items() if mix.inputs]
    for number in range(samples):
        mix = WEAVE[domains[number % len(domains)]]
        rng = random.Random(f"single {seed} {number}")
        if number % 3 < 2 or not mix.questions:
            made.append(make_dialogue(domains[number % len(domains)], mix.kinds, (), 1, rng, inputs=mix.inputs))
            continue
        maker = DialogueMaker(
            domains[number % len(domains)], [start_scene(mix.kinds, rng) for _ in range(mix.inputs)], rng
        )
        for kind in rng.sample(mix.questions, len(mix.questions)) * 3:  # not each can be asked of one picture
            if maker.turns or maker.try_turn(kind):
                break
        else:
            maker.try_turn("count")
        made.append(maker.dialogue())
    return made


def write_weave(out: Path, dialogues: list[TableDialogue]) -> None:
    """`test/test.json`, `test/imgs/` and the sidecar."""
    folder = out / "test"
    (folder / "imgs").mkdir(parents=True, exist_ok=True)
    records: list[dict[str, Any]] = []
    truth: dict[str, Any] = {}
    for number, dialogue in enumerate(dialogues, start=1):
        names: list[str] = []
        for picture, scene in sorted(dialogue.scenes().items()):
            names.append(f"imgs/table{number}_{picture}.png")
            (folder / names[-1]).write_bytes(encode_png(draw(scene)))
        chats: list[dict[str, Any]] = []
        turns: list[dict[str, Any]] = []
        rng = random.Random(f"points {number} {dialogue.domain}")
        for turn in dialogue.turns:
            chats.append({"role": "user", "type": "text", "content": turn.text})
            reply: dict[str, Any] = {"role": "assistant"}
            if turn.image_number is None:
                chats.append({**reply, "type": "text", "content": turn.answer, "key_point": None})
                turns.append({"kind": turn.kind, "answer": turn.answer})
                continue
            points, checks = key_points(turn, dialogue, rng)
            chats.append({**reply, "type": "image", "content": f"Image #{turn.image_number}", "key_point": points})
            turns.append(
                {"kind": turn.kind, "args": turn.args, "points": checks, "cells": changed_cells(turn, dialogue)}
            )
        records.append({"idx": number, "domain": dialogue.domain, "images": names, "chats": chats})
        truth[str(number)] = {"turns": turns}
    (folder / "test.json").write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    write_sidecar(folder, truth)


def changed_cells(turn: TableTurn, dialogue: TableDialogue) -> list[str]:
    """Cells that the request changes where all before it went right."""
    before = dialogue.scenes().get(turn.images.get("image", 0))
    if before is None or turn.scene is None:
        return []
    return before.changed_cells(turn.scene)


def key_points(
    turn: TableTurn, dialogue: TableDialogue, rng: random.Random
) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """The key points as WEAVE writes them, and what each means: the request done, what comes from a second picture, a
    fact."""
    points: dict[str, str] = {}
    checks: list[dict[str, Any]] = []

    def name(number: int) -> str:
        if number <= len(dialogue.inputs):
            return f"GT #{number}"
        return f"Image #{number}"

    if "image" in turn.images:
        if turn.kind not in ("copy", "restore"):
            words = phrase_request(turn.kind, turn.args, {"image": "the table", "source": "the table"}, rng)
        else:
            words = ""
        if words:
            done = f"this is done: {words}"
        else:
            done = "it has what the other picture gives it"
        points[name(turn.images["image"])] = f"Compared to <image>, {done}"
        checks.append({"check": "done"})
    if "source" in turn.images:
        points[name(turn.images["source"])] = "What comes from <image> looks as it does there."
        checks.append({"check": "taken"})
    fact = facts(turn)
    if fact is not None and (not points or rng.random() < 0.5):
        points["Text"] = _in_words(fact, turn)
        checks.append({"check": "fact", **fact})
    return points, checks


def facts(turn: TableTurn) -> dict[str, Any] | None:
    """What the request alone says of the result: cells by name, and the background."""
    a = turn.args
    if turn.kind == "draw" and turn.scene is not None:
        return {"scene": str(turn.scene)}
    if turn.kind in ("add", "replace", "put back"):
        return {"cells": {a["cell"]: a["thing"]}}
    if turn.kind == "remove":
        return {"cells": {a["cell"]: None}}
    if turn.kind == "recolour":
        return {"cells": {a["cell"]: f"{a['colour']} {a['shape']}"}}
    if turn.kind == "move":
        return {"cells": {a["cell"]: None, a["to"]: a["thing"]}}
    if turn.kind == "steps":
        return {
            "cells": {a["row"] + column: thing for column, thing in zip("1234", a["things"].split(", "), strict=False)}
        }
    if turn.kind == "background":
        return {"background": a["background"]}
    return None


def _in_words(fact: Mapping[str, Any], turn: TableTurn) -> str:
    if "scene" in fact and turn.scene is not None:
        return f"The picture shows {describe_scene(turn.scene)}."
    if "background" in fact:
        return f"The background is {fact['background']}."
    cells: Mapping[str, str | None] = fact["cells"]
    return " ".join(f"At {cell} there is {('a ' + thing) if thing else 'nothing'}." for cell, thing in cells.items())
