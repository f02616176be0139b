"""A recipe for `weft build`: the dialogues that ask for memory, in the micro world, their images by a painter.

    weft build bench/memory_build.py:Memory --painter tabletop/faulty --model-opt painter.rate=.1 --seeds 800 \
      --out IMPURE
    weft train tiny --data IMPURE --view single-turn --world micro --out W

Nothing checks what the painter draws: with `tabletop/faulty` the dataset is impure, with `tabletop/oracle` it is not. A
turn is asked of the image that was drawn, so that a fault goes on into the turns after it. Questions keep the answer
that the script has."""

import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from weft.benchmarks.weave.data import load
from weft.building.context import Context
from weft.building.draft import Attempt, Draft, DraftTurn, Row
from weft.building.orders import Order, add_attempts, make_image
from weft.building.recipe import Dropped, Recipe, Role, Step
from weft.building.references import renumber_text
from weft.store.blobs import Blobs
from weft.types import Image, find_mentions
from weft_tabletop.exact.building import expected_scene
from weft_tabletop.make.dialogues import TableDialogue, TableTurn
from weft_tabletop.weaver.built_rows import read_scenes
from weft_tabletop.weaver.memory import make_memory_dialogue
from weft_tabletop.weaver.world import MICRO
from weft_tabletop.world.language import describe_scene, fill_wording, parse
from weft_tabletop.world.wordings import WORDINGS


class Memory(Recipe):
    name = "tabletop-memory"
    version = "1"
    title = "Dialogues that ask for memory, in the micro world; nothing checks the images"
    roles = (Role("painter", "image", "draws the first image and what the turns ask for", sees=True),)

    def steps(self) -> Sequence[Step]:
        return (Step("draw", draw_dialogue, "every image in its turn", ("painter",)),)


def make_dialogue(number: int) -> TableDialogue:
    return make_memory_dialogue(MICRO, random.Random(f"build {number}"))


async def draw_dialogue(row: Row, context: Context) -> Row:
    dialogue = make_dialogue(row.number)
    images: list[Image] = []
    attempts: list[Attempt] = []
    for order in list_orders(dialogue):
        shown = tuple(images[number - 1] for number in sorted(set(find_mentions(order))))
        numbers = {number: place for place, number in enumerate(sorted(set(find_mentions(order))), start=1)}
        wanted = Order(f"image {len(images) + 1}", renumber_text(order, numbers), shown, "edit" if shown else "draw")
        image, tried = await make_image(wanted, ["painter"], [], context)
        attempts += tried
        if image is None:
            raise Dropped("an image could not be drawn", row=add_attempts(row, attempts))
        images.append(image)
    draft = Draft("recall", tuple(images), tuple(describe_turns(dialogue)))
    return replace(add_attempts(row, attempts), draft=draft)


def list_orders(dialogue: TableDialogue) -> list[str]:
    """What the painter is asked, image by image, with the numbers of the dialogue."""
    inputs = [f"Draw {describe_scene(scene)}." for scene in dialogue.inputs]
    return [*inputs, *(write_order(turn) for turn in dialogue.turns if turn.image_number is not None)]


def write_order(turn: TableTurn) -> str:
    """What the user says; but what is put back is named, since the painter sees the latest image alone."""
    if turn.kind != "put back":
        return turn.text
    return fill_wording(WORDINGS["add"][0], turn.args, {"image": f"Image #{turn.images['image']}"})


def describe_turns(dialogue: TableDialogue) -> list[DraftTurn]:
    turns: list[DraftTurn] = []
    for turn in dialogue.turns:
        if turn.image_number is None:
            turns.append(DraftTurn(turn.text, turn.kind, answer=turn.answer))
        else:
            points = {"Text": f"This is done: {turn.text}"}
            turns.append(DraftTurn(turn.text, turn.kind, turn.image_number, key_points=points))
    return turns


def count_faults(data: Path) -> tuple[int, int]:
    """Return how many of the images that turns ask for are not what they ask of the images before, in the cells of the
    micro world; and how many images turns ask for."""
    wrong = 0
    asked = 0
    with tempfile.TemporaryDirectory() as folder:
        blobs = Blobs(Path(folder))
        for sample in load(data, blobs).samples:
            dialogue = make_dialogue(int(sample.id) - 1)
            by_digest = read_scenes(sample, blobs)
            scenes = {number: by_digest[image.digest] for number, image in enumerate(sample.images, start=1)}
            for turn in dialogue.turns:
                request = parse(write_order(turn))
                if turn.image_number is None or request is None:
                    continue
                expected = expected_scene(request, scenes)
                asked += 1
                wrong += MICRO.number_scene(expected) != MICRO.number_scene(scenes[turn.image_number])
    return wrong, asked
