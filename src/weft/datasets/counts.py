"""Counts of a dataset's samples, by group, streamed: memory does not grow with the number of samples.

counts = DatasetCounts(data_format)
for sample in dataset.samples:
    counts.add(sample)
counts.groups["Science", "optics"].turns
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from weft.benchmarks.data_format import DataFormat
from weft.datasets.images_of import all_images
from weft.datasets.words import WordCounter
from weft.types import Sample

UNGROUPED = "None"  # the group of samples that an axis says nothing of
QUESTION_LENGTHS = (0, 25, 50, 100, 200, 400, 800, 1600)  # characters from which a bin of question lengths begins
MODALITY_LETTERS = {"text": "T", "image": "I", "interleaved": "D"}
TURNS = "turns in a dialogue"
IMAGES = "images in a dialogue"
Path = tuple[str, ...]  # groups, the coarsest first


@dataclass
class GroupCounts:
    """Counts of the samples of one group, or of all."""

    dialogues: int = 0
    turns: int = 0
    images: int = 0
    most_images: int = 0
    image_numbers: Counter[int] = field(default_factory=Counter[int])  # images of a dialogue -> dialogues
    question_characters: int = 0
    question_words: int = 0
    turn_kinds: Counter[str] = field(default_factory=Counter[str])
    further: Counter[str] = field(default_factory=Counter[str])  # what the benchmark counts

    def dialogues_from(self, images: int) -> int:
        """Return how many dialogues have at least so many images."""
        return sum(count for number, count in self.image_numbers.items() if number >= images)


class DatasetCounts:
    """Counts of all samples and of each group of the composition."""

    def __init__(self, data_format: DataFormat) -> None:
        self.statistics = data_format.statistics
        self.title = data_format.title
        self.composition = self.statistics.composition or data_format.axes
        self.sequence_axes = self.statistics.sequence_axes or self.composition[-2:]
        self.groups: dict[Path, GroupCounts] = {(): GroupCounts()}
        self.sequences: Counter[tuple[Path, str]] = Counter()
        self.histograms: dict[str, Counter[str]] = {TURNS: Counter(), IMAGES: Counter()}
        self.question_lengths: Counter[int] = Counter()  # by the beginning of the bin
        self.words = WordCounter()

    @property
    def total(self) -> GroupCounts:
        return self.groups[()]

    def path(self, sample: Sample) -> Path:
        """Return the groups of a sample in the composition."""
        return _groups_of(sample.groups, self.composition)

    def add(self, sample: Sample) -> None:
        """Count a sample."""
        path = self.path(sample)
        for depth in range(len(path) + 1):
            self._count(self.groups.setdefault(path[:depth], GroupCounts()), sample)
        turns = self.statistics.counted_turns(sample)
        letters = ", ".join(MODALITY_LETTERS[turn.modality] for turn in turns)
        self.sequences[_groups_of(sample.groups, self.sequence_axes), f"[{letters}]"] += 1
        self.histograms[TURNS][str(len(turns))] += 1
        self.histograms[IMAGES][str(len(all_images(sample)))] += 1
        for name, label in self.statistics.histogram_bins(sample).items():
            self.histograms.setdefault(name, Counter())[label] += 1
        self.question_lengths.update(_length_bin(len(turn.prompt_text)) for turn in turns)
        self.words.add(turn.prompt_text for turn in turns)

    def _count(self, group: GroupCounts, sample: Sample) -> None:
        turns = self.statistics.counted_turns(sample)
        images = len(all_images(sample))
        group.dialogues += 1
        group.turns += len(turns)
        group.images += images
        group.most_images = max(group.most_images, images)
        group.image_numbers[images] += 1
        for turn in turns:
            group.question_characters += len(turn.prompt_text)
            group.question_words += len(turn.prompt_text.split())
            group.turn_kinds[self.statistics.turn_kind(turn)] += 1
        group.further.update(self.statistics.count(sample))


def _length_bin(length: int) -> int:
    return QUESTION_LENGTHS[bisect_right(QUESTION_LENGTHS, length) - 1]


def name_length_bin(start: int) -> str:
    """Return the name of a bin of question lengths, such as `100-199`."""
    index = QUESTION_LENGTHS.index(start)
    if index + 1 == len(QUESTION_LENGTHS):
        return f"{start} or more"
    return f"{start}-{QUESTION_LENGTHS[index + 1] - 1}"


def _groups_of(groups: Mapping[str, str], axes: Path) -> Path:
    return tuple(groups.get(axis) or UNGROUPED for axis in axes)
