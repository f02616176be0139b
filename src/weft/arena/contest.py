"""Stored runs as contestants: what each of them made of each item, and battles between them as samples. Everything comes from the journal:
no dataset is needed. A dialogue is one item, all its turns together."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from weft.arena.sampling import Pairing, drawn
from weft.benchmarks.records import digest_of
from weft.errors import UserError
from weft.runs import Run, about, named
from weft.types import Dataset, Image, Part, Reply, Sample, Text, Turn

NOTHING = "(no answer)"


class Made(Struct, frozen=True):
    """What a contestant made of an item. `lost`: something of it is missing through no fault of its own."""

    name: str
    parts: tuple[Part, ...]
    answered: bool = True
    lost: str = ""

    @property
    def images(self) -> int:
        return sum(isinstance(part, Image) for part in self.parts)


class Duel(Struct, frozen=True):
    """What a battle is about."""

    item: str
    first: Made
    second: Made
    benchmark: str = ""


class Item(Struct, frozen=True):
    id: str
    group: str
    ask: tuple[Part, ...]
    made: Mapping[str, Made]  # by contestant


def contestants(runs: Sequence[Run]) -> dict[str, Run]:
    """By names that tell them apart. Raises UserError if they cannot meet."""
    if len({run.id for run in runs}) < len(runs):
        raise UserError("a run is given twice: a model does not fight itself")
    first = runs[0]
    for run in runs[1:]:
        if run.benchmark.name != first.benchmark.name:
            raise UserError(f"{first.id} is of {first.benchmark.name}, {run.id} of {run.benchmark.name}: they have no item in common")
        if run.record.manifest["dataset"]["digest"] != first.record.manifest["dataset"]["digest"]:
            raise UserError(f"{first.id} and {run.id} were made with different datasets")
    return named(runs)


def items_of(runs: Mapping[str, Run]) -> list[Item]:
    """Every item that any of them has, in the order of the dataset, with what each made of it. Groups are those of the coarsest axis."""
    turns: dict[str, dict[str, list[Any]]] = {}
    for name, run in runs.items():
        for record in run.turns:
            turns.setdefault(record.sample, {}).setdefault(name, []).append(record)
    axes = next(iter(runs.values())).benchmark.axes[:1]
    made: list[Item] = []
    for sample, by in turns.items():
        longest = max(by.values(), key=len)
        groups = longest[0].groups
        several = len(longest) > 1
        ask = _together([(about(record).ask, "Request") for record in longest], several)
        whole = {name: records for name, records in by.items() if len(records) == len(longest)}
        found = {name: _made(name, [record.reply for record in records], several) for name, records in whole.items()}
        made.append(Item(sample, " ".join(groups.get(axis, "") for axis in axes), ask, found))
    return made


def _made(name: str, replies: Sequence[Reply], several: bool) -> Made:
    failed = next((reply for reply in replies if reply.outcome == "failed"), None)
    said = [(reply.said if reply.outcome == "answered" else (Text(NOTHING),), "Answer") for reply in replies]
    answered = any(reply.outcome == "answered" for reply in replies)
    return Made(name, _together(said, several), answered, failed.reason or "it failed" if failed is not None else "")


def _together(turns: Sequence[tuple[Sequence[Part], str]], several: bool) -> tuple[Part, ...]:
    """The turns of a dialogue one after another, each under its number."""
    parts: list[Part] = []
    for number, (some, what) in enumerate(turns, start=1):
        parts += [Text(f"\n[{what} {number}]\n")] if several else []
        parts += [msgspec.structs.replace(part, label=None, state=None) if isinstance(part, Image) else part for part in some]
    return tuple(parts)


def battles_of(runs: Mapping[str, Run], each: int, seed: int) -> tuple[Dataset, list[Pairing]]:
    """Battles as samples: what is asked is the item's, what both made of it is gold."""
    items = {item.id: item for item in items_of(runs)}
    ready = {name: list(item.made) for name, item in items.items() if len(item.made) > 1}
    if not ready:
        raise UserError("the runs have no item in common that two of them have finished: nothing can be fought about")
    pairings = drawn(ready, {name: items[name].group for name in ready}, each, seed)
    benchmark = next(iter(runs.values())).benchmark.name
    samples: list[Sample] = []
    for one in pairings:
        item = items[one.item]
        duel = Duel(item.id, item.made[one.first], item.made[one.second], benchmark)
        groups = {"item": item.id, "first": one.first, "second": one.second, **({"group": item.group} if item.group else {})}
        name = f"{item.id}: {one.first} against {one.second}"
        samples.append(Sample(name, (Turn(0, item.ask, "interleaved", (), None, "", duel),), (), groups))
    data = next(iter(runs.values())).record.manifest["dataset"]["name"]
    return Dataset(data, digest_of(samples), tuple(samples), (), len(samples)), pairings


def answers_of(runs: Mapping[str, Run]) -> Dataset:
    """Every answer of every run as a sample of its own, for scores that need no second one."""
    samples: list[Sample] = []
    benchmark = next(iter(runs.values())).benchmark.name
    for item in items_of(runs):
        for name, made in item.made.items():
            groups = {"model": name, "item": item.id, **({"group": item.group} if item.group else {})}
            duel = Duel(item.id, made, made, benchmark)
            samples.append(Sample(f"{item.id}: {name}", (Turn(0, item.ask, "interleaved", (), None, "", duel),), (), groups))
    data = next(iter(runs.values())).record.manifest["dataset"]["name"]
    return Dataset(data, digest_of(samples), tuple(samples), (), len(samples))
