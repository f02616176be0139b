"""Dialogues that ask for memory, as rows for a model that reads and writes image codes, as the tiny model does.

    edit        a change of the latest image                   recall    what an earlier image shows in a cell
    copy        from an earlier image into the latest one      back      what was removed last is put back

Three views of the same dialogues (`weft.benchmarks.weave.views`): whole, single turns with the images that they name,
and plain single turns. The tokens are those of `tiny/prompt.py`."""

import random
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from weft.benchmarks.weave.views import VIEWS, dialogue_view, single_turn_view
from weft.training.example import Example, learn_last_reply
from weft.types import Image, Sample
from weft_tabletop.make.as_messages import build_sample
from weft_tabletop.make.dialogues import TableDialogue, TableTurn
from weft_tabletop.tiny import prompt, vocab
from weft_tabletop.tiny.corpus import SceneImages
from weft_tabletop.weaver.latents import join_digits, load_digits
from weft_tabletop.weaver.rows import Rows, gather, pad
from weft_tabletop.weaver.tasks import EDIT_KINDS, edit_args
from weft_tabletop.weaver.world import TableWorld, find_world
from weft_tabletop.world.answers import name_cell_content
from weft_tabletop.world.language import phrase_request
from weft_tabletop.world.operations import Operation
from weft_tabletop.world.scenes import Scene

if TYPE_CHECKING:
    from numpy.typing import NDArray

KINDS = ("edit", "copy", "recall", "back")
ALONE = "alone "  # before a kind: without the dialogue before it
TURNS = (3, 5)
CHANCES = {"edit": 0.5, "copy": 0.15, "recall": 0.15, "back": 0.2}
CHAIN = 5  # turns of a dialogue in which every turn changes the latest image
Found = tuple[str, Mapping[str, str], Mapping[str, int], Scene | None, str]  # a turn without its words


class MemoryDialogueWriter:
    """Grows one dialogue turn by turn."""

    def __init__(self, world: TableWorld, rng: random.Random) -> None:
        self._world = world
        self._rng = rng
        self._inputs = (world.random_scene(rng),)
        self._scenes = dict(enumerate(self._inputs, start=1))
        self._turns: list[TableTurn] = []
        self._removed: dict[str, str] | None = None  # the arguments of the last removal

    def build(self) -> TableDialogue:
        return TableDialogue("memory", self._inputs, tuple(self._turns))

    def add_turn(self, kind: str) -> bool:
        """Add a turn of this kind; return False if none is possible here."""
        found = getattr(self, f"_{kind}")(max(self._scenes))
        if found is None:
            return False
        name, args, images, scene, answer = found
        text = phrase_request(name, args, {slot: f"Image #{number}" for slot, number in images.items()}, self._rng)
        turn = TableTurn(name, args, images, text, scene=scene, answer=answer)
        if scene is not None:
            number = max(self._scenes) + 1
            self._scenes[number] = scene
            turn = replace(turn, image_number=number)
        self._turns.append(turn)
        return True

    def _edit(self, latest: int) -> Found | None:
        base = self._scenes[latest]
        if not base.things():
            return None
        wants_removal = self._removed is None and self._rng.random() < 0.5
        name = "remove" if wants_removal else self._rng.choice(EDIT_KINDS)
        args = edit_args(name, base, self._world, self._rng)
        if args is None:
            return None
        after = Operation(name, args).apply(base)
        if after == base:
            return None
        if name == "remove":
            self._removed = args
        return name, args, {"image": latest}, after, ""

    def _copy(self, latest: int) -> Found | None:
        base = self._scenes[latest]
        earlier = [number for number, scene in self._scenes.items() if number != latest and scene.things()]
        if not earlier:
            return None
        number = self._rng.choice(earlier)
        source = self._scenes[number]
        args = {"cell": self._rng.choice(list(source.things())), "to": self._rng.choice(self._world.cells)}
        after = Operation("copy", args).apply(base, source)
        if after == base:
            return None
        return "copy", args, {"source": number, "image": latest}, after, ""

    def _recall(self, latest: int) -> Found | None:
        if latest < 2:
            return None
        number = self._rng.choice([number for number in self._scenes if number != latest])
        scene = self._scenes[number]
        cell = self._rng.choice([*scene.things(), self._rng.choice(self._world.cells)])
        return "what", {"cell": cell}, {"image": number}, None, name_cell_content(scene, cell)

    def _back(self, latest: int) -> Found | None:
        base = self._scenes[latest]
        if self._removed is None or base.at(self._removed["cell"]) is not None:
            return None
        args = self._removed
        self._removed = None
        return "put back", args, {"image": latest}, Operation("put back", args).apply(base), ""


def make_memory_dialogue(world: TableWorld, rng: random.Random, last: str = "") -> TableDialogue:
    """Make a dialogue of a few turns; its last turn is of the kind `last`, if one is given."""
    while True:
        writer = MemoryDialogueWriter(world, rng)
        wanted = rng.randint(*TURNS)
        for _ in range(4 * wanted):
            if len(writer.build().turns) == wanted - bool(last):
                break
            writer.add_turn(rng.choices(KINDS, [CHANCES[kind] for kind in KINDS])[0])
        if last and not writer.add_turn(last):
            continue
        if len(writer.build().turns) >= TURNS[0]:
            return writer.build()


def view_rows(world: TableWorld, view: str, count: int, seed: int, workers: int = 0, faults: float = 0.0) -> Rows:
    """Rows of a view; in the share `faults` of them an image that is learnt has one wrong cell."""
    return gather(_view_piece, world, f"{view} {faults}", count, seed, workers)


def test_rows(world: TableWorld, kind: str, count: int, seed: int) -> Rows:
    """Whole dialogues that end with a turn of this kind, of which only the last reply counts; after `alone `, that turn
    by itself with the images that it names; as `chain`, dialogues of changes, of which every image counts."""
    return gather(_test_piece, world, kind, count, seed, 0)


def _view_piece(world: str, name: str, count: int, seed: str) -> Rows:
    view, _, faults = name.partition(" ")
    table = find_world(world)
    rng = random.Random(seed)
    made: list[tuple[list[int], list[bool]]] = []
    while len(made) < count:
        sample, scenes = _make_sample(table, rng)
        for example in VIEWS[view](sample):
            is_faulty = rng.random() < float(faults)
            made.append(example_row(example, _plant_fault(example, scenes, table, rng) if is_faulty else scenes, table))
    return as_rows(made[:count])


def _test_piece(world: str, kind: str, count: int, seed: str) -> Rows:
    table = find_world(world)
    rng = random.Random(seed)
    made: list[tuple[list[int], list[bool]]] = []
    for _ in range(count):
        sample, scenes = _make_sample(table, rng, kind.removeprefix(ALONE))
        if kind.startswith(ALONE):
            *_, example = single_turn_view(sample)
        elif kind == "chain":
            (example,) = dialogue_view(sample)
        else:
            (whole,) = dialogue_view(sample)
            example = learn_last_reply(whole.messages)
        made.append(example_row(example, scenes, table))
    return as_rows(made)


def _make_sample(world: TableWorld, rng: random.Random, last: str = "") -> tuple[Sample, SceneImages]:
    images = SceneImages()
    dialogue = make_chain(world, rng) if last == "chain" else make_memory_dialogue(world, rng, last)
    return build_sample(dialogue, "s", images), images


def make_chain(world: TableWorld, rng: random.Random) -> TableDialogue:
    """Make a dialogue of changes alone, each of the latest image."""
    while True:
        writer = MemoryDialogueWriter(world, rng)
        for _ in range(4 * CHAIN):
            if len(writer.build().turns) == CHAIN:
                return writer.build()
            writer.add_turn("edit")


def _plant_fault(
    example: Example, scenes: Mapping[str, Scene], world: TableWorld, rng: random.Random
) -> Mapping[str, Scene]:
    """The scenes with one wrong cell in one of the images that are learnt."""
    learnt = [part for part in example.learnt_parts() if isinstance(part, Image)]
    if not learnt:
        return scenes
    digest = rng.choice(learnt).digest
    cell = rng.choice(world.cells)
    wrong = rng.choice([thing for thing in (None, *world.things) if thing != scenes[digest].at(cell)])
    return {**scenes, digest: scenes[digest].put({cell: wrong})}


def example_row(example: Example, scenes: Mapping[str, Scene], world: TableWorld) -> tuple[list[int], list[bool]]:
    """The tokens of an example, and which of them are learnt."""
    tokens: list[int] = []
    learn: list[bool] = []
    message = -1
    learnt = {number for number, _ in example.learn}
    for item, is_own in prompt.build_sequence(example.messages):
        if isinstance(item, int):
            message += item in prompt.ROLES.values()
            piece = [item]
        else:
            piece = [vocab.IMAGE, *scene_codes(world, scenes[item.digest]), vocab.IMAGE_END]
        tokens += piece
        learn += [is_own and message in learnt] * len(piece)
    return tokens, learn


def scene_codes(world: TableWorld, scene: Scene) -> list[int]:
    """The codes of a scene's cells, as tokens."""
    background, *things = world.number_scene(scene)
    digits = load_digits()[background, things, world.places()]
    return [len(vocab.words()) + code for code in join_digits(digits)]


def as_rows(made: Sequence[tuple[list[int], list[bool]]]) -> Rows:
    import numpy as np

    tokens = pad([tokens for tokens, _ in made])
    return Rows(tokens, pad([learn for _, learn in made], bool), np.zeros((len(made), 0, 1), np.uint8))


def find_places(tokens: "NDArray[Any]", cells: int) -> "NDArray[Any]":
    """For each token, the place inside an image that comes next; 0 outside of images."""
    import numpy as np

    places = np.zeros(tokens.shape, np.int64)
    is_start = tokens == vocab.IMAGE
    for offset in range(cells):
        places[:, offset:][is_start[:, : tokens.shape[1] - offset]] = offset + 1
    return places
