"""What planner and visualizer are asked: one request of each kind as a Sample, with the orders of a good planner.

words       a question about a table in words       image     a question about an image
draw        an image from words                     edit      an image from another one
copy        an image from two others                build, film   documents of several images"""

import random
from collections.abc import Callable

from msgspec import Struct

from weft.training.views import DrawingOrder
from weft.types import Image, Part, Sample, Text, Turn
from weft_tabletop.tiny.corpus import SceneImages
from weft_tabletop.weaver.world import TableWorld
from weft_tabletop.world import answers
from weft_tabletop.world.language import TableRequest, describe_scene, fill_wording, phrase_request
from weft_tabletop.world.operations import Operation, build_frames
from weft_tabletop.world.scenes import Scene, list_things
from weft_tabletop.world.wordings import WORDINGS

UNDERSTANDING = ("words", "image")
IMAGES = ("draw", "edit", "copy")
QUESTION_KINDS = ("what", "colour", "count")
EDIT_KINDS = ("add", "remove", "recolour", "move", "background")


class Task(Struct, frozen=True):
    """A request with its reference, as a sample of one turn. `scenes` are those of its images, by digest."""

    kind: str
    sample: Sample
    orders: tuple[DrawingOrder, ...]
    scenes: SceneImages
    answer: str = ""

    @property
    def images(self) -> int:
        """How many images the reply has."""
        return len(self.orders)


def make_task(kind: str, world: TableWorld, rng: random.Random) -> Task:
    return MAKERS[kind](kind, world, rng)


def _question(kind: str, world: TableWorld, rng: random.Random) -> Task:
    scene = world.random_scene(rng)
    asked = rng.choice(QUESTION_KINDS)
    args = question_args(asked, scene, world, rng)
    images = SceneImages()
    answer = answers.answer(TableRequest(asked, args, {}), {"image": scene})
    if kind == "words":
        text = f"{describe_scene(scene)}. {phrase_request(asked, args, {'image': 'the table'}, rng)}"
        inputs: tuple[Image, ...] = ()
    else:
        text = phrase_request(asked, args, {"image": "Image #1"}, rng)
        inputs = (images(scene),)
    sample = _sample(text, inputs, (Text(answer),), "text")
    return Task(kind, sample, (), images, answer)


def question_args(kind: str, scene: Scene, world: TableWorld, rng: random.Random) -> dict[str, str]:
    """What a question is about: something that is on the table, or sometimes is not."""
    cell, thing = rng.choice(list(scene.things().items()))
    if kind == "count":
        counted = thing if rng.random() < 0.5 else rng.choice(world.things)
        return {"thing": str(counted)}
    if kind == "colour":
        return {"cell": cell, "shape": thing.shape}
    return {"cell": cell if rng.random() < 0.7 else rng.choice(world.cells)}


def _draw(kind: str, world: TableWorld, rng: random.Random) -> Task:
    scene = world.random_scene(rng)
    args = {"background": scene.background, "things": list_things(scene)}
    images = SceneImages()
    text = phrase_request("draw", args, {}, rng)
    return Task(kind, _sample(text, (), (images(scene),)), (_whole_order(scene),), images)


def _whole_order(scene: Scene) -> DrawingOrder:
    return DrawingOrder(f"Draw {describe_scene(scene)}.")


def _edit(kind: str, world: TableWorld, rng: random.Random) -> Task:
    while True:
        base = world.random_scene(rng)
        name = rng.choice(EDIT_KINDS)
        args = edit_args(name, base, world, rng)
        if args is None:
            continue
        after = Operation(name, args).apply(base)
        if after == base:
            continue
        images = SceneImages()
        text = phrase_request(name, args, {"image": "Image #1"}, rng)
        order = DrawingOrder(fill_wording(WORDINGS[name][0], args, {"image": "the table"}), sees_request=True)
        return Task(kind, _sample(text, (images(base),), (images(after),)), (order,), images)


def edit_args(kind: str, base: Scene, world: TableWorld, rng: random.Random) -> dict[str, str] | None:
    if kind == "background":
        return {"background": rng.choice(world.backgrounds)}
    empty = [cell for cell in world.cells if base.at(cell) is None]
    cell, thing = rng.choice(list(base.things().items()))
    if kind == "remove":
        return {"cell": cell, "thing": str(thing)}
    if kind == "recolour":
        return {"cell": cell, "shape": thing.shape, "colour": rng.choice(world.things).colour}
    if not empty:
        return None
    if kind == "add":
        return {"cell": rng.choice(empty), "thing": str(rng.choice(world.things))}
    return {"cell": cell, "thing": str(thing), "to": rng.choice(empty)}


def _copy(kind: str, world: TableWorld, rng: random.Random) -> Task:
    while True:
        source = world.random_scene(rng)
        base = world.random_scene(rng)
        args = {"cell": rng.choice(list(source.things())), "to": rng.choice(world.cells)}
        after = Operation("copy", args).apply(base, source)
        if after == base or source == base:
            continue
        images = SceneImages()
        names = {"source": "Image #1", "image": "Image #2"}
        text = phrase_request("copy", args, names, rng)
        order = DrawingOrder(fill_wording(WORDINGS["copy"][0], args, names), sees_request=True)
        return Task(kind, _sample(text, (images(source), images(base)), (images(after),)), (order,), images)


def _document(kind: str, world: TableWorld, rng: random.Random) -> Task:
    images = SceneImages()
    base: Scene | None = None
    inputs: tuple[Image, ...] = ()
    if kind == "film":
        base = world.random_scene(rng, 2)
        args = {"number": rng.choice("23"), "side": rng.choice(("left", "right"))}
        inputs = (images(base),)
    else:
        scene = world.random_scene(rng, 2, min(5, world.most))
        number = str(len(scene.things()))
        args = {"background": scene.background, "number": number, "things": list_things(scene)}
    parts: list[Part] = []
    orders: list[DrawingOrder] = []
    for caption, scene in build_frames(kind, args, base):
        parts += [Text(caption), images(scene)]
        orders.append(_whole_order(scene))
    text = phrase_request(kind, args, {"image": "Image #1"}, rng)
    return Task(kind, _sample(text, inputs, tuple(parts), "interleaved"), tuple(orders), images)


def _sample(text: str, inputs: tuple[Image, ...], reference: tuple[Part, ...], modality: str = "image") -> Sample:
    number = len(inputs) + 1 if modality == "image" else None
    images = (*inputs, reference[0]) if modality == "image" else inputs
    turn = Turn(0, (Text(text),), modality, reference, number)  # type: ignore[arg-type]
    return Sample("s", (turn,), images)  # type: ignore[arg-type]


MAKERS: dict[str, Callable[[str, TableWorld, random.Random], Task]] = {
    **dict.fromkeys(UNDERSTANDING, _question),
    "draw": _draw,
    "edit": _edit,
    "copy": _copy,
    **dict.fromkeys(("build", "film"), _document),
}
