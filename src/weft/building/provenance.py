"""Where every image and sentence of a dialogue comes from.

    origins = Origins()
    origins.add_reply("writer", reply)           # each text and image of it
    provenance = find_provenance(row, origins)   # of the row's draft

An image is known by its digest. A sentence is known by its words: what a model wrote is in the dialogue as it was
written, but for the numbers of images; or it is a part of a longer text of the model's, or of the recipe's. What no
model wrote is the program's.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, cast

import msgspec

from weft.building.draft import Attempt, Draft, Origin, Provenance, Row
from weft.types import MENTION, Image, Reply, Text

PROGRAM = Origin()
FILES = "files"  # whose terms count for the user's files that images come from
OWN_PROGRAM = "program"  # and for what the recipe's own program makes
Describe = Callable[[Row], dict[str, Any]]
MIN_PART = 12  # characters of a model's text that make a longer sentence its own
MAX_DEPTH = 20  # of a reply's JSON


class Origins:
    """What the models of one row have returned so far."""

    def __init__(self) -> None:
        self._images: dict[str, Origin] = {}  # by digest
        self._texts: dict[str, Origin] = {}  # by words

    def add_reply(self, role: str, reply: Reply) -> None:
        """Note the images of a reply, and its text as it is."""
        origin = Origin(role, "".join(reply.keys[-1:]))
        for part in reply.parts:
            if isinstance(part, Image):
                _add_first(self._images, part.digest, origin)
            elif isinstance(part, Text):
                _add_first(self._texts, find_words(part.text), origin)

    def add_object(self, role: str, reply: Reply, written: Mapping[str, Any]) -> None:
        """Note every text of an object that a model wrote."""
        origin = Origin(role, "".join(reply.keys[-1:]))
        for text in _iterate_texts(written):
            _add_first(self._texts, find_words(text), origin)

    def add_file(self, file: str, images: Iterable[Image]) -> None:
        """Note images that come from a file of the user's."""
        for image in images:
            self._images[image.digest] = Origin(file=file)

    def of_image(self, image: Image) -> Origin:
        """Return where an image comes from."""
        return self._images.get(image.digest, PROGRAM)

    def of_text(self, text: str) -> Origin:
        """Return where a sentence comes from."""
        words = find_words(text)
        if not words:
            return PROGRAM
        known = self._texts.get(words)
        if known is not None:
            return known
        inside = [known for known in self._texts if len(known) >= MIN_PART and known in words]
        if inside:
            return self._texts[max(inside, key=lambda known: (len(known), known))]
        around = [known for known in self._texts if len(words) >= MIN_PART and words in known]
        if around:
            return self._texts[min(around, key=lambda known: (len(known), known))]
        return PROGRAM


def _add_first(origins: dict[str, Origin], name: str, origin: Origin) -> None:
    """Note an origin. Of several calls that return the same at once, the first by role and key counts: which of them
    answers first is chance."""
    known = origins.get(name)
    if known is None or (origin.role, origin.call) < (known.role, known.call):
        origins[name] = origin


def find_words(text: str) -> str:
    """Return a text without what a recipe changes in it: the numbers of images, white space, case."""
    return " ".join(MENTION.sub("Image #", text).split()).casefold()


def _iterate_texts(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth < MAX_DEPTH and isinstance(value, Mapping):
        for item in cast(Mapping[str, Any], value).values():
            yield from _iterate_texts(item, depth + 1)
    elif depth < MAX_DEPTH and isinstance(value, list):
        for item in cast(list[Any], value):
            yield from _iterate_texts(item, depth + 1)


def find_provenance(draft: Draft, attempts: Iterable[Attempt], origins: Origins) -> Provenance:
    """Return the origins of all that a dialogue has. Where several calls returned one image, the chosen one counts."""
    chosen = {
        attempt.image.digest: Origin(attempt.role, attempt.key)
        for attempt in attempts
        if attempt.chosen and attempt.image is not None
    }
    images = tuple(chosen.get(image.digest) or origins.of_image(image) for image in draft.images)
    turns: list[Mapping[str, Origin]] = []
    for turn in draft.turns:
        words = {"text": origins.of_text(turn.text)}
        if turn.makes is None:
            words["answer"] = origins.of_text(turn.answer)
        words.update((name, origins.of_text(text)) for name, text in turn.key_points.items())
        turns.append(words)
    return Provenance(images, tuple(turns))


def iterate_origins(provenance: Provenance) -> Iterator[Origin]:
    """Yield the origin of every image and every sentence."""
    yield from provenance.images
    for words in provenance.turns:
        yield from words.values()


def describe_provenance(names: Mapping[str, str], terms: Mapping[str, str]) -> Describe:
    """Return what turns a kept row into its provenance as it is written beside the dialogue, with models and terms."""

    def describe(row: Row) -> dict[str, Any]:
        described: dict[str, Any] = {"idx": row.number + 1}
        if row.provenance is None or row.draft is None:
            return described
        described["images"] = [
            {"image": image.digest, **_describe(origin, names, terms)}
            for image, origin in zip(row.draft.images, row.provenance.images, strict=True)
        ]
        described["turns"] = [
            {name: _describe(origin, names, terms) for name, origin in words.items()} for words in row.provenance.turns
        ]
        return described

    return describe


def _describe(origin: Origin, names: Mapping[str, str], terms: Mapping[str, str]) -> dict[str, str]:
    described: dict[str, str] = msgspec.to_builtins(origin)
    role = find_party(origin)
    if origin.role:
        described["model"] = names.get(origin.role, "")
    return {**described, "terms": terms.get(role, "")}


def find_party(origin: Origin) -> str:
    """Return whose terms count for what comes from here: a role, `files` or `program`."""
    if origin.role:
        return origin.role
    return FILES if origin.file else OWN_PROGRAM
