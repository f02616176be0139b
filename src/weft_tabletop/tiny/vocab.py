"""Words and picture codes as numbers. The vocabulary is closed: it follows from the tabletop's wordings, and anything
else is `<unk>`."""

import functools
import re

from weft_tabletop.world.language import CHOICES, SHOW, THINK, WORDINGS, plural
from weft_tabletop.world.scenes import BACKGROUNDS, CELLS, COLOURS, SHAPES

SPECIAL = ("<pad>", "<unk>", "<system>", "<user>", "<assistant>", "<image>", "</image>", "<end>")
PAD, UNK, SYSTEM, USER, ASSISTANT, IMAGE, IMAGE_END, END = range(len(SPECIAL))
LEVELS = (8, 8, 8, 5)  # of the picture codes; their product is how many there are
CODES = 8 * 8 * 8 * 5
PLACES = 16  # codes a picture
SIDE = 64  # pixels of a picture, both ways
ANSWER_WORDS = (
    "yes no nothing the first second became background should be there at a an table with image "
    "none of these options above"
)
# said by the model, or before a request
FORMS = (THINK, SHOW, "<think> </think>", "Final Answer:", "After 2 steps:", "Step 1: add a")
LETTERS = re.compile(r"\b[A-E]{1,5}\b")  # of a multiple choice: `AC` is two answers
TOKEN = re.compile(r"</?think>|[A-E]|[a-d][1-4](?![a-z0-9])|[a-z]+|\d|[^\sa-zA-E\d]")
CLOSE = re.compile(r" ([.,:?])|(?<=[A-E]) (?=[A-E]\b)")

_MARKS = "\ue000\ue001\ue002\ue003\ue004"  # stand for A to E while the rest becomes lower case
_UPPER = str.maketrans("abcde", _MARKS)
_BACK = str.maketrans(_MARKS, "ABCDE")


def split(text: str) -> list[str]:
    spread = LETTERS.sub(lambda match: match.group().lower().translate(_UPPER), text)
    kept = "".join(char if char in _MARKS else char.lower() for char in spread)
    return TOKEN.findall(kept.translate(_BACK))


@functools.cache
def words() -> tuple[str, ...]:
    """All words, in an order that never changes by itself."""
    found: dict[str, None] = dict.fromkeys(SPECIAL)
    for wordings in (*WORDINGS.values(), *CHOICES.values(), FORMS):
        for wording in wordings:
            found.update(dict.fromkeys(split(re.sub(r"\{\w+\}", " ", wording))))
    names = [
        *COLOURS,
        *SHAPES,
        *map(plural, SHAPES),
        *BACKGROUNDS,
        *CELLS,
        *"0123456789",
        *"abcd",
        *"ABCDE",
        *".,:?#()",
    ]
    found.update(
        dict.fromkeys([*names, *ANSWER_WORDS.split(), "left", "right", "to", "top", "bottom", "step", "steps", "then"])
    )
    found.update(dict.fromkeys(["hour", "hours", "colour", "shape", "on", "off"]))
    return tuple(found)


@functools.cache
def _numbers() -> dict[str, int]:
    return {word: number for number, word in enumerate(words())}


def size() -> int:
    """Words and codes together; code `c` is token `len(words()) + c`."""
    return len(words()) + CODES


def encode(text: str) -> list[int]:
    numbers = _numbers()
    return [numbers.get(word, UNK) for word in split(text)]


def unknown(text: str) -> list[str]:
    numbers = _numbers()
    return [word for word in split(text) if word not in numbers]


def decode(tokens: list[int]) -> str:
    """Words as a sentence; letters of a multiple choice stand together."""
    return CLOSE.sub(r"\1", " ".join(words()[token] for token in tokens if len(SPECIAL) <= token < len(words())))
