"""The words in a picture, read by a program (extra `ocr`: rapidocr, whose models come with it: nothing is fetched); and
a judge that knows nothing else: `ocr`.

What was read is kept beside the pictures, so that a run that is started again reads nothing twice. The judge decides
the key points that are plain words, `The words "Sign in" are shown`: those that quote, and say of what they quote no
more than that it is there. It is met where every quotation can be read, letter by letter, whatever its case and spaces.
All other points it leaves undecided, and says so."""

import contextlib
import functools
import importlib
import re
import threading
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from weft.errors import UserError
from weft.models.baselines import UncachedEndpoint
from weft.models.endpoint import FATAL, NO_RETRY, UNDECIDED, CallError, EndpointReply
from weft.models.registry import ModelSpec, provider_info
from weft.store.blobs import Blobs, write_file
from weft.store.images import flatten
from weft.types import Gives, Image, Message, Request, Takes, Text

MISSING = "reading words in pictures needs the extra `ocr`: pip install 'weft-eval[ocr]'"
QUIET = {"Global.log_level": "critical"}
SMALL = 960  # a side in pixels up to which a page is looked at enlarged
LARGE_PAGES, SMALL_PAGES, ALL_PAGES = (  # how words are looked for: what one way misses, another finds
    {"Det.limit_type": "max", "Det.limit_side_len": 1280, "Det.box_thresh": 0.3},
    {},
    {"Det.limit_type": "max", "Det.limit_side_len": 640, "Det.box_thresh": 0.3},
)
LEAST = 64  # pixels of a side
# what a line must have to count, and one letter alone: an arrow looks like one
SURE = 0.6
SURER = 0.9
ONE = threading.Lock()  # the reader is one, and takes all processors for itself
QUOTES = (
    *('"([^"]+)"', "\u201c([^\u201d]+)\u201d", "\u201e([^\u201c\u201d]+)[\u201c\u201d]", "\u00ab([^\u00bb]+)\u00bb"),
    *("\u300c([^\u300d]+)\u300d", "\u300e([^\u300f]+)\u300f", "\u2018([^\u2019]+)\u2019", r"(?<!\w)'([^']+)'(?!\w)"),
)
QUOTED = re.compile("|".join(QUOTES))
PRESENCE = (  # what a point may say around its quotations
    "a an the both and in on of it its this as with there is are be must should can has have having shows show shown showing contains "
    "contain containing includes include including displays display displayed reads read says say written appears appear visible readable "
    "legible present text texts word words label labels labelled labeled title heading caption button picture image page screen map "
    "diagram flowchart interface"
)
PLAIN = frozenset(PRESENCE.split())
BOTH = "the both and words word texts text labels is are must should be shown visible readable legible present displayed there"
SEVERAL = frozenset(BOTH.split())  # what may stand around more than one
SCRIPTS = ("LATIN", "CJK", "HIRAGANA", "KATAKANA", "FULLWIDTH", "IDEOGRAPHIC")
CHINESE = re.compile(
    "[图画面页上中里的内有含包显示出现写着文字词标题按钮题签字样可见能看到读清晰为是和与及、，。：；]*"
)
TOKEN = re.compile(
    r"(?:(?<![\w.,])[-+\u2212])?[$\u20ac\u00a3\u00a5]?\d+(?:[.,:/]\d+)*%?|[^\W\d_]+[+#]*"
)  # a number with its signs, or letters
ALIKE = str.maketrans({"i": "l"})  # what no reader can tell apart by its shape


class OcrLine(Struct, frozen=True):
    """A line of print: its words, how sure the reader is (0 to 1), and its box in pixels: left, top, right, bottom."""

    text: str
    confidence: float
    box: tuple[int, int, int, int]


def read_lines(image: Image, blobs: Blobs) -> list[OcrLine]:
    """From top to bottom. Raises UserError where the extra is missing, PictureError for a picture that cannot be
    opened."""
    program, version = load_ocr()
    kept = blobs.root.parent / "read" / image.digest[:2] / f"{image.digest}-{version}.json"
    try:
        return msgspec.json.decode(kept.read_bytes(), type=list[OcrLine])
    except (OSError, msgspec.DecodeError):
        pass
    with blobs.decode_within_memory(image) as picture:
        lines = _read(program, picture)
    with contextlib.suppress(OSError):  # what cannot be kept is read again
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_file(kept, msgspec.json.encode(lines))
    return lines


def find_quotations(text: str) -> list[str]:
    """What stands in quotation marks, of any kind."""
    return [next(one for one in match.groups() if one is not None).strip() for match in QUOTED.finditer(text)]


def remove_quotations(text: str) -> str:
    return QUOTED.sub(" ", text)


def find_checkable_phrases(point: str) -> list[str]:
    """What a key point quotes, if it says nothing else than that it is there, and the program could read it; else
    nothing."""
    found = find_quotations(point)
    words = re.findall(r"[^\W\d_]+|\d+", remove_quotations(point).casefold())
    if len(found) == 1:
        allowed = PLAIN
    else:
        allowed = PLAIN & SEVERAL
    plain = all(word in allowed or CHINESE.fullmatch(word) for word in words)
    told = [_tokens(one) for one in found]
    # a letter is found in any text
    alone = any(len(some) == 1 and len(some[0]) == 1 and some[0].isascii() for some in told)
    if (
        not plain
        or not all(told)
        or alone
        or len({tuple(some) for some in told}) < len(told)
        or not all(map(_is_known, found))
    ):
        return []
    return found


def _is_known(text: str) -> bool:
    """Whether it is in scripts that the program was taught: Latin, Chinese and Japanese."""
    return all(not letter.isalpha() or unicodedata.name(letter, "").startswith(SCRIPTS) for letter in text)


def contains_phrase(phrase: str, lines: Sequence[str]) -> bool:
    """Whether a phrase can be read in some lines, or over several that follow one another: as whole words, however they
    are spaced, and numbers as they are. Where words are not spaced (Chinese), as it stands."""
    due = _tokens(phrase)
    close = "".join(due)
    if any(ord(letter) > 0x2E7F for letter in close):
        whole = "\0".join("".join(_tokens(line)) for line in lines)
        if close[0].isdigit():
            before = r"(?<!\d)"
        else:
            before = ""
        if close[-1].isdigit():
            after = r"(?!\d)"
        else:
            after = ""
        if re.search(before + re.escape(close) + after, whole) is not None:
            return True
        return close in whole.replace("\0", "") and not any(map(str.isdigit, close))
    words = _tokens("\n".join(lines))
    if any(map(str.isdigit, close)):
        return any(words[start : start + len(due)] == due for start in range(len(words)))
    for start in range(len(words)):
        length = 0
        for end in range(start, len(words)):
            length += len(words[end])
            if length >= len(close):
                if length == len(close) and "".join(words[start : end + 1]) == close:
                    return True
                break
    return False


class Ocr(UncachedEndpoint):
    """The judge. Its answers follow from the picture alone."""

    may_leave_undecided = True

    def __init__(self, blobs: Blobs) -> None:
        super().__init__("ocr", version=1, reader=load_ocr()[1])
        self._blobs = blobs

    async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
        import asyncio

        question = want.question
        if question is not None:
            points = question.material.get("points", ())
        else:
            points = ()
        if question is not None:
            made = question.material.get("made", ())
        else:
            made = ()
        pictures = [part for part in made if isinstance(part, Image)]
        if not points or not pictures:
            if question is not None:
                what = f" ({', '.join(question.metrics)})"
            else:
                what = ""
            raise CallError(f"ocr reads words, and decides about nothing else{what}", NO_RETRY)
        asked = [find_checkable_phrases(part.text) for part in points if isinstance(part, Text)]
        if not any(asked):
            raise CallError("none of its key points is plain words, which is all that ocr can decide", NO_RETRY)
        try:
            lines = [line.text for line in await asyncio.to_thread(read_lines, pictures[-1], self._blobs)]
        except UserError as error:
            raise CallError(str(error), FATAL) from None
        if not lines:
            raise CallError(
                "ocr read nothing at all in the picture, and cannot tell whether that is the picture's fault", NO_RETRY
            )
        found = [self._point(number, some, lines) for number, some in enumerate(asked, start=1)]
        left = [number for number, some in enumerate(asked, start=1) if not some]
        said = msgspec.json.encode(
            {**_least(question.schema if question else {}), "points": found, UNDECIDED: left}
        ).decode()
        return EndpointReply((Text(said),), "answered", raw=said, served_model=self.name)

    def _point(self, number: int, due: Sequence[str], lines: Sequence[str]) -> dict[str, Any]:
        missing = [one for one in due if not contains_phrase(one, lines)]
        if missing:
            told = f"not to be read: {', '.join(missing)}"
        else:
            told = f"can be read: {', '.join(due)}"
        return {
            "point": number,
            "evidence": told if due else "not decided: it is no plain words",
            "satisfied": bool(due) and not missing,
        }


@provider_info(Takes(), Gives(image=False, interleaved=False, ordered=False), extra="ocr")
def from_spec(spec: ModelSpec, blobs: Blobs) -> Ocr:
    return Ocr(blobs)


def _least(schema: Mapping[str, Any]) -> dict[str, Any]:
    """What else an answer must have, where nothing is known of it: the first choice, the least number."""
    made: dict[str, Any] = {}
    for name, one in schema.get("properties", {}).items():
        usual = {"integer": one.get("minimum", 0), "number": one.get("minimum", 0), "boolean": False, "string": ""}
        if "enum" in one:
            made[name] = one["enum"][0]
        else:
            made[name] = usual.get(one["type"])
    return made


def _tokens(text: str) -> list[str]:
    """Words in lower case, without what is between them; letters that look alike are one. Numbers keep their signs."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    # within a line
    plain = re.sub(r"(?<=\d)[^\S\n]+(?=%)", "", re.sub(r"(?<=\d)[^\S\n]*([/:])[^\S\n]*(?=\d)", r"\1", plain))
    plain = re.sub(r"(?<![\d,])\d{1,3}(?:,\d{3})+(?![\d,])", lambda match: match.group().replace(",", ""), plain)
    return [
        one if one[-1] == "%" or any(map(str.isdigit, one)) else one.translate(ALIKE) for one in TOKEN.findall(plain)
    ]


@functools.cache
def load_ocr() -> tuple[Any, str]:
    """The program, which is loaded when it is first called, and which it is. Raises UserError where the extra is
    missing."""
    try:
        found: Any = importlib.import_module("rapidocr")
        version = importlib.import_module("importlib.metadata").version("rapidocr")
        importlib.import_module("onnxruntime")
    except ImportError:
        raise UserError(MISSING) from None

    @functools.cache
    def programs(is_large: bool) -> list[Any]:
        return [
            found.RapidOCR(params={**QUIET, **way}) for way in (LARGE_PAGES if is_large else SMALL_PAGES, ALL_PAGES)
        ]

    return programs, f"rapidocr-{version}-4"


def _read(programs: Any, picture: Any) -> list[OcrLine]:
    """In two ways, of which one finds what the other misses: few words on a large page, much small print."""
    import numpy as np

    page = flatten(picture)
    if min(page.size) < LEAST:
        page = _padded(page)
    pixels = np.asarray(page)[:, :, ::-1]
    seen: list[OcrLine] = []
    for program in programs(max(page.size) > SMALL):
        with ONE:
            found: Any = program(pixels)
        if found.txts is None or found.boxes is None:
            continue
        for text, sure, corners in zip(found.txts, found.scores, found.boxes, strict=True):
            across = [float(x) for x, _ in corners]
            down = [float(y) for _, y in corners]
            box = (round(min(across)), round(min(down)), round(max(across)), round(max(down)))
            line = OcrLine(text.strip(), round(float(sure), 3), box)
            if line.text and line.confidence >= (SURE if len(line.text) > 1 else SURER):
                seen.append(line)
    lines: list[OcrLine] = []
    # the surest counts, unless it has but a part of what another has
    for line in sorted(seen, key=lambda one: -one.confidence):
        rivals = [other for other in lines if _overlap(line, other) > 0.4]
        if all(_width(line) > 1.4 * _width(other) for other in rivals):
            lines = [*(other for other in lines if other not in rivals), line]
    return sorted(lines, key=lambda line: (line.box[1] // 8, line.box[0]))


def _width(line: OcrLine) -> int:
    return line.box[2] - line.box[0]


def _overlap(first: OcrLine, second: OcrLine) -> float:
    """Which share of the smaller one lies in the other."""
    wide = min(first.box[2], second.box[2]) - max(first.box[0], second.box[0])
    high = min(first.box[3], second.box[3]) - max(first.box[1], second.box[1])
    areas = [max(1, (box[2] - box[0]) * (box[3] - box[1])) for box in (first.box, second.box)]
    return max(0, wide) * max(0, high) / min(areas)


def _padded(page: Any) -> Any:
    """A picture that is too thin for the reader, on a white ground of the least size."""
    from PIL import Image as Pil

    made = Pil.new("RGB", (max(LEAST, page.width), max(LEAST, page.height)), "white")
    made.paste(page, (0, 0))
    return made
