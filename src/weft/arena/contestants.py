"""Stored runs as contestants: what each of them made of each item, and battles between them as samples. Everything comes from the journal:
no dataset is needed. A dialogue is one item, all its turns together."""

import re
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from weft.arena.sampling import drawn
from weft.benchmarks.base import is_inner
from weft.benchmarks.records import digest_of
from weft.errors import UserError
from weft.results.run import Run, about, named
from weft.store.journal import TurnRecord
from weft.types import Image, Part, Problem, ReadDataset, Reply, Sample, Text, Turn, caption

NOTHING = "(no answer)"
MARK = re.compile(r"\[(?=(?:Request|Answer) \d)")


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
    lost: Mapping[str, str] = {}  # who has none through no fault of their own, and why


def contestants(runs: Sequence[Run]) -> dict[str, Run]:
    """By names that tell them apart. Raises UserError if they cannot meet, or are not finished: half a dialogue is no answer."""
    if len({run.id for run in runs}) < len(runs):
        raise UserError("a run is given twice: a model does not fight itself")
    first = runs[0]
    for run in runs:
        if is_inner(run.benchmark.name):
            raise UserError(f"{run.id} is no run of a model; name the runs that are to fight (`weft runs`)")
        if run.benchmark.name != first.benchmark.name:
            raise UserError(f"{first.id} is of {first.benchmark.name}, {run.id} of {run.benchmark.name}: they have no item in common")
        if run.record.manifest.dataset.digest != first.record.manifest.dataset.digest:
            raise UserError(f"{first.id} and {run.id} were made with different datasets")
        if not run.record.has_all(len(run.turns)):
            raise UserError(
                f"{run.id} has {run.record.count(len(run.turns), 'of its')}: finish it first, or name another run (`weft runs`)"
            )
    return named(runs)


def items_of(runs: Mapping[str, Run]) -> list[Item]:
    """Every item that any of them has, in the order of the dataset, with what each made of it, unless that was lost through no fault of its
    own. Groups are those of the coarsest axis."""
    turns: dict[str, dict[str, list[TurnRecord]]] = {}
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
        found = {name: _made(name, [record.reply for record in records], several) for name, records in by.items()}
        kept = {name: one for name, one in found.items() if not one.lost}
        lost = {name: one.lost for name, one in found.items() if one.lost}
        made.append(Item(sample, " ".join(groups.get(axis, "") for axis in axes), ask, kept, lost))
    return made


def notes_of(items: Sequence[Item], runs: Mapping[str, Run]) -> tuple[Problem, ...]:
    """What nobody fights about, and why."""
    told: list[str] = []
    for name in runs:
        count = sum(name in item.lost for item in items)
        why = next((item.lost[name] for item in items if name in item.lost), "")
        told += [f"{name}: {count} of {len(items)} answers are missing through no fault of its own ({why[:200]})"] if count else []
    few = sum(len(item.made) < 2 for item in items)
    told += (
        [f"{few} of {len(items)} items have an answer of one run alone, or of none: nobody fights about them"]
        if few and len(runs) > 1
        else []
    )
    return tuple(Problem("warning", "", "", "", one) for one in told)


def _made(name: str, replies: Sequence[Reply], several: bool) -> Made:
    failed = next((reply for reply in replies if reply.outcome == "failed"), None)
    said = [(reply.said if reply.outcome == "answered" else (Text(NOTHING),), "Answer") for reply in replies]
    answered = any(reply.outcome == "answered" for reply in replies)
    return Made(name, _together(said, several), answered, failed.reason or "it failed" if failed is not None else "")


def _together(turns: Sequence[tuple[Sequence[Part], str]], several: bool) -> tuple[Part, ...]:
    """The turns of a dialogue one after another, each under its number, which no text of theirs can forge; pictures that texts call by a
    number have it before them."""
    parts: list[Part] = []
    for number, (some, what) in enumerate(turns, start=1):
        parts += [Text(f"\n[{what} {number}]\n")] if several else []
        for part in some:
            if isinstance(part, Image):
                parts += [caption(part.label)] if part.label is not None else []
                parts.append(msgspec.structs.replace(part, label=None, state=None))
            elif isinstance(part, Text):
                parts.append(Text(MARK.sub("\u2039", part.text) if several else part.text))
    return tuple(parts)


def battles_of(runs: Mapping[str, Run], each: int, seed: int) -> ReadDataset:
    """Battles as samples: what is asked is the item's, what both made of it is gold."""
    found = items_of(runs)
    items = {item.id: item for item in found}
    ready = {name: list(item.made) for name, item in items.items() if len(item.made) > 1}
    notes = notes_of(found, runs)
    if not ready:
        raise UserError("; ".join(["the runs have no item to which two of them have an answer", *(one.message for one in notes[:3])]))
    benchmark = next(iter(runs.values())).benchmark.name
    samples: list[Sample] = []
    for one in drawn(ready, {name: items[name].group for name in ready}, each, seed):
        item = items[one.item]
        duel = Duel(item.id, item.made[one.first], item.made[one.second], benchmark)
        groups = {"item": item.id, "first": one.first, "second": one.second, **({"group": item.group} if item.group else {})}
        name = f"{item.id}: {one.first} against {one.second}"
        samples.append(Sample(name, (Turn(0, item.ask, "interleaved", (), None, "", duel),), (), groups))
    return _dataset(runs, samples, notes)


def answers_of(runs: Mapping[str, Run]) -> ReadDataset:
    """Every answer of every run as a sample of its own, for scores that need no second one."""
    samples: list[Sample] = []
    benchmark = next(iter(runs.values())).benchmark.name
    found = items_of(runs)
    for item in found:
        for name, made in item.made.items():
            groups = {"model": name, "item": item.id, **({"group": item.group} if item.group else {})}
            duel = Duel(item.id, made, made, benchmark)
            samples.append(Sample(f"{item.id}: {name}", (Turn(0, item.ask, "interleaved", (), None, "", duel),), (), groups))
    return _dataset(runs, samples, notes_of(found, runs))


def _dataset(runs: Mapping[str, Run], samples: Sequence[Sample], notes: tuple[Problem, ...]) -> ReadDataset:
    name = next(iter(runs.values())).record.manifest.dataset.name
    return ReadDataset(name, digest_of(samples), tuple(samples), notes, len(samples))
