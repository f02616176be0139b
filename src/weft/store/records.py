"""What stands in a journal, row by row."""

from typing import Any

from msgspec import Struct

from weft.types import Reply


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


class Expected(Struct, frozen=True):
    """How much there is of a run."""

    samples: int
    turns: int


class RunRecord(Struct, frozen=True):
    id: str
    manifest: dict[str, Any]
    round: int
    state: str
    started: float
    ended: float | None
    left_out: list[str]
    benchmark: str  # where its code can be found again
    data: str = ""  # where its dataset was
    names: dict[str, str] = {}  # what its user calls its `model` and its `judge`, and the run itself (`tag`)
    gist: dict[str, Any] = {}  # its main number as it was when somebody last reckoned it (`weft.results.index.Gist`)
    shards: dict[str, list[int]] = {}  # those that are done, `2/8` -> the turns and verdicts that were due in it
    expected: Expected | None = None  # None until all of the dataset was read


class Shard(Struct, frozen=True):
    """A part of a run that is done by itself: one of so many, and the samples in it."""

    number: int
    of: int
    samples: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


class TurnRecord(Struct, frozen=True):
    """What a run made of one turn. `seen` is what the model was shown, after the fit; `about` what the dataset has of the turn (ask, truth,
    gold), so that a report needs no dataset."""

    sample: str
    turn: int
    position: int
    groups: dict[str, str]
    want: str
    seen: str
    reply: Reply
    about: str = "{}"


class Totals(Struct, frozen=True):
    role: str
    calls: int
    answered: int
    tokens_in: int
    tokens_out: int
    cost: float | None
    retries: int
    seconds: float = 0.0  # waited for, all calls together
