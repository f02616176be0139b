"""The words in a picture, read by a program (extra `ocr`: rapidocr, whose models come with it: nothing is fetched); and a judge that knows
nothing else: `ocr`.

What was read is kept beside the pictures, so that a run that is started again reads nothing twice. The judge decides the key points that
are plain words, `The words "Sign in" are shown`: those that quote, and say of what they quote no more than that it is there. It is met
where every quotation can be read, letter by letter, whatever its case and spaces. All other points it leaves undecided, and says so.
"""

import functools
import importlib
import re
import threading
import unicodedata
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from weft.errors import UserError
from weft.models.baselines import Local
from weft.models.endpoint import FATAL, NO, CallError, Sent
from weft.models.registry import Spec
from weft.store.blobs import Blobs, write_file
from weft.types import Image, Message, Text, Want

MISSING = "reading words in pictures needs the extra `ocr`: pip install 'weft-eval[ocr]'"
ONE = threading.Lock()  # the reader is one, and takes all processors for itself
QUOTED = re.compile(r'"([^"]+)"|\u201c([^\u201d]+)\u201d|\u300c([^\u300d]+)\u300d|\u300e([^\u300f]+)\u300f|\u00ab([^\u00bb]+)\u00bb')
PRESENCE = (  # what a point may say around its quotations
    "a an the all both and each in on of it its this as with there is are be must should can to has have having shows show shown showing "
    "contains contain containing includes include including displays display displayed reads read says say written appears appear visible "
    "readable legible present text texts word words label labels labelled labeled title heading caption button picture image page screen "
    "map diagram flowchart interface"
)
PLAIN = frozenset(PRESENCE.split())
CHINESE = re.compile("[图画面页上中里的内有含包显示出现写着文字词标题按钮题签字样可见能看到读清晰为是和与及、，。：；]*")
ALIKE = str.maketrans({"0": "o", "1": "l", "i": "l"})  # what no reader can tell apart by its shape


class Line(Struct, frozen=True):
    """A line of print: its words, how sure the reader is (0 to 1), and its box in pixels: left, top, right, bottom."""

    text: str
    sure: float
    box: tuple[int, int, int, int]


def lines_in(image: Image, blobs: Blobs) -> list[Line]:
    """From top to bottom. Raises UserError where the extra is missing, PictureError for a picture that cannot be opened."""
    program, version = reader()
    kept = blobs.root.parent / "read" / image.digest[:2] / f"{image.digest}-{version}.json"
    try:
        return msgspec.json.decode(kept.read_bytes(), type=list[Line])
    except (OSError, msgspec.DecodeError):
        pass
    with blobs.opened(image) as picture:
        lines = _read(program, picture)
    kept.parent.mkdir(parents=True, exist_ok=True)
    write_file(kept, msgspec.json.encode(lines))
    return lines


def quotations(point: str) -> list[str]:
    """What a key point quotes, if it says nothing else than that it is there; else nothing."""
    found = [next(filter(None, match.groups())).strip() for match in QUOTED.finditer(point)]
    rest = QUOTED.sub(" ", point)
    words = re.findall(r"[^\W\d_]+|\d+", rest.casefold())
    plain = all(word in PLAIN or CHINESE.fullmatch(word) for word in words)
    return [one for one in found if _folded(one)] if plain and all(map(_folded, found)) else []


def is_read(phrase: str, lines: Sequence[str]) -> bool:
    """Whether a phrase can be read in some lines, or over several that follow one another: as whole words, however they are spaced. Where
    words are not spaced (Chinese), as it stands."""
    close = _folded(phrase)
    if any(ord(letter) > 0x2E7F for letter in close):
        return close in _folded(" ".join(lines))
    words = _spaced("\n".join(lines)).split()
    for start in range(len(words)):
        length = 0
        for end in range(start, len(words)):
            length += len(words[end])
            if length >= len(close):
                if length == len(close) and "".join(words[start : end + 1]) == close:
                    return True
                break
    return False


class Ocr(Local):
    """The judge. Its answers follow from the picture alone."""

    def __init__(self, blobs: Blobs) -> None:
        super().__init__("ocr", version=1, reader=reader()[1])
        self._blobs = blobs

    async def send(self, messages: tuple[Message, ...], want: Want) -> Sent:
        import asyncio

        question = want.question
        points = question.material.get("points", ()) if question is not None else ()
        made = question.material.get("made", ()) if question is not None else ()
        pictures = [part for part in made if isinstance(part, Image)]
        if not points or not pictures:
            what = f" ({', '.join(question.metrics)})" if question is not None else ""
            raise CallError(f"ocr reads words, and decides about nothing else{what}", NO)
        asked = [quotations(part.text) for part in points if isinstance(part, Text)]
        if not any(asked):
            raise CallError("none of its key points is plain words, which is all that ocr can decide", NO)
        try:
            lines = [line.text for line in await asyncio.to_thread(lines_in, pictures[-1], self._blobs)]
        except UserError as error:
            raise CallError(str(error), FATAL) from None
        found = [self._point(number, quoted, lines) for number, quoted in enumerate(asked, start=1)]
        undecided = [number for number, quoted in enumerate(asked, start=1) if not quoted]
        about = {"picture_is": "an answer", "unnecessary_steps": 0, "points": found, "read_by": self.name, "undecided": undecided}
        said = msgspec.json.encode(about).decode()
        return Sent((Text(said),), "answered", raw=said, served=self.name)

    def _point(self, number: int, quoted: Sequence[str], lines: Sequence[str]) -> dict[str, Any]:
        missing = [one for one in quoted if not is_read(one, lines)]
        told = f"not to be read: {', '.join(missing)}" if missing else f"can be read: {', '.join(quoted)}"
        return {
            "point": number,
            "evidence": told if quoted else "not decided: it is no plain words",
            "satisfied": bool(quoted) and not missing,
        }


def from_spec(spec: Spec, blobs: Blobs) -> Ocr:
    return Ocr(blobs)


def _spaced(text: str) -> str:
    """Lower case, one space between words, punctuation gone; letters and digits that look alike are one."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(re.sub(r"[\W_]", " ", plain).translate(ALIKE).split())


def _folded(text: str) -> str:
    return _spaced(text).replace(" ", "")


@functools.cache
def reader() -> tuple[Any, str]:
    """The program, which is loaded when it is first called, and which it is. Raises UserError where the extra is missing."""
    try:
        found: Any = importlib.import_module("rapidocr")
        version = importlib.import_module("importlib.metadata").version("rapidocr")
        importlib.import_module("onnxruntime")
    except ImportError:
        raise UserError(MISSING) from None
    return functools.cache(lambda: found.RapidOCR(params={"Global.log_level": "critical"})), f"rapidocr-{version}"


def _read(program: Any, picture: Any) -> list[Line]:
    import numpy as np

    pixels = np.asarray(picture.convert("RGB"))[:, :, ::-1]
    with ONE:
        found: Any = program()(pixels)
    if found.txts is None or found.boxes is None:
        return []
    lines: list[Line] = []
    for text, sure, corners in zip(found.txts, found.scores, found.boxes, strict=True):
        across, down = [float(x) for x, _ in corners], [float(y) for _, y in corners]
        box = (round(min(across)), round(min(down)), round(max(across)), round(max(down)))
        if text.strip():
            lines.append(Line(text.strip(), round(float(sure), 3), box))
    return lines
