"""A dataset's records for browsing: read in the background, filtered and searched by what has been read.

index = RecordIndex(data_format, folder, images)
index.start()
for number in index.select(Selection(find="door", groups={"domain": "edit"})):
    print(index.sample(number).id)
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct

from weft.benchmarks.data_format import DataFormat
from weft.datasets.images_of import all_images
from weft.errors import UserError
from weft.store.blobs import Blobs
from weft.types import Dataset, Part, Problem, Sample, Text

MAX_GROUPS = 200  # of an axis that can be chosen from; an axis with more is left to the search
MAX_SELECTIONS = 16  # that stay in memory: a reader steps through one


class RecordEntry(Struct, frozen=True):
    """What filters and the search know of a record."""

    id: str
    groups: Mapping[str, str]
    kinds: frozenset[str]  # of turns
    turns: int
    images: int
    question_characters: int
    folded_text: str  # the id, the groups and all texts, in lower case
    packed: bytes  # the sample as JSON


class Selection(Struct, frozen=True):
    """Which records are shown, and in which order."""

    find: str = ""  # in any text, whatever its case
    groups: Mapping[str, str] = {}  # axis -> group
    kind: str = ""  # of at least one turn
    turns: int = 0  # at least
    images: int = 0  # at least
    order: str = "dataset"

    @property
    def is_everything(self) -> bool:
        return self == Selection()


def _most_images(entry: RecordEntry) -> int:
    return -entry.images


def _most_turns(entry: RecordEntry) -> int:
    return -entry.turns


def _longest_questions(entry: RecordEntry) -> int:
    return -entry.question_characters


ORDERS: Mapping[str, Callable[[RecordEntry], int] | None] = {
    "dataset": None,
    "most images": _most_images,
    "most turns": _most_turns,
    "longest questions": _longest_questions,
}


class RecordIndex:
    """The records read so far. Safe to use from several threads."""

    def __init__(self, data_format: DataFormat, data: Path, images: Blobs) -> None:
        self.data_format = data_format
        self.entries: list[RecordEntry] = []
        self.group_counts: dict[str, Counter[str]] = {}
        self.kind_counts: Counter[str] = Counter()
        self.failure = ""  # why reading ended before the last record
        self._data = data
        self._images = images
        self._dataset: Dataset | None = None  # None until it is open
        self._selections: dict[tuple[bytes, int], list[int]] = {}
        self._opened = threading.Event()
        self._error: UserError | None = None  # why it cannot be opened
        self._done = threading.Event()
        self._stopped = False
        self._lock = threading.Lock()

    def start(self) -> None:
        """Open the dataset and read its records, in a thread of their own."""
        threading.Thread(target=self._read_all, daemon=True, name="records").start()

    def check_open(self, seconds: float) -> None:
        """Wait until the dataset is open, at most so long. Raises UserError if it cannot be opened."""
        self._opened.wait(seconds)
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Stop reading, and wait until the reader has stopped."""
        self._stopped = True
        self._done.wait()

    def wait(self, seconds: float) -> bool:
        """Wait until every record has been read, at most so long; return whether they have."""
        return self._done.wait(seconds)

    @property
    def is_complete(self) -> bool:
        return self._done.is_set()

    @property
    def records(self) -> int:
        """How many records the files have, usable or not; 0 until they are open."""
        return 0 if self._dataset is None else self._dataset.records

    @property
    def problems(self) -> Sequence[Problem]:
        """Problems of the records read so far."""
        return () if self._dataset is None else tuple(self._dataset.problems)

    def _read_all(self) -> None:
        """Read every record. A file that changes meanwhile ends the reading, and `failure` says so."""
        try:
            self._dataset = self.data_format.load(self._data, self._images)
            self._opened.set()
            for sample in self._dataset.samples:
                if self._stopped:
                    break
                self._add(sample)
        except Exception as error:
            self.failure = str(error) or type(error).__name__
            if self._dataset is None and isinstance(error, UserError):
                self._error = error
        finally:
            self._opened.set()
            self._done.set()

    def _add(self, sample: Sample) -> None:
        kinds = frozenset(map(self.data_format.statistics.turn_kind, sample.turns))
        texts = list(texts_of(sample))
        entry = RecordEntry(
            id=sample.id,
            groups=dict(sample.groups),
            kinds=kinds,
            turns=len(sample.turns),
            images=len(all_images(sample)),
            question_characters=sum(len(turn.prompt_text) for turn in sample.turns),
            folded_text="\n".join([sample.id, *sample.groups.values(), *texts]).casefold(),
            packed=msgspec.json.encode(sample),
        )
        with self._lock:
            for axis, group in sample.groups.items():
                self.group_counts.setdefault(axis, Counter())[group] += 1
            self.kind_counts.update(kinds)
            self.entries.append(entry)

    def choices(self) -> dict[str, list[tuple[str, int]]]:
        """Return the groups that can be chosen, by axis, with their records; axes of the benchmark come first."""
        with self._lock:
            axes = dict.fromkeys([*self.data_format.axes, *self.group_counts])
            found: dict[str, list[tuple[str, int]]] = {}
            for axis in axes:
                counts = self.group_counts.get(axis, Counter())
                if 1 < len(counts) <= MAX_GROUPS:
                    found[axis] = sorted(counts.items())
            return found

    def sample(self, number: int) -> Sample:
        """Return a record as a sample; its gold data are plain JSON."""
        return msgspec.json.decode(self.entries[number].packed, type=Sample)

    def select(self, selection: Selection) -> list[int]:
        """Return the numbers of the records that a selection has, in its order."""
        count = len(self.entries)
        if selection.is_everything:
            return list(range(count))
        key = (msgspec.json.encode(selection), count)
        with self._lock:
            cached = self._selections.get(key)
        if cached is not None:
            return cached
        numbers = [number for number in range(count) if _has(self.entries[number], selection)]
        sort_key = ORDERS.get(selection.order)
        if sort_key is not None:
            numbers.sort(key=lambda number: sort_key(self.entries[number]))
        with self._lock:
            while len(self._selections) >= MAX_SELECTIONS:
                self._selections.pop(next(iter(self._selections)))
            self._selections[key] = numbers
        return numbers


def _has(entry: RecordEntry, selection: Selection) -> bool:
    if entry.turns < selection.turns or entry.images < selection.images:
        return False
    if selection.kind and selection.kind not in entry.kinds:
        return False
    if any(entry.groups.get(axis) != group for axis, group in selection.groups.items()):
        return False
    return selection.find.casefold() in entry.folded_text


def texts_of(sample: Sample) -> Iterator[str]:
    """Yield every text of a sample: its system prompt, requests, reference answers and expected outputs."""
    yield sample.system
    for turn in sample.turns:
        yield from _texts_of_parts(turn.prompt)
        yield from _texts_of_parts(turn.reference)
        yield from _strings_in(msgspec.json.decode(msgspec.json.encode(turn.gold)))


def _texts_of_parts(parts: Sequence[Part]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, Text):
            yield part.text


def _strings_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for child in cast(dict[str, Any], value).values():
            yield from _strings_in(child)
    elif isinstance(value, list):
        for child in cast(list[Any], value):
            yield from _strings_in(child)
