"""Cards of judges, as they are kept: one file for each judge, version and prompts, in `HOME/cards`. Calibration makes them.

Values are shares of full marks, with 95% intervals by answer.
"""

import contextlib
import hashlib
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from weft.errors import UserError
from weft.stats.agreement import Agreement, Measured
from weft.store.blobs import write_file
from weft.store.manifest import Manifest

FOLDER = "cards"
ALL = "all"  # metrics of a benchmark together
TOLD_ALREADY = ("name", "provider", "model", "url", "takes")  # of a judge, by its name


class Level(Struct, frozen=True):
    """What a judge says, on average, of answers that are alike: of one fault, or of a bin of the truth."""

    name: str
    truth: float
    judge: Measured
    n: int


class MetricCard(Struct, frozen=True):
    benchmark: str
    metric: str
    agreement: Agreement
    bias: Measured  # in the middle of the scale
    deviation: Measured  # of one question asked again
    deviation_middle: Measured
    variation: float | None  # coefficient of, over repeats
    asked: int
    unusable: int
    sees: Measured  # the slope of what it says over what is true: 0 for a judge that does not look
    curve: tuple[Level, ...]
    faults: tuple[Level, ...]
    sides: Mapping[str, Agreement]


class Effect(Struct, frozen=True):
    """What a change that should change nothing changes. `raised`: the share of answers that got full marks with it and not without."""

    what: str
    benchmark: str
    difference: Measured
    raised: Measured
    n: int


class Order(Struct, frozen=True):
    """`pull`: how far the first place leans to a win, from -1 to 1, over battles that were fought in both orders; 0 if it plays no part.
    `first` and `same` are percents: how often the first wins, and how often both orders say the same; `right` how often it is who is
    better. Of battles about one picture each, and of all."""

    what: str
    pull: Measured
    first: Measured
    same: Measured
    right: Measured
    n: int


class Cost(Struct, frozen=True):
    calls: int
    tokens_in: int
    tokens_out: int
    usd: float | None


class Card(Struct, frozen=True):
    judge: dict[str, Any]  # as a manifest tells it
    prompts: dict[str, dict[str, Any]]  # by benchmark: its version and the digest of its prompts
    weft: str
    made: float
    questions: int
    metrics: tuple[MetricCard, ...]
    effects: tuple[Effect, ...]
    orders: tuple[Order, ...]
    cost: Cost
    settings: dict[str, Any] = {}

    @property
    def name(self) -> str:
        return str(self.judge["name"])

    @property
    def options(self) -> str:
        """What tells it from others of its name."""
        known = {name: value for name, value in self.judge.items() if name not in TOLD_ALREADY}
        return ", ".join(f"{name} {value}" for name, value in known.items() if value not in (None, "", {}))

    def of(self, benchmark: str, metric: str) -> MetricCard | None:
        return next((one for one in self.metrics if (one.benchmark, one.metric) == (benchmark, metric)), None)


def digest_of(judge: Mapping[str, Any], prompts: Mapping[str, Any]) -> str:
    told = [judge, prompts]
    return hashlib.sha256(msgspec.json.encode(told, order="deterministic")).hexdigest()[:12]


def keep(home: Path, card: Card) -> Path:
    slug = re.sub(r"[^a-z0-9.]+", "-", card.name.lower()).strip("-.")[:60] or "judge"
    file = home / FOLDER / f"{slug}-{digest_of(card.judge, card.prompts)}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    write_file(file, msgspec.json.format(msgspec.json.encode(card), indent=1))
    return file


def cards(home: Path) -> list[Card]:
    """The latest first."""
    found = [read(file) for file in sorted((home / FOLDER).glob("*.json"))] if (home / FOLDER).is_dir() else []
    return sorted(found, key=lambda card: -card.made)


def read(file: Path) -> Card:
    try:
        return msgspec.json.decode(file.read_bytes(), type=Card)
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise UserError(f"{file} is no card of a judge, or one of another version: {error}; remove it, or check the judge again") from None


def card_for(home: Path, manifest: Manifest) -> Card | None:
    """The card of a run's judge: the same judge in the same version, asked with the same prompts."""
    name, asked = manifest.benchmark.name, asked_with(manifest)
    return next((card for card in _readable(home) if card.judge == manifest.judge and card.prompts.get(name) == asked), None)


def asked_with(manifest: Manifest) -> dict[str, str]:
    """What a judge is asked with, as a card has it: the benchmark's version and the digest of its prompts."""
    return {"version": manifest.benchmark.version, "prompts": manifest.prompts.digest}


def _readable(home: Path) -> list[Card]:
    """The same without those that cannot be read: no report fails because of them."""
    made: list[Card] = []
    for file in (home / FOLDER).glob("*.json") if (home / FOLDER).is_dir() else ():
        with contextlib.suppress(UserError):
            made.append(read(file))
    return sorted(made, key=lambda card: -card.made)


def of_benchmark(card: Card, benchmark: str) -> list[MetricCard]:
    """Metric by metric."""
    return [one for one in card.metrics if one.benchmark == benchmark and one.metric != ALL]


def told_of(card: Card, benchmark: str) -> str:
    """What a reader of a number by this judge must know, in a line."""
    some = of_benchmark(card, benchmark)
    day = time.strftime("%Y-%m-%d", time.gmtime(card.made))
    made = [f"{day}, {sum(one.agreement.n for one in some)} verdicts against exact truth"]
    for name, digits in (("pearson", 2), ("mae", 3), ("bias", 3)):
        found = [(value, one.metric) for one in some if (value := msgspec.structs.asdict(one.agreement)[name].value) is not None]
        if found:
            (low, worst), (high, best) = min(found), max(found)
            sign = "+" if name == "bias" else ""
            told = {"pearson": "Pearson", "mae": "MAE"}.get(name, name)
            both = f"{low:{sign}.{digits}f} ({worst}) to {high:{sign}.{digits}f} ({best})" if worst != best else f"{low:{sign}.{digits}f}"
            made.append(f"{told} {both}")
    return f"{made[0]}: {', '.join(made[1:])} of full marks; `weft judge cards` has what must be known of it"
