"""Words and image codes as numbers. The vocabulary is closed: it follows from the tabletop's wordings, and any other
word is `<unk>`.

The order of the words is part of the trained weights: it never changes by itself."""

import functools
import re

from weft_tabletop.world.scenes import BACKGROUNDS, CELLS, COLOURS, SHAPES
from weft_tabletop.world.wordings import CHOICES, SHOW, THINK, WORDINGS, pluralise

SPECIAL = ("<pad>", "<unk>", "<system>", "<user>", "<assistant>", "<image>", "</image>", "<end>")
PAD, UNK, SYSTEM, USER, ASSISTANT, IMAGE, IMAGE_END, END = range(len(SPECIAL))
LEVELS = (8, 8, 8, 5)  # of an image code's numbers; their product is how many codes there are
CODES = 8 * 8 * 8 * 5
PLACES = 16  # codes in an image
SIDE = 64  # pixels of an image, both ways
ANSWER_WORDS = (
    "yes no nothing the first second became background should be there at a an table with image "
    "none of these options above"
)
# Said by the model, or before a request.
FORMS = (THINK, SHOW, "<think> </think>", "Final Answer:", "After 2 steps:", "Step 1: add a")
LETTERS = re.compile(r"\b[A-E]{1,5}\b")  # of a multiple choice: `AC` is two answers
TOKEN = re.compile(r"</?think>|[A-E]|[a-d][1-4](?![a-z0-9])|[a-z]+|\d|[^\sa-zA-E\d]")
SPACE_TO_REMOVE = re.compile(r" ([.,:?])|(?<=[A-E]) (?=[A-E]\b)")

_PLACEHOLDERS = "\ue000\ue001\ue002\ue003\ue004"  # stand for A to E while the rest becomes lower case
_TO_PLACEHOLDERS = str.maketrans("ABCDE", _PLACEHOLDERS)
_TO_LETTERS = str.maketrans(_PLACEHOLDERS, "ABCDE")


def split(text: str) -> list[str]:
    """Split a text into words, in lower case except for the letters of a multiple choice."""
    marked = LETTERS.sub(lambda match: match.group().translate(_TO_PLACEHOLDERS), text)
    return TOKEN.findall(marked.lower().translate(_TO_LETTERS))


@functools.cache
def words() -> tuple[str, ...]:
    """All words, each once, in the order in which the weights number them."""
    ordered: dict[str, None] = dict.fromkeys(SPECIAL)
    for wordings in (*WORDINGS.values(), *CHOICES.values(), FORMS):
        for wording in wordings:
            without_slots = re.sub(r"\{\w+\}", " ", wording)
            ordered.update(dict.fromkeys(split(without_slots)))
    names = [*COLOURS, *SHAPES, *map(pluralise, SHAPES), *BACKGROUNDS, *CELLS]
    characters = [*"0123456789", *"abcd", *"ABCDE", *".,:?#()"]
    others = ["left", "right", "to", "top", "bottom", "step", "steps", "then"]
    later_words = ["hour", "hours", "colour", "shape", "on", "off"]
    ordered.update(dict.fromkeys([*names, *characters, *ANSWER_WORDS.split(), *others, *later_words]))
    return tuple(ordered)


@functools.cache
def _numbers() -> dict[str, int]:
    return {word: number for number, word in enumerate(words())}


def size() -> int:
    """How many tokens there are, words and codes together; code `c` is token `len(words()) + c`."""
    return len(words()) + CODES


def encode(text: str) -> list[int]:
    numbers = _numbers()
    return [numbers.get(word, UNK) for word in split(text)]


def unknown_words(text: str) -> list[str]:
    numbers = _numbers()
    return [word for word in split(text) if word not in numbers]


def decode(tokens: list[int]) -> str:
    """Return words as a sentence, without special words and image codes. Letters of a multiple choice are joined."""
    spaced = " ".join(words()[token] for token in tokens if len(SPECIAL) <= token < len(words()))
    return SPACE_TO_REMOVE.sub(r"\1", spaced)
