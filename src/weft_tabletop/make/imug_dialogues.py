"""Dialogues as IMUG-Bench has them: a picture of the model's own is `the table` if it is the latest, `Image #k`
otherwise; questions have options; some requests leave a choice to the model, and what is asked afterwards depends on
the choice it made.

After an open request only what holds for every choice is asked: nothing names an object that the model may not have
drawn."""

import random
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from weft_tabletop.make.dialogues import DialogueMaker, TableDialogue, TableTurn, start_scene
from weft_tabletop.make.domains import Mix
from weft_tabletop.make.requests import MAKERS, Made
from weft_tabletop.world.choices import SEVERAL, ChoiceQuestion, format_choice, true_options
from weft_tabletop.world.language import OPEN, TableRequest, phrase_request
from weft_tabletop.world.scenes import CELLS, COLOURS, OBJECTS, Scene

ALWAYS = ("background", "mirror", "rotate", "gravity", "drift")  # possible whatever is on the table
OPEN_QUESTIONS = ("hue", "place", "among", "where", "what")
CHOICE = "choice"  # the kind of a turn that is a question with options


class ChoiceTurn(Struct, frozen=True):
    """What a question turn is, beyond its text: `static` letters, or none where the key depends on the model's own
    picture."""

    choice: ChoiceQuestion
    picture: int
    letters: str
    dynamic: bool = False


class Chat(Struct, frozen=True):
    domain: str
    task: str
    dialogue: TableDialogue
    choices: Mapping[int, ChoiceTurn]  # by turn


class ChatMaker(DialogueMaker):
    """Grows a chat; `open` are the pictures that depend on a choice of the model's."""

    def __init__(self, domain: str, rng: random.Random) -> None:
        super().__init__(domain, (), rng)
        self.open: set[int] = set()
        self.choices: dict[int, ChoiceTurn] = {}
        self.waiting: list[int] = []

    def give(self, scene: Scene) -> None:
        """A picture that comes with the next turn."""
        self.waiting.append(len(self.scenes) + 1)
        self.scenes[len(self.scenes) + 1] = scene

    def name(self, number: int) -> str:
        if number == max(self.scenes) and self.rng.random() < 0.9:
            return "the table"
        return f"Image #{number}"

    def outputs(self) -> set[int]:
        return {turn.image_number for turn in self.turns if turn.image_number is not None}

    def request(self, kind: str) -> bool:
        if kind in OPEN and self.open:
            return False  # one choice a dialogue
        base = max(self.scenes, default=0)
        if self.scenes and len(self.scenes) > 1 and self.rng.random() < 0.15:
            base = self.rng.choice([*self.scenes])
        if base in self.open and kind not in ALWAYS:
            return False
        if not self.try_turn(kind, base or None):
            return False
        turn = self.turns[-1]
        # an empty table leaves nothing to ask
        if turn.scene is not None and turn.image_number is not None and not turn.scene.things():
            self.turns.pop()
            del self.scenes[turn.image_number]
            return False
        self.turns[-1] = replace(turn, input_images=tuple(self.waiting))
        self.waiting = []
        if turn.image_number is not None and (kind in OPEN or set(turn.images.values()) & self.open):
            self.open.add(turn.image_number)
        return True

    def ask(self, kind: str, *, single: bool) -> bool:
        if self.rng.random() < 0.8:
            base = max(self.scenes)
        else:
            base = self.rng.choice([*self.scenes])
        must = base in self.open
        may = base in self.outputs()
        if must and kind not in OPEN_QUESTIONS:
            return False
        dynamic = must or (may and self.rng.random() < (0.9 if kind in SEVERAL and not single else 0.4))
        if dynamic and kind in SEVERAL and single:
            return False
        made = make_choice(self, kind, base)
        if made is None:
            return False
        text, choice = made
        letters = choice.letters(self.scenes[base])
        if kind not in SEVERAL and len(letters) > 1:
            return False
        self.choices[len(self.turns)] = ChoiceTurn(choice, base, letters, dynamic)
        self.turns.append(
            TableTurn(
                CHOICE, choice.request.args, {"image": base}, text, answer=letters, input_images=tuple(self.waiting)
            )
        )
        self.waiting = []
        return True


def make_chat(domain: str, task: str, mix: Mix, turns: int, rng: random.Random) -> Chat | None:
    """A chat of so many turns with at least one picture to make; None if the dice would not have it."""
    # the one task that the protocol asks with several right answers
    single = (domain, task) != ("Botany", "natural_growth")
    chatter = ChatMaker(domain, rng)
    for _ in range(mix.inputs):
        chatter.give(start_scene(mix.kinds, rng))
    for _ in range(300):
        if len(chatter.turns) == turns:
            break
        last = len(chatter.turns) == turns - 1
        # a choice was just made: more often than not, ask about it
        chosen = bool(chatter.turns) and chatter.turns[-1].kind in OPEN
        if chatter.scenes and rng.random() < (0.8 if chosen else 0.42) and not (last and not chatter.outputs()):
            chatter.ask(rng.choice(OPEN_QUESTIONS if chosen or rng.random() < 0.25 else mix.questions), single=single)
        else:
            if chatter.open and max(chatter.scenes) in chatter.open:
                kinds = ALWAYS
            else:
                kinds = mix.kinds
            chatter.request(rng.choice(kinds))
    if len(chatter.turns) < turns or not chatter.outputs():
        return None
    dialogue = TableDialogue(domain, tuple(chatter.scenes[n] for n in range(1, mix.inputs + 1)), tuple(chatter.turns))
    return Chat(domain, task, dialogue, chatter.choices)


def make_choice(maker: DialogueMaker, kind: str, base: int) -> tuple[str, ChoiceQuestion] | None:
    """A question about one picture, with options that could all be right."""
    made = _arguments(maker, kind, base)
    if made is None:
        return None
    args, images = made
    scene = maker.scenes[base]
    rng = maker.rng
    true = sorted(true_options(kind, args, scene))
    if kind in SEVERAL:
        true = rng.sample(true, min(len(true), rng.choice((0, 1, 2, 2, 3, 3))))
    elif rng.random() < 0.12:
        true = []
    false = [one for one in _pool(kind, rng) if one not in true_options(kind, args, scene)]
    shown = true + false[: 4 - len(true)]
    if len(shown) < 4:  # nearly everything is true
        return None
    rng.shuffle(shown)
    if kind == "count":
        shown.sort()
    options = dict(zip("ABCD", shown, strict=True))
    text = phrase_request(kind, args, {slot: maker.name(number) for slot, number in images.items()}, rng, choice=True)
    return format_choice(text, options), ChoiceQuestion(TableRequest(kind, args, {}), options)


def _arguments(maker: DialogueMaker, kind: str, base: int) -> Made | None:
    if kind in MAKERS:
        return MAKERS[kind](maker, base)
    shapes = [thing.shape for thing in maker.scenes[base].things().values()]
    if kind in ("hue", "place"):
        shapes = [shape for shape in shapes if shapes.count(shape) == 1]
    if kind == "among":
        return {}, {"image": base}
    if shapes:
        return ({"shape": maker.rng.choice(shapes)}, {"image": base})
    return None


def _pool(kind: str, rng: random.Random) -> Sequence[str]:
    if kind == "count":
        return rng.sample("0123456", 7)
    if kind in ("what", "among"):
        return [str(thing) for thing in rng.sample(OBJECTS, 20)]
    if kind in ("place", "where"):
        return rng.sample(CELLS, 16)
    return rng.sample(tuple(COLOURS), len(COLOURS))
