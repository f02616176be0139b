"""Cards on disk: one file for each judge, version and prompts, in `HOME/cards`. A card that cannot be read is none, and that is told."""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from weft.errors import UserError
from weft.store.blobs import write_file
from weft.trust.card import Card, MetricCard

FOLDER = "cards"
PLACES = ("takes",)  # of a judge's manifest: what does not change what it says


def digest_of(judge: Mapping[str, Any], prompts: Mapping[str, Any]) -> str:
    told = [identity_of(judge), prompts]
    return hashlib.sha256(msgspec.json.encode(told, order="deterministic")).hexdigest()[:12]


def identity_of(judge: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in judge.items() if name not in PLACES}


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


def card_for(home: Path, manifest: Mapping[str, Any]) -> Card | None:
    """The card of a run's judge: the same judge in the same version, asked with the same prompts."""
    name, judge = str(manifest["benchmark"]["name"]), identity_of(manifest["judge"])
    asked = {"version": manifest["benchmark"]["version"], "rubric": manifest["rubric"]["digest"]}
    return next((card for card in cards(home) if identity_of(card.judge) == judge and card.prompts.get(name) == asked), None)


def of_benchmark(card: Card, benchmark: str) -> list[MetricCard]:
    return [one for one in card.metrics if one.benchmark == benchmark]
