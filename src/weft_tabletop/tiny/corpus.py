"""What the tiny model is trained on: dialogues over the whole grammar, each seen in one of the histories that weft
gives models.

`documents` is endless and seeded. A document is tokens, where each picture is `PLACES` blanks, a mask of what is to be
learnt, and the scenes of its pictures. `single` leaves out every document with more than one turn."""

import random
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from weft.benchmarks.weave import history
from weft.benchmarks.weave.protocol import WeaveOptions
from weft.types import Image, Message, Part, Sample, Text
from weft_tabletop.make.as_messages import build_sample, chat_messages, reference_replies
from weft_tabletop.make.dialogues import DialogueMaker, TableDialogue, TableTurn, make_dialogue, start_scene
from weft_tabletop.make.domains import IMUG, MEMORY, WEAVE, Mix
from weft_tabletop.make.imug_dialogues import make_chat
from weft_tabletop.make.requests import EVENTS, MAKERS, PLANNED, any_route
from weft_tabletop.tiny import prompt, vocab
from weft_tabletop.world import answers
from weft_tabletop.world.language import (
    CHOICES,
    DOCUMENTS,
    HELPED,
    OPEN,
    QUESTIONS,
    SHOW,
    THINK,
    TableRequest,
    describe_scene,
    phrase_request,
)
from weft_tabletop.world.operations import Operation, frames
from weft_tabletop.world.scenes import CELLS, OBJECTS, Scene

BLANK = -1
FROM_NOTHING = ("draw route", "draw steps", "panel", "build")
TASKS = (
    *(*EVENTS, "double", "sum", "trait", "hours", "pattern", "gravity", "drift", "mirror", "rotate"),
    *("then", "then", "then", "way", "way", "hidden", "hidden"),
    *("route", "route", "steps", "switch", "switch", "draw route", "draw route", "draw steps", "panel"),
)
EVERYTHING = Mix(tuple(kind for kind in MAKERS if kind not in (*QUESTIONS, *OPEN, *DOCUMENTS)), QUESTIONS)
HARD = (
    "hours",
    "double",
    "trait",
    "sum",
    "rotate",
    "mirror",
    "gravity",
    "drift",
    "swap",
    "restore",
    "route",
    "steps",
    "pattern",
    "copy",
    "draw",
    "one more",
    "one less",
)


class Document(Struct, frozen=True):
    tokens: list[int]
    learn: list[bool]
    scenes: list[Scene]
    turns: int


def documents(seed: int, *, single: bool = False) -> Iterator[Document]:
    rng = random.Random(seed)
    while True:
        dice = rng.random()
        if dice < 0.2 and not single:
            yield from _of_chat(rng)
        elif dice < 0.45:
            yield _of_task(rng, single)
        elif dice < 0.55:
            yield from _of_dialogue(_review(rng), rng, True)
        else:
            yield from _of_dialogue(_sample(rng), rng, single)


class _Pictures(dict[str, Scene]):
    """Pictures that stand for scenes, by digest."""

    def __call__(self, scene: Scene) -> Image:
        name = str(scene)
        self[name] = scene
        return Image(name, "image/png", 64, 64, 1)


def _of_chat(rng: random.Random) -> Iterator[Document]:
    """A dialogue as IMUG-Bench has them, over the whole grammar or one of its domains."""
    (domain, task), mix = rng.choice(list(IMUG.items()))
    if rng.random() < 0.5:
        kinds = tuple(rng.sample((*EVERYTHING.kinds, *OPEN), 4))
        mix = Mix(
            tuple(kind for kind in kinds if kind not in ("put back", "correct")) or ("add",),
            tuple(CHOICES),
            rng.choice((1, 1, 2)),
        )
    chat = make_chat(domain, task, mix, rng.randint(1, 6), rng)
    if chat is not None:
        pictures = _Pictures()
        messages = chat_messages(chat.dialogue, pictures)
        yield _tokens(messages, pictures, len(chat.dialogue.turns))


def _of_task(rng: random.Random, single: bool) -> Document:
    """One request about one table, or none: with thinking before the picture, a picture before the answer, or several
    pictures."""
    kind = rng.choice(TASKS if single else (*TASKS, *TASKS, *DOCUMENTS))
    maker = DialogueMaker("", [] if kind in FROM_NOTHING else [start_scene([kind], rng)], rng)
    while not (_drawn(maker, kind) if kind in (*FROM_NOTHING, "route") else maker.try_turn(kind, 1)):
        maker = DialogueMaker("", maker.inputs and [start_scene([kind], rng)], rng)
    turn = maker.turns[-1]
    if maker.inputs:
        base = maker.inputs[0]
    else:
        base = None
    pictures = _Pictures()
    text = phrase_request(kind, turn.args, dict.fromkeys(turn.images, "the table"), rng)
    said: list[Part]
    if kind in DOCUMENTS:
        said = [part for words, scene in frames(kind, turn.args, base) for part in (Text(words), pictures(scene))]
    elif kind in HELPED:
        said = [Text(turn.answer)]
        if rng.random() < 0.6:
            text = f"{SHOW} {text}"
            helper = answers.helper_scene(TableRequest(kind, turn.args, {}), {"image": base or Scene("white")})
            said = [pictures(helper), Text(f"Final Answer: {turn.answer}")]
    else:
        assert turn.scene is not None
        said = [pictures(turn.scene)]
        if rng.random() < 0.6:
            text = f"{THINK} {text}"
            said.insert(0, Text(f"<think> {describe_scene(turn.scene)} </think>"))
    if base:
        shown = (pictures(base),)
    else:
        shown = ()
    messages = (Message("user", (Text(text), *shown)), Message("assistant", tuple(said)))
    return _tokens(messages, pictures, len(said) if kind in DOCUMENTS else 1)


def _drawn(maker: DialogueMaker, kind: str) -> bool:
    """A turn that needs no table; or a route, though there be others as short: the first counts."""
    if kind == "route":
        made = any_route(maker, 1)
    else:
        made = MAKERS[kind](maker, 0)
    if made is None:
        return False
    after = Operation(kind, made[0]).apply(maker.scenes.get(1, Scene("white")))
    maker.turns.append(TableTurn(kind, made[0], made[1], "", 2, after))
    return True


def _review(rng: random.Random) -> tuple[Sample, dict[str, Scene]]:
    """Was it done, which did it: pictures that are right, or wrong in one cell, as a model's own mistakes are."""
    maker = DialogueMaker("", [start_scene(PLANNED, rng)], rng)
    while not maker.try_turn(rng.choice(PLANNED), 1):
        pass
    done = maker.turns[0]
    assert done.scene is not None
    cell = rng.choice(
        CELLS if rng.random() < 0.5 else [*done.scene.changed_cells(maker.inputs[0]), *done.scene.things()] or CELLS
    )
    near = done.scene.put({cell: rng.choice([one for one in (None, *OBJECTS) if one != done.scene.at(cell)])})
    if rng.random() < 0.2:
        near = maker.inputs[0]
    kind = rng.choice(("fulfils", "chosen", "plan"))
    text = phrase_request(done.kind, done.args, {"image": "the table"}, rng)
    pair = [done.scene, near]
    rng.shuffle(pair)
    shown = {"fulfils": pair[:1], "chosen": pair, "plan": []}[kind]
    numbers = {"image": 1, **dict(zip(("source", "other"), (2, 3), strict=False))}
    images = {slot: number for slot, number in numbers.items() if number <= 1 + len(shown)}
    scenes = {slot: (maker.inputs[0], *shown)[number - 1] for slot, number in images.items()}
    args = {"done": text}
    asked = phrase_request(kind, args, {slot: f"Image #{number}" for slot, number in images.items()}, rng)
    turn = TableTurn(kind, args, images, asked, answer=answers.answer(TableRequest(kind, args, {}), scenes))
    pictures = _Pictures()
    return build_sample(TableDialogue("", (maker.inputs[0], *shown), (turn,)), "s", pictures), pictures


def _sample(rng: random.Random) -> tuple[Sample, dict[str, Scene]]:
    dice = rng.random()
    if dice < 0.45:
        mix = EVERYTHING
    elif dice < 0.60:
        mix = MEMORY
    elif dice < 0.75:
        mix = Mix(tuple(rng.sample(HARD, 4)), QUESTIONS, rng.choice((1, 1, 2)))
    else:
        mix = WEAVE[rng.choice(tuple(WEAVE))]
    if rng.random() < 0.6:
        questions = QUESTIONS
    else:
        questions = mix.questions
    dialogue = make_dialogue("", mix.kinds, questions, rng.randint(1, 6), rng, inputs=mix.inputs)
    pictures = _Pictures()
    return build_sample(dialogue, "s", pictures), pictures


def _of_dialogue(made: tuple[Sample, dict[str, Scene]], rng: random.Random, single: bool) -> Iterator[Document]:
    sample, scenes = made
    if not sample.turns:
        return
    if not single:
        last = sample.turns[-1]
        options = WeaveOptions("dialogue", rng.choice(("inline", "all-first")))
        yield _document(sample, scenes, last.number, options)
    for turn in rng.sample(sample.turns, min(2, len(sample.turns))):
        if single or rng.random() < 0.7:
            options = WeaveOptions("partial")
        else:
            options = WeaveOptions("full", rng.choice(("inline", "all-first")))
        yield _document(sample, scenes, turn.number, options)


def _document(sample: Sample, scenes: dict[str, Scene], number: int, options: WeaveOptions) -> Document:
    turn = sample.turns[number]
    seen = history.build_messages(sample, turn, reference_replies(sample, number), options)
    made = _tokens(
        (*seen, Message("assistant", turn.reference)), scenes, number + 1 if options.history == "dialogue" else 1
    )
    if options.history == "full":  # only its last reply is in the form that a reply has
        start = len(made.tokens) - 1 - made.tokens[::-1].index(vocab.ASSISTANT)
        return replace(made, learn=[own and at > start for at, own in enumerate(made.learn)])
    return made


def _tokens(messages: tuple[Message, ...], scenes: dict[str, Scene], turns: int) -> Document:
    tokens: list[int] = []
    learn: list[bool] = []
    shown: list[Scene] = []
    for item, own in prompt.sequence(messages):
        if isinstance(item, Image):
            tokens += [vocab.IMAGE, *[BLANK] * vocab.PLACES, vocab.IMAGE_END]
            learn += [own] * (vocab.PLACES + 2)
            shown.append(scenes[item.digest])
        else:
            tokens.append(item)
            learn.append(own)
    return Document(tokens, learn, shown, turns)
