"""What a journal stores, row by row."""

import re
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import astuple

from weft.store.manifest import Manifest, parse_manifest
from weft.types import Reply, Verdict

RUN_ID = re.compile(r"[^./\\\x00-\x1f\x7f][^/\\\x00-\x1f\x7f]{0,199}")
BUILD_PREFIX = "build-"  # of the name under which the calls of a build are journalled; it has no row in `runs`
SHARD_NAME = re.compile(r"(\d{1,6})/(\d{1,6})")
MAX_TIME = 5e10  # seconds: the years 385 to 3554
MAX_INTERNED = 4096  # values that verdicts share
# fields of verdicts whose values repeat
INTERNED_FIELDS = ("metric", "value", "reason", "variant", "score", "standard_deviation", "reading", "variant_reading")


class CallRecord(Struct, frozen=True):
    """One call: a row of `calls`, without its id."""

    key: str  # the cache key: a digest of everything that can change the answer
    request_digest: str
    run: str
    role: str
    endpoint: str  # address
    model: str
    served: str  # the model that the server says it used
    request: str  # JSON
    outcome: str
    reply: str  # JSON of a Reply
    raw: str  # the response as the server sent it
    tokens_in: int
    tokens_out: int
    cost: float | None  # in USD; None where the price is unknown
    latency: float  # seconds, of the last try
    attempts: int
    at: float  # when it began


class ExpectedCounts(Struct, frozen=True):
    """The size of a whole run, known when its dataset has been read to the end."""

    samples: int
    turns: int


class RunRecord(Struct, frozen=True):
    """One run: a row of `runs`."""

    id: str
    manifest: Manifest
    round: int  # 1 + restarts after finishing
    state: str  # running, finished, stopped, or part: some shards are missing
    started: float
    ended: float | None
    left_out: list[str]  # records of the dataset that could not be used
    benchmark: str  # where its code is found again
    data: str = ""  # where its dataset was
    names: dict[str, str] = {}  # what the user calls its `model` and its `judge`, and the run itself (`tag`)
    gist: dict[str, Any] = {}  # the headline score when it was last computed (`weft.results.run.Gist`)
    shards: dict[str, list[int]] = {}  # those that are done: `2/8` -> its turns and verdicts
    expected: ExpectedCounts | None = None  # None until its dataset has been read to the end

    def is_complete(self, turns: int) -> bool:
        """Return whether this many turns are all of the run; False while its size is unknown."""
        return self.expected is not None and turns >= self.expected.turns

    def state_of_shards(self, done: tuple[int, int]) -> str:
        """Return `finished` if all shards are done and none of their rows is missing from those `done`, else `part`."""
        by_count: dict[str, list[list[int]]] = {}  # how many shards the run was divided into -> rows of those done
        for name, rows in self.shards.items():
            by_count.setdefault(name.partition("/")[2], []).append(rows)
        for count, shards in by_count.items():
            if len(shards) == int(count):
                turns = sum(rows[0] for rows in shards)
                verdicts = sum(rows[1] for rows in shards)
                return "finished" if done == (turns, verdicts) else "part"
        return "part"

    def format_turn_count(self, turns: int, preposition: str = "of") -> str:
        """Return `8 of 10 turns`, or `8 turns` while the run's size is unknown."""
        if self.expected is None:
            return f"{turns} turns"
        return f"{turns} {preposition} {self.expected.turns} turns"


def is_run_id(value: Any) -> bool:
    """Return whether a value can be a run's id: ids become names of files."""
    return isinstance(value, str) and RUN_ID.fullmatch(value) is not None


def parse_run_record(row: Mapping[str, Any]) -> RunRecord:
    """Parse a row of `runs`, by column. Raises msgspec.MsgspecError, or what else JSON can raise, if it is invalid."""
    values = dict(row)
    if not is_run_id(values["id"]):
        raise msgspec.ValidationError("its id is not a name")
    for column in ("left_out", "names", "gist", "shards"):
        values[column] = msgspec.json.decode(row[column])
    if not all(is_time(time or 0.0) for time in (row["begun"], row["started"], row["ended"])):
        raise msgspec.ValidationError("it has a time that no clock shows")
    values["shards"] = _convert_shards(values["shards"])
    values["manifest"] = parse_manifest(row["manifest"])
    if row["samples"] is not None and row["turns"] is not None:
        counts = {"samples": row["samples"], "turns": row["turns"]}
        values["expected"] = msgspec.convert(counts, ExpectedCounts)
    return msgspec.convert(values, RunRecord)


def read_clock() -> float:
    """Return the time; where the clock shows one that no record may have, the nearest that it may."""
    return min(max(time.time(), 1.0 - MAX_TIME), MAX_TIME - 1.0)


def is_time(value: Any) -> bool:
    """Return whether a value can be a Unix time: of a clock that is off by decades, too."""
    return isinstance(value, (int, float)) and -MAX_TIME < value < MAX_TIME


def _convert_shards(value: Any) -> dict[str, list[int]]:
    """Return the shards of a decoded row. Raises msgspec.ValidationError if one is none, or is not counted."""
    shards = msgspec.convert(value, dict[str, list[int]])
    for name, rows in shards.items():
        match = SHARD_NAME.fullmatch(name)
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise msgspec.ValidationError(f"{name[:40]!r} is not the name of a shard")
        if len(rows) != 2 or min(rows) < 0:
            raise msgspec.ValidationError(f"of its shard {name} the turns and verdicts are not counted")
    return shards


class Shard(Struct, frozen=True):
    """A part of a run that is done by itself."""

    number: int  # from 1
    count: int  # of shards
    samples: tuple[str, ...] = ()  # ids

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


class TurnRecord(Struct, frozen=True):
    """One turn of a run: a row of `replies`."""

    sample: str
    turn: int
    position: int  # of the sample in the dataset
    groups: dict[str, str]
    modality: str  # of the expected output
    messages_json: str  # what the model was sent, adapted to what it accepts
    reply: Reply
    dataset_json: str = "{}"  # prompt, reference and gold, so that a report needs no dataset


class CallTotals(Struct, frozen=True):
    """The calls of one role in a run, summed up."""

    role: str
    calls: int
    answered: int
    tokens_in: int
    tokens_out: int
    cost: float | None  # in USD; None where a price is unknown
    retries: int
    seconds: float = 0.0  # spent waiting, over all calls


class StoredVerdict(Verdict, frozen=True):
    """A verdict whose detail is still JSON."""

    detail: Raw = Raw()


class VerdictInterner:
    """Builds verdicts that share equal values: numbers, reasons and details; samples and keys within a dialogue.

    Most values of a million verdicts repeat. A shared value must not be changed. Of values that all differ, such as a
    judge's reasons, only the first MAX_INTERNED are remembered.
    """

    def __init__(self, decode: Callable[[bytes], Any]) -> None:
        """`decode` parses the JSON of a detail."""
        self._decode = decode
        self._values: dict[Any, Any] = {0.0: 0.0}
        self._details: dict[bytes, Any] = {b"": None}
        self._dialogue: dict[Any, Any] = {}

    def intern(self, stored: StoredVerdict) -> Verdict:
        """Return the verdict with shared values. Verdicts of one dialogue must come one after the other."""
        if stored.sample not in self._dialogue:
            self._dialogue = {stored.sample: stored.sample}
        values = dict(zip(Verdict.__struct_fields__, astuple(stored), strict=True))
        for name in INTERNED_FIELDS:
            values[name] = self._share(values[name])
        values["sample"] = self._dialogue[stored.sample]
        values["keys"] = self._dialogue.setdefault(stored.keys, stored.keys)
        values["detail"] = self._share_detail(bytes(stored.detail))
        return Verdict(**values)

    def _share(self, value: Any) -> Any:
        if len(self._values) < MAX_INTERNED:
            return self._values.setdefault(value, value)
        return self._values.get(value, value)

    def _share_detail(self, text: bytes) -> Any:
        if text in self._details:
            return self._details[text]
        detail = self._decode(text)
        if len(self._details) < MAX_INTERNED:
            self._details[text] = detail
        return detail
