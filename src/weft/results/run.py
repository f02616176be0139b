"""A run in the journal, finished or not: its turns, its verdicts, what a reader must know to trust its numbers, and its
tables."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from weft.benchmarks.base import Benchmark, RunResults, SampleGroups, WeightedMeans, is_known, load_benchmark
from weft.errors import UserError, wrap_error
from weft.results.cards import describe_card, find_card
from weft.results.titles import TitleInput, distinct_titles, format_title, shared_settings
from weft.stats.intervals import bootstrap_interval
from weft.stats.repeats import build_repeats_tables
from weft.store.journal import Journal
from weft.store.locks import with_actual_state
from weft.store.manifest import Manifest
from weft.store.records import CallTotals, ExpectedCounts, RunRecord, TurnRecord
from weft.types import Message, Part, Reply, Table, Verdict
from weft.workspace import open_journal

SHORTEST = 3  # characters of a run's id that may stand for it


class Gist(Struct, frozen=True):
    """A run in a line of a list: its main number on its paper's scale, how much of it there is, what it cost. `stamp`
    says how far the run was when this was reckoned."""

    stamp: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None
    digits: int = 3
    scored: int = 0
    expected: int = 0
    turns: int = 0
    failed: int = 0  # turns without a reply, through no fault of the model
    cost: float | None = None

    @staticmethod
    def stamp_of(record: RunRecord, turns: int, verdicts: int) -> str:
        """Of a run with so many turns and verdicts, as they were given."""
        return f"{record.round}:{turns}:{verdicts}"

    @property
    def headline_text(self) -> str:
        if self.value is None:
            return "-"
        if self.low is None or self.high is None:
            between = ""
        else:
            between = f" [{self.low:.{self.digits}f}, {self.high:.{self.digits}f}]"
        return f"{self.value:.{self.digits}f}{between}"


# turns that a run has in memory from the start; those of a larger one are read when they are asked for
MAX_TURNS_IN_MEMORY = 20_000


class Run:
    """`verdicts` are settled: one for each metric of a turn, with its variants behind it."""

    def __init__(self, benchmark: Benchmark, record: RunRecord, journal: Journal) -> None:
        self.id, self.record, self.benchmark = record.id, record, benchmark
        self.home = journal.path.parent
        self._journal = journal.path
        with journal.snapshot():
            self.groups: dict[str, dict[str, str]]  # by sample
            if (
                journal.count_done(record.id)[0] <= MAX_TURNS_IN_MEMORY
            ):  # of the same moment as the verdicts, where that is no matter of memory
                self.turns = journal.turns(record.id)
                self.groups = {turn.sample: turn.groups for turn in self.turns}
                self.replies: ReplyCounts = count_replies(turn.reply for turn in self.turns)
            else:
                self.groups, self.replies = journal.groups(record.id), count_replies(journal.replies(record.id))
            found = journal.verdicts(record.id)
            self.totals: list[CallTotals] = journal.totals(record.id)
            # questions by people, and how many people
            self.annotation_counts: tuple[int, int] = journal.count_annotations(record.id)
        self.raw_verdict_count = len(found)  # verdicts as they were given, before they were settled
        try:
            self.verdicts: list[Verdict] = benchmark.merge_variants(found)
        except Exception as error:
            raise wrap_error(f"benchmark {benchmark.name}: settling the verdicts of {record.id}", error) from error

    @classmethod
    def from_home(cls, home: str | Path, run: str, benchmark: Benchmark) -> Self:
        """A run from the journal in a home."""
        journal = open_journal(Path(home))
        try:
            return cls(benchmark, find_run(journal, run), journal)
        finally:
            journal.close()

    @property
    def name(self) -> str:
        return format_title(self.record.manifest, self.record.state, self.record.names)

    @property
    def title_input(self) -> TitleInput:
        """What its name is made of."""
        return title_input(self.record)

    @cached_property
    def turns(self) -> list[TurnRecord]:
        """What it made of every turn, as the journal has it when somebody first asks: tables and summaries need none of
        it."""
        journal = Journal(self._journal, readonly=True)
        try:
            return journal.turns(self.id)
        finally:
            journal.close()

    def results(self, name: str = "") -> RunResults:
        manifest = self.record.manifest
        return RunResults(
            name or self.name, self.groups, self.verdicts, manifest.dataset.name, self.id, manifest.judge.name
        )

    def summary(self) -> "Summary":
        made = summarise(self)
        card = find_card(self.home, self.record.manifest)
        if card is None:
            return made
        told = describe_card(card, self.benchmark.name)
        return replace(made, judge_card=told, lines=(*made.lines, f"the judge has a card: {told}"))

    @cached_property
    def gist(self) -> Gist:
        """Reckoned once: whoever shows a run in a line asks for it."""
        benchmark = self.benchmark
        stamp = Gist.stamp_of(self.record, self.replies.turns, self.raw_verdict_count)
        if not benchmark.presentation.pairwise and self.verdicts:
            found = headline_score(benchmark, self.verdicts, self.groups)
        else:
            found = None
        value, low, high = (
            None if one is None else benchmark.presentation.max_score * one for one in found or (None, None, None)
        )
        costs = [total.cost for total in self.totals]
        return Gist(
            stamp=stamp,
            value=value,
            low=low,
            high=high,
            digits=benchmark.presentation.digits,
            scored=sum(verdict.value is not None for verdict in self.verdicts),
            expected=len(self.verdicts),
            turns=self.replies.turns,
            failed=self.replies.outcomes["failed"],
            cost=None if None in costs else sum(one for one in costs if one is not None),
        )

    def tables(self) -> list[Table]:
        return list(build_tables({self.name: self}))

    def table(self) -> Table:
        """The benchmark's main table."""
        return next(build_tables({self.name: self}), Table(f"{self.name} has no table", (), ()))


def headline_terms(benchmark: Benchmark, verdicts: Sequence[Verdict], groups: SampleGroups) -> WeightedMeans:
    """The main number of a benchmark as means with their weights, which add up to one over those that have something to
    average."""
    try:
        terms = [(weight, some) for weight, some in benchmark.headline(verdicts, groups) if some]
    except Exception as error:
        raise wrap_error(f"benchmark {benchmark.name}: its headline", error) from error
    total = sum(weight for weight, _ in terms)
    return [(weight / total, some) for weight, some in terms]


def headline_score(
    benchmark: Benchmark, verdicts: Sequence[Verdict], groups: SampleGroups
) -> tuple[float, float | None, float | None] | None:
    """As a share of full marks, with its 95% interval by dialogue; None where nothing is scored."""
    scored = [verdict for verdict in verdicts if verdict.value is not None]
    terms = headline_terms(benchmark, scored, groups) if scored else []
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
    low, high = bootstrap_interval(clusters) or (None, None)
    return value, low, high


def without_tag(names: Mapping[str, str]) -> dict[str, str]:
    return {role: name for role, name in names.items() if role != "tag"}


def build_tables(runs: Mapping[str, Run]) -> Iterator[Table]:
    """The benchmark's tables of some runs, made one by one; then how far repeated judgements agree, if there are
    any."""
    benchmark = next(iter(runs.values())).benchmark
    try:
        yield from benchmark.tables([run.results(name) for name, run in runs.items()])
    except Exception as error:
        raise wrap_error(f"benchmark {benchmark.name}: its tables", error) from error
    if any(run.record.manifest.judge_repeats > 1 for run in runs.values()):
        yield from build_repeats_tables(
            {name: run.verdicts for name, run in runs.items()},
            benchmark.metrics,
            benchmark.presentation.max_score,
            benchmark.presentation.digits,
        )


def title_input(record: RunRecord) -> TitleInput:
    began = time.strftime("%Y-%m-%d %H:%M", time.gmtime(record.started))
    return TitleInput(record.manifest, record.names, record.state == "finished", began)


class DatasetTurn(Struct, frozen=True):
    """What the dataset has of a turn."""

    prompt: tuple[Part, ...] = ()
    reference: tuple[Part, ...] = ()
    gold: Any = None


def read_dataset_turn(turn: TurnRecord) -> DatasetTurn:
    return msgspec.json.decode(turn.dataset_json, type=DatasetTurn)


def read_messages(seen: str) -> tuple[Message, ...]:
    return msgspec.json.decode(seen, type=tuple[Message, ...])


def name_runs(runs: Sequence[Run]) -> dict[str, Run]:
    """Runs of one benchmark under names that tell them apart."""
    if len({run.benchmark.name for run in runs}) != 1:
        raise UserError(
            "runs of different benchmarks do not share a table; report them one by one, or all on one card: weft suite report"
        )
    if len({run.id for run in runs}) < len(runs):
        raise UserError("a run is given twice")
    if len(runs) > 1:
        names = distinct_titles([run.title_input for run in runs])
    else:
        names = [runs[0].name]
    return dict(zip(names, runs, strict=True))


def describe_shared_settings(runs: Iterable[Run]) -> str:
    """What is the same in all of several runs, to be said once; nothing for one."""
    some = list(runs)
    if len(some) > 1:
        return ", ".join(shared_settings([run.title_input for run in some]))
    return ""


def find_run(journal: Journal, name: str) -> RunRecord:
    """A run by its tag, its id, the beginning of it or of its last part, or `last`."""
    records = journal.runs()
    if not records:
        raise UserError(f"there is no run in {journal.path} yet")
    if name == "last":
        found = records[-1:]
    else:
        found = [record for record in records if name in (record.id, record.names.get("tag"))]
    begins = [
        record for record in records if record.id.startswith(name) or record.id.rpartition("-")[2].startswith(name)
    ]
    found = found or (begins if len(name) >= SHORTEST else [])
    if len(found) != 1:
        there = ", ".join(record.id for record in (found or records)[-8:])
        if len(found or records) > 8:
            more = f" and {len(found or records) - 8} more (`weft runs` lists all)"
        else:
            more = ""
        raise UserError(f"{'no' if not found else 'more than one'} run is called {name!r}; there is {there}{more}")
    return found[0]


def load_run(journal: Journal, name: str, benchmark: Any = None) -> Run:
    """A run of the journal. Its benchmark is found by name, or is one of those given: a Python file that a journal
    names is not run unless the user names it as well, since a journal may have come from anywhere."""
    record = with_actual_state(find_run(journal, name), journal.path.parent)
    return Run(resolve_benchmark(record, benchmark), record, journal)


def find_seed_siblings(journal: Journal, run: str) -> list[str]:
    """A run and all that differ from it in their model's seed alone."""
    records = journal.runs()
    mine = next(record.manifest for record in records if record.id == run).without_seed()
    return [record.id for record in records if record.manifest.without_seed() == mine]


def resolve_benchmark(record: RunRecord, given: Any = None) -> Benchmark:
    name = record.manifest.benchmark.name
    if isinstance(given, (list, tuple)):
        some: list[Any] = [*cast(Sequence[Any], given)]
    else:
        some = [] if given is None else [given]
    made = [load_benchmark(one) for one in some]
    found = next((one for one in made if one.name == name), None)
    if found is not None:
        return found
    if is_known(record.benchmark):
        return load_benchmark(record.benchmark)
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
    zeroed: dict[str, int]
    unscored: dict[str, int]
    left_out: list[str]
    totals: list[CallTotals]
    wall_time_s: float | None = None  # from the first start to the end
    calls: int = 0  # behind all replies, those taken over from earlier runs included
    follow_ups: int = 0  # replies that a benchmark's protocol asked for more than once
    same_candidates: int = 0  # replies that a strategy chose among candidates that were all the same
    stop_causes: dict[str, int] = {}  # replies that a filter or a limit ended
    lines: tuple[str, ...] = ()  # the same, in words
    names: dict[str, str] = {}  # what its user calls it, its model and its judge
    annotation_counts: tuple[int, int] = (0, 0)  # questions that people rated, and how many people
    judge_card: str = ""  # what is known of its judge
    expected: ExpectedCounts | None = None  # what the whole run asks about; None while nobody knows

    @property
    def unfinished(self) -> str:
        if self.expected:
            of = f" of {self.expected.turns}"
        else:
            of = ""
        if self.state == "finished":
            return ""
        return f"UNFINISHED: {self.turns}{of} turns are done; the numbers are those of what is done"


class ReplyCounts(Struct):
    """The replies of a run, counted."""

    turns: int = 0
    outcomes: Counter[str] = msgspec.field(default_factory=Counter[str])
    stop_causes: Counter[str] = msgspec.field(default_factory=Counter[str])  # those that a filter or a limit ended
    calls: int = 0  # behind all of them
    follow_ups: int = 0  # that a benchmark's protocol asked for more than once
    same_candidates: int = 0  # that a strategy chose among candidates that were all the same


def count_replies(replies: Iterable[Reply]) -> ReplyCounts:
    """In one pass that keeps none of them."""
    made = ReplyCounts()
    for reply in replies:
        made.turns += 1
        made.outcomes[reply.outcome] += 1
        if reply.stop_cause:
            made.stop_causes[reply.stop_cause] += 1
        made.calls += len(reply.keys)
        made.follow_ups += "asked again" in reply.notes
        made.same_candidates += reply.outcome == "answered" and "same candidates" in reply.notes
    return made


def summarise(run: Run, most: int = 12) -> Summary:
    """All but what is known of its judge."""
    record = run.record
    replies = run.replies
    verdicts = run.verdicts
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
        stop_causes=dict(sorted(replies.stop_causes.items())),
        verdicts=len(verdicts),
        scored=len(verdicts) - unscored.total(),
        zeroed=_top(zero, most),
        unscored=_top(unscored, most),
        left_out=record.left_out,
        totals=list(run.totals),
        wall_time_s=None if record.ended is None else max(0.0, record.ended - record.started),
        calls=replies.calls,
        follow_ups=replies.follow_ups,
        same_candidates=replies.same_candidates,
        annotation_counts=run.annotation_counts,
    )
    return replace(summary, lines=tuple(_lines(summary)))


def describe_replies(summary: Summary) -> str:
    """`10 answered, 4 refused; 3 of them blocked`."""
    outcomes = ", ".join(f"{count} {name}" for name, count in summary.outcomes.items())
    return outcomes + "".join(f"; {count} of them {name}" for name, count in summary.stop_causes.items())


def _lines(summary: Summary) -> list[str]:
    manifest = summary.manifest
    outcomes = describe_replies(summary)
    tagged = summary.names.get("tag")
    chosen = ", ".join(f"{name} {value}" for name, value in manifest.options.items() if value not in (False, ""))
    if chosen:
        settings = f", {chosen}"
    else:
        settings = ""
    if summary.expected and summary.turns != summary.expected.turns:
        of = f" of {summary.expected.turns}"
    else:
        of = ""
    made = [
        f"run {summary.run} ({summary.state}), started {summary.started}"
        + (f", called {summary.names['tag']}" if tagged else ""),
        f"dataset {manifest.dataset.name} ({manifest.dataset.digest[:8]})",
        f"model {format_title(manifest, names=without_tag(summary.names))}, judge {manifest.judge.name}, "
        f"prompts {manifest.prompts.source} ({manifest.prompts.digest[:8]}){settings}",
        f"{summary.samples} samples, {summary.turns}{of} turns" + (f": {outcomes}" if outcomes else ""),
        f"{summary.scored} of {summary.verdicts} verdicts scored",
    ]
    if manifest.presets:
        made.append(f"presets: {', '.join(f'{role} {name}' for role, name in manifest.presets.items())}")
    if manifest.strategy != "none":
        made.append(f"strategy {manifest.strategy}: {summary.calls} model calls stand behind {summary.turns} replies")
    if summary.follow_ups:
        made.append(
            f"{summary.follow_ups} of {summary.turns} replies were asked for more than once: nothing of the kind that was due came at first"
        )
    if summary.same_candidates:
        made.append(
            f"WARNING: in {summary.same_candidates} turns all candidates were the same, so nothing was chosen: does the server draw with a fixed "
            "seed? Where it takes one, --model-opt seed=0 gives each candidate its own"
        )
    if summary.unfinished:
        made.insert(0, summary.unfinished)
    made += [f"scored zero, the model's doing ({count}): {reason}" for reason, count in summary.zeroed.items()]
    made += [f"unscored ({count}): {reason}" for reason, count in summary.unscored.items()]
    made += [f"left out of the dataset: {problem}" for problem in summary.left_out]
    for total in summary.totals:
        if total.cost is None:
            cost = "price unknown"
        else:
            cost = f"${total.cost:.4f}"
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
    if rest:
        return {**top, "other reasons": rest}
    return top
