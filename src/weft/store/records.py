"""What stands in a journal, row by row."""

from collections.abc import Callable
from typing import Any

from msgspec import Raw, Struct
from msgspec.structs import astuple

from weft.store.manifest import Manifest
from weft.types import Reply, Verdict

REMEMBERED = 4096  # values that verdicts are known to share


class CallRecord(Struct, frozen=True):
    """One row of `calls`, without its id."""

    key: str
    request_digest: str
    run: str
    role: str
    endpoint: str
    model: str
    served: str
    request: str
    outcome: str
    reply: str
    raw: str
    tokens_in: int
    tokens_out: int
    cost: float | None
    latency: float
    attempts: int
    at: float


class ExpectedCounts(Struct, frozen=True):
    """What a whole run asks about, known when its dataset has been read to the end."""

    samples: int
    turns: int


class RunRecord(Struct, frozen=True):
    id: str
    manifest: Manifest
    round: int
    state: str
    started: float
    ended: float | None
    left_out: list[str]
    benchmark: str  # where its code can be found again
    data: str = ""  # where its dataset was
    names: dict[str, str] = {}  # what its user calls its `model` and its `judge`, and the run itself (`tag`)
    gist: dict[str, Any] = {}  # its main number as it was when somebody last reckoned it (`weft.results.run.Gist`)
    shards: dict[str, list[int]] = {}  # those that are done, `2/8` -> the turns and verdicts that were due in it
    expected: ExpectedCounts | None = None  # None until its dataset has been read to the end

    def is_complete(self, turns: int) -> bool:
        """Whether so many turns are all that it asks about; while nobody knows how many those are, they are not."""
        return self.expected is not None and turns >= self.expected.turns

    def format_turn_count(self, turns: int, preposition: str = "of") -> str:
        """`8 of 10 turns`, or `8 turns` while nobody knows of how many."""
        if self.expected is None:
            return f"{turns} turns"
        return f"{turns} {preposition} {self.expected.turns} turns"


class Shard(Struct, frozen=True):
    """A part of a run that is done by itself: one of so many, and the samples in it."""

    number: int
    count: int
    samples: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


class TurnRecord(Struct, frozen=True):
    """What a run made of one turn. `seen` is what the model was shown, after the fit; `about` what the dataset has of
    the turn (ask, truth, gold), so that a report needs no dataset."""

    sample: str
    turn: int
    position: int
    groups: dict[str, str]
    modality: str
    messages_json: str
    reply: Reply
    dataset_json: str = "{}"


class CallTotals(Struct, frozen=True):
    role: str
    calls: int
    answered: int
    tokens_in: int
    tokens_out: int
    cost: float | None
    retries: int
    seconds: float = 0.0  # waited for, all calls together


# fields of verdicts that many share
ALIKE = ("metric", "value", "reason", "variant", "score", "standard_deviation", "reading", "variant_reading")


class StoredVerdict(Verdict, frozen=True):
    """A verdict with its detail as JSON."""

    detail: Raw = Raw()


class VerdictInterner:
    """Verdicts that share what they have alike (numbers, reasons, details; samples and calls within a dialogue): of a
    million, that is most of them. Nobody may change what is shared. Of what differs everywhere, as a judge's own words
    do, only the first are remembered."""

    def __init__(self, decode: Callable[[bytes], Any]) -> None:
        self._decode = decode  # of a detail, which only looks like JSON so far
        self._common: dict[Any, Any] = {0.0: 0.0}
        self._details: dict[bytes, Any] = {b"": None}
        self._dialogue: dict[Any, Any] = {}

    def intern(self, read: StoredVerdict) -> Verdict:
        """Verdicts of one dialogue come one after the other."""
        if read.sample not in self._dialogue:
            self._dialogue = {read.sample: read.sample}
        values = dict(zip(Verdict.__struct_fields__, astuple(read), strict=True))  # all there are, whatever is added
        for name in ALIKE:
            values[name] = self._shared(values[name])
        values["sample"] = self._dialogue[read.sample]
        values["keys"] = self._dialogue.setdefault(read.keys, read.keys)
        values["detail"] = self._detail(bytes(read.detail))
        return Verdict(**values)

    def _shared(self, value: Any) -> Any:
        if len(self._common) < REMEMBERED:
            return self._common.setdefault(value, value)
        return self._common.get(value, value)

    def _detail(self, text: bytes) -> Any:
        if text in self._details:
            return self._details[text]
        made = self._decode(text)
        if len(self._details) < REMEMBERED:
            self._details[text] = made
        return made
