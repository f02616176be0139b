"""Dialogues about tables: images to start from, then requests and questions in turn, each with its exact reference.

Everything is decided by one seeded generator. A request is always possible (nothing is removed from an empty cell),
changes something, and has one right result. Images are numbered as the dialogue brings them in: inputs first, then
outputs."""

import random
from collections.abc import Mapping, Sequence

from msgspec import Struct

from weft_tabletop.make.questions import MAKERS
from weft_tabletop.make.start_scenes import start_scene
from weft_tabletop.world import answers
from weft_tabletop.world.language import TableRequest, phrase_request
from weft_tabletop.world.operations import Operation
from weft_tabletop.world.scenes import CELLS, OBJECTS, Scene, Thing
from weft_tabletop.world.wordings import QUESTIONS

LATEST_RATE = 0.75  # how often a request is about the latest image
QUESTION_RATE = 0.27
MAX_ATTEMPTS = 200  # at turns, for one dialogue


class TableTurn(Struct, frozen=True):
    """One request or question.

    A request has the number of the image that it asks for, and its `scene` as reference. A question has an `answer`.
    """

    kind: str
    args: Mapping[str, str]
    images: Mapping[str, int]  # the images it is about, by slot
    text: str
    image_number: int | None = None
    scene: Scene | None = None
    answer: str = ""
    input_images: tuple[int, ...] = ()  # images that come with the request


class TableDialogue(Struct, frozen=True):
    domain: str
    inputs: tuple[Scene, ...]
    turns: tuple[TableTurn, ...]

    def scenes(self) -> dict[int, Scene]:
        """All scenes by image number: the inputs, and the references of the outputs."""
        scenes = dict(enumerate(self.inputs, start=1))
        for turn in self.turns:
            if turn.image_number is not None and turn.scene is not None:
                scenes[turn.image_number] = turn.scene
        return scenes


class DialogueMaker:
    """Grows one dialogue turn by turn."""

    def __init__(self, domain: str, inputs: Sequence[Scene], rng: random.Random) -> None:
        self.domain = domain
        self.inputs = tuple(inputs)
        self.rng = rng
        self.scenes: dict[int, Scene] = dict(enumerate(inputs, start=1))
        self.turns: list[TableTurn] = []
        self.last_removed: tuple[str, Thing] | None = None  # the cell, and what was in it

    def build(self) -> TableDialogue:
        return TableDialogue(self.domain, self.inputs, tuple(self.turns))

    def try_turn(self, kind: str, base: int | None = None) -> bool:
        """Add a turn of this kind, about the image `base` if one is given. Return False if it is not possible here."""
        if not self.scenes and kind not in ("draw", "draw any"):
            return False
        if base is None and self.scenes:
            base = self._choose_base()
        content = MAKERS[kind](self, base or 0)
        if content is None:
            return False
        args, images = content
        names = {slot: self.image_name(number) for slot, number in images.items()}
        text = phrase_request(kind, args, names, self.rng)
        if kind in QUESTIONS:
            scenes = {slot: self.scenes[number] for slot, number in images.items()}
            answer = answers.answer(TableRequest(kind, args, {}), scenes)
            self.turns.append(TableTurn(kind, args, images, text, answer=answer))
            return True
        return self._try_request(TableTurn(kind, args, images, text))

    def _choose_base(self) -> int:
        if self.rng.random() < LATEST_RATE:
            return max(self.scenes)
        return self.rng.choice(list(self.scenes))

    def _try_request(self, turn: TableTurn) -> bool:
        """Add a request if it changes something."""
        before = self.scenes.get(turn.images.get("image", 0), Scene("white"))
        source = self.scenes.get(turn.images.get("source", 0))
        after = Operation(turn.kind, turn.args).apply(before, source)
        if after == before:
            return False
        if turn.kind == "remove":
            cell = turn.args["cell"]
            self.last_removed = (cell, before.at(cell) or Thing("red", "circle"))
        number = len(self.scenes) + 1
        self.scenes[number] = after
        self.turns.append(TableTurn(turn.kind, turn.args, turn.images, turn.text, number, after))
        return True

    def image_name(self, number: int) -> str:
        """What the text calls an image."""
        return f"Image #{number}"

    def objects_on(self, base: int) -> list[tuple[str, Thing]]:
        return list(self.scenes[base].things().items())

    def empty_cells(self, base: int) -> list[str]:
        return [cell for cell in CELLS if self.scenes[base].at(cell) is None]

    def other_object(self, thing: Thing | None = None) -> str:
        """Any object but this one."""
        return str(self.rng.choice([other for other in OBJECTS if other != thing]))


def make_dialogue(
    domain: str, kinds: Sequence[str], questions: Sequence[str], turns: int, rng: random.Random, *, inputs: int = 1
) -> TableDialogue:
    """Make a dialogue of so many turns, about a quarter of them questions; the first asks for an image.

    It has fewer turns if too few of these kinds are possible.
    """
    maker = DialogueMaker(domain, [start_scene(kinds, rng) for _ in range(inputs)], rng)
    for _ in range(MAX_ATTEMPTS):
        if len(maker.turns) == turns:
            break
        asks_question = maker.turns and questions and rng.random() < QUESTION_RATE
        maker.try_turn(rng.choice(questions if asks_question else kinds))
    return maker.build()
