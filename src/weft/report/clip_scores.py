"""CLIP-I and CLIP-T of the images in a run's replies, by weights on this machine.

CLIP-I is the cosine similarity of a reply's image and the image that the turn asks about: the lower, the more was
changed. CLIP-T is that of the image and a text: what was asked, or the first line of what the dataset says of the right
result. A turn whose reply has no image has neither, and is counted as unscored."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from weft.results.run import DatasetTurn, Run, read_dataset_turn
from weft.store.blobs import Blobs
from weft.store.images import flatten
from weft.types import Image, Part, Text

CLIP_I = "CLIP-I"
CLIP_T = "CLIP-T"
MEASURES = (CLIP_I, CLIP_T)
TEXTS = ("request", "reference")
TurnKey = tuple[str, int]  # sample, turn (from 0)
Vector = Sequence[float]


class Encoder(Protocol):
    """What embeds images and texts as vectors of length 1."""

    def embed_images(self, images: Iterable[Any]) -> Sequence[Vector]: ...

    def embed_texts(self, texts: Iterable[str]) -> Sequence[Vector]: ...

    def is_cut(self, text: str) -> bool: ...


class ClipScores(Struct, frozen=True):
    """The scores of one run."""

    values: Mapping[str, Mapping[TurnKey, float]]  # by measure
    expected: Mapping[str, int]  # by measure, how many turns could have one
    cut: int = 0  # texts that are longer than CLIP reads


class _Turn(Struct, frozen=True):
    key: TurnKey
    result: Image | None
    source: Image | None
    text: str


def score_run(run: Run, encoder: Encoder, blobs: Blobs, text: str = "request") -> ClipScores:
    """Score all turns whose reply should have an image; `text` is one of TEXTS.

    Raises ImageError where a stored image is missing."""
    turns = _read_turns(run, text)
    images: dict[str, Image] = {}
    for turn in turns:
        if turn.result is not None:
            images.update({image.digest: image for image in (turn.result, turn.source) if image is not None})
    texts = list(dict.fromkeys(turn.text for turn in turns if turn.result is not None and turn.text))
    image_vectors = dict(zip(images, encoder.embed_images(_decode(blobs, one) for one in images.values()), strict=True))
    text_vectors = dict(zip(texts, encoder.embed_texts(texts), strict=True))
    values: dict[str, dict[TurnKey, float]] = {measure: {} for measure in MEASURES}
    for turn in turns:
        if turn.result is None:
            continue
        result = image_vectors[turn.result.digest]
        if turn.source is not None:
            values[CLIP_I][turn.key] = _cosine(result, image_vectors[turn.source.digest])
        if turn.text:
            values[CLIP_T][turn.key] = _cosine(result, text_vectors[turn.text])
    expected = {CLIP_I: sum(turn.source is not None for turn in turns), CLIP_T: sum(bool(turn.text) for turn in turns)}
    return ClipScores(values, expected, sum(map(encoder.is_cut, texts)))


def _decode(blobs: Blobs, image: Image) -> Any:
    return flatten(blobs.decode(image))


def _read_turns(run: Run, text: str) -> list[_Turn]:
    describe = run.benchmark.presentation.describe_gold
    turns: list[_Turn] = []
    for record in run.turns:
        if record.modality == "text":
            continue
        asked = read_dataset_turn(record)
        images = [part for part in asked.prompt if isinstance(part, Image)]
        result = next(iter(record.reply.images), None)
        source = images[-1] if images else None
        turns.append(_Turn((record.sample, record.turn), result, source, _text_of(asked, text, describe)))
    return turns


def _text_of(asked: DatasetTurn, text: str, describe: Callable[[Any], list[str]]) -> str:
    if text == "request":
        return _join_texts(asked.prompt)
    return next(iter(describe(asked.gold)), "")


def _join_texts(parts: Sequence[Part]) -> str:
    return " ".join(" ".join(part.text for part in parts if isinstance(part, Text)).split())


def _cosine(first: Vector, second: Vector) -> float:
    """The similarity of two vectors of length 1, without what rounding adds."""
    return max(-1.0, min(1.0, sum(a * b for a, b in zip(first, second, strict=True))))
