"""Dialogues as IMUG-Bench has them: an image is `the table` if it is the latest, else `Image #k`; questions have
options; some requests leave a choice to the model, and what is asked afterwards depends on its choice.

After an open request only what holds for every choice is asked: nothing names an object that the model may not have
drawn."""

import random
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from weft_tabletop.make.dialogues import DialogueMaker, TableDialogue, TableTurn
from weft_tabletop.make.domains import RequestKinds
from weft_tabletop.make.questions import MAKERS
from weft_tabletop.make.requests import RequestContent, about_image
from weft_tabletop.make.start_scenes import start_scene
from weft_tabletop.world.choices import MULTIPLE, ChoiceQuestion, format_choice, true_options
from weft_tabletop.world.language import TableRequest, phrase_request
from weft_tabletop.world.scenes import CELLS, COLOURS, OBJECTS, Scene
from weft_tabletop.world.wordings import OPEN

ALWAYS = ("background", "mirror", "rotate", "gravity", "drift")  # possible whatever is on the table
OPEN_QUESTIONS = ("hue", "place", "among", "where", "what")
CHOICE = "choice"  # the kind of a turn that is a question with options
MULTIPLE_TASK = ("Botany", "natural_growth")  # the one task that the protocol asks with several right answers
MAX_ATTEMPTS = 300  # at turns, for one chat
# How often a chat does what the name says.
LATEST_NAME_RATE = 0.9
EARLIER_BASE_RATE = 0.15
LATEST_QUESTION_RATE = 0.8
DYNAMIC_RATE = 0.4
DYNAMIC_MULTIPLE_RATE = 0.9
QUESTION_RATE = 0.42
QUESTION_AFTER_OPEN_RATE = 0.8
OPEN_QUESTION_RATE = 0.25
NONE_RIGHT_RATE = 0.12


class ChoiceTurn(Struct, frozen=True):
    """What a question turn is, beyond its text. If it is `dynamic`, the key depends on the model's own image, and
    `letters` are the key for the reference image alone."""

    choice: ChoiceQuestion
    image_number: int
    letters: str
    dynamic: bool = False


class Chat(Struct, frozen=True):
    domain: str
    task: str
    dialogue: TableDialogue
    choices: Mapping[int, ChoiceTurn]  # by turn


class ChatMaker(DialogueMaker):
    """Grows a chat."""

    def __init__(self, domain: str, rng: random.Random) -> None:
        super().__init__(domain, (), rng)
        self.choices: dict[int, ChoiceTurn] = {}
        self.open_images: set[int] = set()  # those that depend on a choice of the model's
        self._waiting: list[int] = []  # inputs that come with the next turn

    def give_image(self, scene: Scene) -> None:
        """Add an image that comes with the next turn."""
        number = len(self.scenes) + 1
        self._waiting.append(number)
        self.scenes[number] = scene

    def image_name(self, number: int) -> str:
        if number == max(self.scenes) and self.rng.random() < LATEST_NAME_RATE:
            return "the table"
        return f"Image #{number}"

    def outputs(self) -> set[int]:
        return {turn.image_number for turn in self.turns if turn.image_number is not None}

    def try_chat_request(self, kind: str) -> bool:
        """Add a request of this kind. Return False if it is not possible here."""
        if kind in OPEN and self.open_images:
            return False  # one choice a dialogue
        base = max(self.scenes, default=0)
        if len(self.scenes) > 1 and self.rng.random() < EARLIER_BASE_RATE:
            base = self.rng.choice([*self.scenes])
        if base in self.open_images and kind not in ALWAYS:
            return False
        if not self.try_turn(kind, base or None):
            return False
        turn = self.turns[-1]
        if turn.scene is not None and turn.image_number is not None and not turn.scene.things():
            # An empty table leaves nothing to ask about.
            self.turns.pop()
            del self.scenes[turn.image_number]
            return False
        self.turns[-1] = replace(turn, input_images=self._take_waiting())
        is_open = kind in OPEN or bool(set(turn.images.values()) & self.open_images)
        if turn.image_number is not None and is_open:
            self.open_images.add(turn.image_number)
        return True

    def try_question(self, kind: str, *, single: bool) -> bool:
        """Add a question of this kind. Return False if it is not possible here.

        With `single`, a dynamic question has one right option: the judge determines the key, and the protocol asks only
        one task with several.
        """
        base = self._choose_question_base()
        if base in self.open_images and kind not in OPEN_QUESTIONS:
            return False
        is_dynamic = self._is_dynamic(kind, base, single)
        if is_dynamic and kind in MULTIPLE and single:
            return False
        worded = make_choice(self, kind, base)
        if worded is None:
            return False
        text, choice = worded
        letters = choice.letters(self.scenes[base])
        if kind not in MULTIPLE and len(letters) > 1:
            return False
        self.choices[len(self.turns)] = ChoiceTurn(choice, base, letters, is_dynamic)
        args = choice.request.args
        waiting = self._take_waiting()
        self.turns.append(TableTurn(CHOICE, args, {"image": base}, text, answer=letters, input_images=waiting))
        return True

    def _choose_question_base(self) -> int:
        if self.rng.random() < LATEST_QUESTION_RATE:
            return max(self.scenes)
        return self.rng.choice([*self.scenes])

    def _is_dynamic(self, kind: str, base: int, single: bool) -> bool:
        """Whether the model's own image decides the key: always where the image is open."""
        if base in self.open_images:
            return True
        if base not in self.outputs():
            return False
        is_multiple = kind in MULTIPLE and not single
        return self.rng.random() < (DYNAMIC_MULTIPLE_RATE if is_multiple else DYNAMIC_RATE)

    def _take_waiting(self) -> tuple[int, ...]:
        waiting = tuple(self._waiting)
        self._waiting = []
        return waiting


def make_chat(domain: str, task: str, mix: RequestKinds, turns: int, rng: random.Random) -> Chat | None:
    """Make a chat of so many turns that asks for at least one image.

    Returns None if the draws from the generator did not lead to one.
    """
    single = (domain, task) != MULTIPLE_TASK
    maker = ChatMaker(domain, rng)
    for _ in range(mix.inputs):
        maker.give_image(start_scene(mix.kinds, rng))
    for _ in range(MAX_ATTEMPTS):
        if len(maker.turns) == turns:
            break
        _try_any_turn(maker, mix, is_last=len(maker.turns) == turns - 1, single=single)
    if len(maker.turns) < turns or not maker.outputs():
        return None
    inputs = tuple(maker.scenes[number] for number in range(1, mix.inputs + 1))
    return Chat(domain, task, TableDialogue(domain, inputs, tuple(maker.turns)), maker.choices)


def _try_any_turn(maker: ChatMaker, mix: RequestKinds, *, is_last: bool, single: bool) -> None:
    rng = maker.rng
    is_after_open = bool(maker.turns) and maker.turns[-1].kind in OPEN
    question_rate = QUESTION_AFTER_OPEN_RATE if is_after_open else QUESTION_RATE
    # The last turn is a request if no other turn was one.
    if maker.scenes and rng.random() < question_rate and (maker.outputs() or not is_last):
        is_open = is_after_open or rng.random() < OPEN_QUESTION_RATE
        maker.try_question(rng.choice(OPEN_QUESTIONS if is_open else mix.questions), single=single)
        return
    is_latest_open = bool(maker.open_images) and max(maker.scenes) in maker.open_images
    maker.try_chat_request(rng.choice(ALWAYS if is_latest_open else mix.kinds))


def make_choice(maker: DialogueMaker, kind: str, base: int) -> tuple[str, ChoiceQuestion] | None:
    """Make a question about one image: its text, and the question with options of which each could be right.

    Returns None if too little is false of the image to offer four options.
    """
    content = _choose_content(maker, kind, base)
    if content is None:
        return None
    args, images = content
    rng = maker.rng
    all_true = true_options(kind, args, maker.scenes[base])
    right = sorted(all_true)
    if kind in MULTIPLE:
        right = rng.sample(right, min(len(right), rng.choice((0, 1, 2, 2, 3, 3))))
    elif rng.random() < NONE_RIGHT_RATE:
        right = []
    wrong = [option for option in _sample_options(kind, rng) if option not in all_true]
    shown = right + wrong[: 4 - len(right)]
    if len(shown) < 4:
        return None
    rng.shuffle(shown)
    if kind == "count":
        shown.sort()
    options = dict(zip("ABCD", shown, strict=True))
    names = {slot: maker.image_name(number) for slot, number in images.items()}
    text = phrase_request(kind, args, names, rng, choice=True)
    return format_choice(text, options), ChoiceQuestion(TableRequest(kind, args, {}), options)


def _choose_content(maker: DialogueMaker, kind: str, base: int) -> RequestContent | None:
    if kind in MAKERS:
        return MAKERS[kind](maker, base)
    if kind == "among":
        return about_image(base)
    shapes = [thing.shape for _, thing in maker.objects_on(base)]
    if kind in ("hue", "place"):
        shapes = [shape for shape in shapes if shapes.count(shape) == 1]
    if not shapes:
        return None
    return about_image(base, shape=maker.rng.choice(shapes))


def _sample_options(kind: str, rng: random.Random) -> Sequence[str]:
    """What could be offered as an option, in random order."""
    if kind == "count":
        return rng.sample("0123456", 7)
    if kind in ("what", "among"):
        return [str(thing) for thing in rng.sample(OBJECTS, 20)]
    if kind in ("place", "where"):
        return rng.sample(CELLS, 16)
    return rng.sample(tuple(COLOURS), len(COLOURS))
