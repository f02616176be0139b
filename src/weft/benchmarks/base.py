"""The interface of a benchmark: a base class. Other code calls its methods and never asks which benchmark it has.

A benchmark makes no network call and opens no file outside `load`; everything else about it is pure. Write these:

    class Mine(Benchmark):
        name, version, metrics = "mine", "1", ("correct",)
        Options = MineOptions                                            # optional: what a user may choose

        def load(self, data, blobs): ...                                 # files -> Dataset, with every problem
        def build_messages(self, sample, turn, dialogue, options): ...   # what the model is shown
        def questions(self, judged_turn): ...                            # questions to the judge, verdicts by rule
        def tables(self, runs): ...                                      # verdicts, aggregated as the paper does it

The other methods have defaults. Three objects are optional: `presentation` (how results are named and shown),
`preparation` (what is done before a run) and `follow_up` (asking again in a turn). docs/how-to/own-benchmark.md has a
whole benchmark on a page. Users name a benchmark by an entry point of the group `weft.benchmarks`, or as file.py:Name.
"""

import inspect
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, cast

from msgspec import Struct
from msgspec.structs import replace

from weft.benchmarks.declaration import find_declaration_faults
from weft.benchmarks.follow_up import FollowUp
from weft.benchmarks.official import OFFICIAL_VARIANT, Official
from weft.benchmarks.options import NoOptions, parse_options
from weft.benchmarks.preparation import Preparation
from weft.benchmarks.presentation import Presentation
from weft.benchmarks.prompts import Rubrics
from weft.errors import UserError, wrap_error
from weft.plugins import find_entry_points, load_object, load_target, suggest_name
from weft.store.blobs import Blobs
from weft.types import (
    Dataset,
    Dialogue,
    Image,
    Message,
    Part,
    Question,
    Reply,
    Sample,
    Score,
    Table,
    Turn,
    TurnRef,
    Verdict,
)

WeightedMeans = list[tuple[float, Sequence[Verdict]]]  # (weight, verdicts whose mean is weighted)
SampleGroups = Mapping[str, Mapping[str, str]]  # sample id -> axis -> group


class Check(Struct, frozen=True):
    """Work on an image's pixels, done in a thread with the blob store. It returns verdicts, or questions to ask."""

    metrics: tuple[str, ...]
    turn_ref: TurnRef
    work: Callable[[Blobs], Sequence[Question | Verdict]]
    detail: Any = None  # `Verdict.detail` if the image cannot be opened


Assessment = Question | Verdict | Check  # what a benchmark may yield for a turn


class JudgedTurn(Struct, frozen=True):
    """A turn whose reply is to be judged, with its context."""

    sample: Sample
    turn: Turn
    reply: Reply
    dialogue: Dialogue  # replies up to and including this turn
    turn_ref: TurnRef
    options: Any  # of the benchmark's `Options`
    rubrics: Rubrics

    @property
    def image(self) -> Image:
        """The image that counts as the reply's output. Raises ValueError if the reply has none."""
        image = self.reply.last_image
        if image is None:
            raise ValueError("the reply has no image; a turn that wants one is judged only if it has one")
        return image

    def image_of_turn(self, turn: int) -> Image | None:
        """Return the image that the model made in an earlier turn, or None."""
        reply = self.dialogue.get(turn)
        if reply is None:
            return None
        return reply.last_image

    @property
    def is_precomputed(self) -> bool:
        """Whether the output was made elsewhere: weft made no call for it and cannot ask for it again."""
        return not self.reply.keys

    def is_unavailable(self, turn: int) -> bool:
        """Whether an earlier turn has no reply through no fault of the model."""
        return turn not in self.dialogue or self.dialogue[turn].outcome == "failed"

    def ask(
        self, metrics: str | tuple[str, ...], parts: Iterable[Part], schema: dict[str, Any], **more: Any
    ) -> Question:
        """Build a question about this turn; `more` are other fields of `Question`: `material`, `gold`, `detail`, ..."""
        return Question(_to_tuple(metrics), (Message("user", tuple(parts)),), schema, self.turn_ref, **more)

    def verdict(
        self, metric: str, value: float | None, reason: str, *, by: Any = "rule", detail: Any = None, **more: Any
    ) -> Verdict:
        """Build a verdict that needs no judge. A `value` of None is unscored."""
        return Verdict(self.sample.id, self.turn.number, metric, value, reason, by, detail=detail, **more)

    def check(
        self, metrics: str | tuple[str, ...], work: Callable[[Blobs], Sequence[Question | Verdict]], detail: Any = None
    ) -> Check:
        """Build a check of pixels for this turn."""
        return Check(_to_tuple(metrics), self.turn_ref, work, detail)


def _to_tuple(metrics: str | tuple[str, ...]) -> tuple[str, ...]:
    if isinstance(metrics, str):
        return (metrics,)
    return metrics


class RunResults(Struct, frozen=True):
    """One run's results, as tables take them."""

    name: str  # the run's title
    groups: SampleGroups
    verdicts: Sequence[Verdict]  # variants merged, in dataset order
    dataset: str = ""  # published rows are shown only beside runs on the benchmark's own dataset
    run: str = ""  # the run's id
    judge: str = ""


class Benchmark:
    """A benchmark. Its subclasses are frozen in behaviour: the same arguments always give the same results."""

    name: ClassVar[str]
    version: ClassVar[str]
    metrics: ClassVar[tuple[str, ...]]
    Options: ClassVar[type[Struct]] = NoOptions  # what a user may choose, besides what every run has
    axes: ClassVar[tuple[str, ...]] = ()  # groups of samples to filter, compare and plot by, the coarsest first
    derived_metrics: ClassVar[tuple[str, ...]] = ()  # those of `metrics` that `merge_variants` computes from others
    follow_up: ClassVar[FollowUp | None] = None  # asks a turn again if the reply does not answer yet
    official: ClassVar[Official | None] = None  # what its paper's released scripts ask and compute
    presentation: ClassVar[Presentation] = Presentation()  # titles, scales, what a page shows
    preparation: ClassVar[Preparation] = Preparation()  # prompts, auxiliary models, outputs made elsewhere

    # Required

    def load(self, data: Path, blobs: Blobs) -> Dataset:
        """Read the data files into a dataset, with every problem of its records."""
        raise TypeError(f"{type(self).__name__} has no load")

    def build_messages(self, sample: Sample, turn: Turn, dialogue: Dialogue, options: Any) -> tuple[Message, ...]:
        """Build the messages that the model is sent for a turn. `dialogue` maps earlier turns' numbers to replies."""
        raise TypeError(f"{type(self).__name__} has no build_messages")

    def questions(self, judged_turn: JudgedTurn) -> Iterable[Assessment]:
        """Yield what decides the metrics of a reply with the expected output; `on_no_answer` is for other replies."""
        raise TypeError(f"{type(self).__name__} has no questions")

    def tables(self, runs: Sequence[RunResults]) -> Iterable[Table]:
        """Yield the tables of one or more runs, the main table first. They are built one by one, on demand."""
        raise TypeError(f"{type(self).__name__} has no tables")

    # Generating

    def parse_options(self, values: Mapping[str, Any], /) -> Any:
        """Build `Options` from the user's values. Raises UserError for unknown or contradictory ones."""
        return parse_options(self.Options, values, self.name)

    def includes(self, turn: Turn, options: Any) -> bool:
        """Whether the model is asked this turn."""
        return True

    def depends_on(self, sample: Sample, turn: Turn, options: Any) -> set[int]:
        """Return the earlier turns whose replies this turn's messages show.

        If one of them failed through no fault of the model, this turn is not asked and stays unscored.
        """
        return set()

    # Judging

    def metrics_for(self, turn: Turn) -> tuple[str, ...]:
        """Return the metrics of a turn. Each of them gets a verdict, whatever the reply is."""
        return tuple(metric for metric in self.metrics if metric not in self.derived_metrics)

    def on_no_answer(self, judged_turn: JudgedTurn) -> Iterable[Assessment]:
        """Yield verdicts about a refusal, or a reply without the expected output. The model's fault: zero."""
        return score_zero(judged_turn, self.metrics_for(judged_turn.turn))

    def on_failed(self, judged_turn: JudgedTurn) -> Iterable[Assessment]:
        """Yield verdicts about a reply that is missing through no fault of the model: unscored."""
        return leave_unscored(judged_turn, self.metrics_for(judged_turn.turn))

    def parse_text(self, question: Question, text: str) -> dict[str, Any] | None:
        """Parse a judge's reply that is not JSON into the keys of the question's schema. None: parse it as JSON.

        It may raise `UnusableReply` to ask the judge again.
        """
        return None

    def to_scores(self, question: Question, parsed: dict[str, Any]) -> Sequence[Score]:
        """Turn a judge's reply `parsed`, which fits the question's schema, into a score for each metric.

        By default `read_scores`: `{score, reasoning}`, or `{metric: {score, reasoning}}`, as the schema asks. It may
        raise `UnusableReply` for what a schema cannot express.
        """
        return read_scores(question, parsed)

    # Aggregating

    def merge_variants(self, verdicts: Sequence[Verdict]) -> list[Verdict]:
        """Merge the variants of each metric of each turn into one verdict, and add derived metrics, if any.

        By default variants become their mean. A verdict that was asked for the official row alone is attached to the
        verdict of its metric.
        """
        if self.official is None:
            return average_variants(verdicts)
        ours: list[Verdict] = []
        theirs: list[Verdict] = []
        for verdict in verdicts:
            if verdict.variant.startswith(OFFICIAL_VARIANT):
                theirs.append(verdict)
            else:
                ours.append(verdict)
        return self.official.attach_official(average_variants(ours), average_variants(theirs))

    def cluster_of(self, sample: str, groups: Mapping[str, str]) -> str:
        """Return the cluster of a sample if samples are not independent: intervals and tests resample clusters."""
        return sample

    def headline(self, verdicts: Sequence[Verdict], groups: SampleGroups) -> WeightedMeans:
        """Return the headline score as weighted means of verdicts. By default one mean of all verdicts."""
        return [(1.0, verdicts)]


def score_zero(judged_turn: JudgedTurn, metrics: Iterable[str], detail: Any = None) -> list[Verdict]:
    """Build verdicts of zero for a reply that does not answer."""
    reply = judged_turn.reply
    reason: str = reply.outcome
    if reply.reason:
        reason = f"{reply.outcome}: {reply.reason}"
    return [judged_turn.verdict(metric, 0.0, reason, by="failure", detail=detail) for metric in metrics]


def leave_unscored(judged_turn: JudgedTurn, metrics: Iterable[str], detail: Any = None) -> list[Verdict]:
    """Build unscored verdicts for a reply that failed through no fault of the model."""
    return [judged_turn.verdict(metric, None, judged_turn.reply.reason, detail=detail) for metric in metrics]


def read_scores(question: Question, reply: Mapping[str, Any]) -> list[Score]:
    """Read a score for each metric from a judge's reply that fits the question's schema.

    The score is under `question.value_key`, the reason under `question.reason_key`. The schema says where: in an object
    under the metric's name (always so for several metrics), or at the top of the reply (possible for one metric).
    """
    scores: list[Score] = []
    for metric in question.metrics:
        schema: Mapping[str, Any] = question.schema
        entry = reply
        if _has_own_object(question, metric):
            schema = question.schema["properties"][metric]
            entry = reply[metric]
        score = float(entry[question.value_key])
        low, high = read_score_range(schema["properties"][question.value_key])
        reason = str(entry.get(question.reason_key, ""))
        scores.append(Score(metric, (score - low) / (high - low), reason, score))
    return scores


def _has_own_object(question: Question, metric: str) -> bool:
    """Whether the question's schema asks for an object under the metric's name."""
    if len(question.metrics) > 1:
        return True
    own_schema = question.schema.get("properties", {}).get(metric)
    return isinstance(own_schema, Mapping) and "properties" in own_schema


def read_score_range(schema: Mapping[str, Any]) -> tuple[float, float]:
    """Return the lowest and the highest score that a schema allows. Raises ValueError if it has no such range."""
    low = schema.get("minimum")
    high = schema.get("maximum")
    numbers = [value for value in schema.get("enum", ()) if isinstance(value, (int, float))]
    if numbers:
        low = min(numbers)
        high = max(numbers)
    if low is None or high is None or low >= high:
        raise ValueError(
            "a score's schema needs `minimum` and `maximum`, or an `enum` of numbers: its share follows from them"
        )
    return float(low), float(high)


def _key(verdict: Verdict) -> tuple[str, int, str]:
    return verdict.sample, verdict.turn, verdict.metric


def average_variants(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Merge the variants of one metric of one turn into their mean, with its standard deviation.

    Unscored variants are in no mean. Verdicts without variants, which is most runs, are passed on as they are.
    """
    with_variants: dict[tuple[str, int, str], list[Verdict]] = {
        _key(verdict): [] for verdict in verdicts if verdict.variant
    }
    if not with_variants:
        return list(verdicts)
    groups: list[list[Verdict]] = []
    for verdict in verdicts:
        group = with_variants.get(_key(verdict), [])
        if not group:
            groups.append(group)
        group.append(verdict)
    return list(map(_merge, groups))


def _merge(variants: Sequence[Verdict]) -> Verdict:
    """Merge the variants of one metric of one turn. One verdict without a variant stays the same object."""
    if len(variants) == 1 and not variants[0].variant:
        return variants[0]
    scored = [verdict for verdict in variants if verdict.value is not None]
    first = (scored or variants)[0]
    values = [verdict.value for verdict in scored if verdict.value is not None]
    scores = [verdict.score for verdict in scored if verdict.score is not None]
    note = ""
    if scored and len(scored) < len(variants):
        note = f"{len(scored)} of {len(variants)} scored; "
    keys: dict[str, None] = {}  # an ordered set
    for verdict in variants:
        keys.update(dict.fromkeys(verdict.keys))
    return replace(
        first,
        variant="",
        value=statistics.fmean(values) if values else None,
        score=statistics.fmean(scores) if scores and len(scores) == len(scored) else None,
        standard_deviation=statistics.stdev(values) if len(values) > 1 else None,
        reason=note + first.reason,
        keys=tuple(keys),
        merged_from=tuple(variants),
    )


BUILT_IN = {
    "weave": "weft.benchmarks.weave:Weave",
    "imug": "weft.benchmarks.imug:Imug",
    "rover-ig": "weft.benchmarks.rover.ig:RoverIG",
    "rover-tg": "weft.benchmarks.rover.tg:RoverTG",
    "planviz": "weft.benchmarks.planviz:PlanViz",
    "weaverbench": "weft.benchmarks.weaverbench:WeaverBench",
    "opening": "weft.benchmarks.opening:Opening",
    "gedit": "weft.benchmarks.gedit:GEdit",
    "risebench": "weft.benchmarks.risebench:RiseBench",
    "imgedit": "weft.benchmarks.imgedit:ImgEdit",
    "geneval": "weft.benchmarks.geneval:GenEval",
    "geneval-long": "weft.benchmarks.geneval:GenEvalLong",
    "kris": "weft.benchmarks.kris:Kris",
    "geneval2": "weft.benchmarks.geneval2:GenEval2",
    "mmvet": "weft.benchmarks.mmvet:MMVet",
}
INTERNAL = {  # benchmarks behind commands of their own, without a dataset that a user could name
    "arena": "weft.arena.protocol:Arena",
    "arena-scores": "weft.arena.criteria:Criteria",
    "write": "weft.evaluation.writing:WritingBenchmark",
}
TRAINING_DATA = {"weave-100k": "weft.benchmarks.weave.training:WEAVE_100K"}  # read by `weft data`; no benchmarks
REQUIRED_MEMBERS = ("name", "version", "metrics", "load", "build_messages", "questions", "tables")


def list_benchmarks() -> dict[str, str]:
    """Return the import targets of all benchmarks that users can name: built in, or installed as entry points."""
    targets = dict(BUILT_IN)
    for entry_point in find_entry_points("weft.benchmarks"):
        targets[entry_point.name] = entry_point.value
    return targets


def is_internal(name: str) -> bool:
    """Whether the benchmark belongs to a command of its own, such as `weft arena`."""
    return name in INTERNAL


def is_known(name: str) -> bool:
    """Whether `load_benchmark` accepts this name."""
    return name in BUILT_IN or name in INTERNAL or name in list_benchmarks()


def load_benchmark(benchmark: Any) -> Benchmark:
    """Load a benchmark by name or from file.py:Name, or take the object or class itself.

    Raises UserError if there is no such benchmark, or if it lacks a required member.
    """
    if isinstance(benchmark, str):
        benchmark = _import_benchmark(benchmark)
    if isinstance(benchmark, type):
        try:
            benchmark = cast(Any, benchmark)()
        except Exception as error:
            raise wrap_error(f"{locate_code(benchmark)} cannot be made", error) from error
    if not isinstance(benchmark, Benchmark):
        raise UserError(f"{benchmark!r} is not a benchmark: derive its class from weft.benchmarks.Benchmark")
    kind = type(benchmark)
    # the base class only declares them: what is the same there, or nowhere, is missing
    missing = [name for name in REQUIRED_MEMBERS if getattr(kind, name, None) is getattr(Benchmark, name, None)]
    if missing:
        raise UserError(f"{kind.__name__} is not a benchmark yet: it lacks {', '.join(missing)}")
    for fault in find_declaration_faults(benchmark):
        raise UserError(f"{kind.__name__} cannot be used: {fault}")
    return benchmark


def _import_benchmark(name: str) -> Any:
    if ".py:" in name:
        return load_object(name)
    if not is_known(name):
        known = sorted(list_benchmarks())
        raise UserError(
            f"unknown benchmark {name!r}; {suggest_name(name, known)}known: {', '.join(known)}; "
            "or file.py:NAME for your own"
        )
    target = BUILT_IN.get(name) or INTERNAL.get(name) or list_benchmarks()[name]
    return load_target(target)


def locate_code(benchmark: Any) -> str:
    """Return how a benchmark can be loaded again: its name, or FILE:NAME with the whole path."""
    if isinstance(benchmark, str) and ".py:" not in benchmark:
        return benchmark
    if isinstance(benchmark, str):
        file, _, name = benchmark.rpartition(":")
        return f"{Path(file).absolute()}:{name}"
    kind: Any = benchmark
    if not isinstance(benchmark, type):
        kind = cast(Any, type(benchmark))
    if kind.__module__.startswith("weft."):
        return kind.name
    try:
        return f"{inspect.getfile(kind)}:{kind.__qualname__}"
    except (OSError, TypeError):
        return f"{kind.__module__}:{kind.__qualname__}"
