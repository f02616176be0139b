"""What the oracle writes when a recipe asks it: scripts, edits with their reverse, and questions, as JSON.

Everything follows from the question's material, so that the same question has the same answer."""

import random
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from weft.store.blobs import Blobs
from weft.types import Image, Question, Text
from weft_tabletop.make.dialogues import DialogueMaker
from weft_tabletop.make.requests import random_scene
from weft_tabletop.world.language import phrase_request
from weft_tabletop.world.operations import Operation
from weft_tabletop.world.readings import read_image
from weft_tabletop.world.scenes import BACKGROUNDS, CELLS, OBJECTS, Scene, list_things

Script = dict[str, Any]
BENCHMARK = "build"
KINDS = {"add": "add", "remove": "remove", "replace": "replace", "colour": "recolour", "background": "background"}
BETWEEN = ("add", "recolour", "background", "replace")  # what may happen while something is gone
DONE = "Compared to <image>, this is done: {}"
TAKEN = "What comes from <image> looks as it does there."
MAX_TRIES = 100
SEQUENCE_KINDS = {"move": "action", "copy": "change", "background": "place"}
TABLES = {"image": "the table", "source": "the table"}
WHITE = Scene("white")


def answer_script(question: Question, blobs: Blobs, *, is_wrong: Callable[[random.Random], bool]) -> Script | None:
    """Return what is asked for; None for a question that is no recipe's."""
    if question.turn_ref.benchmark != BENCHMARK or question.metrics[0] not in WRITERS:
        return None
    rng = random.Random(f"{question.metrics[0]} {msgspec.json.encode(question.material).decode()}")
    texts = {name: parts[0].text for name, parts in question.material.items() if isinstance(parts[0], Text)}
    scene = WHITE
    for part in question.material.get("image", ()):
        if isinstance(part, Image):
            scene = read_image(part, blobs).scene
    return WRITERS[question.metrics[0]](texts, scene, rng, is_wrong(rng))


def _write_fusion(texts: Mapping[str, str], scene: Scene, rng: random.Random, wrong: bool) -> Script:
    """Two tables, and something copied from the first to the second. A wrong one names an image that is not there."""
    scenes = [random_scene(rng, 3, 7) for _ in range(2)]
    captions = [_caption(scene, rng) for scene in scenes]
    maker = DialogueMaker("fusion", scenes, rng)
    for _ in range(MAX_TRIES):
        if maker.try_turn("copy", 2):
            break
    turn = maker.turns[-1]
    text = turn.text.replace("Image #1", "Image #3") if wrong else turn.text
    points = [
        {"image": turn.images["image"], "requirement": DONE.format("it has what the other table gives it")},
        {"image": turn.images["source"], "requirement": TAKEN},
    ]
    return {"captions": captions, "fusion": text, "points": points}


def _write_edit(texts: Mapping[str, str], scene: Scene, rng: random.Random, wrong: bool) -> Script:
    """An edit of the table, and what undoes it. A wrong one undoes something else."""
    maker = DialogueMaker("edit", [scene], rng)
    wanted = KINDS.get(texts.get("kind", ""), "add")
    for kind in (wanted, *KINDS.values()):
        if maker.try_turn(kind, 1):
            break
    turn = maker.turns[-1]
    kind, args = invert(turn.kind, turn.args, scene)
    if wrong and "cell" in args:
        args = {**args, "cell": rng.choice([cell for cell in ("a1", "b2", "c3", "d4") if cell != args["cell"]])}
    reverse = phrase_request(kind, args, {"image": "Image #1"}, rng)
    words = phrase_request(kind, args, {"image": "the table"}, rng)
    return {"instruction": turn.text, "reverse": reverse, "requirement": DONE.format(words)}


def invert(kind: str, args: Mapping[str, str], before: Scene) -> tuple[str, dict[str, str]]:
    """Return the request that undoes a request that was made of this scene."""
    if kind == "background":
        return "background", {"background": before.background}
    cell = args["cell"]
    thing = before.at(cell)
    if kind == "add" or thing is None:
        return "remove", {"cell": cell, "thing": args["thing"]}
    if kind == "remove":
        return "add", {"cell": cell, "thing": str(thing)}
    if kind == "recolour":
        return "recolour", {"cell": cell, "shape": thing.shape, "colour": thing.colour}
    return "replace", {"cell": cell, "thing": str(thing), "what": args["thing"]}


def _write_question(texts: Mapping[str, str], scene: Scene, rng: random.Random, wrong: bool) -> Script:
    maker = DialogueMaker("edit", [scene], rng)
    for _ in range(MAX_TRIES):
        if maker.try_turn(rng.choice(("what", "count")), 1):
            break
    turn = maker.turns[-1]
    return {"question": turn.text, "answer": str(rng.choice(OBJECTS)) if wrong else turn.answer}


def _write_recall(texts: Mapping[str, str], scene: Scene, rng: random.Random, wrong: bool) -> Script:
    """Rounds of which the last restores what the first took. In a wrong one, it was put back before."""
    count = int(texts.get("rounds", "4"))
    maker = _make_removal(count, rng)
    rounds: list[Script] = []
    for turn in maker.turns:
        words = phrase_request(turn.kind, turn.args, {"image": "the table"}, rng)
        point = {"image": turn.images["image"], "requirement": DONE.format(words)}
        rounds.append({"kind": _name_kind(turn.kind), "instruction": turn.text, "points": [point]})
    latest = len(maker.scenes)
    images = {"image": f"Image #{latest}", "source": "Image #1"}
    points = [
        {"image": latest, "requirement": DONE.format("it has what the other table gives it")},
        {"image": 1, "requirement": TAKEN},
    ]
    rounds.append({"kind": "restore", "instruction": phrase_request("restore", {}, images, rng), "points": points})
    if wrong:
        kind, args = invert("remove", maker.turns[0].args, maker.inputs[0])
        text = phrase_request(kind, args, {"image": f"Image #{latest - 1}"}, rng)
        rounds[-2] = {**rounds[-2], "kind": "add", "instruction": text}
    caption = _caption(maker.inputs[0], rng)
    return {"caption": caption, "rounds": rounds, "removed_in": 1, "restored_in": count}


def _make_removal(count: int, rng: random.Random) -> DialogueMaker:
    """Make a dialogue of so many rounds but for the last, which is to bring back what the first took."""
    for _ in range(MAX_TRIES):
        maker = DialogueMaker("recall", [random_scene(rng, 3, 7)], rng)
        kinds = ["remove", *rng.choices(BETWEEN, k=count - 2)]
        if all(maker.try_turn(kind, number) for number, kind in enumerate(kinds, start=1)) and _can_restore(maker):
            return maker
    raise AssertionError("no table can be found from which something can be removed")


def _can_restore(maker: DialogueMaker) -> bool:
    """Whether restoring what the first image has brings back just what was removed."""
    latest = maker.scenes[max(maker.scenes)]
    missing = [cell for cell in maker.scenes[1].things() if latest.at(cell) is None]
    return maker.last_removed is not None and missing == [maker.last_removed[0]]


def _caption(scene: Scene, rng: random.Random) -> str:
    return phrase_request("draw", {"background": scene.background, "things": list_things(scene)}, {}, rng)


def _name_kind(kind: str) -> str:
    return "colour" if kind == "recolour" else kind


def _write_sequence(texts: Mapping[str, str], scene: Scene, rng: random.Random, wrong: bool) -> Script:
    """Steps in which one thing goes from place to place, and one that takes something from the first image. In a wrong
    one the last step forgets all others."""
    count = int(texts.get("rounds", "4"))
    start = _choose_cast(rng)
    cell, character = rng.choice(list(start.things().items()))
    scenes = [start]
    rounds: list[Script] = []
    for number in range(1, count + 1):
        base = scenes[-1]
        if number % 2:
            kind, args = "move", {"thing": str(character), "cell": cell, "to": _choose_empty(base, rng)}
            cell = args["to"]
        elif number == 2:
            other = rng.choice([place for place, thing in start.things().items() if thing != character])
            kind, args = "copy", {"cell": other, "to": _choose_empty(base, rng)}
        else:
            kind, args = (
                "background",
                {"background": rng.choice([one for one in BACKGROUNDS if one != base.background])},
            )
        scenes.append(Operation(kind, args).apply(base, start))
        images = {"image": f"Image #{1 if wrong and number == count else number}"}
        points = [{"image": number, "requirement": DONE.format(phrase_request(kind, args, TABLES, rng))}]
        if kind == "copy":
            images["source"] = "Image #1"
            points = [
                {"image": number, "requirement": DONE.format("it has what the other table gives it")},
                {"image": 1, "requirement": TAKEN},
            ]
        text = phrase_request(kind, args, images, rng)
        rounds.append({"kind": SEQUENCE_KINDS[kind], "instruction": text, "points": points})
    return {"character": str(character), "caption": _caption(start, rng), "rounds": rounds}


def _choose_cast(rng: random.Random) -> Scene:
    """Return a table with different things, so that each is known by its name."""
    for _ in range(MAX_TRIES):
        scene = random_scene(rng, 3, 7)
        things = [str(thing) for thing in scene.things().values()]
        if len(set(things)) == len(things):
            return scene
    raise AssertionError("no table can be found on which all things differ")


def _choose_empty(scene: Scene, rng: random.Random) -> str:
    return rng.choice([cell for cell in CELLS if scene.at(cell) is None])


WRITERS: dict[str, Callable[[Mapping[str, str], Scene, random.Random, bool], Script]] = {
    "fusion script": _write_fusion,
    "edit": _write_edit,
    "question": _write_question,
    "recall script": _write_recall,
    "sequence script": _write_sequence,
}
