"""The interface of a benchmark: a base class. What a benchmark needs to say, it has a method for here; no other code asks which one it is.

A benchmark makes no network call and opens no file outside its `load`; everything else about it is pure. To be written: `name`, `version`,
`metrics`, `load`, `see`, `questions`, `tables`. The rest has defaults:

    class Mine(Benchmark):
        name, version, metrics = "mine", "1", ("correct",)

        def load(self, data, blobs): ...                       # files -> Dataset, with every problem found
        def see(self, sample, turn, dialogue, options): ...    # what the model is shown: messages
        def questions(self, answered): ...                     # what to ask the judge; verdicts by rule; checks of pixels
        def tables(self, runs): ...                            # verdicts, aggregated as the paper does it

docs/own-benchmark.md has a whole one on a page. It is found as an entry point of the group `weft.benchmarks`, or as file.py:Name.
"""

import inspect
import re
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast, get_args, get_type_hints

import msgspec
from msgspec import Struct
from msgspec import inspect as kinds_of
from msgspec.structs import replace

from weft.benchmarks.outputs import Folder
from weft.benchmarks.prompts import Rubrics, read_rubrics
from weft.errors import UserError
from weft.models.endpoint import Endpoint
from weft.models.registry import load_object, load_target
from weft.plugins import points
from weft.store.blobs import Blobs
from weft.types import Dataset, Dialogue, Image, Mark, Message, Model, Part, Place, Question, Reply, Sample, Table, Turn, Verdict

if TYPE_CHECKING:
    from weft.benchmarks.agreed import Agreed

Terms = list[tuple[float, Sequence[Verdict]]]  # means of verdicts with their weights
RELEASED = "official"  # the variant of what is asked for the official row alone
Groups = Mapping[str, Mapping[str, str]]  # the groups of each sample by its id


class NoOptions(Struct, frozen=True):
    """There is nothing to choose."""


class Option(Struct, frozen=True):
    """One of them, for those who show it: its choices, or `bool`, `int`, `float` or `str`."""

    name: str
    choices: tuple[str, ...]
    kind: type
    usual: Any
    help: str


def listed(options: type[Struct]) -> list[Option]:
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
        choices = tuple(map(str, get_args(hints[field.name]))) if isinstance(kind, kinds_of.LiteralType) else ()
        made.append(Option(field.name, choices, kinds.get(type(kind), str), field.default, told))
    return made


def choose(options: type[Struct], given: Mapping[str, Any], name: str) -> Any:
    """The options with what is given; what is None is not given. Texts are read as numbers where numbers are due."""
    known = {option.name: option for option in listed(options)}
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
        due = kinds.get(known[key].kind) if key in known else None
        bound = re.search(r"([<>]=) (-?[\d.]+)", str(error))
        due = f"{due}, {'at least' if bound[1] == '>=' else 'at most'} {bound[2]}" if due and bound else due
        raise UserError(f"{name}: option {key} {chosen.get(key)!r}: {f'give {due}' if due else error}") from None


class Check(Struct, frozen=True):
    """Work on a picture's pixels. It is done in a thread, with the store, and gives verdicts, or questions that are then asked."""

    metrics: tuple[str, ...]
    place: Place
    work: Callable[[Blobs], Sequence[Question | Verdict]]
    detail: Any = None  # of the verdicts, if the picture cannot be opened


Item = Question | Verdict | Check  # what a benchmark may ask for


class Answered(Struct, frozen=True):
    """A reply that is to be judged, with all that is known of it. `dialogue` goes up to this turn."""

    sample: Sample
    turn: Turn
    reply: Reply
    dialogue: Dialogue
    place: Place
    options: Any
    rubrics: Rubrics

    @property
    def made(self) -> Image:
        """The picture that counts as the reply's output."""
        found = self.reply.picture
        if found is None:
            raise ValueError("the reply has no picture; a turn that wants one is judged only if it has")
        return found

    def picture_of(self, turn: int) -> Image | None:
        """What the model made in an earlier turn, if it made anything."""
        reply = self.dialogue.get(turn)
        return reply.picture if reply is not None else None

    @property
    def is_output(self) -> bool:
        """Whether it is an output made elsewhere, which nobody can ask for again: no call stands behind it."""
        return not self.reply.keys

    def is_lost(self, turn: int) -> bool:
        """Whether an earlier turn has no reply through no fault of the model."""
        return turn not in self.dialogue or self.dialogue[turn].outcome == "failed"

    def ask(self, metrics: str | tuple[str, ...], parts: Iterable[Part], schema: dict[str, Any], **more: Any) -> Question:
        """A question about this turn; `more` are its `material`, `gold`, `detail` and so on."""
        named = (metrics,) if isinstance(metrics, str) else metrics
        return Question(named, (Message("user", tuple(parts)),), schema, self.place, **more)

    def verdict(self, metric: str, value: float | None, reason: str, *, by: Any = "rule", detail: Any = None, **more: Any) -> Verdict:
        """A verdict that needs no judge. A `value` of None is unscored."""
        return Verdict(self.sample.id, self.turn.number, metric, value, reason, by, detail=detail, **more)

    def check(self, metrics: str | tuple[str, ...], work: Callable[[Blobs], Sequence[Question | Verdict]], detail: Any = None) -> Check:
        return Check((metrics,) if isinstance(metrics, str) else metrics, self.place, work, detail)


class Finished(Struct, frozen=True):
    """A run's results, for tables: settled verdicts in dataset order, and what data it was: published rows belong beside the benchmark's
    own alone."""

    name: str
    groups: Groups
    verdicts: Sequence[Verdict]
    dataset: str = ""
    run: str = ""
    judge: str = ""


class Benchmark:
    name: ClassVar[str]
    version: ClassVar[str]
    metrics: ClassVar[tuple[str, ...]]
    title: ClassVar[str] = ""  # what its paper calls it
    Options: ClassVar[type[Struct]] = NoOptions  # what a user may choose, besides what every run has
    axes: ClassVar[tuple[str, ...]] = ()  # groups of samples to filter, compare and plot by, the coarsest first
    axis_names: ClassVar[Mapping[str, tuple[str, ...]]] = {}  # the names of an axis's groups, where they are always the same
    official_prompts: ClassVar[Mapping[str, str]] = {}  # metric -> the constant in `official_file` that is the paper's own prompt
    official_file: ClassVar[str] = ""
    official_settings: ClassVar[Mapping[str, Any]] = {}  # a judge's options, as the released code has them
    most_tries: ClassVar[int] = 1  # how often a turn may be asked, with `again`
    published_judge: ClassVar[str] = ""  # who judged the published rows
    derived_metrics: ClassVar[tuple[str, ...]] = ()  # those of `metrics` that nobody is asked for: `settle` makes them of others
    spread_metrics: ClassVar[tuple[str, ...]] = ()  # those whose distribution is drawn, besides that of the main number
    full: ClassVar[float] = 1.0  # full marks as its paper prints them: 1, 10, 100; every number that is shown is on this scale
    digits: ClassVar[int] = 3  # and with so many decimals
    of_one: ClassVar[bool] = True  # whether verdicts say how well one model did; those of battles do not, and are not drawn or compared
    ways: ClassVar[tuple[str, ...]] = ()  # what its turns are called, where they are no dialogue but ways of asking the same

    # to be written

    def load(self, data: Path, blobs: Blobs) -> Dataset:
        raise TypeError(f"{type(self).__name__} has no load")

    def see(self, sample: Sample, turn: Turn, dialogue: Dialogue, options: Any) -> tuple[Message, ...]:
        raise TypeError(f"{type(self).__name__} has no see")

    def questions(self, answered: Answered) -> Iterable[Item]:
        """Of a reply that has what was due; `unanswered` is for the others."""
        raise TypeError(f"{type(self).__name__} has no questions")

    def tables(self, runs: Sequence[Finished]) -> Iterable[Table]:
        """The main table first. Made one by one, so that who wants the first need not wait for the last."""
        raise TypeError(f"{type(self).__name__} has no tables")

    def template(self, folder: Path) -> None:
        """Write a folder that people can fill with data of their own, with an example of each kind."""
        raise UserError(f"{self.name} has no template for data of one's own")

    def about(self, dataset: Dataset) -> list[str]:
        """What those who check their data want to know of them, line by line."""
        return []

    # generating

    def helpers(self, options: Any) -> Mapping[str, str]:
        """Models that the data need before anyone is asked about them, by role, as a user writes them: one that says tasks in other words.
        Their answers are kept, and paid for, like all others."""
        return {}

    async def completed(self, dataset: Dataset, options: Any, helpers: Mapping[str, Model]) -> Dataset:
        """The dataset as a run asks about it: by default as it was read. Its digest must tell it apart. A reply of a helper whose reason is
        `STAND_IN` is none: nobody is asked in a dry run, and what is asked next is to be as much as it would be."""
        return dataset

    def choose(self, given: Mapping[str, Any]) -> Any:
        """The options with what the user chose. Raises UserError for what there is not, or does not go together."""
        return choose(self.Options, given, self.name)

    def told(self, options: Any) -> list[str]:
        """The options in words, for a run's title: by default those that are not as usual."""
        usual = self.Options()
        changed = [name for name in self.Options.__struct_fields__ if getattr(options, name) != getattr(usual, name)]
        return [name if getattr(options, name) is True else f"{name} {getattr(options, name)}" for name in changed]

    def told_of_outputs(self, options: Any) -> list[str]:
        """The same where the outputs were made elsewhere, and nobody knows what was shown for them."""
        return []

    def asks(self, turn: Turn, options: Any) -> bool:
        """Whether the model is asked this turn at all."""
        return True

    def needs(self, sample: Sample, turn: Turn, options: Any) -> set[int]:
        """Earlier turns whose replies this turn is shown: if one is missing through our fault, this turn waits, unscored."""
        return set()

    def again(self, turn: Turn, messages: tuple[Message, ...], reply: Reply, tries: int) -> tuple[Message, ...] | None:
        """What to ask instead, where a protocol does not take a reply for an answer yet; None: it is one. `tries` were made so far."""
        return None

    def counts(self, turn: Turn, replies: Sequence[Reply]) -> Reply:
        """Which of several replies that were asked for in this way counts; it has the calls of all behind it."""
        return replies[-1]

    def group(self, axis: str, name: str) -> str:
        """What a group that a user names is called in the data."""
        return name

    def outputs(self, folder: Path, blobs: Blobs) -> Endpoint:
        """Outputs made elsewhere, as a model: by default files under the names that `Turn.file` has."""
        return Folder(folder, blobs)

    # judging

    def rubrics(self, prompts: str) -> Rubrics:
        """The judge's prompts: our own (`rubrics/*.md` beside the code of the class, or of the one it is made from), or the paper's from a
        checkout of its repository."""
        kinds = type(self).__mro__[: type(self).__mro__.index(Benchmark)]
        folders = [Path(inspect.getfile(kind)).parent for kind in kinds]
        folder = next((one for one in folders if (one / "rubrics").is_dir()), folders[0])
        return read_rubrics(folder, prompts, self.official_file, self.official_prompts, self.name, self.official_settings)

    def due(self, turn: Turn) -> tuple[str, ...]:
        """The metrics of a turn: every one of them gets a verdict, whatever becomes of it."""
        return tuple(metric for metric in self.metrics if metric not in self.derived_metrics)

    def detail(self, turn: Turn, reply: Reply) -> Any:
        """What tables need to know of a turn whatever became of it."""
        return None

    def unanswered(self, answered: Answered) -> Iterable[Item]:
        """A refusal, or nothing of the kind that was due: zero, the model's doing."""
        reply = answered.reply
        why = f"{reply.outcome}: {reply.reason}" if reply.reason else reply.outcome
        detail = self.detail(answered.turn, reply)
        return [answered.verdict(metric, 0.0, why, by="failure", detail=detail) for metric in self.due(answered.turn)]

    def lost(self, answered: Answered) -> Iterable[Item]:
        """No reply, through no fault of the model: unscored."""
        reply = answered.reply
        detail = self.detail(answered.turn, reply)
        return [answered.verdict(metric, None, reply.reason, detail=detail) for metric in self.due(answered.turn)]

    def find(self, question: Question, text: str) -> dict[str, Any] | None:
        """What a reply in words says, under the keys of its question's schema; None: it is JSON, or nothing. It may raise `Unusable`."""
        return None

    def read(self, question: Question, found: dict[str, Any]) -> Sequence[Mark]:
        """A judge's reply that fits its schema -> a mark for each metric; the share comes from the scale in the schema. It may raise
        `Unusable` for what a schema cannot say."""
        return plain_marks(question, found)

    def as_released(self, question: Question, text: str) -> Mapping[str, Any]:
        """What the released scripts make of a judge's reply as it came, by metric, whatever the schema says of it: it is kept in the
        verdict's `detail` as `official`, for the official row. Nothing where they make nothing of it."""
        return {}

    # looking

    def settle(self, verdicts: Sequence[Verdict]) -> list[Verdict]:
        """Pure: verdicts in, verdicts out. Variants of one metric become their mean; a benchmark may add what follows from others."""
        return settled(verdicts)

    def together(self, sample: str, groups: Mapping[str, str]) -> str:
        """What a sample belongs to, where several are not independent of one another: intervals and tests resample that."""
        return sample

    def headline(self, verdicts: Sequence[Verdict], groups: Groups) -> Terms:
        """The main number: means of verdicts, with their weights. All alike, unless it says otherwise."""
        return [(1.0, verdicts)]

    def agreements(self, found: "Agreed") -> Iterable[Table]:
        """How far its judge agrees with others, as its paper shows it, with what is printed there; nothing where it shows nothing."""
        return ()

    def ranked(self, runs: Sequence[Finished]) -> tuple[str, list[dict[str, Any]]]:
        """Of verdicts that are of no one model: what is drawn instead, and rows with `name`, `series`, the value under what it is called,
        `low` and `high`, the best first."""
        return "", []

    def shown(self, gold: Any) -> list[str]:
        """What of a turn's gold data (as JSON has it) a person is shown, line by line; nothing: all of it, folded."""
        return []

    def beside(self, gold: Any) -> list[tuple[str, tuple[Part, ...]]]:
        """What stands side by side on a turn's page instead of the one reply, each under its title, from the turn's gold as JSON has it."""
        return []


def plain_marks(question: Question, found: Mapping[str, Any]) -> list[Mark]:
    """Marks from a reply that holds score and reason under the question's keys."""
    marks: list[Mark] = []
    for metric in question.metrics:
        several = len(question.metrics) > 1
        said: Mapping[str, Any] = found[metric] if several else found
        schema: Mapping[str, Any] = question.schema["properties"][metric] if several else question.schema
        score = float(said[question.value])
        low, high = scale_of(schema["properties"][question.value])
        marks.append(Mark(metric, (score - low) / (high - low), str(said.get(question.reason, "")), score))
    return marks


def scale_of(schema: Mapping[str, Any]) -> tuple[float, float]:
    """The lowest and the highest score that a schema allows."""
    allowed = [one for one in schema.get("enum", ()) if isinstance(one, (int, float))]
    low, high = (min(allowed), max(allowed)) if allowed else (schema.get("minimum"), schema.get("maximum"))
    if low is None or high is None or low >= high:
        raise ValueError("a score's schema needs `minimum` and `maximum`, or an `enum` of numbers: its share follows from them")
    return float(low), float(high)


def settled(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Variants of one metric of one turn as one verdict: the mean of those that are scored, with their deviation. Most runs have no
    variants: their verdicts are passed on as they are, without a table of them."""
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


def with_released(verdicts: Sequence[Verdict], points: Callable[[Verdict], Any]) -> list[Verdict]:
    """Settled. What was asked for as the released scripts ask, for the official row alone (variant `official`), stands in the others'
    detail, under `asked`, as what it comes to by `points`, and its calls are behind them too."""
    theirs = {_place(one): one for one in settled([one for one in verdicts if one.variant.startswith(RELEASED)])}
    made: list[Verdict] = []
    for one in settled([one for one in verdicts if not one.variant.startswith(RELEASED)]):
        other = theirs.get(_place(one))
        if other is not None:
            one = replace(one, detail={**(one.detail or {}), "asked": points(other)}, keys=(*one.keys, *other.keys))
        made.append(one)
    return made


def detail_of(verdict: Verdict) -> Mapping[str, Any]:
    """What another arithmetic needs: `official`, what the released scripts make of the judge's reply; `asked`, what they come to where they
    ask otherwise (`with_released`)."""
    return cast(dict[str, Any], verdict.detail) if isinstance(verdict.detail, dict) else {}


def _place(verdict: Verdict) -> tuple[str, int, str]:
    return verdict.sample, verdict.turn, verdict.metric


def _merged(some: Sequence[Verdict]) -> Verdict:
    scored = [verdict for verdict in some if verdict.value is not None]
    first = (scored or some)[0]
    values = [verdict.value for verdict in scored if verdict.value is not None]
    scores = [verdict.score for verdict in scored if verdict.score is not None]
    told = "" if len(scored) == len(some) or not scored else f"{len(scored)} of {len(some)} scored; "
    return replace(
        first,
        variant="",
        value=statistics.fmean(values) if values else None,
        score=statistics.fmean(scores) if len(scores) == len(scored) and scores else None,
        spread=statistics.stdev(values) if len(values) > 1 else None,
        reason=told + first.reason,
        keys=tuple(dict.fromkeys(key for verdict in some for key in verdict.keys)),
        behind=tuple(some),
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
INNER = {  # what stands behind commands of their own, and has no dataset that anyone could name
    "arena": "weft.arena.protocol:Arena",
    "arena-scores": "weft.arena.criteria:Criteria",
    "write": "weft.evaluation.writing:Writing",
}
RESERVED = (  # what every run has: a benchmark's own options have other names
    "benchmark", "data", "model", "judge", "options", "home", "prompts", "limit", "where", "concurrency", "judge_concurrency",
    "judge_repeats", "judge_batch", "budget", "strategy", "model_options", "judge_options", "patience", "model_opt", "judge_opt",
    "dry_run", "help", "preset", "shard", "config", "probe",
)  # fmt: skip
WRITTEN = ("name", "version", "metrics", "load", "see", "questions", "tables")


def names() -> dict[str, str]:
    found = dict(BUILT_IN)
    found.update({point.name: point.value for point in points("weft.benchmarks")})
    return found


def is_inner(name: str) -> bool:
    """Whether it stands behind a command of its own."""
    return name in INNER


def is_known(name: str) -> bool:
    """Whether a benchmark can be had by its name alone."""
    return name in names() or name in INNER


def resolve(benchmark: Any) -> Benchmark:
    """A benchmark by name, from file.py:Name, or as the object or class itself."""
    if isinstance(benchmark, str):
        known = names()
        if ".py:" in benchmark:
            benchmark = load_object(benchmark)
        elif is_known(benchmark):
            benchmark = load_target({**known, **INNER}[benchmark])
        else:
            raise UserError(f"unknown benchmark {benchmark!r}; known: {', '.join(sorted(known))}; or file.py:NAME for your own")
    made = benchmark() if isinstance(benchmark, type) else benchmark
    if not isinstance(made, Benchmark):
        raise UserError(f"{made!r} is no benchmark: make its class one of weft.benchmarks.Benchmark")
    kind = type(made)
    missing = [name for name in WRITTEN if not hasattr(kind, name) or getattr(kind, name) is getattr(Benchmark, name, None)]
    if missing:
        raise UserError(f"{kind.__name__} is no benchmark yet: it lacks {', '.join(missing)}")
    taken = [name for name in kind.Options.__struct_fields__ if name in RESERVED]
    if taken:
        raise UserError(f"{kind.__name__} cannot call an option {taken[0]!r}: every run has one of that name")
    return made


def where(benchmark: Any) -> str:
    """Where a benchmark's code can be found again: its name, or file:NAME with the whole path."""
    if isinstance(benchmark, str) and ".py:" not in benchmark:
        return benchmark
    if isinstance(benchmark, str):
        file, _, name = benchmark.rpartition(":")
        return f"{Path(file).absolute()}:{name}"
    kind: Any = benchmark if isinstance(benchmark, type) else type(benchmark)
    if kind.__module__.startswith("weft."):
        return kind.name
    try:
        return f"{inspect.getfile(kind)}:{kind.__qualname__}"
    except (OSError, TypeError):
        return f"{kind.__module__}:{kind.__qualname__}"
