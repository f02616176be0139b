"""Stored runs as contestants: their answers to each item, and battles between the answers as samples.

Everything comes from the journal: no dataset is needed. A dialogue is one item, with all its turns together.
"""

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

NO_ANSWER = "(no answer)"  # part of the judge's messages
TURN_HEADING = re.compile(r"\[(?=(?:Request|Answer) \d)")


class ContestantAnswer(Struct, frozen=True):
    """A contestant's answer to an item."""

    name: str  # the contestant
    parts: tuple[Part, ...]  # all turns together, as a judge sees them
    answered: bool = True  # whether any turn has an answer
    missing_reason: str = ""  # why a part of the answer is missing through no fault of the model; empty if none is

    @property
    def images(self) -> int:
        return sum(isinstance(part, Image) for part in self.parts)


class Duel(Struct, frozen=True):
    """The two answers that a battle compares: the gold of its sample."""

    item: str  # the sample's id in the runs' benchmark
    first: ContestantAnswer
    second: ContestantAnswer
    benchmark: str = ""  # the runs' benchmark


class BattleItem(Struct, frozen=True):
    """An item with the answers of all contestants."""

    id: str
    group: str  # its value on the benchmark's coarsest axis
    prompt: tuple[Part, ...]
    answers: Mapping[str, ContestantAnswer]  # by contestant
    missing: Mapping[str, str] = {}  # contestant -> why its answer is missing through no fault of the model


def name_contestants(runs: Sequence[Run]) -> dict[str, Run]:
    """Return the runs by distinct names.

    Raises UserError if the runs cannot be compared, or if one is not finished: half a dialogue is no answer.
    """
    if len({run.id for run in runs}) < len(runs):
        raise UserError("a run is given twice: name two different runs (`weft runs` lists them)")
    first = runs[0]
    for run in runs:
        if is_internal(run.benchmark.name):
            raise UserError(f"{run.id} is no run of a model; name the runs that are to be compared (`weft runs`)")
        if run.benchmark.name != first.benchmark.name:
            raise UserError(
                f"{first.id} is of {first.benchmark.name}, {run.id} of {run.benchmark.name}: "
                "they have no item in common"
            )
        if run.record.manifest.dataset.digest != first.record.manifest.dataset.digest:
            raise UserError(f"{first.id} and {run.id} were made with different datasets")
        if not run.record.is_complete(len(run.turns)):
            count = run.record.format_turn_count(len(run.turns), "of its")
            raise UserError(f"{run.id} has {count}: finish it first, or name another run (`weft runs`)")
    return name_runs(runs)


def collect_items(runs: Mapping[str, Run]) -> list[BattleItem]:
    """Return every item that any run has, in dataset order, with each contestant's answer.

    An answer that is missing through no fault of the model is listed under `missing` instead.
    """
    turns: dict[str, dict[str, list[TurnRecord]]] = {}
    for name, run in runs.items():
        for record in run.turns:
            turns.setdefault(record.sample, {}).setdefault(name, []).append(record)
    axes = _first_run(runs).benchmark.axes[:1]
    return [_build_item(sample, records, axes) for sample, records in turns.items()]


def _build_item(sample: str, by_contestant: Mapping[str, Sequence[TurnRecord]], axes: Sequence[str]) -> BattleItem:
    longest = max(by_contestant.values(), key=len)
    several = len(longest) > 1
    prompts = [(read_dataset_turn(record).prompt, "Request") for record in longest]
    answers: dict[str, ContestantAnswer] = {}
    missing: dict[str, str] = {}
    for name, records in by_contestant.items():
        answer = _build_answer(name, [record.reply for record in records], several)
        if answer.missing_reason:
            missing[name] = answer.missing_reason
        else:
            answers[name] = answer
    group = " ".join(longest[0].groups.get(axis, "") for axis in axes)
    return BattleItem(sample, group, _join_turns(prompts, several), answers, missing)


def build_notes(items: Sequence[BattleItem], runs: Mapping[str, Run]) -> tuple[Problem, ...]:
    """Return a warning for each contestant with missing answers, and one for items that cannot be compared."""
    messages: list[str] = []
    for name in runs:
        reasons = [item.missing[name] for item in items if name in item.missing]
        if reasons:
            messages.append(
                f"{name}: {len(reasons)} of {len(items)} answers are missing through no fault of its own "
                f"({reasons[0][:200]})"
            )
    too_few = sum(len(item.answers) < 2 for item in items)
    if too_few and len(runs) > 1:
        messages.append(
            f"{too_few} of {len(items)} items have an answer of one run alone, or of none: they are not compared"
        )
    return tuple(Problem("warning", "", "", "", message) for message in messages)


def _build_answer(name: str, replies: Sequence[Reply], several: bool) -> ContestantAnswer:
    outputs: list[tuple[Sequence[Part], str]] = []
    answered = False
    missing_reason = ""
    for reply in replies:
        if reply.outcome == "answered":
            answered = True
            outputs.append((reply.output, "Answer"))
        else:
            outputs.append(((Text(NO_ANSWER),), "Answer"))
        if reply.outcome == "failed" and not missing_reason:
            missing_reason = reply.reason or "it failed"
    return ContestantAnswer(name, _join_turns(outputs, several), answered, missing_reason)


def _join_turns(turns: Sequence[tuple[Sequence[Part], str]], several: bool) -> tuple[Part, ...]:
    """Concatenate the turns of a dialogue, each under a numbered heading that no text inside can forge.

    An image that texts refer to by number is preceded by its caption.
    """
    parts: list[Part] = []
    for number, (turn_parts, heading) in enumerate(turns, start=1):
        if several:
            parts.append(Text(f"\n[{heading} {number}]\n"))
        for part in turn_parts:
            if isinstance(part, Image):
                if part.label is not None:
                    parts.append(build_caption(part.label))
                parts.append(msgspec.structs.replace(part, label=None, state=None))
            elif isinstance(part, Text):
                text = part.text
                if several:
                    text = TURN_HEADING.sub("\u2039", text)
                parts.append(Text(text))
    return tuple(parts)


def build_battle_dataset(runs: Mapping[str, Run], battles_per_item: int, seed: int) -> LoadedDataset:
    """Return the battles as samples: the prompt is the item's, the two answers are gold.

    Raises UserError if no item has two answers.
    """
    items = {item.id: item for item in collect_items(runs)}
    comparable: dict[str, list[str]] = {}
    for item in items.values():
        if len(item.answers) > 1:
            comparable[item.id] = list(item.answers)
    notes = build_notes(list(items.values()), runs)
    if not comparable:
        reasons = [note.message for note in notes[:3]]
        raise UserError("; ".join(["the runs have no item to which two of them have an answer", *reasons]))
    benchmark = _first_run(runs).benchmark.name
    group_of_item = {name: items[name].group for name in comparable}
    samples: list[Sample] = []
    for pairing in draw_pairings(comparable, group_of_item, battles_per_item, seed):
        item = items[pairing.item]
        duel = Duel(item.id, item.answers[pairing.first], item.answers[pairing.second], benchmark)
        name = f"{item.id}: {pairing.first} against {pairing.second}"
        groups = {"item": item.id, "first": pairing.first, "second": pairing.second}
        samples.append(_build_sample(name, item, duel, groups))
    return _build_dataset(runs, samples, notes)


def build_answer_dataset(runs: Mapping[str, Run]) -> LoadedDataset:
    """Return every answer of every run as a sample of its own, for scores that need no opponent."""
    benchmark = _first_run(runs).benchmark.name
    items = collect_items(runs)
    samples: list[Sample] = []
    for item in items:
        for name, answer in item.answers.items():
            duel = Duel(item.id, answer, answer, benchmark)
            samples.append(_build_sample(f"{item.id}: {name}", item, duel, {"model": name, "item": item.id}))
    return _build_dataset(runs, samples, build_notes(items, runs))


def _build_sample(name: str, item: BattleItem, duel: Duel, groups: dict[str, str]) -> Sample:
    if item.group:
        groups["group"] = item.group
    return Sample(name, (Turn(0, item.prompt, "interleaved", (), None, "", duel),), (), groups)


def _build_dataset(runs: Mapping[str, Run], samples: Sequence[Sample], notes: tuple[Problem, ...]) -> LoadedDataset:
    name = _first_run(runs).record.manifest.dataset.name
    return LoadedDataset(name, digest_samples(samples), tuple(samples), notes, len(samples))


def _first_run(runs: Mapping[str, Run]) -> Run:
    return next(iter(runs.values()))
