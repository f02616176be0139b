"""The list of runs: each with its title, headline score and interval, coverage, cost and state.

A finished run's numbers come from the journal; those of others are computed when the list is made."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from weft.errors import UserError, WeftError
from weft.results.run import Gist, Run, resolve_benchmark, title_input
from weft.results.sweeps import sweeps_of
from weft.results.titles import append_setting, distinguishing_settings, format_title, without_tag
from weft.store.journal import Journal
from weft.store.locks import with_actual_state
from weft.store.records import RunRecord
from weft.workspace import open_journal

SORT_KEYS = ("age", "score", "cost", "title", "benchmark")
MIN_ID_LENGTH = 3  # characters of a run id that a search may name it by
MAX_MISSING_SHARDS = 3  # missing shards that are named one by one


def store_gist(home: Path, run: Run) -> None:
    """Write the run's line of the list to the journal, so that the next list need not compute it."""
    journal = open_journal(home, write=True)
    try:
        journal.set_gist(run.id, run.gist)
    finally:
        journal.close()


class RunEntry(Struct, frozen=True):
    """One run in the list."""

    record: RunRecord
    title: str
    gist: Gist
    state: str  # as shown, from describe_state
    expected_turns: int | None  # None while the number is unknown

    @property
    def coverage(self) -> str:
        """`6/8 turns, 20/24 scored`; `all` if nothing is missing."""
        texts: list[str] = []
        if self.gist.turns != self.expected_turns:
            expected = "?" if self.expected_turns is None else self.expected_turns
            texts.append(f"{self.gist.turns}/{expected} turns")
        if self.gist.scored != self.gist.expected:
            texts.append(f"{self.gist.scored}/{self.gist.expected} scored")
        return ", ".join(texts) or "all"

    @property
    def handle(self) -> str:
        """The last part of the run's id, which names the run wherever an id is accepted."""
        return self.record.id.rpartition("-")[2]

    @property
    def tagged_title(self) -> str:
        """`TAG: TITLE`, or the title alone."""
        tag = self.record.names.get("tag")
        if tag:
            return f"{tag}: {self.title}"
        return self.title

    @property
    def judge(self) -> str:
        return self.record.names.get("judge") or self.record.manifest.judge.name


def list_runs(journal: Journal, benchmarks: Any = None, known: Mapping[str, Gist] | None = None) -> list[RunEntry]:
    """Return all runs, oldest first, under titles that differ.

    `known` has gists that the caller computed before, by run id; they are used while they are up to date."""
    entries: list[RunEntry] = []
    for record in journal.runs():
        current = with_actual_state(record, journal.path.parent)
        entries.append(_build_entry(journal, current, benchmarks, known or {}))
    same_title: dict[tuple[str, str, str], list[int]] = {}
    for index, entry in enumerate(entries):
        key = (entry.record.manifest.benchmark.name, entry.title, entry.judge)
        same_title.setdefault(key, []).append(index)
    for indices in same_title.values():
        if len(indices) < 2:
            continue
        details = distinguishing_settings([title_input(entries[index].record) for index in indices])
        for index, detail in zip(indices, details, strict=True):
            entries[index] = replace(entries[index], title=append_setting(entries[index].title, detail))
    return entries


def _build_entry(journal: Journal, record: RunRecord, benchmarks: Any, known: Mapping[str, Gist]) -> RunEntry:
    gist = _find_gist(journal, record, benchmarks, known)
    title = format_title(record.manifest, names=without_tag(record.names))
    expected_turns = record.expected.turns if record.expected else None
    return RunEntry(record, title, gist, describe_state(record, gist), expected_turns)


def _find_gist(journal: Journal, record: RunRecord, benchmarks: Any, known: Mapping[str, Gist]) -> Gist:
    """Return the stored gist, the caller's or a new one: the first that is up to date."""
    turns, verdicts = journal.count_done(record.id)
    stamp = Gist.stamp_of(record, turns, verdicts)
    try:
        gist = msgspec.convert(record.gist, Gist)
        if gist.stamp != stamp:
            gist = known.get(record.id, gist)
        if gist.stamp != stamp:
            gist = Run(resolve_benchmark(record, benchmarks), record, journal).gist
    except (WeftError, msgspec.ValidationError):  # the benchmark is not installed, or has changed
        gist = Gist(turns=turns, expected=verdicts, headline_expected=verdicts)
    return gist


def describe_state(record: RunRecord, gist: Gist) -> str:
    """Return the state as lists show it. A run is `finished` only if it has something to show."""
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
    """Return `7 of 8 shards (3/8 is missing)`; an empty text for a run that is whole or was never in shards."""
    totals: set[int] = set()
    for shard in record.shards:
        total = shard.partition("/")[2]
        if total.isdecimal():
            totals.add(int(total))
    if record.state != "part" or len(totals) != 1:
        return ""
    count = totals.pop()
    shards = [f"{number}/{count}" for number in range(1, count + 1)]
    missing = [shard for shard in shards if shard not in record.shards]
    if len(missing) > MAX_MISSING_SHARDS:
        text = f"{len(missing)} are missing"
    elif len(missing) == 1:
        text = f"{missing[0]} is missing"
    else:
        text = f"{', '.join(missing)} are missing"
    return f"{count - len(missing)} of {count} shards ({text})"


def format_age(seconds: float) -> str:
    """Return an age such as `3 h`, in the largest unit that fits."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return "now"


def filter_runs(
    entries: Sequence[RunEntry], *, benchmark: str = "", model: str = "", find: str = "", sort: str = "age"
) -> list[RunEntry]:
    """Return the runs that match all filters, sorted ascending by `sort`.

    `model` is a part of the model's name. Each word of `find` must occur in title, tag, model, judge or the name
    of a sweep, or begin the id."""
    if sort not in SORT_KEYS:
        raise UserError(f"cannot sort runs by {sort!r}; choose one of {', '.join(SORT_KEYS)}")
    matching = [entry for entry in entries if _matches(entry, benchmark, model, find)]
    return sorted(matching, key=lambda entry: _sort_key(entry, sort))


def _matches(entry: RunEntry, benchmark: str, model: str, find: str) -> bool:
    manifest = entry.record.manifest
    if benchmark and manifest.benchmark.name != benchmark:
        return False
    model_names = f"{entry.record.names.get('model', '')}\n{manifest.model.name}".lower()
    if model.lower() not in model_names:
        return False
    sweeps = "\n".join(sweeps_of(entry.record))
    text = f"{model_names}\n{entry.tagged_title}\n{entry.judge}\n{sweeps}".lower()
    return all(word in text or _begins_id(entry, word) for word in find.lower().split())


def _begins_id(entry: RunEntry, word: str) -> bool:
    if len(word) < MIN_ID_LENGTH:
        return False
    return entry.record.id.startswith(word) or entry.handle.startswith(word)


def _sort_key(entry: RunEntry, sort: str) -> Any:
    benchmark = entry.record.manifest.benchmark.name
    if sort == "score":
        value = -1.0 if entry.gist.value is None else entry.gist.value
        return (benchmark, value)
    if sort == "cost":
        return -1.0 if entry.gist.cost is None else entry.gist.cost
    if sort == "title":
        return entry.title.lower()
    if sort == "benchmark":
        return benchmark
    return 0
