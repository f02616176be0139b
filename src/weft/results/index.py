"""Runs in a list: for each its title, its main number with its interval, how much of it there is, what it cost, how it
stands."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from weft.errors import UserError, WeftError
from weft.results.run import Gist, Run, resolve_benchmark, title_input, without_tag
from weft.results.titles import append_setting, distinguishing_settings, format_title
from weft.store.journal import Journal
from weft.store.locks import with_actual_state
from weft.store.records import RunRecord
from weft.workspace import open_journal

SORT_KEYS = ("age", "score", "cost", "title", "benchmark")


def store_gist(home: Path, run: Run) -> None:
    """What a list of runs says of it, where lists find it."""
    journal = open_journal(home, write=True)
    try:
        journal.set_gist(run.id, run.gist)
    finally:
        journal.close()


class RunEntry(Struct, frozen=True):
    """A run in a list."""

    record: RunRecord
    title: str
    gist: Gist
    state: str  # as a person would say it
    expected_turns: int | None  # turns; None while nobody knows how many

    @property
    def coverage(self) -> str:
        if self.gist.turns == self.expected_turns:
            turns = ""
        else:
            turns = f"{self.gist.turns}/{'?' if self.expected_turns is None else self.expected_turns} turns"
        if self.gist.scored == self.gist.expected:
            verdicts = ""
        else:
            verdicts = f"{self.gist.scored}/{self.gist.expected} scored"
        return ", ".join(one for one in (turns, verdicts) if one) or "all"

    @property
    def handle(self) -> str:
        """What it can be called by besides its tag: the last part of its id."""
        return self.record.id.rpartition("-")[2]

    @property
    def tagged_title(self) -> str:
        """Its title, behind its tag if it has one."""
        tag = self.record.names.get("tag")
        if tag:
            return f"{tag}: {self.title}"
        return self.title

    @property
    def judge(self) -> str:
        return self.record.names.get("judge") or self.record.manifest.judge.name


def list_runs(journal: Journal, benchmarks: Any = None, reckoned: Mapping[str, Gist] | None = None) -> list[RunEntry]:
    """All runs with their main numbers, the latest last. Those of finished runs are in the journal, others may have
    been `reckoned` already."""
    found = [
        _listed(journal, with_actual_state(record, journal.path.parent), benchmarks, reckoned or {})
        for record in journal.runs()
    ]
    alike: dict[tuple[str, str, str], list[int]] = {}
    for at, one in enumerate(found):
        alike.setdefault((one.record.manifest.benchmark.name, one.title, one.judge), []).append(at)
    for same in (same for same in alike.values() if len(same) > 1):
        for at, more in zip(same, distinguishing_settings([title_input(found[at].record) for at in same]), strict=True):
            found[at] = replace(found[at], title=append_setting(found[at].title, more))
    return found


def _listed(journal: Journal, record: RunRecord, benchmarks: Any, reckoned: Mapping[str, Gist]) -> RunEntry:
    there = journal.count_done(record.id)
    try:
        gist = msgspec.convert(record.gist, Gist)
        if gist.stamp != Gist.stamp_of(record, *there):
            gist = reckoned.get(record.id, gist)
        if gist.stamp != Gist.stamp_of(record, *there):
            gist = Run(resolve_benchmark(record, benchmarks), record, journal).gist
    except (WeftError, msgspec.ValidationError):  # its benchmark is not at hand, or not what it was
        gist = Gist(turns=there[0], expected=there[1])
    title = format_title(record.manifest, names=without_tag(record.names))
    if record.expected:
        due = record.expected.turns
    else:
        due = None
    return RunEntry(record, title, gist, describe_state(record, gist), due)


def describe_state(record: RunRecord, gist: Gist) -> str:
    """`finished` is for what has something to show."""
    if record.state == "part":
        return describe_shards(record) or "part"
    if record.state != "finished":
        return record.state
    if gist.turns and gist.failed == gist.turns:
        return "all failed"
    if gist.expected and not gist.scored:
        return "nothing scored"
    if gist.failed:
        return f"finished, {gist.failed} failed"
    return "finished"


def describe_shards(record: RunRecord) -> str:
    """`7 of 8 shards (3/8 is missing)`; nothing for a run that is whole, or was never in shards."""
    many = {int(one.partition("/")[2]) for one in record.shards if one.partition("/")[2].isdecimal()}
    if record.state != "part" or len(many) != 1:
        return ""
    of = many.pop()
    missing = [f"{one}/{of}" for one in range(1, of + 1) if f"{one}/{of}" not in record.shards]
    if len(missing) <= 3:
        told = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
    else:
        told = f"{len(missing)} are missing"
    return f"{of - len(missing)} of {of} shards ({told})"


def format_age(seconds: float) -> str:
    """`3 h`, in the largest unit that fits."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return "now"


def filter_runs(
    found: Sequence[RunEntry], *, benchmark: str = "", model: str = "", find: str = "", sort: str = "age"
) -> list[RunEntry]:
    """Those of a benchmark, whose model has a text in its name, with all of some words in title, tag, judge or id; the
    last is the latest, the best, or the dearest."""
    if sort not in SORT_KEYS:
        raise UserError(f"runs are sorted by {', '.join(SORT_KEYS)}, not by {sort!r}")
    kept = [one for one in found if _fits(one, benchmark, model, find)]
    return sorted(kept, key=lambda one: _order(one, sort))


def _fits(one: RunEntry, benchmark: str, model: str, find: str) -> bool:
    manifest = one.record.manifest
    named = [one.record.names.get("model", ""), manifest.model.name]
    texts = [*named, one.tagged_title, one.judge]
    return (
        (not benchmark or manifest.benchmark.name == benchmark)
        and any(model.lower() in text.lower() for text in named)
        and all(any(word in text.lower() for text in texts) or _begins(one, word) for word in find.lower().split())
    )


def _begins(one: RunEntry, word: str) -> bool:
    return len(word) >= 3 and (one.record.id.startswith(word) or one.handle.startswith(word))


def _order(one: RunEntry, sort: str) -> Any:
    benchmark = one.record.manifest.benchmark.name
    if sort == "score":
        return (benchmark, -1.0 if one.gist.value is None else one.gist.value)
    if sort == "cost":
        if one.gist.cost is None:
            return -1.0
        return one.gist.cost
    return {"title": one.title.lower(), "benchmark": benchmark}.get(sort, 0)
