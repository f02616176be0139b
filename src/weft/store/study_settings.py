"""The settings of a study as a journal has them, which may come from anywhere: their shape is checked before use."""

from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType


class StoredCheck(Struct, frozen=True):
    """An attention check: the question that it was made from, and the known answer."""

    of: str = ""
    most: float | None = None
    values: tuple[tuple[tuple[str | int, ...], Any], ...] = ()


class StoredJoint(Struct, frozen=True):
    """What the studies of one joint study share."""

    id: str
    runs: tuple[str, ...]
    orders: dict[str, tuple[str, ...]]


class ImportedSettings(Struct, frozen=True):
    """The settings of a study of which only answers are known."""

    known: dict[str, StoredCheck] = {}


class DrawnSettings(Struct, frozen=True):
    """The settings of a study that was drawn: who gets which questions, in which order."""

    annotators: tuple[str, ...]
    each: int
    seed: int
    questions: int
    orders: dict[str, tuple[str, ...]]
    known: dict[str, StoredCheck]
    joint: StoredJoint | UnsetType = UNSET


def parse_study_settings(text: str) -> dict[str, Any]:
    """Return the settings of a study as they are stored. Raises msgspec.MsgspecError for a shape that none has."""
    settings = msgspec.json.decode(text, type=dict[str, Any])
    msgspec.convert(settings, DrawnSettings if "orders" in settings else ImportedSettings)
    return settings
