"""What the tiny model is trained on: dialogues over the whole grammar, each seen in one of the histories that weft gives models.

`documents` is endless and seeded. A document is tokens, where each picture is `PLACES` blanks, a mask of what is to be learnt, and the
scenes of its pictures. `single` leaves out every document with more than one turn.
"""

import random
from collections.abc import Iterator

from msgspec import Struct

from weft import history
from weft.tabletop.dialogues import MAKERS, make_dialogue
from weft.tabletop.domains import MEMORY, WEAVE, Mix
from weft.tabletop.language import QUESTIONS
from weft.tabletop.samples import sample_of, true_replies
from weft.tabletop.tiny import prompt, vocab
from weft.tabletop.world import Scene
from weft.types import Image, Message, Sample, View

BLANK = -1
EVERYTHING = Mix(tuple(kind for kind in MAKERS if kind not in QUESTIONS), QUESTIONS)
HARD = ("rotate", "mirror", "gravity", "drift", "swap", "restore", "route", "steps", "pattern", "copy", "draw", "one more", "one less")


class Document(Struct, frozen=True):
    tokens: list[int]
    learn: list[bool]
    scenes: list[Scene]
    turns: int


def documents(seed: int, *, single: bool = False) -> Iterator[Document]:
    chance = random.Random(seed)
    while True:
        yield from _of_dialogue(_sample(chance), chance, single)


def _sample(chance: random.Random) -> tuple[Sample, dict[str, Scene]]:
    dice = chance.random()
    if dice < 0.45:
        mix = EVERYTHING
    elif dice < 0.60:
        mix = MEMORY
    elif dice < 0.75:
        mix = Mix(tuple(chance.sample(HARD, 4)), QUESTIONS, chance.choice((1, 1, 2)))
    else:
        mix = WEAVE[chance.choice(tuple(WEAVE))]
    questions = QUESTIONS if chance.random() < 0.6 else mix.questions
    dialogue = make_dialogue("", mix.kinds, questions, chance.randint(1, 6), chance, inputs=mix.inputs)
    scenes: dict[str, Scene] = {}

    def image_of(scene: Scene) -> Image:
        name = str(scene)
        scenes[name] = scene
        return Image(name, "image/png", 64, 64, 1)

    return sample_of(dialogue, "s", image_of), scenes


def _of_dialogue(made: tuple[Sample, dict[str, Scene]], chance: random.Random, single: bool) -> Iterator[Document]:
    sample, scenes = made
    if not sample.turns:
        return
    if not single:
        last = sample.turns[-1]
        view = View("dialogue", chance.choice(("first", "front")))
        yield _document(sample, scenes, last.number, view)
    for turn in chance.sample(sample.turns, min(2, len(sample.turns))):
        view = View("partial") if single or chance.random() < 0.7 else View("full", chance.choice(("first", "front")))
        yield _document(sample, scenes, turn.number, view)


def _document(sample: Sample, scenes: dict[str, Scene], number: int, view: View) -> Document:
    turn = sample.turns[number]
    seen = history.see(sample, turn, true_replies(sample, number), view)
    whole = (*seen, Message("assistant", turn.truth))
    tokens: list[int] = []
    learn: list[bool] = []
    shown: list[Scene] = []
    for item, own in prompt.sequence(whole):
        if isinstance(item, Image):
            tokens += [vocab.IMAGE, *[BLANK] * vocab.PLACES, vocab.IMAGE_END]
            learn += [own] * (vocab.PLACES + 2)
            shown.append(scenes[item.digest])
        else:
            tokens.append(item)
            learn.append(own)
    if view.history == "full":  # only its last reply is in the form that a reply has
        start = len(tokens) - 1 - tokens[::-1].index(vocab.ASSISTANT)
        learn = [own and at > start for at, own in enumerate(learn)]
    return Document(tokens, learn, shown, number + 1 if view.history == "dialogue" else 1)
