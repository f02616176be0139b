"""A stored run, finished or not: its turns, its verdicts, its headline score and its tables.

    run = load_run(journal, "last")
    print(run.table())

A benchmark that is a Python file is loaded only if the user names the file: a journal may come from anywhere."""

import itertools
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self, cast

from msgspec import Struct
from msgspec.structs import replace

from weft import __version__
from weft.benchmarks.base import Benchmark, RunResults, SampleGroups, WeightedMeans, is_known, load_benchmark
from weft.benchmarks.official import explain_official_cells, note_published_size
from weft.errors import UserError, wrap_error
from weft.results.cards import describe_card, find_card
from weft.results.drawn_images import DrawnImage, build_image_tables, find_drawn_images
from weft.results.summary import ReplyCounts, Summary, count_replies, summarise
from weft.results.titles import TitleInput, distinct_titles, format_title, shared_settings
from weft.rounding import format_bounds, format_number
from weft.stats.intervals import mean_interval, mix_means
from weft.stats.repeats import build_repeats_tables
from weft.store.journal import Journal
from weft.store.locks import with_actual_state
from weft.store.records import CallTotals, RunRecord, TurnRecord
from weft.types import Message, Part, Table, Verdict
from weft.untrusted import parse_json
from weft.workspace import open_journal

MIN_ID_LENGTH = 3  # characters of a run's id that may name it
MAX_NAMED_RUNS = 8  # run ids that an error names
MAX_ITEMS = 10_000  # tables of a benchmark, or means of its headline score
FOREIGN = (Exception, SystemExit)  # what a benchmark's code may raise: a run must not end with its exit code
MAX_TURNS_IN_MEMORY = 20_000  # turns of a larger run are read from the journal when they are first used


class Gist(Struct, frozen=True):
    """One line of the list of runs: the headline score on the paper's scale, coverage and cost."""

    stamp: str = ""  # how far the run was when this was computed
    value: float | None = None  # headline score; None if nothing is scored
    low: float | None = None  # with `high` the 95% interval
    high: float | None = None
    digits: int = 3  # decimals of the score
    scored: int = 0  # verdicts with a value
    expected: int = 0  # verdicts in all
    headline_scored: int = 0  # verdicts with a value that the headline score is computed from
    headline_expected: int = 0  # the same with those that have none
    turns: int = 0  # turns that are done
    failed: int = 0  # turns without a reply that are not the model's fault
    cost: float | None = None  # USD; None if a price is unknown

    @staticmethod
    def stamp_of(record: RunRecord, turns: int, verdicts: int) -> str:
        """Return the stamp of a run that has this many turns and raw verdicts."""
        return f"{record.round}:{turns}:{verdicts}:{__version__}"  # another weft may compute it otherwise

    @property
    def headline_text(self) -> str:
        """The headline score with its interval, such as `0.512 [0.480, 0.541]`; a dash if there is none."""
        if self.value is None:
            return "-"
        text = format_number(self.value, self.digits)
        if self.low is not None and self.high is not None:
            text += f" {format_bounds(self.low, self.high, self.digits)}"
        return text


class Run:
    """A run as the journal has it. `verdicts` are merged: one per metric of a turn, with its variants in `merged_from`.

    Groups, reply counts and verdicts are of one moment, also while the run goes on."""

    def __init__(self, benchmark: Benchmark, record: RunRecord, journal: Journal) -> None:
        self.id = record.id
        self.record = record
        self.benchmark = benchmark
        self.home = journal.path.parent
        self._journal = journal.path
        self.groups: dict[str, dict[str, str]]  # by sample
        self.replies: ReplyCounts
        with journal.snapshot():
            if journal.count_done(record.id)[0] <= MAX_TURNS_IN_MEMORY:
                self.turns = journal.turns(record.id)
                self.groups = {turn.sample: turn.groups for turn in self.turns}
                self.replies = count_replies(turn.reply for turn in self.turns)
            else:
                self.groups = journal.groups(record.id)
                self.replies = count_replies(journal.replies(record.id))
            raw_verdicts = journal.verdicts(record.id)
            self.totals: list[CallTotals] = journal.totals(record.id)
            self.annotation_counts: tuple[int, int] = journal.count_annotations(record.id)  # questions, annotators
        self.raw_verdict_count = len(raw_verdicts)  # before variants were merged
        self.verdicts: list[Verdict]
        try:
            merged = benchmark.merge_variants(raw_verdicts)
            most = MAX_ITEMS + 10 * len(raw_verdicts)
            self.verdicts = list(itertools.islice(merged, most))
            if len(self.verdicts) == most:
                raise ValueError(f"{most:,} verdicts or more: do they ever end?")
        except FOREIGN as error:
            raise wrap_error(f"benchmark {benchmark.name}: merging the verdicts of {record.id}", error) from error

    @classmethod
    def from_home(cls, home: str | Path, run: str, benchmark: Benchmark) -> Self:
        """Read a run from the journal in a home folder."""
        journal = open_journal(Path(home))
        try:
            return cls(benchmark, find_run(journal, run), journal)
        finally:
            journal.close()

    @property
    def name(self) -> str:
        """The run's title."""
        return format_title(self.record.manifest, self.record.state, self.record.names)

    @property
    def title_input(self) -> TitleInput:
        return title_input(self.record)

    @cached_property
    def turns(self) -> list[TurnRecord]:
        """All turns. Those of a large run are read here, on first use: tables and summaries need none of them."""
        journal = Journal(self._journal, readonly=True)
        try:
            return journal.turns(self.id)
        finally:
            journal.close()

    @cached_property
    def drawn_images(self) -> list[DrawnImage]:
        """The images of replies that a composition made by several calls, each with what its call took."""
        if self.record.manifest.strategy != "none":
            return []  # the calls of a strategy are about the same image
        journal = Journal(self._journal, readonly=True)
        try:
            return find_drawn_images(self.turns, journal)
        finally:
            journal.close()

    def results(self, name: str = "") -> RunResults:
        """Return what a benchmark's tables are computed from."""
        manifest = self.record.manifest
        return RunResults(
            name or self.name, self.groups, self.verdicts, manifest.dataset.name, self.id, manifest.judge.name
        )

    def summary(self) -> Summary:
        """Return how the run was made, what is missing and why, what it cost, and its judge's calibration card."""
        summary = summarise(self)
        card = find_card(self.home, self.record.manifest)
        if card is None:
            return summary
        text = describe_card(card, self.benchmark.name)
        return replace(summary, judge_card=text, lines=(*summary.lines, f"calibration card of the judge: {text}"))

    @cached_property
    def gist(self) -> Gist:
        """The run's line of the list, computed once."""
        presentation = self.benchmark.presentation
        interval: tuple[float | None, float | None, float | None] = (None, None, None)
        members: list[Verdict] = []
        if self.verdicts and not presentation.pairwise:
            parts = headline_parts(self.benchmark, self.verdicts, self.groups)
            members = [verdict for _, of_part in parts for verdict in of_part]
            terms = scored_terms(parts)
            if terms:
                interval = estimate_terms(self.benchmark, terms, self.groups)
        value, low, high = [None if share is None else presentation.max_score * share for share in interval]
        return Gist(
            stamp=Gist.stamp_of(self.record, self.replies.turns, self.raw_verdict_count),
            value=value,
            low=low,
            high=high,
            digits=presentation.digits,
            scored=sum(verdict.value is not None for verdict in self.verdicts),
            expected=len(self.verdicts),
            headline_scored=sum(verdict.value is not None for verdict in members),
            headline_expected=len(members),
            turns=self.replies.turns,
            failed=self.replies.outcomes["failed"],
            cost=_total_cost(self.totals),
        )

    def tables(self) -> list[Table]:
        """Return the benchmark's tables of this run."""
        return list(build_tables({self.name: self}))

    def table(self) -> Table:
        """Return the benchmark's first table of this run."""
        return next(build_tables({self.name: self}), Table(f"{self.name} has no table", (), ()))


def _total_cost(totals: Sequence[CallTotals]) -> float | None:
    cost = 0.0
    for total in totals:
        if total.cost is None:
            return None
        cost += total.cost
    return cost


def headline_parts(benchmark: Benchmark, verdicts: Sequence[Verdict], groups: SampleGroups) -> WeightedMeans:
    """Return the benchmark's headline score as weighted means of verdicts, unscored ones included, without means of
    nothing. The weights add up to one."""
    try:
        means = list(itertools.islice(benchmark.headline(verdicts, groups), MAX_ITEMS))
        if len(means) == MAX_ITEMS:
            raise ValueError(f"{MAX_ITEMS:,} means or more: do they ever end?")
        parts = [(weight, members) for weight, members in means if members]
        total = sum(weight for weight, _ in parts)
        return [(weight / total, members) for weight, members in parts]
    except FOREIGN as error:
        raise wrap_error(f"benchmark {benchmark.name}: its headline", error) from error


def headline_terms(benchmark: Benchmark, verdicts: Sequence[Verdict], groups: SampleGroups) -> WeightedMeans:
    """Return the benchmark's headline score as weighted means of scored verdicts. The weights of the means that have
    verdicts add up to one. Empty if one of them has none that is scored: it is in no table either."""
    return scored_terms(headline_parts(benchmark, verdicts, groups))


def scored_terms(parts: WeightedMeans) -> WeightedMeans:
    """Return weighted means of the verdicts that are scored; empty if one of them has none."""
    terms: WeightedMeans = []
    for weight, members in parts:
        scored = [verdict for verdict in members if verdict.value is not None]
        if not scored:
            return []
        terms.append((weight, scored))
    return terms


def headline_score(
    benchmark: Benchmark, verdicts: Sequence[Verdict], groups: SampleGroups
) -> tuple[float, float | None, float | None] | None:
    """Return the headline score as a share of full marks, and its 95% interval by dialogue; None if nothing of it, or
    of one of its parts, is scored."""
    terms = headline_terms(benchmark, verdicts, groups)
    if not terms:
        return None
    return estimate_terms(benchmark, terms, groups)


def estimate_terms(
    benchmark: Benchmark, terms: WeightedMeans, groups: SampleGroups
) -> tuple[float, float | None, float | None]:
    """Return weighted means of scored verdicts as a share of full marks, and the 95% interval by dialogue."""
    clustered: list[tuple[float, dict[str, list[float]]]] = []
    for weight, members in terms:
        clusters: dict[str, list[float]] = {}
        for verdict in members:
            cluster = find_cluster(benchmark, verdict.sample, groups.get(verdict.sample, {}))
            clusters.setdefault(cluster, []).append(verdict.value or 0.0)
        clustered.append((weight, clusters))
    low, high = mean_interval(clustered) or (None, None)
    return weighted_mean(terms), low, high


def find_cluster(benchmark: Benchmark, sample: str, facts: Mapping[str, str]) -> str:
    """Return the benchmark's cluster of a sample."""
    try:
        cluster: Any = benchmark.cluster_of(sample, facts)
        if not isinstance(cluster, str):
            raise TypeError(f"it is {type(cluster).__name__}, not a str")
        return cluster
    except FOREIGN as error:
        raise wrap_error(f"benchmark {benchmark.name}: the cluster of sample {sample}", error) from error


def weighted_mean(terms: WeightedMeans) -> float:
    """Return the weighted mean of the means of scored verdicts."""
    return mix_means((weight, sum_values(members) / len(members)) for weight, members in terms)


def sum_values(verdicts: Iterable[Verdict]) -> float:
    return sum(verdict.value or 0.0 for verdict in verdicts)


def build_tables(runs: Mapping[str, Run]) -> Iterator[Table]:
    """Yield the benchmark's tables of these runs; then those of repeated judgements, and of images that were drawn one
    by one, if there are any."""
    benchmark = next(iter(runs.values())).benchmark
    sizes = [len(run.groups) for run in runs.values()]
    try:
        tables = benchmark.tables([run.results(name) for name, run in runs.items()])
        for number, table in enumerate(tables):
            if number == MAX_ITEMS:
                raise ValueError(f"more than {MAX_ITEMS:,} of them: do they ever end?")
            yield note_published_size(explain_official_cells(table), benchmark.official, sizes)
    except FOREIGN as error:
        raise wrap_error(f"benchmark {benchmark.name}: its tables", error) from error
    if any(run.record.manifest.judge_repeats > 1 for run in runs.values()):
        yield from build_repeats_tables(
            {name: run.verdicts for name, run in runs.items()},
            benchmark.metrics,
            benchmark.presentation.max_score,
            benchmark.presentation.digits,
        )
    composed = {name: run.drawn_images for name, run in runs.items() if run.replies.calls > run.replies.turns}
    yield from build_image_tables(composed)


def title_input(record: RunRecord) -> TitleInput:
    """Return what the title of a stored run is built from."""
    started = time.strftime("%Y-%m-%d %H:%M", time.gmtime(record.started))
    return TitleInput(record.manifest, record.names, record.state == "finished", started)


class DatasetTurn(Struct, frozen=True):
    """What the dataset says of a turn."""

    prompt: tuple[Part, ...] = ()  # what is asked
    reference: tuple[Part, ...] = ()  # the reference reply, if the dataset has one
    gold: Any = None  # what verdicts are based on, in the benchmark's own form


def read_dataset_turn(turn: TurnRecord) -> DatasetTurn:
    """Return what the dataset said of a turn. Raises UserError if the journal has something else there."""
    return parse_json(turn.dataset_json.encode(), f"the journal: sample {turn.sample}", DatasetTurn)


def read_messages(messages_json: str) -> tuple[Message, ...]:
    """Return what a model was sent. Raises UserError if the journal has something else there."""
    return parse_json(messages_json.encode(), "the journal: what a model was sent", tuple[Message, ...])


def name_runs(runs: Sequence[Run]) -> dict[str, Run]:
    """Return the runs under titles that differ. Raises UserError for runs of two benchmarks, or one run twice."""
    if len({run.benchmark.name for run in runs}) != 1:
        raise UserError(
            "runs of different benchmarks cannot share a table; report each benchmark by itself, or all on one score "
            "card: weft suite report"
        )
    if len({run.id for run in runs}) < len(runs):
        raise UserError("a run is named twice; name each run once")
    if len(runs) == 1:
        return {runs[0].name: runs[0]}
    titles = distinct_titles([run.title_input for run in runs])
    return dict(zip(titles, runs, strict=True))


def describe_shared_settings(runs: Iterable[Run]) -> str:
    """Return the settings that several runs share, in words; an empty text for one run."""
    inputs = [run.title_input for run in runs]
    if len(inputs) < 2:
        return ""
    return ", ".join(shared_settings(inputs))


def find_run(journal: Journal, name: str) -> RunRecord:
    """Return the run with this tag or id, the newest for `last`, or the only one whose id, or whose id's last part,
    begins with the name. Raises UserError if there is none or more than one."""
    records = journal.runs()
    if not records:
        raise UserError(f"there is no run in {journal.path} yet")
    if name == "last":
        return records[-1]
    matching = [record for record in records if name in (record.id, record.names.get("tag"))]
    if not matching and len(name) >= MIN_ID_LENGTH:
        matching = [record for record in records if _begins_id(record, name)]
    if len(matching) == 1:
        return matching[0]
    candidates = matching or records
    text = ", ".join(record.id for record in candidates[-MAX_NAMED_RUNS:])
    if len(candidates) > MAX_NAMED_RUNS:
        text += f" and {len(candidates) - MAX_NAMED_RUNS} more (`weft runs` lists all)"
    count = "more than one" if matching else "no"
    raise UserError(f"{count} run is called {name!r}; there is {text}")


def _begins_id(record: RunRecord, name: str) -> bool:
    return record.id.startswith(name) or record.id.rpartition("-")[2].startswith(name)


def load_run(journal: Journal, name: str, benchmark: Any = None) -> Run:
    """Return a run of the journal by its tag or id. `benchmark`: those of the user's own that it may be a run of."""
    record = with_actual_state(find_run(journal, name), journal.path.parent)
    return Run(resolve_benchmark(record, benchmark), record, journal)


def find_seed_siblings(journal: Journal, run: str) -> list[str]:
    """Return the ids of this run and of all runs that differ from it only in the model's seed."""
    records = journal.runs()
    manifest = next(record.manifest for record in records if record.id == run).without_seed()
    return [record.id for record in records if record.manifest.without_seed() == manifest]


def resolve_benchmark(record: RunRecord, benchmarks: Any = None) -> Benchmark:
    """Return the benchmark of a stored run: one of the user's `benchmarks`, or an installed one. Code that only the
    journal names is never loaded."""
    name = record.manifest.benchmark.name
    loaded = [load_benchmark(benchmark) for benchmark in _as_list(benchmarks)]
    for benchmark in loaded:
        if benchmark.name == name:
            return benchmark
    if is_known(record.benchmark):
        return load_benchmark(record.benchmark)
    if loaded:
        raise UserError(f"{record.id} is a run of {name}, not of {', '.join(one.name for one in loaded)}")
    raise UserError(
        f"{record.id} is a run of {record.benchmark}, a Python file that is not loaded automatically, for security: "
        f"if you trust it, add --benchmark {record.benchmark}"
    )


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, (list, tuple)):
        return list(cast(Sequence[Any], value))
    return [value]
