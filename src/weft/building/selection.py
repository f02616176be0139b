"""Which kept dialogues are left out of the dataset, because an earlier one is the same or nearly the same.

    left_out = find_duplicates(read_rows(out), kinds)     # seed -> why
    dataset = iterate_selected(read_rows(out), left_out)

`exact`: the same images, or the same words about the same inputs. `images`: as many images, and each looks like the one
in its place. `texts`: nearly the same requests. Those two are looked for within a domain and type, and between all of
the test part and all of the rest. What the recipe's program made is compared for exact duplicates alone: its images and
sentences are alike by intention, and where it drew the images, so may be the words that a model gave them. The dialogue
of the lowest seed stays, so that an extended build loses nothing.
"""

import hashlib
import itertools
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from weft.building.draft import Draft, Origin, Row
from weft.building.manifest import DUPLICATES
from weft.building.provenance import PROGRAM, find_words
from weft.datasets.near_hashes import find_near_pairs
from weft.datasets.perceptual_hash import MAX_DISTANCE
from weft.datasets.task_texts import MIN_SIMILARITY, TaskTexts
from weft.errors import UserError
from weft.untrusted import MAX_FILE_BYTES, read_file

FILE = "left_out.jsonl"
MAX_SHARING = 64  # dialogues with one and the same first image that each is compared with


class DuplicateDialogue(Struct, frozen=True):
    """A dialogue that is not in the dataset."""

    seed: int
    kind: str  # of duplicate
    of: int  # the seed of the dialogue that stays


def check_kinds(kinds: Collection[str]) -> None:
    """Raise UserError for a kind of duplicate that there is not, or for none."""
    if not kinds:
        raise UserError(f"--duplicates: give {', '.join(DUPLICATES)}, several with commas; or none")
    for kind in kinds:
        if kind not in DUPLICATES:
            raise UserError(f"--duplicates {kind}: there is {', '.join(DUPLICATES)}, several with commas; or none")


def iterate_selected(rows: Iterable[Row], left_out: Mapping[int, DuplicateDialogue]) -> Iterator[Row]:
    """Yield the rows that were kept and not left out."""
    for row in rows:
        if row.outcome == "kept" and row.draft is not None and row.number not in left_out:
            yield row


def find_duplicates(rows: Iterable[Row], kinds: Collection[str] = DUPLICATES) -> dict[int, DuplicateDialogue]:
    """Return the dialogues that repeat an earlier one, by seed. Only hashes are kept, about a kilobyte a dialogue."""
    finder = _DuplicateFinder()
    for row in rows:
        if row.outcome == "kept" and row.draft is not None:
            finder.add(row, row.draft)
    return finder.find(kinds)


class _DuplicateFinder:
    def __init__(self) -> None:
        self._seeds = array("Q")
        self._is_test: list[bool] = []
        self._groups: dict[tuple[str, ...], list[int]] = {}  # places in `_seeds`
        self._wholes: list[tuple[bytes, bytes]] = []  # hashes of all images, and of inputs with words
        self._prints: list[array[int]] = []  # perceptual hashes; empty for images that are not compared
        self._texts = TaskTexts()
        self._has_text: list[bool] = []  # whether the words are compared

    def add(self, row: Row, draft: Draft) -> None:
        place = len(self._seeds)
        self._seeds.append(row.number)
        self._is_test.append(draft.split == "test")
        self._groups.setdefault((draft.domain, draft.subdomain), []).append(place)
        self._wholes.append(_hash_whole(draft))
        prints = array("Q")
        texts: list[str] = []
        if _is_by_models(_origins_of_images(row, draft)):
            texts = _find_texts_by_models(row, draft)
            if len(row.prints) == len(draft.images):
                prints.extend(int(one, 16) for one in row.prints)
        self._prints.append(prints)
        self._texts.add("\n".join(texts))
        self._has_text.append(bool(texts))

    def find(self, kinds: Collection[str]) -> dict[int, DuplicateDialogue]:
        found: dict[int, dict[int, str]] = {}  # later place -> earlier place -> kind
        for kind, one, other in self._find_pairs(kinds):
            earlier, later = sorted((one, other))
            found.setdefault(later, {}).setdefault(earlier, kind)
        roots: dict[int, tuple[int, str]] = {}  # place that leaves -> the place that stays, and the kind
        for later in sorted(found):
            for earlier in sorted(found[later]):
                root = self._find_root(later, earlier, found[later][earlier], roots)
                if root is not None:
                    roots[later] = root
                    break
        seeds = self._seeds
        return {seeds[place]: DuplicateDialogue(seeds[place], kind, seeds[of]) for place, (of, kind) in roots.items()}

    def _find_pairs(self, kinds: Collection[str]) -> Iterator[tuple[str, int, int]]:
        """Yield places that are duplicates of a kind. Each group is searched, and all for those across the parts."""
        if "exact" in kinds:
            yield from (("exact", *pair) for pair in self._find_exact(range(len(self._seeds))))
        searches = {"images": self._find_images, "texts": self._find_texts}
        for kind in searches:
            if kind not in kinds:
                continue
            for places in self._groups.values():
                yield from ((kind, *pair) for pair in searches[kind](places))
            if any(self._is_test) and not all(self._is_test):
                for one, other in searches[kind](range(len(self._seeds))):
                    if self._is_test[one] != self._is_test[other]:
                        yield kind, one, other

    def _find_root(
        self, later: int, earlier: int, kind: str, roots: Mapping[int, tuple[int, str]]
    ) -> tuple[int, str] | None:
        """Return the dialogue that stays because of which this one leaves. What repeats one that left must itself be
        like the one that stays."""
        if earlier not in roots:
            return earlier, kind
        root, root_kind = roots[earlier]
        if kind == "exact":
            return root, root_kind
        is_alike = {
            "images": len(self._prints[later]) == len(self._prints[root]) and self._look_alike(later, root),
            "texts": self._texts.similarity(later, root) >= MIN_SIMILARITY,
        }
        return (root, kind) if is_alike[kind] else None

    def _find_exact(self, places: Sequence[int]) -> Iterator[tuple[int, int]]:
        firsts: dict[tuple[int, bytes], int] = {}
        for place in places:
            for which, digest in enumerate(self._wholes[place]):
                first = firsts.setdefault((which, digest), place)
                if first != place:
                    yield first, place

    def _find_images(self, places: Sequence[int]) -> Iterator[tuple[int, int]]:
        by_count: dict[int, list[int]] = {}
        for place in places:
            by_count.setdefault(len(self._prints[place]), []).append(place)
        for count, alike in by_count.items():
            if count:
                yield from self._compare_images(alike, count)

    def _compare_images(self, places: Sequence[int], count: int) -> Iterator[tuple[int, int]]:
        """Compare dialogues of as many images whose last images look alike."""
        sharing: dict[int, list[int]] = {}
        for place in places:
            sharing.setdefault(self._prints[place][count - 1], []).append(place)
        values = list(sharing)
        pairs = [(index, index) for index, value in enumerate(values) if len(sharing[value]) > 1]
        for left, right in (*pairs, *find_near_pairs(values)):
            for one in sharing[values[left]][:MAX_SHARING]:
                for other in sharing[values[right]][:MAX_SHARING]:
                    if one < other and self._look_alike(one, other):
                        yield one, other
                    elif other < one and self._look_alike(other, one):
                        yield other, one

    def _look_alike(self, one: int, other: int) -> bool:
        pairs = zip(self._prints[one], self._prints[other], strict=True)
        return all(_is_near(left, right) for left, right in pairs)

    def _find_texts(self, places: Sequence[int]) -> Iterator[tuple[int, int]]:
        compared = [place for place in places if self._has_text[place]]
        same_words: dict[int, list[int]] = {}
        for place in compared:
            same_words.setdefault(self._texts.whole(place), []).append(place)
        for places in same_words.values():
            yield from ((places[0], place) for place in places[1:])
        by_first = {places[0]: places[:MAX_SHARING] for places in same_words.values()}
        different = list(by_first)
        for one, other in self._texts.candidates(different, [0] * len(different)):
            if one != other and self._texts.similarity(one, other) >= MIN_SIMILARITY:
                yield from itertools.product(by_first[one], by_first[other])


def _is_near(left: int, right: int) -> bool:
    """Whether two images look alike. Nothing is known of one without structure, whose hash is 0."""
    return bool(left and right) and (left ^ right).bit_count() <= MAX_DISTANCE


def _hash_whole(draft: Draft) -> tuple[bytes, bytes]:
    makes = {turn.makes for turn in draft.turns}
    images = [image.digest for image in draft.images]
    inputs = [digest for number, digest in enumerate(images, start=1) if number not in makes]
    words = [find_words(f"{turn.text}\n{turn.answer}") for turn in draft.turns]
    return _hash(images), _hash([*inputs, *words])


def _hash(lines: Iterable[str]) -> bytes:
    return hashlib.sha256("\0".join(lines).encode("utf-8", "replace")).digest()[:12]


def _origins_of_images(row: Row, draft: Draft) -> list[Origin]:
    """Return the origins of the images that turns make."""
    if row.provenance is None:
        return []
    return [row.provenance.images[turn.makes - 1] for turn in draft.turns if turn.makes is not None]


def _find_texts_by_models(row: Row, draft: Draft) -> list[str]:
    """Return the requests that models wrote; all of a dialogue that does not say where it comes from."""
    if row.provenance is None:
        return [turn.text for turn in draft.turns]
    pairs = zip(draft.turns, row.provenance.turns, strict=True)
    return [turn.text for turn, words in pairs if words.get("text", PROGRAM).role]


def _is_by_models(origins: Sequence[Origin]) -> bool:
    """Whether not all is the program's own; what does not say where it comes from may be a model's."""
    return not origins or any(origin.role for origin in origins)


def count_kinds(left_out: Mapping[int, DuplicateDialogue]) -> dict[str, int]:
    """Return how many dialogues were left out, by kind."""
    return dict(Counter(one.kind for one in left_out.values()))


def write_left_out(folder: Path, left_out: Mapping[int, DuplicateDialogue]) -> None:
    """Write which dialogues are not in the dataset, and why, as JSON lines."""
    lines = [msgspec.json.encode(left_out[seed]) + b"\n" for seed in sorted(left_out)]
    (folder / FILE).write_bytes(b"".join(lines))


def read_left_out(out: Path) -> dict[int, DuplicateDialogue]:
    """Return what `write_left_out` wrote beside the dataset of a build; nothing where there is none."""
    try:
        data = read_file(out / FILE, MAX_FILE_BYTES)
        left_out = [msgspec.json.decode(line, type=DuplicateDialogue) for line in data.splitlines()]
    except FileNotFoundError:
        return {}
    except (OSError, UserError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise UserError(f"{out / FILE} cannot be read: {error}; run the build again: it writes it anew") from None
    return {one.seed: one for one in left_out}
