"""Calibration cards of judges: one JSON file per judge, judge version and prompts, in `HOME/cards`.

`weft judge check` writes them; reports read them. Values are shares of full marks, with 95% intervals by answer. A card
that cannot be read never makes a report fail."""

import contextlib
import hashlib
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from weft.errors import UserError
from weft.rounding import format_number
from weft.stats.agreement import Agreement, NullableEstimate
from weft.store.blobs import write_file
from weft.store.manifest import Manifest

CARDS_FOLDER = "cards"
ALL_METRICS = "all"  # the metric name of a benchmark's metrics pooled
SHOWN_BY_NAME = ("name", "provider", "model", "url", "takes")  # fields of a judge that its name already gives


class CalibrationLevel(Struct, frozen=True):
    """The judge's mean score over answers of one level: one fault, or one bin of the reference score."""

    name: str  # the fault, or the bin
    reference: float  # the exact mean score of these answers
    judge: NullableEstimate  # the judge's mean score of them
    n: int  # answers


class MetricCard(Struct, frozen=True):
    """How a judge did on one metric of one benchmark."""

    benchmark: str  # name of the benchmark
    metric: str  # name of the metric, or ALL_METRICS
    agreement: Agreement  # the judge against the reference scores
    bias: NullableEstimate  # judge minus reference, in the middle of the scale
    standard_deviation: NullableEstimate  # over repeats of one question
    standard_deviation_middle: NullableEstimate  # the same, in the middle of the scale
    variation: float | None  # coefficient of variation over repeats
    questions: int  # questions asked
    unusable: int  # replies that held no score
    slope: NullableEstimate  # of the judge's score over the reference: 0 for a judge that ignores the image
    curve: tuple[CalibrationLevel, ...]  # by bin of the reference score
    faults: tuple[CalibrationLevel, ...]  # by fault
    by_image_side: Mapping[str, Agreement]  # by the longer side of the image, in pixels


class Effect(Struct, frozen=True):
    """How much a change that should not matter moves the judge's score."""

    change: str  # what was changed
    benchmark: str  # name of the benchmark
    difference: NullableEstimate  # score with the change minus score without
    raised: NullableEstimate  # share of answers that got full marks only with the change
    n: int  # answers


class OrderEffect(Struct, frozen=True):
    """How much the order of two answers moves the judge of a battle."""

    battles: str  # which battles: those about one image each, or all
    position_bias: NullableEstimate  # -1 to 1 over battles fought in both orders; 0 if the order plays no part
    first_wins: NullableEstimate  # percent of decided battles that the first answer wins
    consistent: NullableEstimate  # percent of battles in which both orders give the same winner
    correct: NullableEstimate  # percent of battles that the better answer wins
    n: int  # battles


class CardCost(Struct, frozen=True):
    """The calls behind a card."""

    calls: int  # calls to the judge
    tokens_in: int  # prompt tokens
    tokens_out: int  # completion tokens
    usd: float | None  # None where the price is unknown


class CalibrationCard(Struct, frozen=True):
    """The calibration of one judge. `judge` and `prompts` identify it."""

    judge: dict[str, Any]  # the judge as manifests record it
    prompts: dict[str, dict[str, Any]]  # by benchmark: its version and the digest of its prompts
    weft: str  # version of weft
    created: float  # Unix time
    questions: int  # questions asked in all
    metrics: tuple[MetricCard, ...]  # by benchmark and metric
    effects: tuple[Effect, ...]  # changes that should not matter
    orders: tuple[OrderEffect, ...]  # order of the answers in battles
    cost: CardCost  # calls and their price
    settings: dict[str, Any] = {}  # settings of the calibration

    @property
    def name(self) -> str:
        return str(self.judge["name"])

    @property
    def options(self) -> str:
        """The judge's options in words; two cards with the same name differ in them."""
        texts: list[str] = []
        for key, value in self.judge.items():
            if key not in SHOWN_BY_NAME and value not in (None, "", {}):
                texts.append(f"{key} {value}")
        return ", ".join(texts)

    def for_metric(self, benchmark: str, metric: str) -> MetricCard | None:
        for card in self.metrics:
            if card.benchmark == benchmark and card.metric == metric:
                return card
        return None


def card_digest(judge: Mapping[str, Any], prompts: Mapping[str, Any]) -> str:
    """Return the digest that names a card's file."""
    identity = [judge, prompts]
    return hashlib.sha256(msgspec.json.encode(identity, order="deterministic")).hexdigest()[:12]


def write_card(home: Path, card: CalibrationCard) -> Path:
    """Write the card to its file, replacing an older card of the same judge and prompts; return the path."""
    slug = re.sub(r"[^a-z0-9.]+", "-", card.name.lower()).strip("-.")[:60] or "judge"
    path = home / CARDS_FOLDER / f"{slug}-{card_digest(card.judge, card.prompts)}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, msgspec.json.format(msgspec.json.encode(card), indent=1))
    return path


def read_cards(home: Path) -> list[CalibrationCard]:
    """Return all cards, newest first. Raises UserError for a file that cannot be read."""
    return _newest_first([read_card(path) for path in _card_files(home)])


def read_card(path: Path) -> CalibrationCard:
    try:
        return msgspec.json.decode(path.read_bytes(), type=CalibrationCard)
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise UserError(
            f"{path} is not a calibration card of this version: {error}; "
            "remove the file, or run `weft judge check` again"
        ) from None


def find_card(home: Path, manifest: Manifest) -> CalibrationCard | None:
    """Return the card of a run's judge: same judge, same version, same prompts. None if there is none."""
    benchmark = manifest.benchmark.name
    prompts = prompt_version(manifest)
    for card in _readable_cards(home):
        if card.judge == manifest.judge and card.prompts.get(benchmark) == prompts:
            return card
    return None


def prompt_version(manifest: Manifest) -> dict[str, str]:
    """Return what identifies a judge's prompts on a card: the benchmark's version and the prompts' digest."""
    return {"version": manifest.benchmark.version, "prompts": manifest.prompts.digest}


def metrics_of(card: CalibrationCard, benchmark: str) -> list[MetricCard]:
    """Return the card's metrics of one benchmark, without the pooled one."""
    return [one for one in card.metrics if one.benchmark == benchmark and one.metric != ALL_METRICS]


def describe_card(card: CalibrationCard, benchmark: str) -> str:
    """Return the line that a report shows beside numbers by this judge."""
    metrics = metrics_of(card, benchmark)
    day = time.strftime("%Y-%m-%d", time.gmtime(card.created))
    count = sum(metric.agreement.n for metric in metrics)
    ranges = [
        _describe_range("Pearson", [(metric.agreement.pearson.value, metric.metric) for metric in metrics], 2),
        _describe_range("MAE", [(metric.agreement.mae.value, metric.metric) for metric in metrics], 3),
        _describe_range("bias", [(metric.agreement.bias.value, metric.metric) for metric in metrics], 3, sign=True),
    ]
    measures = ", ".join(filter(None, ranges))
    return f"{day}, {count} verdicts against exact references: {measures} of full marks; details: `weft judge cards`"


def _describe_range(name: str, values: Sequence[tuple[float | None, str]], digits: int, *, sign: bool = False) -> str:
    """Return the lowest and the highest value, each with its metric; an empty text where no metric has a value."""
    known = [(value, metric) for value, metric in values if value is not None]
    if not known:
        return ""
    low, low_metric = min(known)
    high, high_metric = max(known)
    lowest = format_number(low, digits, sign=sign)
    if low_metric == high_metric:
        return f"{name} {lowest}"
    return f"{name} {lowest} ({low_metric}) to {format_number(high, digits, sign=sign)} ({high_metric})"


def _card_files(home: Path) -> list[Path]:
    folder = home / CARDS_FOLDER
    if not folder.is_dir():
        return []
    return sorted(folder.glob("*.json"))


def _readable_cards(home: Path) -> list[CalibrationCard]:
    cards: list[CalibrationCard] = []
    for path in _card_files(home):
        with contextlib.suppress(UserError):
            cards.append(read_card(path))
    return _newest_first(cards)


def _newest_first(cards: Sequence[CalibrationCard]) -> list[CalibrationCard]:
    return sorted(cards, key=lambda card: -card.created)
