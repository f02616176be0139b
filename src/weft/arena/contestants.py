"""Stored runs as contestants: what each of them made of each item, and battles between them as samples. Everything
comes from the journal: no dataset is needed. A dialogue is one item, all its turns together."""

import re
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from weft.arena.sampling import draw_pairings
from weft.benchmarks.base import is_internal
from weft.benchmarks.records import digest_samples
from weft.errors import UserError
from weft.results.run import Run, name_runs, read_dataset_turn
from weft.store.journal import TurnRecord
from weft.types import Image, LoadedDataset, Part, Problem, Reply, Sample, Text, Turn, build_caption

NOTHING = "(no answer)"
MARK = re.compile(r"\[(?=(?:Request|Answer) \d)")


class ContestantAnswer(Struct, frozen=True):
    """What a contestant made of an item. `lost`: something of it is missing through no fault of its own."""

    name: str
    parts: tuple[Part, ...]
    answered: bool = True
    missing_reason: str = ""

    @property
    def images(self) -> int:
        return sum(isinstance(part, Image) for part in self.parts)


class Duel(Struct, frozen=True):
    """What a battle is about."""

    item: str
    first: ContestantAnswer
    second: ContestantAnswer
    benchmark: str = ""


class BattleItem(Struct, frozen=True):
    id: str
    group: str
    prompt: tuple[Part, ...]
    answers: Mapping[str, ContestantAnswer]  # by contestant
    missing: Mapping[str, str] = {}  # who has none through no fault of their own, and why


def name_contestants(runs: Sequence[Run]) -> dict[str, Run]:
    """By names that tell them apart. Raises UserError if they cannot meet, or are not finished: half a dialogue is no
    answer."""
    if len({run.id for run in runs}) < len(runs):
        raise UserError("a run is given twice: a model does not fight itself")
    first = runs[0]
    for run in runs:
        if is_internal(run.benchmark.name):
            raise UserError(f"{run.id} is no run of a model; name the runs that are to fight (`weft runs`)")
        if run.benchmark.name != first.benchmark.name:
            raise UserError(
                f"{first.id} is of {first.benchmark.name}, {run.id} of {run.benchmark.name}: they have no item in common"
            )
        if run.record.manifest.dataset.digest != first.record.manifest.dataset.digest:
            raise UserError(f"{first.id} and {run.id} were made with different datasets")
        if not run.record.is_complete(len(run.turns)):
            raise UserError(
                f"{run.id} has {run.record.format_turn_count(len(run.turns), 'of its')}: finish it first, or name another run (`weft runs`)"
            )
    return name_runs(runs)


def collect_items(runs: Mapping[str, Run]) -> list[BattleItem]:
    """Every item that any of them has, in the order of the dataset, with what each made of it, unless that was lost
    through no fault of its own. Groups are those of the coarsest axis."""
    turns: dict[str, dict[str, list[TurnRecord]]] = {}
    for name, run in runs.items():
        for record in run.turns:
            turns.setdefault(record.sample, {}).setdefault(name, []).append(record)
    axes = next(iter(runs.values())).benchmark.axes[:1]
    made: list[BattleItem] = []
    for sample, by in turns.items():
        longest = max(by.values(), key=len)
        groups = longest[0].groups
        several = len(longest) > 1
        ask = _together([(read_dataset_turn(record).prompt, "Request") for record in longest], several)
        found = {name: _made(name, [record.reply for record in records], several) for name, records in by.items()}
        kept = {name: one for name, one in found.items() if not one.missing_reason}
        lost = {name: one.missing_reason for name, one in found.items() if one.missing_reason}
        made.append(BattleItem(sample, " ".join(groups.get(axis, "") for axis in axes), ask, kept, lost))
    return made


def build_notes(items: Sequence[BattleItem], runs: Mapping[str, Run]) -> tuple[Problem, ...]:
    """What nobody fights about, and why."""
    told: list[str] = []
    for name in runs:
        count = sum(name in item.missing for item in items)
        why = next((item.missing[name] for item in items if name in item.missing), "")
        told += (
            [f"{name}: {count} of {len(items)} answers are missing through no fault of its own ({why[:200]})"]
            if count
            else []
        )
    few = sum(len(item.answers) < 2 for item in items)
    told += (
        [f"{few} of {len(items)} items have an answer of one run alone, or of none: nobody fights about them"]
        if few and len(runs) > 1
        else []
    )
    return tuple(Problem("warning", "", "", "", one) for one in told)


def _made(name: str, replies: Sequence[Reply], several: bool) -> ContestantAnswer:
    failed = next((reply for reply in replies if reply.outcome == "failed"), None)
    said = [(reply.output if reply.outcome == "answered" else (Text(NOTHING),), "Answer") for reply in replies]
    answered = any(reply.outcome == "answered" for reply in replies)
    return ContestantAnswer(
        name, _together(said, several), answered, failed.reason or "it failed" if failed is not None else ""
    )


def _together(turns: Sequence[tuple[Sequence[Part], str]], several: bool) -> tuple[Part, ...]:
    """The turns of a dialogue one after another, each under its number, which no text of theirs can forge; pictures
    that texts call by a number have it before them."""
    parts: list[Part] = []
    for number, (some, what) in enumerate(turns, start=1):
        parts += [Text(f"\n[{what} {number}]\n")] if several else []
        for part in some:
            if isinstance(part, Image):
                parts += [build_caption(part.label)] if part.label is not None else []
                parts.append(msgspec.structs.replace(part, label=None, state=None))
            elif isinstance(part, Text):
                parts.append(Text(MARK.sub("\u2039", part.text) if several else part.text))
    return tuple(parts)


def build_battle_dataset(runs: Mapping[str, Run], each: int, seed: int) -> LoadedDataset:
    """Battles as samples: what is asked is the item's, what both made of it is gold."""
    found = collect_items(runs)
    items = {item.id: item for item in found}
    ready = {name: list(item.answers) for name, item in items.items() if len(item.answers) > 1}
    notes = build_notes(found, runs)
    if not ready:
        raise UserError(
            "; ".join(
                ["the runs have no item to which two of them have an answer", *(one.message for one in notes[:3])]
            )
        )
    benchmark = next(iter(runs.values())).benchmark.name
    samples: list[Sample] = []
    for one in draw_pairings(ready, {name: items[name].group for name in ready}, each, seed):
        item = items[one.item]
        duel = Duel(item.id, item.answers[one.first], item.answers[one.second], benchmark)
        groups = {
            "item": item.id,
            "first": one.first,
            "second": one.second,
            **({"group": item.group} if item.group else {}),
        }
        name = f"{item.id}: {one.first} against {one.second}"
        samples.append(Sample(name, (Turn(0, item.prompt, "interleaved", (), None, "", duel),), (), groups))
    return _dataset(runs, samples, notes)


def build_answer_dataset(runs: Mapping[str, Run]) -> LoadedDataset:
    """Every answer of every run as a sample of its own, for scores that need no second one."""
    samples: list[Sample] = []
    benchmark = next(iter(runs.values())).benchmark.name
    found = collect_items(runs)
    for item in found:
        for name, made in item.answers.items():
            groups = {"model": name, "item": item.id, **({"group": item.group} if item.group else {})}
            duel = Duel(item.id, made, made, benchmark)
            samples.append(
                Sample(f"{item.id}: {name}", (Turn(0, item.prompt, "interleaved", (), None, "", duel),), (), groups)
            )
    return _dataset(runs, samples, build_notes(found, runs))


def _dataset(runs: Mapping[str, Run], samples: Sequence[Sample], notes: tuple[Problem, ...]) -> LoadedDataset:
    name = next(iter(runs.values())).record.manifest.dataset.name
    return LoadedDataset(name, digest_samples(samples), tuple(samples), notes, len(samples))
