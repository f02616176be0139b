"""What the tiny model is trained on: dialogues over the whole grammar, each seen in one of the histories that weft
gives models.

`generate_documents` is endless and seeded. A document is tokens, where each image is `PLACES` blanks, a mask of the
tokens that are learnt, and the scenes of its images."""

import random
from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from weft.benchmarks.weave import history
from weft.benchmarks.weave.protocol import WeaveOptions
from weft.types import Image, Message, Part, Sample, Text
from weft_tabletop.make.as_messages import build_sample, chat_messages, reference_replies
from weft_tabletop.make.dialogues import DialogueMaker, TableDialogue, TableTurn, make_dialogue
from weft_tabletop.make.domains import IMUG, MEMORY, WEAVE, RequestKinds
from weft_tabletop.make.imug_dialogues import make_chat
from weft_tabletop.make.questions import MAKERS, PLANNED
from weft_tabletop.make.requests import EVENTS, choose_route
from weft_tabletop.make.start_scenes import start_scene
from weft_tabletop.tiny import prompt, vocab
from weft_tabletop.world import answers
from weft_tabletop.world.language import TableRequest, describe_scene, phrase_request
from weft_tabletop.world.operations import Operation, build_frames
from weft_tabletop.world.scenes import CELLS, OBJECTS, Scene
from weft_tabletop.world.wordings import CHOICES, DOCUMENTS, HELPED, OPEN, QUESTIONS, SHOW, THINK

BLANK = -1
FROM_NOTHING = ("draw route", "draw steps", "panel", "build")
TASKS = (  # a kind that is hard comes more often
    *(*EVENTS, "double", "sum", "trait", "hours", "pattern", "gravity", "drift", "mirror", "rotate"),
    *("then", "then", "then", "way", "way", "hidden", "hidden"),
    *("route", "route", "steps", "switch", "switch", "draw route", "draw route", "draw steps", "panel"),
)
TASKS_AND_DOCUMENTS = (*TASKS, *TASKS, *DOCUMENTS)
EVERYTHING = RequestKinds(tuple(kind for kind in MAKERS if kind not in (*QUESTIONS, *OPEN, *DOCUMENTS)), QUESTIONS)
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
STYLE_RATE = 0.6  # how often a request wants thinking first, or an image before the answer


class TokenizedDialogue(Struct, frozen=True):
    """One dialogue as tokens to learn from. `loss_mask` says which of them the model writes."""

    tokens: list[int]
    loss_mask: list[bool]
    scenes: list[Scene]
    turns: int


class SceneImages(dict[str, Scene]):
    """Images that stand for scenes; the scenes by the images' digests."""

    def __call__(self, scene: Scene) -> Image:
        digest = str(scene)
        self[digest] = scene
        return Image(digest, "image/png", vocab.SIDE, vocab.SIDE, 1)


def generate_documents(seed: int, *, single: bool = False) -> Iterator[TokenizedDialogue]:
    """Yield documents without end. `single` leaves out every document of more than one turn."""
    rng = random.Random(seed)
    while True:
        form = rng.random()
        if form < 0.2 and not single:
            yield from _chat_documents(rng)
        elif form < 0.45:
            yield _task_document(rng, single)
        elif form < 0.55:
            sample, scenes = _make_review(rng)
            yield from _dialogue_documents(sample, scenes, rng, True)
        else:
            sample, scenes = _make_sample(rng)
            yield from _dialogue_documents(sample, scenes, rng, single)


def _chat_documents(rng: random.Random) -> Iterator[TokenizedDialogue]:
    """A dialogue as IMUG-Bench has them, over the whole grammar or one of its domains."""
    (domain, task), mix = rng.choice(list(IMUG.items()))
    if rng.random() < 0.5:
        sampled = rng.sample((*EVERYTHING.kinds, *OPEN), 4)
        kinds = tuple(kind for kind in sampled if kind not in ("put back", "correct"))
        mix = RequestKinds(kinds or ("add",), tuple(CHOICES), rng.choice((1, 1, 2)))
    chat = make_chat(domain, task, mix, rng.randint(1, 6), rng)
    if chat is not None:
        images = SceneImages()
        messages = chat_messages(chat.dialogue, images)
        yield _tokenise(messages, images, len(chat.dialogue.turns))


def _task_document(rng: random.Random, single: bool) -> TokenizedDialogue:
    """One request, about one table or none: some with thinking before the image, with an image before the answer, or
    with several images."""
    turn, base = _make_task(rng.choice(TASKS if single else TASKS_AND_DOCUMENTS), rng)
    images = SceneImages()
    text = phrase_request(turn.kind, turn.args, dict.fromkeys(turn.images, "the table"), rng)
    parts: list[Part]
    if turn.kind in DOCUMENTS:
        parts = []
        for caption, scene in build_frames(turn.kind, turn.args, base):
            parts += [Text(caption), images(scene)]
    elif turn.kind in HELPED:
        parts = [Text(turn.answer)]
        if rng.random() < STYLE_RATE:
            text = f"{SHOW} {text}"
            question = TableRequest(turn.kind, turn.args, {})
            helper = answers.helper_scene(question, {"image": base or Scene("white")})
            parts = [images(helper), Text(f"Final Answer: {turn.answer}")]
    else:
        assert turn.scene is not None
        parts = [images(turn.scene)]
        if rng.random() < STYLE_RATE:
            text = f"{THINK} {text}"
            parts.insert(0, Text(f"<think> {describe_scene(turn.scene)} </think>"))
    inputs = [images(base)] if base else []
    messages = (Message("user", (Text(text), *inputs)), Message("assistant", tuple(parts)))
    return _tokenise(messages, images, len(parts) if turn.kind in DOCUMENTS else 1)


def _make_task(kind: str, rng: random.Random) -> tuple[TableTurn, Scene | None]:
    """A turn of this kind, and the table that it is about, if any."""
    while True:
        inputs = [] if kind in FROM_NOTHING else [start_scene([kind], rng)]
        maker = DialogueMaker("", inputs, rng)
        if kind in FROM_NOTHING:
            is_made = _add_turn(maker, kind)
        elif kind == "route":
            is_made = _add_route(maker)
        else:
            is_made = maker.try_turn(kind, 1)
        if is_made:
            return maker.turns[-1], inputs[0] if inputs else None


def _add_turn(maker: DialogueMaker, kind: str) -> bool:
    """Add a turn that needs no table."""
    content = MAKERS[kind](maker, 0)
    if content is None:
        return False
    args, images = content
    after = Operation(kind, args).apply(Scene("white"))
    maker.turns.append(TableTurn(kind, args, images, "", 2, after))
    return True


def _add_route(maker: DialogueMaker) -> bool:
    """Add a route even if others are as short: the first counts."""
    content = choose_route(maker, 1)
    if content is None:
        return False
    args, images = content
    after = Operation("route", args).apply(maker.scenes[1])
    maker.turns.append(TableTurn("route", args, images, "", 2, after))
    return True


def _make_review(rng: random.Random) -> tuple[Sample, dict[str, Scene]]:
    """A question whether a request was done, or which image did it. The images are right, or wrong in one cell, as a
    model's own mistakes are."""
    maker = DialogueMaker("", [start_scene(PLANNED, rng)], rng)
    while not maker.try_turn(rng.choice(PLANNED), 1):
        pass
    request = maker.turns[0]
    base = maker.inputs[0]
    assert request.scene is not None
    wrong = _change_one_cell(request.scene, base, rng)
    if rng.random() < 0.2:
        wrong = base
    kind = rng.choice(("fulfils", "chosen", "plan"))
    text = phrase_request(request.kind, request.args, {"image": "the table"}, rng)
    pair = [request.scene, wrong]
    rng.shuffle(pair)
    if kind == "plan":
        pair = []
    elif kind == "fulfils":
        pair = pair[:1]
    shown = (base, *pair)
    images = {slot: number for number, slot in enumerate(("image", "source", "other")[: len(shown)], start=1)}
    scenes = {slot: shown[number - 1] for slot, number in images.items()}
    names = {slot: f"Image #{number}" for slot, number in images.items()}
    args = {"done": text}
    question = phrase_request(kind, args, names, rng)
    answer = answers.answer(TableRequest(kind, args, {}), scenes)
    turn = TableTurn(kind, args, images, question, answer=answer)
    scene_images = SceneImages()
    return build_sample(TableDialogue("", shown, (turn,)), "s", scene_images), scene_images


def _change_one_cell(scene: Scene, base: Scene, rng: random.Random) -> Scene:
    """Half of the time any cell; else one that the request changed, or that holds an object."""
    if rng.random() < 0.5:
        cell = rng.choice(CELLS)
    else:
        cell = rng.choice([*scene.changed_cells(base), *scene.things()] or CELLS)
    return scene.put({cell: rng.choice([thing for thing in (None, *OBJECTS) if thing != scene.at(cell)])})


def _make_sample(rng: random.Random) -> tuple[Sample, dict[str, Scene]]:
    """A dialogue of one to six turns, and the scenes of its images."""
    mix = _choose_mix(rng)
    questions = QUESTIONS if rng.random() < 0.6 else mix.questions
    dialogue = make_dialogue("", mix.kinds, questions, rng.randint(1, 6), rng, inputs=mix.inputs)
    images = SceneImages()
    return build_sample(dialogue, "s", images), images


def _choose_mix(rng: random.Random) -> RequestKinds:
    share = rng.random()
    if share < 0.45:
        return EVERYTHING
    if share < 0.60:
        return MEMORY
    if share < 0.75:
        return RequestKinds(tuple(rng.sample(HARD, 4)), QUESTIONS, rng.choice((1, 1, 2)))
    return WEAVE[rng.choice(tuple(WEAVE))]


def _dialogue_documents(
    sample: Sample, scenes: Mapping[str, Scene], rng: random.Random, single: bool
) -> Iterator[TokenizedDialogue]:
    """The whole dialogue, unless `single`, and up to two of its turns in other histories."""
    if not sample.turns:
        return
    if not single:
        last = sample.turns[-1]
        options = WeaveOptions("dialogue", rng.choice(("inline", "all-first")))
        yield _turn_document(sample, scenes, last.number, options)
    for turn in rng.sample(sample.turns, min(2, len(sample.turns))):
        if single or rng.random() < 0.7:
            options = WeaveOptions("partial")
        else:
            options = WeaveOptions("full", rng.choice(("inline", "all-first")))
        yield _turn_document(sample, scenes, turn.number, options)


def _turn_document(
    sample: Sample, scenes: Mapping[str, Scene], number: int, options: WeaveOptions
) -> TokenizedDialogue:
    """What the model is shown at a turn, and the reference reply."""
    turn = sample.turns[number]
    messages = history.build_messages(sample, turn, reference_replies(sample, number), options)
    turns = number + 1 if options.history == "dialogue" else 1
    document = _tokenise((*messages, Message("assistant", turn.reference)), scenes, turns)
    if options.history != "full":
        return document
    # In this history only the last reply has the form that a reply has.
    start = len(document.tokens) - 1 - document.tokens[::-1].index(vocab.ASSISTANT)
    loss_mask = [is_learnt and index > start for index, is_learnt in enumerate(document.loss_mask)]
    return replace(document, loss_mask=loss_mask)


def _tokenise(messages: tuple[Message, ...], scenes: Mapping[str, Scene], turns: int) -> TokenizedDialogue:
    document = TokenizedDialogue([], [], [], turns)
    for item, is_learnt in prompt.build_sequence(messages):
        if isinstance(item, Image):
            tokens = [vocab.IMAGE, *[BLANK] * vocab.PLACES, vocab.IMAGE_END]
            document.scenes.append(scenes[item.digest])
        else:
            tokens = [item]
        document.tokens.extend(tokens)
        document.loss_mask.extend([is_learnt] * len(tokens))
    return document
