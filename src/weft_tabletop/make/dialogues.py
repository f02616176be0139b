"""Dialogues about tables: pictures to start from, then requests and questions in turn, each with its exact truth.

Everything is decided by one seeded generator. A request is always possible (nothing is removed from an empty cell),
changes something, and has one right result. Pictures are numbered as the dialogue brings them in: inputs first, then
outputs."""

import random
from collections.abc import Mapping, Sequence

from msgspec import Struct

from weft_tabletop.make.requests import MAKERS, random_scene
from weft_tabletop.world import answers
from weft_tabletop.world.language import QUESTIONS, TableRequest, phrase_request
from weft_tabletop.world.operations import COVER, OFF, ON, Operation
from weft_tabletop.world.scenes import CELLS, OBJECTS, Scene, Thing


class TableTurn(Struct, frozen=True):
    """One request: `image_number` is the number of the image it is to make, with `scene` its truth; a question has an
    `answer` instead."""

    kind: str
    args: Mapping[str, str]
    images: Mapping[str, int]
    text: str
    image_number: int | None = None
    scene: Scene | None = None
    answer: str = ""
    input_images: tuple[int, ...] = ()  # pictures that come with the request


class TableDialogue(Struct, frozen=True):
    domain: str
    inputs: tuple[Scene, ...]
    turns: tuple[TableTurn, ...]

    def scenes(self) -> dict[int, Scene]:
        made = dict(enumerate(self.inputs, start=1))
        made.update(
            {
                turn.image_number: turn.scene
                for turn in self.turns
                if turn.image_number is not None and turn.scene is not None
            }
        )
        return made


class DialogueMaker:
    """Grows one dialogue turn by turn."""

    def __init__(self, domain: str, inputs: Sequence[Scene], rng: random.Random) -> None:
        self.domain = domain
        self.inputs = tuple(inputs)
        self.rng = rng
        self.scenes: dict[int, Scene] = dict(enumerate(inputs, start=1))
        self.turns: list[TableTurn] = []
        self.removed: tuple[str, Thing] | None = None

    def dialogue(self) -> TableDialogue:
        return TableDialogue(self.domain, self.inputs, tuple(self.turns))

    def try_turn(self, kind: str, base: int | None = None) -> bool:
        """Add a turn of this kind, if one is possible here."""
        if not self.scenes and kind not in ("draw", "draw any"):
            return False
        if base is None and self.scenes:
            if self.rng.random() < 0.75:
                base = max(self.scenes)
            else:
                base = self.rng.choice(list(self.scenes))
        made = MAKERS[kind](self, base or 0)
        if made is None:
            return False
        args, images = made
        text = phrase_request(kind, args, {slot: self.name(number) for slot, number in images.items()}, self.rng)
        if kind in QUESTIONS:
            said = answers.answer(
                TableRequest(kind, args, {}), {slot: self.scenes[number] for slot, number in images.items()}
            )
            self.turns.append(TableTurn(kind, args, images, text, answer=said))
            return True
        before = self.scenes.get(images.get("image", 0), Scene("white"))
        after = Operation(kind, args).apply(before, self.scenes.get(images.get("source", 0)))
        if after == before:
            return False
        number = len(self.scenes) + 1
        if kind == "remove":
            self.removed = (args["cell"], before.cells[CELLS.index(args["cell"])] or Thing("red", "circle"))
        self.scenes[number] = after
        self.turns.append(TableTurn(kind, args, images, text, number, after))
        return True

    def name(self, number: int) -> str:
        """What the text calls a picture."""
        return f"Image #{number}"

    # what the makers choose from

    def objects_on(self, base: int) -> list[tuple[str, Thing]]:
        return list(self.scenes[base].things().items())

    def empty_cells(self, base: int) -> list[str]:
        return [cell for cell in CELLS if self.scenes[base].at(cell) is None]

    def other_object(self, thing: Thing | None = None) -> str:
        return str(self.rng.choice([one for one in OBJECTS if one != thing]))


def start_scene(kinds: Sequence[str], rng: random.Random) -> Scene:
    """A table on which the kinds asked for can be done."""
    scene = random_scene(rng)
    if "pattern" in kinds:
        first, second = rng.sample(OBJECTS, 2)
        row = rng.choice("abcd")
        scene = scene.put({row + "1": first, row + "2": second, row + "3": first, row + "4": None})
    if "steps" in kinds:
        scene = scene.put(dict.fromkeys([rng.choice("abcd") + column for column in "1234"]))
        row = rng.choice("abcd")
        scene = scene.put({row + column: None for column in "1234"})
    if "double" in kinds:
        cells = rng.sample(CELLS, rng.randint(4, 7))
        twice = rng.choice(OBJECTS)
        things = [twice] * rng.randint(1, 3) + rng.choices(OBJECTS, k=7)
        scene = Scene(scene.background).put(dict(zip(cells, things, strict=False)))
    if "sum" in kinds:
        scene = scene.put({rng.choice("abcd") + column: None for column in "1234"})
        rows = rng.sample("abcd", 4)
        counts = rng.choice(((1, 1), (1, 2), (2, 1), (2, 2), (1, 3), (3, 1), (0, 3), (4, 0), (0, 2)))
        cells = [row + column for row, count in zip(rows, counts, strict=False) for column in rng.sample("1234", count)]
        rest = [rows[2] + column for column in rng.sample("1234", rng.randint(0, 3))]
        scene = Scene(scene.background).put({cell: rng.choice(OBJECTS) for cell in (*cells, *rest)})
    if "switch" in kinds:
        cells = rng.sample(CELLS, rng.randint(2, 6))
        scene = Scene(scene.background).put({cell: rng.choice((ON, OFF)) for cell in cells})
    if "hidden" in kinds:
        half = random_scene(rng, 3, 8)
        way = rng.choice(("left to right", "top to bottom"))
        kept = {
            cell: thing
            for cell, thing in half.things().items()
            if (cell[1] in "12" if way == "left to right" else cell[0] in "ab")
        }
        whole = Scene(half.background).put(kept or {"b2": rng.choice(OBJECTS)})
        whole = whole.put(dict(Operation("mirror", {"way": way}).apply(whole).things()))
        scene = whole.put({rng.choice([*whole.things()]): COVER})
    if scene.things():
        return scene
    return scene.put({"b2": rng.choice(OBJECTS)})


def make_dialogue(
    domain: str, kinds: Sequence[str], questions: Sequence[str], turns: int, rng: random.Random, *, inputs: int = 1
) -> TableDialogue:
    """A dialogue of so many turns, about a quarter of them questions; the first makes a picture."""
    maker = DialogueMaker(domain, [start_scene(kinds, rng) for _ in range(inputs)], rng)
    for _ in range(200):
        if len(maker.turns) == turns:
            break
        ask = maker.turns and questions and rng.random() < 0.27
        maker.try_turn(rng.choice(questions if ask else kinds))
    return maker.dialogue()
