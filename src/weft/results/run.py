"""A run in the journal, finished or not: its turns, its verdicts, what a reader must know to trust its numbers, and its tables."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from weft.benchmarks.base import Benchmark, Finished, Groups, Terms, is_known, resolve
from weft.errors import UserError, blamed
from weft.results.cards import card_for, told_of
from weft.results.titles import Named, apart, shared, title_of
from weft.stats.intervals import spread
from weft.stats.repeats import repeats_tables
from weft.store.journal import Journal
from weft.store.locks import alive
from weft.store.manifest import Manifest
from weft.store.records import Expected, RunRecord, Totals, TurnRecord
from weft.types import Message, Part, Reply, Table, Verdict
from weft.workspace import open_journal

SHORTEST = 3  # characters of a run's id that may stand for it


class Gist(Struct, frozen=True):
    """A run in a line of a list: its main number on its paper's scale, how much of it there is, what it cost. `stamp` says how far the run
    was when this was reckoned."""

    stamp: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    digits: int = 3
    scored: int = 0
    due: int = 0
    turns: int = 0
    failed: int = 0  # turns without a reply, through no fault of the model
    cost: float | None = None

    @staticmethod
    def stamp_of(record: RunRecord, turns: int, verdicts: int) -> str:
        """Of a run with so many turns and verdicts, as they were given."""
        return f"{record.round}:{turns}:{verdicts}"

    @property
    def number(self) -> str:
        if self.value is None:
            return "-"
        between = "" if self.low is None or self.high is None else f" [{self.low:.{self.digits}f}, {self.high:.{self.digits}f}]"
        return f"{self.value:.{self.digits}f}{between}"


MOST_HELD = 20_000  # turns that a run has in memory from the start; those of a larger one are read when they are asked for


class Run:
    """`verdicts` are settled: one for each metric of a turn, with its variants behind it."""

    def __init__(self, benchmark: Benchmark, record: RunRecord, journal: Journal) -> None:
        self.id, self.record, self.benchmark = record.id, record, benchmark
        self.home = journal.path.parent
        self._journal = journal.path
        with journal.at_once():
            self.groups: dict[str, dict[str, str]]  # by sample
            if journal.progress(record.id)[0] <= MOST_HELD:  # of the same moment as the verdicts, where that is no matter of memory
                self.turns = journal.turns(record.id)
                self.groups = {turn.sample: turn.groups for turn in self.turns}
                self.replies: ReplyCounts = count_replies(turn.reply for turn in self.turns)
            else:
                self.groups, self.replies = journal.groups(record.id), count_replies(journal.replies(record.id))
            found = journal.verdicts(record.id)
            self.totals: list[Totals] = journal.totals(record.id)
            self.rated: tuple[int, int] = journal.rated(record.id)  # questions by people, and how many people
        self.given = len(found)  # verdicts as they were given, before they were settled
        try:
            self.verdicts: list[Verdict] = benchmark.merge_variants(found)
        except Exception as error:
            raise blamed(f"benchmark {benchmark.name}: settling the verdicts of {record.id}", error) from error

    @classmethod
    def stored(cls, home: str | Path, run: str, benchmark: Benchmark) -> Self:
        """A run from the journal in a home."""
        journal = open_journal(Path(home))
        try:
            return cls(benchmark, one_run(journal, run), journal)
        finally:
            journal.close()

    @property
    def name(self) -> str:
        return title_of(self.record.manifest, self.record.state, self.record.names)

    @property
    def called(self) -> Named:
        """What its name is made of."""
        return called(self.record)

    @cached_property
    def turns(self) -> list[TurnRecord]:
        """What it made of every turn, as the journal has it when somebody first asks: tables and summaries need none of it."""
        journal = Journal(self._journal, readonly=True)
        try:
            return journal.turns(self.id)
        finally:
            journal.close()

    def finished(self, name: str = "") -> Finished:
        manifest = self.record.manifest
        return Finished(name or self.name, self.groups, self.verdicts, manifest.dataset.name, self.id, manifest.judge.name)

    def summary(self) -> "Summary":
        made = summarise(self)
        card = card_for(self.home, self.record.manifest)
        if card is None:
            return made
        told = told_of(card, self.benchmark.name)
        return replace(made, card=told, lines=(*made.lines, f"the judge has a card: {told}"))

    @cached_property
    def gist(self) -> Gist:
        """Reckoned once: whoever shows a run in a line asks for it."""
        benchmark, stamp = self.benchmark, Gist.stamp_of(self.record, self.replies.turns, self.given)
        found = main_number(benchmark, self.verdicts, self.groups) if not benchmark.presentation.pairwise and self.verdicts else None
        value, low, high = (None if one is None else benchmark.presentation.max_score * one for one in found or (None, None, None))
        costs = [total.cost for total in self.totals]
        return Gist(
            stamp=stamp,
            value=value,
            low=low,
            high=high,
            digits=benchmark.presentation.digits,
            scored=sum(verdict.value is not None for verdict in self.verdicts),
            due=len(self.verdicts),
            turns=self.replies.turns,
            failed=self.replies.outcomes["failed"],
            cost=None if None in costs else sum(one for one in costs if one is not None),
        )

    def tables(self) -> list[Table]:
        return list(tables_of({self.name: self}))

    def table(self) -> Table:
        """The benchmark's main table."""
        return next(tables_of({self.name: self}), Table(f"{self.name} has no table", (), ()))


def terms_of(benchmark: Benchmark, verdicts: Sequence[Verdict], groups: Groups) -> Terms:
    """The main number of a benchmark as means with their weights, which add up to one over those that have something to average."""
    try:
        terms = [(weight, some) for weight, some in benchmark.headline(verdicts, groups) if some]
    except Exception as error:
        raise blamed(f"benchmark {benchmark.name}: its headline", error) from error
    total = sum(weight for weight, _ in terms)
    return [(weight / total, some) for weight, some in terms]


def main_number(benchmark: Benchmark, verdicts: Sequence[Verdict], groups: Groups) -> tuple[float, float | None, float | None] | None:
    """As a share of full marks, with its 95% interval by dialogue; None where nothing is scored."""
    scored = [verdict for verdict in verdicts if verdict.value is not None]
    terms = terms_of(benchmark, scored, groups) if scored else []
    if not terms:
        return None
    clusters: list[tuple[float, dict[str, list[float]]]] = []
    for weight, some in terms:
        by_sample: dict[str, list[float]] = {}
        for verdict in some:
            of = benchmark.cluster_of(verdict.sample, groups.get(verdict.sample, {}))
            by_sample.setdefault(of, []).append(verdict.value or 0.0)
        clusters.append((weight, by_sample))
    value = sum(weight * sum(v.value or 0.0 for v in some) / len(some) for weight, some in terms)
    low, high = spread(clusters) or (None, None)
    return value, low, high


def untagged(names: Mapping[str, str]) -> dict[str, str]:
    return {role: name for role, name in names.items() if role != "tag"}


def tables_of(runs: Mapping[str, Run]) -> Iterator[Table]:
    """The benchmark's tables of some runs, made one by one; then how far repeated judgements agree, if there are any."""
    benchmark = next(iter(runs.values())).benchmark
    try:
        yield from benchmark.tables([run.finished(name) for name, run in runs.items()])
    except Exception as error:
        raise blamed(f"benchmark {benchmark.name}: its tables", error) from error
    if any(run.record.manifest.judge_repeats > 1 for run in runs.values()):
        yield from repeats_tables(
            {name: run.verdicts for name, run in runs.items()},
            benchmark.metrics,
            benchmark.presentation.max_score,
            benchmark.presentation.digits,
        )


def called(record: RunRecord) -> Named:
    began = time.strftime("%Y-%m-%d %H:%M", time.gmtime(record.started))
    return Named(record.manifest, record.names, record.state == "finished", began)


class About(Struct, frozen=True):
    """What the dataset has of a turn."""

    ask: tuple[Part, ...] = ()
    reference: tuple[Part, ...] = ()
    gold: Any = None


def about(turn: TurnRecord) -> About:
    return msgspec.json.decode(turn.about, type=About)


def messages(seen: str) -> tuple[Message, ...]:
    return msgspec.json.decode(seen, type=tuple[Message, ...])


def named(runs: Sequence[Run]) -> dict[str, Run]:
    """Runs of one benchmark under names that tell them apart."""
    if len({run.benchmark.name for run in runs}) != 1:
        raise UserError("runs of different benchmarks do not share a table; report them one by one, or all on one card: weft suite report")
    if len({run.id for run in runs}) < len(runs):
        raise UserError("a run is given twice")
    names = apart([run.called for run in runs]) if len(runs) > 1 else [runs[0].name]
    return dict(zip(names, runs, strict=True))


def in_common(runs: Iterable[Run]) -> str:
    """What is the same in all of several runs, to be said once; nothing for one."""
    some = list(runs)
    return ", ".join(shared([run.called for run in some])) if len(some) > 1 else ""


def one_run(journal: Journal, name: str) -> RunRecord:
    """A run by its tag, its id, the beginning of it or of its last part, or `last`."""
    records = journal.runs()
    if not records:
        raise UserError(f"there is no run in {journal.path} yet")
    found = records[-1:] if name == "last" else [record for record in records if name in (record.id, record.names.get("tag"))]
    begins = [record for record in records if record.id.startswith(name) or record.id.rpartition("-")[2].startswith(name)]
    found = found or (begins if len(name) >= SHORTEST else [])
    if len(found) != 1:
        there = ", ".join(record.id for record in (found or records)[-8:])
        more = f" and {len(found or records) - 8} more (`weft runs` lists all)" if len(found or records) > 8 else ""
        raise UserError(f"{'no' if not found else 'more than one'} run is called {name!r}; there is {there}{more}")
    return found[0]


def load_run(journal: Journal, name: str, benchmark: Any = None) -> Run:
    """A run of the journal. Its benchmark is found by name, or is one of those given: a Python file that a journal names is not run unless
    the user names it as well, since a journal may have come from anywhere."""
    record = alive(one_run(journal, name), journal.path.parent)
    return Run(benchmark_of(record, benchmark), record, journal)


def siblings(journal: Journal, run: str) -> list[str]:
    """A run and all that differ from it in their model's seed alone."""
    records = journal.runs()
    mine = next(record.manifest for record in records if record.id == run).without_seed()
    return [record.id for record in records if record.manifest.without_seed() == mine]


def benchmark_of(record: RunRecord, given: Any = None) -> Benchmark:
    name = record.manifest.benchmark.name
    some: list[Any] = [*cast(Sequence[Any], given)] if isinstance(given, (list, tuple)) else [] if given is None else [given]
    made = [resolve(one) for one in some]
    found = next((one for one in made if one.name == name), None)
    if found is not None:
        return found
    if is_known(record.benchmark):
        return resolve(record.benchmark)
    if made:
        raise UserError(f"{record.id} is a run of {name}, not of {', '.join(one.name for one in made)}")
    raise UserError(
        f"{record.id} was made with {record.benchmark}; Python files that a journal names are not run unasked: "
        f"if you trust it, add --benchmark {record.benchmark}"
    )


class Summary(Struct, frozen=True):
    """How a run was made, what is missing and why, what it cost."""

    run: str
    state: str
    manifest: Manifest
    started: str
    samples: int
    turns: int
    outcomes: dict[str, int]
    verdicts: int
    scored: int
    zero_by_rule: dict[str, int]
    unscored: dict[str, int]
    left_out: list[str]
    totals: list[Totals]
    seconds: float | None = None  # from the first start to the end
    calls: int = 0  # behind all replies, those taken over from earlier runs included
    again: int = 0  # replies that a benchmark's protocol asked for more than once
    alike: int = 0  # replies that a strategy chose among candidates that were all the same
    ended: dict[str, int] = {}  # replies that a filter or a limit ended
    lines: tuple[str, ...] = ()  # the same, in words
    names: dict[str, str] = {}  # what its user calls it, its model and its judge
    rated: tuple[int, int] = (0, 0)  # questions that people rated, and how many people
    card: str = ""  # what is known of its judge
    expected: Expected | None = None  # what the whole run asks about; None while nobody knows

    @property
    def unfinished(self) -> str:
        of = f" of {self.expected.turns}" if self.expected else ""
        return "" if self.state == "finished" else f"UNFINISHED: {self.turns}{of} turns are done; the numbers are those of what is done"


class ReplyCounts(Struct):
    """The replies of a run, counted."""

    turns: int = 0
    outcomes: Counter[str] = msgspec.field(default_factory=Counter[str])
    ended: Counter[str] = msgspec.field(default_factory=Counter[str])  # those that a filter or a limit ended
    calls: int = 0  # behind all of them
    again: int = 0  # that a benchmark's protocol asked for more than once
    alike: int = 0  # that a strategy chose among candidates that were all the same


def count_replies(replies: Iterable[Reply]) -> ReplyCounts:
    """In one pass that keeps none of them."""
    made = ReplyCounts()
    for reply in replies:
        made.turns += 1
        made.outcomes[reply.outcome] += 1
        if reply.ended:
            made.ended[reply.ended] += 1
        made.calls += len(reply.keys)
        made.again += "asked again" in reply.notes
        made.alike += reply.outcome == "answered" and "same candidates" in reply.notes
    return made


def summarise(run: Run, most: int = 12) -> Summary:
    """All but what is known of its judge."""
    record, replies, verdicts = run.record, run.replies, run.verdicts
    zero = Counter(_kind(v.reason) for v in verdicts if v.by == "failure" and v.value is not None)
    unscored = Counter(_root(v.reason) for v in verdicts if v.value is None)
    summary = Summary(
        run=record.id,
        names=record.names,
        state=record.state,
        manifest=record.manifest,
        expected=record.expected,
        started=time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(record.started)),
        samples=len(run.groups),
        turns=replies.turns,
        outcomes=dict(sorted(replies.outcomes.items())),
        ended=dict(sorted(replies.ended.items())),
        verdicts=len(verdicts),
        scored=len(verdicts) - unscored.total(),
        zero_by_rule=_top(zero, most),
        unscored=_top(unscored, most),
        left_out=record.left_out,
        totals=list(run.totals),
        seconds=None if record.ended is None else max(0.0, record.ended - record.started),
        calls=replies.calls,
        again=replies.again,
        alike=replies.alike,
        rated=run.rated,
    )
    return replace(summary, lines=tuple(_lines(summary)))


def replies_told(summary: Summary) -> str:
    """`10 answered, 4 refused; 3 of them blocked`."""
    outcomes = ", ".join(f"{count} {name}" for name, count in summary.outcomes.items())
    return outcomes + "".join(f"; {count} of them {name}" for name, count in summary.ended.items())


def _lines(summary: Summary) -> list[str]:
    manifest = summary.manifest
    outcomes, tagged = replies_told(summary), summary.names.get("tag")
    chosen = ", ".join(f"{name} {value}" for name, value in manifest.options.items() if value not in (False, ""))
    settings = f", {chosen}" if chosen else ""
    of = f" of {summary.expected.turns}" if summary.expected and summary.turns != summary.expected.turns else ""
    made = [
        f"run {summary.run} ({summary.state}), started {summary.started}" + (f", called {summary.names['tag']}" if tagged else ""),
        f"dataset {manifest.dataset.name} ({manifest.dataset.digest[:8]})",
        f"model {title_of(manifest, names=untagged(summary.names))}, judge {manifest.judge.name}, "
        f"prompts {manifest.prompts.source} ({manifest.prompts.digest[:8]}){settings}",
        f"{summary.samples} samples, {summary.turns}{of} turns" + (f": {outcomes}" if outcomes else ""),
        f"{summary.scored} of {summary.verdicts} verdicts scored",
    ]
    if manifest.presets:
        made.append(f"presets: {', '.join(f'{role} {name}' for role, name in manifest.presets.items())}")
    if manifest.strategy != "none":
        made.append(f"strategy {manifest.strategy}: {summary.calls} model calls stand behind {summary.turns} replies")
    if summary.again:
        made.append(
            f"{summary.again} of {summary.turns} replies were asked for more than once: nothing of the kind that was due came at first"
        )
    if summary.alike:
        made.append(
            f"WARNING: in {summary.alike} turns all candidates were the same, so nothing was chosen: does the server draw with a fixed "
            "seed? Where it takes one, --model-opt seed=0 gives each candidate its own"
        )
    if summary.unfinished:
        made.insert(0, summary.unfinished)
    made += [f"scored zero, the model's doing ({count}): {reason}" for reason, count in summary.zero_by_rule.items()]
    made += [f"unscored ({count}): {reason}" for reason, count in summary.unscored.items()]
    made += [f"left out of the dataset: {problem}" for problem in summary.left_out]
    for total in summary.totals:
        cost = "price unknown" if total.cost is None else f"${total.cost:.4f}"
        made.append(f"{total.role} calls: {total.calls} ({total.retries} retries), {cost}")
        made[-1] += f", {total.tokens_in:,} tokens in, {total.tokens_out:,} out"
    return made


def _root(reason: str) -> str:
    """The reason at the bottom of `waits for turn 3, which failed: waits for turn 2, which failed: ...`."""
    return reason.rpartition("which failed: ")[2] or reason


def _kind(reason: str) -> str:
    """Reasons that quote what a model said are counted by what happened, not by the words."""
    return reason.split(": ")[0] + (": " + reason.split(": ")[1] if reason.count(": ") else "")


def _top(counted: Counter[str], most: int) -> dict[str, int]:
    top = dict(counted.most_common(most))
    rest = sum(counted.values()) - sum(top.values())
    return {**top, "other reasons": rest} if rest else top
