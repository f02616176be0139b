"""The interface of a benchmark: a base class. Other code calls its methods and never asks which benchmark it has.

A benchmark makes no network call and opens no file outside `load`; everything else about it is pure. Write these:

    class Mine(Benchmark):
        name, version, metrics = "mine", "1", ("correct",)
        Options = MineOptions                                            # optional: what a user may choose

        def load(self, data, blobs): ...                                 # files -> Dataset, with every problem found
        def build_messages(self, sample, turn, dialogue, options): ...   # what the model is shown
        def questions(self, answered): ...                               # what the judge is asked; verdicts by rule;
        checks of pixels
        def tables(self, runs): ...                                      # verdicts, aggregated as the paper does it

The other methods have defaults. Three objects are optional: `presentation` (how results are named and shown),
`preparation` (what is done before a run) and `follow_up` (asking again in a turn). docs/own-benchmark.md has a whole
benchmark on a page. It is found as an entry point of the group `weft.benchmarks`, or as file.py:Name."""

import inspect
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, cast, get_args, get_type_hints

import msgspec
from msgspec import Struct
from msgspec import inspect as kinds_of
from msgspec.structs import replace

from weft.benchmarks.follow_up import FollowUp
from weft.benchmarks.official import OFFICIAL_VARIANT, Official
from weft.benchmarks.preparation import Preparation
from weft.benchmarks.presentation import Presentation
from weft.benchmarks.prompts import Rubrics
from weft.errors import UserError
from weft.plugins import find_entry_points, load_object, load_target
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

WeightedMeans = list[tuple[float, Sequence[Verdict]]]  # means of verdicts with their weights
SampleGroups = Mapping[str, Mapping[str, str]]  # the groups of each sample by its id


class NoOptions(Struct, frozen=True):
    """There is nothing to choose."""


class Option(Struct, frozen=True):
    """One of them, for those who show it: its choices, or `bool`, `int`, `float` or `str`."""

    name: str
    choices: tuple[str, ...]
    kind: type
    default: Any
    help: str


def list_options(options: type[Struct]) -> list[Option]:
    made: list[Option] = []
    info = kinds_of.type_info(options)
    hints = get_type_hints(options)
    for field in info.fields if isinstance(info, kinds_of.StructType) else ():
        kind: Any = field.type
        told = ""
        if isinstance(kind, kinds_of.Metadata):
            about: dict[str, Any] = cast(Any, kind).extra_json_schema or {}
            told, kind = str(about.get("description", "")), kind.type
        kinds: dict[Any, type] = {kinds_of.BoolType: bool, kinds_of.IntType: int, kinds_of.FloatType: float}
        if isinstance(kind, kinds_of.LiteralType):
            choices = tuple(map(str, get_args(hints[field.name])))
        else:
            choices = ()
        made.append(Option(field.name, choices, kinds.get(type(kind), str), field.default, told))
    return made


def parse_options(options: type[Struct], given: Mapping[str, Any], name: str) -> Any:
    """The options with what is given; what is None is not given. Texts are read as numbers where numbers are due."""
    known = {option.name: option for option in list_options(options)}
    chosen = {key: value for key, value in given.items() if value is not None}
    for key in chosen:
        if key not in known:
            raise UserError(f"{name} has no option {key!r}; its own are {', '.join(known) or 'none'}")
    try:
        return msgspec.convert(chosen, options, strict=False)
    except msgspec.ValidationError as error:
        key = str(error).rpartition("$.")[2].rstrip("`")
        if key in known and known[key].choices:
            raise UserError(f"{name} has no {key} {chosen[key]!r}; there is {', '.join(known[key].choices)}") from None
        kinds: dict[type, str] = {bool: "true or false", int: "a whole number", float: "a number"}
        if key in known:
            due = kinds.get(known[key].kind)
        else:
            due = None
        bound = re.search(r"([<>]=) (-?[\d.]+)", str(error))
        if due and bound:
            due = f"{due}, {'at least' if bound[1] == '>=' else 'at most'} {bound[2]}"
        raise UserError(f"{name}: option {key} {chosen.get(key)!r}: {f'give {due}' if due else error}") from None


class Check(Struct, frozen=True):
    """Work on a picture's pixels. It is done in a thread, with the store, and gives verdicts, or questions that are
    then asked."""

    metrics: tuple[str, ...]
    turn_ref: TurnRef
    work: Callable[[Blobs], Sequence[Question | Verdict]]
    detail: Any = None  # of the verdicts, if the picture cannot be opened


Assessment = Question | Verdict | Check  # what a benchmark may ask for


class JudgedTurn(Struct, frozen=True):
    """A reply that is to be judged, with all that is known of it. `dialogue` goes up to this turn."""

    sample: Sample
    turn: Turn
    reply: Reply
    dialogue: Dialogue
    turn_ref: TurnRef
    options: Any
    rubrics: Rubrics

    @property
    def image(self) -> Image:
        """The picture that counts as the reply's output."""
        found = self.reply.last_image
        if found is None:
            raise ValueError("the reply has no picture; a turn that wants one is judged only if it has")
        return found

    def image_of_turn(self, turn: int) -> Image | None:
        """What the model made in an earlier turn, if it made anything."""
        reply = self.dialogue.get(turn)
        if reply is not None:
            return reply.last_image
        return None

    @property
    def is_precomputed(self) -> bool:
        """Whether it is an output made elsewhere, which nobody can ask for again: no call stands behind it."""
        return not self.reply.keys

    def is_unavailable(self, turn: int) -> bool:
        """Whether an earlier turn has no reply through no fault of the model."""
        return turn not in self.dialogue or self.dialogue[turn].outcome == "failed"

    def ask(
        self, metrics: str | tuple[str, ...], parts: Iterable[Part], schema: dict[str, Any], **more: Any
    ) -> Question:
        """A question about this turn; `more` are its `material`, `gold`, `detail` and so on."""
        if isinstance(metrics, str):
            named = (metrics,)
        else:
            named = metrics
        return Question(named, (Message("user", tuple(parts)),), schema, self.turn_ref, **more)

    def verdict(
        self, metric: str, value: float | None, reason: str, *, by: Any = "rule", detail: Any = None, **more: Any
    ) -> Verdict:
        """A verdict that needs no judge. A `value` of None is unscored."""
        return Verdict(self.sample.id, self.turn.number, metric, value, reason, by, detail=detail, **more)

    def check(
        self, metrics: str | tuple[str, ...], work: Callable[[Blobs], Sequence[Question | Verdict]], detail: Any = None
    ) -> Check:
        return Check((metrics,) if isinstance(metrics, str) else metrics, self.turn_ref, work, detail)


class RunResults(Struct, frozen=True):
    """A run's results, for tables: settled verdicts in dataset order, and what data it was: published rows belong
    beside the benchmark's own alone."""

    name: str
    groups: SampleGroups
    verdicts: Sequence[Verdict]
    dataset: str = ""
    run: str = ""
    judge: str = ""


class Benchmark:
    name: ClassVar[str]
    version: ClassVar[str]
    metrics: ClassVar[tuple[str, ...]]
    Options: ClassVar[type[Struct]] = NoOptions  # what a user may choose, besides what every run has
    axes: ClassVar[tuple[str, ...]] = ()  # groups of samples to filter, compare and plot by, the coarsest first
    derived_metrics: ClassVar[tuple[str, ...]] = ()  # those of `metrics` that `merge_variants` computes from others
    follow_up: ClassVar[FollowUp | None] = None  # asks a turn again where the reply does not answer yet
    official: ClassVar[Official | None] = None  # what its paper's released scripts ask and compute
    presentation: ClassVar[Presentation] = Presentation()  # titles, scales, what a page shows
    # before the run: prompts, auxiliary models, outputs made elsewhere
    preparation: ClassVar[Preparation] = Preparation()

    # to be written

    def load(self, data: Path, blobs: Blobs) -> Dataset:
        raise TypeError(f"{type(self).__name__} has no load")

    def build_messages(self, sample: Sample, turn: Turn, dialogue: Dialogue, options: Any) -> tuple[Message, ...]:
        raise TypeError(f"{type(self).__name__} has no build_messages")

    def questions(self, answered: JudgedTurn) -> Iterable[Assessment]:
        """Of a reply that has the expected output; `on_no_answer` is for the others."""
        raise TypeError(f"{type(self).__name__} has no questions")

    def tables(self, runs: Sequence[RunResults]) -> Iterable[Table]:
        """The main table first. Made one by one, so that who wants the first need not wait for the last."""
        raise TypeError(f"{type(self).__name__} has no tables")

    # generating

    def parse_options(self, given: Mapping[str, Any]) -> Any:
        """The options with the values that the user chose. Raises UserError for unknown or contradictory ones."""
        return parse_options(self.Options, given, self.name)

    def includes(self, turn: Turn, options: Any) -> bool:
        """Whether the model is asked this turn at all."""
        return True

    def depends_on(self, sample: Sample, turn: Turn, options: Any) -> set[int]:
        """Earlier turns whose replies this turn is shown: if one is missing through our fault, this turn waits,
        unscored."""
        return set()

    # judging

    def metrics_for(self, turn: Turn) -> tuple[str, ...]:
        """The metrics of a turn: each of them gets a verdict, whatever becomes of the turn."""
        return tuple(metric for metric in self.metrics if metric not in self.derived_metrics)

    def on_no_answer(self, answered: JudgedTurn) -> Iterable[Assessment]:
        """Verdicts about a reply that does not answer: a refusal, or no output of the expected kind. The model's fault:
        zero."""
        return score_zero(answered, self.metrics_for(answered.turn))

    def on_failed(self, answered: JudgedTurn) -> Iterable[Assessment]:
        """Verdicts about a reply that is missing through no fault of the model: unscored."""
        return leave_unscored(answered, self.metrics_for(answered.turn))

    def parse_text(self, question: Question, text: str) -> dict[str, Any] | None:
        """Reads a judge's reply that is not JSON into the keys of its question's schema; None: read it as JSON. It may
        raise `Unusable`."""
        return None

    def to_scores(self, question: Question, found: dict[str, Any]) -> Sequence[Score]:
        """A judge's reply that fits its schema -> a mark for each metric; the share comes from the scale in the schema.
        It may raise `Unusable` for what a schema cannot say."""
        return read_scores(question, found)

    # looking

    def merge_variants(self, verdicts: Sequence[Verdict]) -> list[Verdict]:
        """Pure: verdicts in, verdicts out. Variants of one metric become their mean; a question that was asked for the
        official row alone is kept with the verdict it belongs to. A benchmark may add derived metrics."""
        if self.official is None:
            return average_variants(verdicts)
        ours = average_variants([one for one in verdicts if not one.variant.startswith(OFFICIAL_VARIANT)])
        return self.official.attach_official(
            ours, average_variants([one for one in verdicts if one.variant.startswith(OFFICIAL_VARIANT)])
        )

    def cluster_of(self, sample: str, groups: Mapping[str, str]) -> str:
        """The cluster of a sample, where samples are not independent: intervals and tests resample clusters."""
        return sample

    def headline(self, verdicts: Sequence[Verdict], groups: SampleGroups) -> WeightedMeans:
        """The headline score: means of verdicts with their weights. By default one mean of all verdicts."""
        return [(1.0, verdicts)]


def score_zero(answered: JudgedTurn, metrics: Iterable[str], detail: Any = None) -> list[Verdict]:
    """Zero for what the model did not answer."""
    reply = answered.reply
    if reply.reason:
        why = f"{reply.outcome}: {reply.reason}"
    else:
        why = reply.outcome
    return [answered.verdict(metric, 0.0, why, by="failure", detail=detail) for metric in metrics]


def leave_unscored(answered: JudgedTurn, metrics: Iterable[str], detail: Any = None) -> list[Verdict]:
    """Nothing for what failed through no fault of the model."""
    return [answered.verdict(metric, None, answered.reply.reason, detail=detail) for metric in metrics]


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
    """The lowest and the highest score that a schema allows."""
    allowed = [one for one in schema.get("enum", ()) if isinstance(one, (int, float))]
    low, high = (min(allowed), max(allowed)) if allowed else (schema.get("minimum"), schema.get("maximum"))
    if low is None or high is None or low >= high:
        raise ValueError(
            "a score's schema needs `minimum` and `maximum`, or an `enum` of numbers: its share follows from them"
        )
    return float(low), float(high)


def _place(verdict: Verdict) -> tuple[str, int, str]:
    return verdict.sample, verdict.turn, verdict.metric


def average_variants(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Variants of one metric of one turn as one verdict: the mean of those that are scored, with their deviation. Most
    runs have no variants: their verdicts are passed on as they are, without a table of them."""
    varied: dict[tuple[str, int, str], list[Verdict]] = {_place(one): [] for one in verdicts if one.variant}
    if not varied:
        return list(verdicts)
    groups: list[list[Verdict]] = []
    for verdict in verdicts:
        group = varied.get(_place(verdict), [])
        if not group:
            groups.append(group)
        group.append(verdict)
    return [some[0] if len(some) == 1 and not some[0].variant else _merged(some) for some in groups]


def _merged(some: Sequence[Verdict]) -> Verdict:
    scored = [verdict for verdict in some if verdict.value is not None]
    first = (scored or some)[0]
    values = [verdict.value for verdict in scored if verdict.value is not None]
    scores = [verdict.score for verdict in scored if verdict.score is not None]
    if len(scored) == len(some) or not scored:
        told = ""
    else:
        told = f"{len(scored)} of {len(some)} scored; "
    return replace(
        first,
        variant="",
        value=statistics.fmean(values) if values else None,
        score=statistics.fmean(scores) if len(scores) == len(scored) and scores else None,
        standard_deviation=statistics.stdev(values) if len(values) > 1 else None,
        reason=told + first.reason,
        keys=tuple(dict.fromkeys(key for verdict in some for key in verdict.keys)),
        merged_from=tuple(some),
    )


BUILT_IN = {
    "weave": "weft.benchmarks.weave:Weave",
    "imug": "weft.benchmarks.imug:Imug",
    "rover-ig": "weft.benchmarks.rover.ig:RoverIG",
    "rover-tg": "weft.benchmarks.rover.tg:RoverTG",
    "planviz": "weft.benchmarks.planviz:PlanViz",
    "weaverbench": "weft.benchmarks.weaverbench:WeaverBench",
    "opening": "weft.benchmarks.opening:Opening",
}
INTERNAL = {  # what stands behind commands of their own, and has no dataset that anyone could name
    "arena": "weft.arena.protocol:Arena",
    "arena-scores": "weft.arena.criteria:Criteria",
    "write": "weft.evaluation.writing:WritingBenchmark",
}
REQUIRED_MEMBERS = ("name", "version", "metrics", "load", "build_messages", "questions", "tables")


def list_benchmarks() -> dict[str, str]:
    found = dict(BUILT_IN)
    found.update({point.name: point.value for point in find_entry_points("weft.benchmarks")})
    return found


def is_internal(name: str) -> bool:
    """Whether it stands behind a command of its own."""
    return name in INTERNAL


def is_known(name: str) -> bool:
    """Whether a benchmark can be had by its name alone."""
    return name in BUILT_IN or name in INTERNAL or name in list_benchmarks()


def load_benchmark(benchmark: Any) -> Benchmark:
    """A benchmark by name, from file.py:Name, or as the object or class itself."""
    if isinstance(benchmark, str):
        if ".py:" in benchmark:
            benchmark = load_object(benchmark)
        elif is_known(benchmark):
            benchmark = load_target({**BUILT_IN, **INTERNAL}.get(benchmark) or list_benchmarks()[benchmark])
        else:
            raise UserError(
                f"unknown benchmark {benchmark!r}; known: {', '.join(sorted(list_benchmarks()))}; or file.py:NAME for your own"
            )
    if isinstance(benchmark, type):
        made = benchmark()
    else:
        made = benchmark
    if not isinstance(made, Benchmark):
        raise UserError(f"{made!r} is no benchmark: make its class one of weft.benchmarks.Benchmark")
    kind = type(made)
    missing = [
        name
        for name in REQUIRED_MEMBERS
        if not hasattr(kind, name) or getattr(kind, name) is getattr(Benchmark, name, None)
    ]
    if missing:
        raise UserError(f"{kind.__name__} is no benchmark yet: it lacks {', '.join(missing)}")
    return made


def locate_code(benchmark: Any) -> str:
    """Where a benchmark's code can be found again: its name, or file:NAME with the whole path."""
    if isinstance(benchmark, str) and ".py:" not in benchmark:
        return benchmark
    if isinstance(benchmark, str):
        file, _, name = benchmark.rpartition(":")
        return f"{Path(file).absolute()}:{name}"
    kind: Any = cast("Any", type(benchmark))
    if isinstance(benchmark, type):
        kind = benchmark
    if kind.__module__.startswith("weft."):
        return kind.name
    try:
        return f"{inspect.getfile(kind)}:{kind.__qualname__}"
    except (OSError, TypeError):
        return f"{kind.__module__}:{kind.__qualname__}"
