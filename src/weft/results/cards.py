"""Cards of judges, as they are kept: one file for each judge, version and prompts, in `HOME/cards`. Calibration makes
them.

Values are shares of full marks, with 95% intervals by answer."""

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
from weft.stats.agreement import Agreement, NullableEstimate
from weft.store.blobs import write_file
from weft.store.manifest import Manifest

CARDS_FOLDER = "cards"
ALL_METRICS = "all"  # metrics of a benchmark together
TOLD_ALREADY = ("name", "provider", "model", "url", "takes")  # of a judge, by its name


class CalibrationLevel(Struct, frozen=True):
    """What a judge says, on average, of answers that are alike: of one fault, or of a bin of the truth."""

    name: str
    reference: float
    judge: NullableEstimate
    n: int


class MetricCard(Struct, frozen=True):
    benchmark: str
    metric: str
    agreement: Agreement
    bias: NullableEstimate  # in the middle of the scale
    standard_deviation: NullableEstimate  # of one question asked again
    standard_deviation_middle: NullableEstimate
    variation: float | None  # coefficient of, over repeats
    questions: int
    unusable: int
    slope: NullableEstimate  # the slope of what it says over what is true: 0 for a judge that does not look
    curve: tuple[CalibrationLevel, ...]
    faults: tuple[CalibrationLevel, ...]
    by_image_side: Mapping[str, Agreement]


class Effect(Struct, frozen=True):
    """What a change that should change nothing changes. `raised`: the share of answers that got full marks with it and
    not without."""

    change: str
    benchmark: str
    difference: NullableEstimate
    raised: NullableEstimate
    n: int


class OrderEffect(Struct, frozen=True):
    """`pull`: how far the first place leans to a win, from -1 to 1, over battles that were fought in both orders; 0 if
    it plays no part. `first` and `same` are percents: how often the first wins, and how often both orders say the same;
    `right` how often it is who is better. Of battles about one picture each, and of all."""

    battles: str
    position_bias: NullableEstimate
    first_wins: NullableEstimate
    consistent: NullableEstimate
    correct: NullableEstimate
    n: int


class CardCost(Struct, frozen=True):
    calls: int
    tokens_in: int
    tokens_out: int
    usd: float | None


class CalibrationCard(Struct, frozen=True):
    judge: dict[str, Any]  # as a manifest tells it
    prompts: dict[str, dict[str, Any]]  # by benchmark: its version and the digest of its prompts
    weft: str
    created: float
    questions: int
    metrics: tuple[MetricCard, ...]
    effects: tuple[Effect, ...]
    orders: tuple[OrderEffect, ...]
    cost: CardCost
    settings: dict[str, Any] = {}

    @property
    def name(self) -> str:
        return str(self.judge["name"])

    @property
    def options(self) -> str:
        """What tells it from others of its name."""
        known = {name: value for name, value in self.judge.items() if name not in TOLD_ALREADY}
        return ", ".join(f"{name} {value}" for name, value in known.items() if value not in (None, "", {}))

    def for_metric(self, benchmark: str, metric: str) -> MetricCard | None:
        return next((one for one in self.metrics if (one.benchmark, one.metric) == (benchmark, metric)), None)


def card_digest(judge: Mapping[str, Any], prompts: Mapping[str, Any]) -> str:
    told = [judge, prompts]
    return hashlib.sha256(msgspec.json.encode(told, order="deterministic")).hexdigest()[:12]


def write_card(home: Path, card: CalibrationCard) -> Path:
    slug = re.sub(r"[^a-z0-9.]+", "-", card.name.lower()).strip("-.")[:60] or "judge"
    file = home / CARDS_FOLDER / f"{slug}-{card_digest(card.judge, card.prompts)}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    write_file(file, msgspec.json.format(msgspec.json.encode(card), indent=1))
    return file


def read_cards(home: Path) -> list[CalibrationCard]:
    """The latest first."""
    found = (
        [read_card(file) for file in sorted((home / CARDS_FOLDER).glob("*.json"))]
        if (home / CARDS_FOLDER).is_dir()
        else []
    )
    return sorted(found, key=lambda card: -card.created)


def read_card(file: Path) -> CalibrationCard:
    try:
        return msgspec.json.decode(file.read_bytes(), type=CalibrationCard)
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise UserError(
            f"{file} is no card of a judge, or one of another version: {error}; remove it, or check the judge again"
        ) from None


def find_card(home: Path, manifest: Manifest) -> CalibrationCard | None:
    """The card of a run's judge: the same judge in the same version, asked with the same prompts."""
    name = manifest.benchmark.name
    asked = prompt_version(manifest)
    return next(
        (card for card in _readable(home) if card.judge == manifest.judge and card.prompts.get(name) == asked), None
    )


def prompt_version(manifest: Manifest) -> dict[str, str]:
    """What a judge is asked with, as a card has it: the benchmark's version and the digest of its prompts."""
    return {"version": manifest.benchmark.version, "prompts": manifest.prompts.digest}


def _readable(home: Path) -> list[CalibrationCard]:
    """The same without those that cannot be read: no report fails because of them."""
    made: list[CalibrationCard] = []
    for file in (home / CARDS_FOLDER).glob("*.json") if (home / CARDS_FOLDER).is_dir() else ():
        with contextlib.suppress(UserError):
            made.append(read_card(file))
    return sorted(made, key=lambda card: -card.created)


def metrics_of(card: CalibrationCard, benchmark: str) -> list[MetricCard]:
    """Metric by metric."""
    return [one for one in card.metrics if one.benchmark == benchmark and one.metric != ALL_METRICS]


def describe_card(card: CalibrationCard, benchmark: str) -> str:
    """What a reader of a number by this judge must know, in a line."""
    some = metrics_of(card, benchmark)
    day = time.strftime("%Y-%m-%d", time.gmtime(card.created))
    made = [f"{day}, {sum(one.agreement.n for one in some)} verdicts against exact truth"]
    for name, digits in (("pearson", 2), ("mae", 3), ("bias", 3)):
        found = [
            (value, one.metric)
            for one in some
            if (value := msgspec.structs.asdict(one.agreement)[name].value) is not None
        ]
        if found:
            (low, worst), (high, best) = min(found), max(found)
            if name == "bias":
                sign = "+"
            else:
                sign = ""
            told = {"pearson": "Pearson", "mae": "MAE"}.get(name, name)
            if worst != best:
                both = f"{low:{sign}.{digits}f} ({worst}) to {high:{sign}.{digits}f} ({best})"
            else:
                both = f"{low:{sign}.{digits}f}"
            made.append(f"{told} {both}")
    return f"{made[0]}: {', '.join(made[1:])} of full marks; `weft judge cards` has what must be known of it"
