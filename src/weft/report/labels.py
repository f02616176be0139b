"""The labels in a document's words compared with those in its images, as OCR reads them: counts, and no score.

    A document that proves something "by triangle ABC" may show a triangle with the corners A, B and D. Nothing is wrong
    with its number of images, and a judge may miss it.

Labels are points (`A`, `B'`, `P1`; those of `triangle ABC` each by itself) and texts in quotation marks. Of an image
only points are taken: any other text in it may be decoration. OCR misses some labels and misreads others, so the counts
say where to look.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from weft.errors import ImageError
from weft.judges.ocr import contains_phrase, find_quotations, read_lines, remove_quotations
from weft.results.run import Run, name_runs
from weft.store.blobs import Blobs
from weft.store.journal import TurnRecord
from weft.types import Cell, Image, Row, Table

MAX_DOCUMENTS = 50  # with a row of their own
MAX_PHRASE = 60  # characters of a quotation that can be a label
PRIMES = str.maketrans({"\u2032": "'", "\u2019": "'"})
POINT = r"[A-Z]\d{0,2}'?"
WHOLE_POINT = re.compile(POINT)
WORD_POINT = re.compile(rf"(?<![\w'])({POINT})(?!\w)")
COMPOUND = re.compile(r"(?<![\w'])[A-Z]{2,4}(?!\w)")
FIGURE_WORDS = (
    "point points vertex vertices corner corners angle angles triangle triangles line lines segment segments side "
    "sides ray circle arc square rectangle parallelogram quadrilateral polygon trapezoid rhombus label labels labelled "
    "labeled marked node nodes edge edges"
)
AFTER_FIGURE = re.compile(rf"(?:\b(?:{FIGURE_WORDS.replace(' ', '|')})|[\u2220\u25b3\u0394])\s*$", re.IGNORECASE)
ENGLISH = ("A", "I")  # which are words as well, before a word in small letters
BEFORE_WORD = re.compile(r"\s+(?!(?:be|is|are|and|or|to|on|in|at|lies|has)\b)[a-z]")
LOOKALIKES = {"0": "O", "1": "I", "l": "I"}
COLUMNS = ("documents", "with labels", "labels in both", "in words only", "in images only", "unreadable")
DOCUMENT_COLUMNS = ("in both", "in words only", "in images only")
NOTE = (
    "Counts of labels that OCR compared, and no score. A label is a point such as A or B', or a text in quotation "
    "marks; of images only points count. `documents`: replies with words and images; `with labels`: those with a label "
    "in either. A label in images only is rarely misread; one in words only may be one that OCR did not see."
)


class DocumentLabels(Struct, frozen=True):
    """The labels of one reply."""

    sample: str
    turn: int
    both: tuple[str, ...] = ()
    only_words: tuple[str, ...] = ()
    only_images: tuple[str, ...] = ()

    @property
    def differs(self) -> bool:
        return bool(self.only_words or self.only_images)

    @property
    def rank(self) -> tuple[int, int]:
        """The place among documents that differ: first those with labels in images alone."""
        return -len(self.only_images), -len(self.only_words)


class RunLabels(Struct, frozen=True):
    """The labels of one run."""

    documents: tuple[DocumentLabels, ...]
    unreadable: int  # documents with an image that cannot be opened


def read_run_labels(run: Run, blobs: Blobs, on_read: Callable[[int], None] = lambda images: None) -> RunLabels:
    """Compare the labels of all replies with words and images. Raises UserError where the extra `ocr` is missing."""
    documents: list[DocumentLabels] = []
    unreadable = 0
    for turn in run.turns:
        images = turn.reply.images
        if not images or not turn.reply.text.strip():
            continue
        try:
            lines = list(_read_texts(images, blobs))
        except ImageError:
            unreadable += 1
            continue
        on_read(len(images))
        documents.append(_compare_turn(turn, lines))
    return RunLabels(tuple(documents), unreadable)


def _read_texts(images: Iterable[Image], blobs: Blobs) -> Iterator[str]:
    for image in images:
        for line in read_lines(image, blobs):
            yield line.text


def _compare_turn(turn: TurnRecord, lines: Sequence[str]) -> DocumentLabels:
    both, only_words, only_images = compare_labels(turn.reply.text, lines)
    return DocumentLabels(turn.sample, turn.turn, both, only_words, only_images)


def compare_labels(text: str, lines: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the labels in both, in the text alone, and in the images' lines alone."""
    image_points = find_image_points(lines)
    word_points = find_word_points(text, image_points)
    image_points |= _split_lines(lines, word_points)
    image_points |= {LOOKALIKES[one] for one in LOOKALIKES if LOOKALIKES[one] in word_points and _has_token(lines, one)}
    image_points = {_without_noise(point, word_points) for point in image_points}
    phrases = [phrase for phrase in dict.fromkeys(find_quotations(text)) if 1 < len(phrase) <= MAX_PHRASE]
    shown = {phrase for phrase in phrases if contains_phrase(phrase, lines)}
    quoted = [f'"{phrase}"' for phrase in phrases]
    found = {f'"{phrase}"' for phrase in shown}
    both = [*sorted(word_points & image_points), *(one for one in quoted if one in found)]
    only_words = [*sorted(word_points - image_points), *(one for one in quoted if one not in found)]
    return tuple(both), tuple(only_words), tuple(sorted(image_points - word_points))


def find_word_points(text: str, image_points: set[str]) -> set[str]:
    """Return the points that a text names. `A` and `I` before a word in small letters are words, and so are capitals
    such as `USA`, unless a figure is named before them or all their letters are points of the images."""
    text = remove_quotations(text.translate(PRIMES))
    points: set[str] = set()
    for match in COMPOUND.finditer(text):
        letters = set(match[0])
        if AFTER_FIGURE.search(text, 0, match.start()) or letters <= image_points:
            points |= letters
    for match in WORD_POINT.finditer(text):
        is_word = match[1] in ENGLISH and BEFORE_WORD.match(text, match.end()) is not None
        if not is_word or AFTER_FIGURE.search(text, 0, match.start()):
            points.add(match[1])
    return points


def find_image_points(lines: Sequence[str]) -> set[str]:
    """Return the points that stand by themselves in lines that were read in images."""
    points: set[str] = set()
    for line in lines:
        points |= {token for token in _tokens(line) if WHOLE_POINT.fullmatch(token)}
    return points


def _split_lines(lines: Sequence[str], word_points: set[str]) -> set[str]:
    """Return the letters of what OCR has run together, where the text names each of them as a point."""
    points: set[str] = set()
    for line in lines:
        for token in _tokens(line):
            if COMPOUND.fullmatch(token) and set(token) <= word_points:
                points |= set(token)
    return points


def _without_noise(point: str, word_points: set[str]) -> str:
    """Return a point that the text names, where OCR has read something beside its letter as a number."""
    return point[0] if point not in word_points and point[0] in word_points else point


def _has_token(lines: Sequence[str], token: str) -> bool:
    return any(token in _tokens(line) for line in lines)


def _tokens(line: str) -> list[str]:
    return [token.strip(".,;:()[]") for token in line.translate(PRIMES).split()]


def build_label_tables(runs: Mapping[str, RunLabels]) -> list[Table]:
    """Return the counts of all runs, and the documents that differ most, for each run."""
    rows = [Row(name, _run_cells(labels)) for name, labels in runs.items()]
    tables = [Table("Labels in words and in images, by OCR", COLUMNS, tuple(rows), NOTE, 0, "mixed", COLUMNS)]
    for name, labels in runs.items():
        differing = sorted((one for one in labels.documents if one.differs), key=lambda one: one.rank)
        if not differing:
            continue
        title = f"{name}: documents whose labels differ"
        if len(differing) > MAX_DOCUMENTS:
            title += f" (the first {MAX_DOCUMENTS} of {len(differing)})"
        listed = tuple(_document_row(one) for one in differing[:MAX_DOCUMENTS])
        tables.append(Table(title, DOCUMENT_COLUMNS, listed, "", 0, "breakdown", DOCUMENT_COLUMNS))
    return tables


def _run_cells(labels: RunLabels) -> dict[str, Cell]:
    with_labels = [one for one in labels.documents if one.both or one.differs]
    counts = (
        len(labels.documents) + labels.unreadable,
        len(with_labels),
        sum(len(one.both) for one in with_labels),
        sum(len(one.only_words) for one in with_labels),
        sum(len(one.only_images) for one in with_labels),
        labels.unreadable,
    )
    return {column: Cell(count, count=True) for column, count in zip(COLUMNS, counts, strict=True)}


def _document_row(document: DocumentLabels) -> Row:
    labels = (document.both, document.only_words, document.only_images)
    cells = {name: Cell(None, text=", ".join(own) or "-") for name, own in zip(DOCUMENT_COLUMNS, labels, strict=True)}
    name = document.sample if not document.turn else f"{document.sample}, turn {document.turn + 1}"
    return Row(name, cells, kind="part")


def measure_labels(
    runs: Sequence[Run], blobs: Blobs, on_read: Callable[[int], None] = lambda images: None
) -> list[Table]:
    """Read the labels of these runs, and return their tables."""
    labels = {name: read_run_labels(run, blobs, on_read) for name, run in name_runs(runs).items()}
    return build_label_tables(labels)
