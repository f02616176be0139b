"""Models that need no weights: a floor for tables (`copy`), and the ground truth itself, which checks the whole path."""

from collections.abc import Mapping
from typing import Any

import msgspec

from weft.errors import UserError
from weft.models.endpoint import Sent, judged
from weft.models.registry import Spec
from weft.store.blobs import Blobs
from weft.types import Dataset, Image, Message, Part, Takes, Text, Want


class Local:
    """What all local endpoints share: nothing to wait for, nothing to remember, nothing to close."""

    memo = False
    concurrency: int | None = None

    def __init__(self, name: str, **identity: Any) -> None:
        self.name, self.address, self.takes = name, f"local:{name}", Takes()
        self.identity: Mapping[str, Any] = {"provider": "local", "model": name, **identity}

    async def close(self) -> None:
        return


class Copy(Local):
    """The last picture it was shown; where text is due, the same fixed words."""

    def __init__(self) -> None:
        super().__init__("copy", version=1)

    async def send(self, messages: tuple[Message, ...], want: Want) -> Sent:
        shown = [part for message in messages for part in message.parts if isinstance(part, Image)]
        parts: tuple[Part, ...] = (Text("I do not know."),) if want.kind == "text" else tuple(shown[-1:])
        outcome, reason = judged(parts, want.kind)
        return Sent(parts, outcome, reason or "", served=self.name)


class Constant(Local):
    """A judge that gives everything the same score. It tests plumbing; it judges nothing."""

    def __init__(self, score: float) -> None:
        super().__init__(f"constant/{score:g}", score=score)
        self._score = int(score) if score == int(score) else score

    async def send(self, messages: tuple[Message, ...], want: Want) -> Sent:
        said = msgspec.json.encode({"reasoning": "the same score for all", "score": self._score}).decode()
        return Sent((Text(said),), "answered", raw=said, served=self.name)


class Truth(Local):
    """The dataset's own reference replies."""

    def __init__(self, dataset: Dataset) -> None:
        super().__init__("truth", dataset=dataset.digest)
        self._parts = {(sample.id, turn.number): turn.truth for sample in dataset.samples for turn in sample.turns}

    async def send(self, messages: tuple[Message, ...], want: Want) -> Sent:
        parts = self._parts[want.place.sample, want.place.turn]
        outcome, reason = judged(parts, want.kind)
        return Sent(parts, outcome, reason, served=self.name)


def copy_from_spec(spec: Spec, blobs: Blobs) -> Copy:
    spec.take({})
    return Copy()


def constant_from_spec(spec: Spec, blobs: Blobs) -> Constant:
    spec.take({})
    try:
        return Constant(float(spec.model))
    except ValueError:
        raise UserError(f"{spec.text}: constant/SCORE needs a number, such as constant/10") from None
