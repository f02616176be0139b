"""Repeated tasks and images of a dataset: what is in several dialogues, or looks alike within a group.

    finder = RepeatFinder(hashes)
    for sample in dataset.samples:
        finder.add(sample, ("Edit", "Food"))
    repeats = finder.find()

A task is repeated if the same words, or nearly the same, come with the same input images, or ones that look alike. Only
hashes are kept, about a kilobyte a dialogue.
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from weft.datasets.image_hashes import ImageHashes
from weft.datasets.images_of import all_images, input_images
from weft.datasets.near_hashes import find_near_pairs
from weft.datasets.task_texts import MIN_SIMILARITY, TaskTexts
from weft.datasets.union_find import UnionFind
from weft.types import Sample

NO_IMAGE = 0  # the key of tasks without an input image
Path = tuple[str, ...]  # groups, the coarsest first


class RepeatedTask(Struct, frozen=True):
    """Dialogues that ask the same."""

    samples: tuple[str, ...]  # ids
    groups: Path  # of the first
    exact: bool  # the same words and the same image files; otherwise nearly so


class RepeatedImage(Struct, frozen=True):
    """Images of several dialogues that are the same, or look alike."""

    places: tuple[str, ...]  # `sample: Image #k`
    groups: Path  # of the first
    exact: bool  # the same file; otherwise the files differ and look alike


class Repeats(Struct, frozen=True):
    """What a dataset has more than once."""

    dialogues: int
    images: int  # files with different bytes
    tasks: tuple[RepeatedTask, ...]
    repeated_images: tuple[RepeatedImage, ...]
    same_words: int  # dialogues whose words another dialogue has as well, with whatever images

    @property
    def exact_images(self) -> int:
        """Files that are in several dialogues."""
        return sum(image.exact for image in self.repeated_images)

    @property
    def similar_images(self) -> int:
        """Sets of files that look alike, of different dialogues of a group."""
        return len(self.repeated_images) - self.exact_images


class RepeatFinder:
    """Collects hashes of samples, then finds what is repeated."""

    def __init__(self, hashes: ImageHashes) -> None:
        self._hashes = hashes
        self._texts = TaskTexts()
        self._ids: list[str] = []
        self._paths: list[Path] = []
        self._group_numbers: dict[Path, int] = {}
        self._groups = array("I")  # of each sample
        self._images = array("I")  # image numbers of all samples
        self._image_ends = array("I")  # of each sample, in `_images`
        self._inputs = array("I")  # places in `_images` of images that are given to the model
        self._input_ends = array("I")

    def add(self, sample: Sample, groups: Path) -> None:
        """Add a sample of a group."""
        self._ids.append(sample.id)
        if groups not in self._group_numbers:
            self._group_numbers[groups] = len(self._paths)
            self._paths.append(groups)
        self._groups.append(self._group_numbers[groups])
        self._texts.add("\n".join(dict.fromkeys(turn.prompt_text for turn in sample.turns)))
        inputs = {image.digest for image in input_images(sample)}
        for image in all_images(sample):
            number = self._hashes.number(image)
            if number is None:
                continue
            if image.digest in inputs:
                self._inputs.append(len(self._images))
            self._images.append(number)
        self._image_ends.append(len(self._images))
        self._input_ends.append(len(self._inputs))

    def find(self) -> Repeats:
        """Return what is repeated among the samples so far."""
        clusters = self._cluster_images()
        tasks = self._find_tasks(clusters)
        words = self._count_same_words()
        images = (*self._find_exact_images(), *self._find_similar_images(clusters))
        return Repeats(len(self._ids), len(self._hashes.hashes), tasks, images, words)

    def _images_of(self, sample: int) -> Sequence[int]:
        start = self._image_ends[sample - 1] if sample else 0
        return self._images[start : self._image_ends[sample]]

    def _inputs_of(self, sample: int) -> list[int]:
        start = self._input_ends[sample - 1] if sample else 0
        return [self._images[place] for place in self._inputs[start : self._input_ends[sample]]]

    def _by_group(self) -> Iterator[list[int]]:
        """Yield the samples of each group."""
        members: list[list[int]] = [[] for _ in self._group_numbers]
        for sample, group in enumerate(self._groups):
            members[group].append(sample)
        yield from members

    def _cluster_images(self) -> UnionFind:
        """Join images that look alike within a group."""
        clusters = UnionFind(len(self._hashes.hashes))
        for samples in self._by_group():
            numbers = sorted({number for sample in samples for number in self._images_of(sample)})
            hashes = [self._hashes.hashes[number] for number in numbers]
            clusters.join_pairs((numbers[left], numbers[right]) for left, right in find_near_pairs(hashes))
        return clusters

    def _find_tasks(self, clusters: UnionFind) -> tuple[RepeatedTask, ...]:
        joined = UnionFind(len(self._ids))
        keys = [self._task_key(sample, clusters) for sample in range(len(self._ids))]
        first_of: dict[tuple[int, int], int] = {}
        for sample, key in enumerate(keys):
            joined.join(first_of.setdefault((key, self._texts.whole(sample)), sample), sample)
        firsts = list(first_of.values())
        for first, second in self._texts.candidates(firsts, [keys[sample] for sample in firsts]):
            if keys[first] != keys[second] or joined.find(first) == joined.find(second):
                continue
            if self._texts.similarity(first, second) >= MIN_SIMILARITY:
                joined.join(first, second)
        return tuple(self._describe_task(members) for members in _clusters(joined, range(len(self._ids))))

    def _task_key(self, sample: int, clusters: UnionFind) -> int:
        """Return a number that samples have in common whose input images look alike."""
        inputs = self._inputs_of(sample)
        if not inputs:
            return NO_IMAGE
        return hash(tuple(clusters.find(number) + 1 for number in inputs))

    def _describe_task(self, samples: Sequence[int]) -> RepeatedTask:
        contents = {(self._texts.whole(sample), tuple(self._inputs_of(sample))) for sample in samples}
        ids = tuple(self._ids[sample] for sample in samples)
        return RepeatedTask(ids, self._path(samples[0]), len(contents) == 1)

    def _path(self, sample: int) -> Path:
        return self._paths[self._groups[sample]]

    def _count_same_words(self) -> int:
        counts: dict[int, int] = {}
        for sample in range(len(self._ids)):
            whole = self._texts.whole(sample)
            counts[whole] = counts.get(whole, 0) + 1
        return sum(count for count in counts.values() if count > 1)

    def _uses(self) -> Mapping[int, list[tuple[int, int]]]:
        """Return where each image is: samples, and its place among the sample's images, from 1."""
        uses: dict[int, list[tuple[int, int]]] = {}
        for sample in range(len(self._ids)):
            for place, number in enumerate(self._images_of(sample), start=1):
                uses.setdefault(number, []).append((sample, place))
        return uses

    def _find_exact_images(self) -> Iterator[RepeatedImage]:
        for uses in self._uses().values():
            if len({sample for sample, _ in uses}) > 1:
                yield self._describe_image(uses, exact=True)

    def _find_similar_images(self, clusters: UnionFind) -> Iterator[RepeatedImage]:
        """Yield sets of different files that look alike, and are in different samples of one group."""
        uses = self._uses()
        for numbers in _clusters(clusters, range(len(self._hashes.hashes))):
            places = [place for number in numbers for place in uses.get(number, ())]
            by_group: dict[int, set[int]] = {}
            for sample, _ in places:
                by_group.setdefault(self._groups[sample], set()).add(sample)
            if any(len(samples) > 1 for samples in by_group.values()):
                yield self._describe_image(places, exact=False)

    def _describe_image(self, uses: Sequence[tuple[int, int]], *, exact: bool) -> RepeatedImage:
        ordered = sorted(uses)
        places = tuple(f"{self._ids[sample]}: Image #{place}" for sample, place in ordered)
        return RepeatedImage(places, self._path(ordered[0][0]), exact)


def find_repeats(samples: Iterable[Sample], axes: Sequence[str], hashes: ImageHashes) -> Repeats:
    """Return what is repeated among samples whose images are hashed; their groups are those of these axes."""
    finder = RepeatFinder(hashes)
    for sample in samples:
        finder.add(sample, tuple(sample.groups.get(axis, "") for axis in axes))
    return finder.find()


def _clusters(joined: UnionFind, items: Sequence[int]) -> list[list[int]]:
    """Return the clusters of more than one item, in the order of their first members."""
    members: dict[int, list[int]] = {}
    for item in items:
        members.setdefault(joined.find(item), []).append(item)
    return [cluster for cluster in members.values() if len(cluster) > 1]
