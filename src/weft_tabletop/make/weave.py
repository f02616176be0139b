"""Dialogues written in WEAVEBench's official files: `test/test.json`, `test/imgs/`, and the sidecar for the exact
judge."""

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weft_tabletop.make.dialogues import DialogueMaker, TableDialogue, TableTurn, make_dialogue
from weft_tabletop.make.domains import MEMORY, WEAVE, RequestKinds
from weft_tabletop.make.files import write_image
from weft_tabletop.make.sidecar import write_sidecar
from weft_tabletop.make.start_scenes import start_scene
from weft_tabletop.world.language import describe_scene, phrase_request
from weft_tabletop.world.scenes import COLUMNS

FACT_RATE = 0.5  # how often a fact is a key point beside others
QUESTION_ATTEMPTS = 3  # at each kind of question, before a count is asked for


def weave_dialogues(samples: int, seed: int, mixes: Mapping[str, RequestKinds] = WEAVE) -> list[TableDialogue]:
    """Make dialogues of 2 to 6 turns, the domains in turn."""
    domains = list(mixes)
    dialogues: list[TableDialogue] = []
    for number in range(samples):
        domain = domains[number % len(domains)]
        mix = mixes[domain]
        turns = 2 + (number // len(domains) + number) % 5
        rng = random.Random(f"{seed} {number} {domain}")
        dialogues.append(make_dialogue(domain, mix.kinds, mix.questions, turns, rng, inputs=mix.inputs))
    return dialogues


def memory_dialogues(samples: int, seed: int) -> list[TableDialogue]:
    """Make dialogues that recall without a mention: something is removed, other things happen, and it is to be put
    back."""
    dialogues: list[TableDialogue] = []
    attempt = 0
    while len(dialogues) < samples:
        rng = random.Random(f"memory {seed} {attempt}")
        attempt += 1
        dialogue = make_dialogue("recall", MEMORY.kinds, (), 4, rng)
        if any(turn.kind == "put back" for turn in dialogue.turns):
            dialogues.append(dialogue)
    return dialogues


def single_dialogues(samples: int, seed: int) -> list[TableDialogue]:
    """Make dialogues of one turn each, two of three an image and the third a question: every output is judged by
    itself."""
    dialogues: list[TableDialogue] = []
    domains = [name for name, mix in WEAVE.items() if mix.inputs]
    for number in range(samples):
        domain = domains[number % len(domains)]
        mix = WEAVE[domain]
        rng = random.Random(f"single {seed} {number}")
        if number % 3 == 2 and mix.questions:
            dialogues.append(_make_question(domain, mix, rng))
        else:
            dialogues.append(make_dialogue(domain, mix.kinds, (), 1, rng, inputs=mix.inputs))
    return dialogues


def _make_question(domain: str, mix: RequestKinds, rng: random.Random) -> TableDialogue:
    """Make a dialogue of one question. Not every kind of question can be asked about every image."""
    maker = DialogueMaker(domain, [start_scene(mix.kinds, rng) for _ in range(mix.inputs)], rng)
    kinds = rng.sample(mix.questions, len(mix.questions)) * QUESTION_ATTEMPTS
    for kind in [*kinds, "count"]:
        if maker.try_turn(kind):
            break
    return maker.build()


def write_weave(out: Path, dialogues: list[TableDialogue]) -> None:
    """Write the official file, the images and the sidecar."""
    folder = out / "test"
    (folder / "imgs").mkdir(parents=True, exist_ok=True)
    records: list[dict[str, Any]] = []
    references: dict[str, Any] = {}
    for number, dialogue in enumerate(dialogues, start=1):
        images: list[str] = []
        for image_number, scene in sorted(dialogue.scenes().items()):
            images.append(f"imgs/table{number}_{image_number}.png")
            write_image(folder / images[-1], scene)
        chats: list[dict[str, Any]] = []
        turns: list[dict[str, Any]] = []
        rng = random.Random(f"points {number} {dialogue.domain}")
        for turn in dialogue.turns:
            reply, reference = _write_reply(turn, dialogue, rng)
            chats += [{"role": "user", "type": "text", "content": turn.text}, reply]
            turns.append(reference)
        records.append({"idx": number, "domain": dialogue.domain, "images": images, "chats": chats})
        references[str(number)] = {"turns": turns}
    (folder / "test.json").write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    write_sidecar(folder, references)


def _write_reply(turn: TableTurn, dialogue: TableDialogue, rng: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the reference reply as WEAVE writes it, and what the sidecar says of the turn."""
    reply: dict[str, Any] = {"role": "assistant"}
    if turn.image_number is None:
        reply |= {"type": "text", "content": turn.answer, "key_point": None}
        return reply, {"kind": turn.kind, "answer": turn.answer}
    points, checks = key_points(turn, dialogue, rng)
    reply |= {"type": "image", "content": f"Image #{turn.image_number}", "key_point": points}
    cells = _changed_cells(turn, dialogue)
    return reply, {"kind": turn.kind, "args": turn.args, "points": checks, "cells": cells}


def _changed_cells(turn: TableTurn, dialogue: TableDialogue) -> list[str]:
    """The cells that the request changes if all outputs before it are right."""
    before = dialogue.scenes().get(turn.images.get("image", 0))
    if before is None or turn.scene is None:
        return []
    return before.changed_cells(turn.scene)


def key_points(
    turn: TableTurn, dialogue: TableDialogue, rng: random.Random
) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Return the key points as WEAVE writes them, and what each means.

    At most three: the request is done, something comes from a second image, a fact about the result.
    """
    points: dict[str, str] = {}
    checks: list[dict[str, Any]] = []
    if "image" in turn.images:
        name = _reference_name(turn.images["image"], dialogue)
        points[name] = f"Compared to <image>, {_say_what_is_done(turn, rng)}"
        checks.append({"check": "done"})
    if "source" in turn.images:
        name = _reference_name(turn.images["source"], dialogue)
        points[name] = "What comes from <image> looks as it does there."
        checks.append({"check": "taken"})
    fact = find_fact(turn)
    if fact is not None and (not points or rng.random() < FACT_RATE):
        points["Text"] = _say_fact(fact, turn)
        checks.append({"check": "fact", **fact})
    return points, checks


def _reference_name(number: int, dialogue: TableDialogue) -> str:
    """What WEAVE calls an image in its key points: inputs and outputs have different names."""
    if number <= len(dialogue.inputs):
        return f"GT #{number}"
    return f"Image #{number}"


def _say_what_is_done(turn: TableTurn, rng: random.Random) -> str:
    if turn.kind in ("copy", "restore"):
        return "it has what the other picture gives it"
    words = phrase_request(turn.kind, turn.args, {"image": "the table", "source": "the table"}, rng)
    return f"this is done: {words}"


def find_fact(turn: TableTurn) -> dict[str, Any] | None:
    """What the request alone says of the result: a scene, cells by name, or the background; None if it says nothing."""
    args = turn.args
    if turn.kind == "draw" and turn.scene is not None:
        return {"scene": str(turn.scene)}
    if turn.kind in ("add", "replace", "put back"):
        return {"cells": {args["cell"]: args["thing"]}}
    if turn.kind == "remove":
        return {"cells": {args["cell"]: None}}
    if turn.kind == "recolour":
        return {"cells": {args["cell"]: f"{args['colour']} {args['shape']}"}}
    if turn.kind == "move":
        return {"cells": {args["cell"]: None, args["to"]: args["thing"]}}
    if turn.kind == "steps":
        things = args["things"].split(", ")
        return {"cells": {args["row"] + column: thing for column, thing in zip(COLUMNS, things, strict=False)}}
    if turn.kind == "background":
        return {"background": args["background"]}
    return None


def _say_fact(fact: Mapping[str, Any], turn: TableTurn) -> str:
    if "scene" in fact and turn.scene is not None:
        return f"The picture shows {describe_scene(turn.scene)}."
    if "background" in fact:
        return f"The background is {fact['background']}."
    sentences: list[str] = []
    for cell, thing in fact["cells"].items():
        content = f"a {thing}" if thing else "nothing"
        sentences.append(f"At {cell} there is {content}.")
    return " ".join(sentences)
