"""Read the text in images by OCR, and judge key points by it (extra `ocr`: rapidocr, with its models: no download).

What was read is stored beside the images, so that no image is read twice. The judge `ocr` decides only key points that
do nothing but quote text, such as `The words "Sign in" are shown`. A point is met where every quotation can be read,
letter by letter, whatever its case and spacing. All other points stay undecided, and the reply says so.
"""

import asyncio
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
from weft.store.images import downscale, flatten
from weft.types import Gives, Image, Message, Request, Takes, Text

MISSING_EXTRA = "reading text in images needs the extra `ocr`: pip install 'weft-eval[ocr]'"
QUIET = {"Global.log_level": "critical"}
MAX_SMALL_SIDE = 960  # pixels; smaller pages are enlarged before text is detected
# detector settings: each finds text that the others miss
LARGE_PAGE_SETTINGS: dict[str, Any] = {"Det.limit_type": "max", "Det.limit_side_len": 1280, "Det.box_thresh": 0.3}
SMALL_PAGE_SETTINGS: dict[str, Any] = {}
ANY_PAGE_SETTINGS: dict[str, Any] = {"Det.limit_type": "max", "Det.limit_side_len": 640, "Det.box_thresh": 0.3}
MIN_SIDE = 64  # pixels that the detector needs
MAX_PAGE_SIDE = 4000  # pixels; larger pages are reduced before they are read
MAX_PAGE_RATIO = 30  # of the longer side to the shorter; the detector loses the shorter one of thinner pages
MIN_CONFIDENCE = 0.6
MIN_LETTER_CONFIDENCE = 0.9  # of a line of a single letter: an arrow looks like one
MAX_OVERLAP = 0.4  # of two lines, above which they are two readings of one
OCR_LOCK = threading.Lock()  # one call uses all processors
QUOTES = (
    *('"([^"]+)"', "\u201c([^\u201d]+)\u201d", "\u201e([^\u201c\u201d]+)[\u201c\u201d]", "\u00ab([^\u00bb]+)\u00bb"),
    *("\u300c([^\u300d]+)\u300d", "\u300e([^\u300f]+)\u300f", "\u2018([^\u2019]+)\u2019", r"(?<!\w)'([^']+)'(?!\w)"),
)
QUOTATION = re.compile("|".join(QUOTES))
PRESENCE = (  # words that a point may have around its quotation
    "a an the both and in on of it its this as with there is are be must should can has have having shows show "
    "shown showing contains contain containing includes include including displays display displayed reads read "
    "says say written appears appear visible readable legible present text texts word words label labels labelled "
    "labeled title heading caption button picture image page screen map diagram flowchart interface"
)
ALLOWED_WORDS = frozenset(PRESENCE.split())
PRESENCE_OF_SEVERAL = (  # around more than one quotation
    "the both and words word texts text labels is are must should be shown visible readable legible present displayed "
    "there"
)
ALLOWED_WORDS_OF_SEVERAL = ALLOWED_WORDS & frozenset(PRESENCE_OF_SEVERAL.split())
KNOWN_SCRIPTS = ("LATIN", "CJK", "HIRAGANA", "KATAKANA", "FULLWIDTH", "IDEOGRAPHIC")  # that the models were trained on
CHINESE = re.compile(
    "[图画面页上中里的内有含包显示出现写着文字词标题按钮题签字样可见能看到读清晰为是和与及、，。：；]*"
)
# a number with its signs, or letters
TOKEN = re.compile(r"(?:(?<![\w.,])[-+\u2212])?[$\u20ac\u00a3\u00a5]?\d+(?:[.,:/]\d+)*%?|[^\W\d_]+[+#]*")
LOOKALIKES = str.maketrans({"i": "l"})  # letters that OCR cannot tell apart by their shape
FIRST_UNSPACED = 0x2E80  # code point from which on scripts put no spaces between words


class OcrLine(Struct, frozen=True):
    """A line of text in an image."""

    text: str
    confidence: float  # 0 to 1
    box: tuple[int, int, int, int]  # left, top, right, bottom, in pixels


def read_lines(image: Image, blobs: Blobs) -> list[OcrLine]:
    """Read the lines of text in an image, from top to bottom.

    Raises UserError where the extra is missing, ImageError for an image that cannot be opened.
    """
    engines, version = load_ocr()
    path = blobs.root.parent / "read" / image.digest[:2] / f"{image.digest}-{version}.json"
    try:
        return msgspec.json.decode(path.read_bytes(), type=list[OcrLine])
    except (OSError, msgspec.DecodeError):
        pass
    with blobs.decode_within_memory(image) as decoded:
        lines = _run_ocr(engines, decoded)
    with contextlib.suppress(OSError):  # what cannot be stored is read again next time
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, msgspec.json.encode(lines))
    return lines


def find_quotations(text: str) -> list[str]:
    """Return all texts in quotation marks, of any kind."""
    return [match[match.lastindex or 0].strip() for match in QUOTATION.finditer(text)]


def remove_quotations(text: str) -> str:
    """Return the text without its quotations."""
    return QUOTATION.sub(" ", text)


def find_checkable_phrases(point: str) -> list[str]:
    """Return the quotations of a key point that says only that they are shown; nothing for any other point.

    Nothing is returned either where OCR could not decide: other scripts, single letters, or the same text twice.
    """
    quotations = find_quotations(point)
    allowed_words = ALLOWED_WORDS
    if len(quotations) != 1:
        allowed_words = ALLOWED_WORDS_OF_SEVERAL
    for word in re.findall(r"[^\W\d_]+|\d+", remove_quotations(point).casefold()):
        if word not in allowed_words and not CHINESE.fullmatch(word):
            return []
    seen: set[tuple[str, ...]] = set()
    for quotation in quotations:
        tokens = tuple(_tokens(quotation))
        if not tokens or tokens in seen or not _has_known_scripts(quotation):
            return []
        if len(tokens) == 1 and len(tokens[0]) == 1 and tokens[0].isascii():  # one letter is found in any text
            return []
        seen.add(tokens)
    return quotations


def _has_known_scripts(text: str) -> bool:
    return all(not letter.isalpha() or unicodedata.name(letter, "").startswith(KNOWN_SCRIPTS) for letter in text)


def contains_phrase(phrase: str, lines: Sequence[str]) -> bool:
    """Return whether a phrase can be read in a line, or across consecutive lines.

    Words must be whole, however they are spaced, and numbers exact. In scripts without spaces (Chinese) the phrase is
    searched as it stands.
    """
    tokens = _tokens(phrase)
    letters = "".join(tokens)
    if any(ord(letter) >= FIRST_UNSPACED for letter in letters):
        return _contains_unspaced(letters, lines)
    words = _tokens("\n".join(lines))
    has_digit = _has_digit(letters)
    for start in range(len(words)):
        if has_digit and words[start : start + len(tokens)] == tokens:
            return True
        if not has_digit and _starts_with_letters(words[start:], letters):
            return True
    return False


def _contains_unspaced(letters: str, lines: Sequence[str]) -> bool:
    text = "\0".join("".join(_tokens(line)) for line in lines)
    pattern = re.escape(letters)
    if letters[0].isdigit():
        pattern = r"(?<!\d)" + pattern
    if letters[-1].isdigit():
        pattern += r"(?!\d)"
    if re.search(pattern, text) is not None:
        return True
    return letters in text.replace("\0", "") and not _has_digit(letters)


def _starts_with_letters(words: Sequence[str], letters: str) -> bool:
    """Return whether whole words from the first one on are spelled by exactly these letters."""
    spelled = ""
    for word in words:
        spelled += word
        if len(spelled) >= len(letters):
            return spelled == letters
    return False


def _has_digit(text: str) -> bool:
    return any(letter.isdigit() for letter in text)


class Ocr(UncachedEndpoint):
    """The judge `ocr`. Its answers depend on the image and the key points alone."""

    may_leave_undecided = True

    def __init__(self, blobs: Blobs) -> None:
        super().__init__("ocr", version=1, reader=load_ocr()[1])
        self._blobs = blobs

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        question = request.question
        if question is None:
            raise CallError("ocr judges text in images, and nothing else", NO_RETRY)
        points = question.material.get("points", ())
        images = [part for part in question.material.get("output", ()) if isinstance(part, Image)]
        if not points or not images:
            metrics = ", ".join(question.metrics)
            raise CallError(f"ocr judges text in images, and nothing else ({metrics})", NO_RETRY)
        phrases = [find_checkable_phrases(part.text) for part in points if isinstance(part, Text)]
        if not any(phrases):
            raise CallError("none of the key points is plain words, and ocr can decide no others", NO_RETRY)
        lines = await self._read_texts(images[-1])
        judged: list[dict[str, Any]] = []
        undecided: list[int] = []
        for number, point_phrases in enumerate(phrases, start=1):
            judged.append(_judge_point(number, point_phrases, lines))
            if not point_phrases:
                undecided.append(number)
        answer = {**_fill_defaults(question.schema), "points": judged, UNDECIDED: undecided}
        text = msgspec.json.encode(answer).decode()
        return EndpointReply((Text(text),), "answered", raw=text, served_model=self.name)

    async def _read_texts(self, image: Image) -> list[str]:
        try:
            lines = await asyncio.to_thread(read_lines, image, self._blobs)
        except UserError as error:
            raise CallError(str(error), FATAL) from None
        if not lines:
            raise CallError("ocr read no text in the image, and cannot tell whether there is none", NO_RETRY)
        return [line.text for line in lines]


def _judge_point(number: int, phrases: Sequence[str], lines: Sequence[str]) -> dict[str, Any]:
    missing = [phrase for phrase in phrases if not contains_phrase(phrase, lines)]
    if not phrases:
        evidence = "not decided: it is not plain words"
    elif missing:
        evidence = f"not found: {', '.join(missing)}"
    else:
        evidence = f"found: {', '.join(phrases)}"
    return {"point": number, "evidence": evidence, "satisfied": bool(phrases) and not missing}


@provider_info(Takes(), Gives(image=False, interleaved=False, ordered=False), extra="ocr")
def from_spec(spec: ModelSpec, blobs: Blobs) -> Ocr:
    """Build the judge `ocr`."""
    return Ocr(blobs)


def _fill_defaults(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a value for each property of a schema that ocr cannot judge: the first choice, or the least value."""
    answer: dict[str, Any] = {}
    for name, entry in schema.get("properties", {}).items():
        minimum = entry.get("minimum", 0)
        defaults = {"integer": minimum, "number": minimum, "boolean": False, "string": ""}
        if "enum" in entry:
            answer[name] = entry["enum"][0]
        else:
            answer[name] = defaults.get(entry["type"])
    return answer


def _tokens(text: str) -> list[str]:
    """Split a text into words in lower case and numbers with their signs. Letters that look alike become one."""
    text = unicodedata.normalize("NFKC", text).casefold()
    # spaces inside "3 : 2" and "50 %", but not across lines
    text = re.sub(r"(?<=\d)[^\S\n]*([/:])[^\S\n]*(?=\d)", r"\1", text)
    text = re.sub(r"(?<=\d)[^\S\n]+(?=%)", "", text)
    # thousands: 1,000
    text = re.sub(r"(?<![\d,])\d{1,3}(?:,\d{3})+(?![\d,])", lambda match: match.group().replace(",", ""), text)
    tokens: list[str] = []
    for token in TOKEN.findall(text):
        if token[-1] == "%" or _has_digit(token):
            tokens.append(token)
        else:
            tokens.append(token.translate(LOOKALIKES))
    return tokens


@functools.cache
def load_ocr() -> tuple[Any, str]:
    """Return a function that builds the OCR engines for large or for small pages, and the version of the reader.

    Nothing is loaded before that function is called. Raises UserError where the extra is missing.
    """
    try:
        rapidocr: Any = importlib.import_module("rapidocr")
        version = importlib.import_module("importlib.metadata").version("rapidocr")
        importlib.import_module("onnxruntime")
    except ImportError:
        raise UserError(MISSING_EXTRA) from None

    @functools.cache
    def build_engines(is_large: bool) -> list[Any]:
        page_settings = LARGE_PAGE_SETTINGS if is_large else SMALL_PAGE_SETTINGS
        return [rapidocr.RapidOCR(params={**QUIET, **settings}) for settings in (page_settings, ANY_PAGE_SETTINGS)]

    return build_engines, f"rapidocr-{version}-4"


def _run_ocr(build_engines: Any, decoded: Any) -> list[OcrLine]:
    """Read a page with two detector settings, of which each finds text that the other misses."""
    import numpy as np

    page = flatten(decoded)
    factor = max(page.size) / MAX_PAGE_SIDE
    if factor > 1:  # the detector reduces it further, and makes several copies before that
        page = downscale(page, MAX_PAGE_SIDE)
    least = max(MIN_SIDE, max(page.size) // MAX_PAGE_RATIO)
    if min(page.size) < least:
        page = _pad(page, least)
    pixels = np.asarray(page)[:, :, ::-1]
    candidates: list[OcrLine] = []
    for engine in build_engines(max(page.size) > MAX_SMALL_SIDE):
        with OCR_LOCK:
            result: Any = engine(pixels)
        if result.txts is None or result.boxes is None:
            continue
        for text, confidence, corners in zip(result.txts, result.scores, result.boxes, strict=True):
            box = _bounding_box(corners, max(1.0, factor))
            line = OcrLine(text.strip(), round(float(confidence), 3), box)
            if _is_confident(line):
                candidates.append(line)
    lines = _remove_duplicates(candidates)
    return sorted(lines, key=lambda line: (line.box[1] // 8, line.box[0]))


def _bounding_box(corners: Any, factor: float) -> tuple[int, int, int, int]:
    """Return where a line is in the image, of which the page was read at a `factor` less of its size."""
    xs, ys = zip(*corners, strict=True)
    left, top, right, bottom = (round(float(edge) * factor) for edge in (min(xs), min(ys), max(xs), max(ys)))
    return left, top, right, bottom


def _is_confident(line: OcrLine) -> bool:
    if len(line.text) > 1:
        return line.confidence >= MIN_CONFIDENCE
    return bool(line.text) and line.confidence >= MIN_LETTER_CONFIDENCE


def _remove_duplicates(candidates: Sequence[OcrLine]) -> list[OcrLine]:
    """Of overlapping lines keep the most confident one, unless it is but a part of a much wider one."""
    lines: list[OcrLine] = []
    for line in sorted(candidates, key=lambda line: -line.confidence):
        rivals = [other for other in lines if _overlap(line, other) > MAX_OVERLAP]
        if all(_width(line) > 1.4 * _width(rival) for rival in rivals):
            lines = [other for other in lines if other not in rivals]
            lines.append(line)
    return lines


def _width(line: OcrLine) -> int:
    return line.box[2] - line.box[0]


def _area(line: OcrLine) -> int:
    return max(1, _width(line) * (line.box[3] - line.box[1]))


def _overlap(first: OcrLine, second: OcrLine) -> float:
    """Return the share of the smaller box that lies in the other."""
    width = min(first.box[2], second.box[2]) - max(first.box[0], second.box[0])
    height = min(first.box[3], second.box[3]) - max(first.box[1], second.box[1])
    return max(0, width) * max(0, height) / min(_area(first), _area(second))


def _pad(page: Any, least: int) -> Any:
    """Put a page that is too small or too thin for the detector on a white ground."""
    from PIL import Image as Pil

    padded = Pil.new("RGB", (max(least, page.width), max(least, page.height)), "white")
    padded.paste(page, (0, 0))
    return padded
