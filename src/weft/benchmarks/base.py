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
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from weft.benchmarks.options import NoOptions, choose
from weft.benchmarks.outputs import Folder
from weft.benchmarks.prompts import Rubrics, read_rubrics
from weft.errors import UserError
from weft.models.endpoint import Endpoint
from weft.store.blobs import Blobs
from weft.types import Dataset, Dialogue, Image, Mark, Message, Part, Place, Question, Reply, Sample, Table, Turn, Verdict

Terms = list[tuple[float, Sequence[Verdict]]]  # means of verdicts with their weights
Groups = Mapping[str, Mapping[str, str]]  # the groups of each sample by its id


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
    dialogue: Dialogue
    options: Any
    rubrics: Rubrics

    @property
    def reply(self) -> Reply:
        return self.dialogue[self.turn.number]

    @property
    def made(self) -> Image:
        """The picture that counts as the reply's output."""
        found = self.reply.picture
        if found is None:
            raise ValueError("the reply has no picture; a turn that wants one is judged only if it has")
        return found

    @property
    def place(self) -> Place:
        return Place(self.sample.id, self.turn.number, self.turn.file)

    def picture_of(self, turn: int) -> Image | None:
        """What the model made in an earlier turn, if it made anything."""
        reply = self.dialogue.get(turn)
        return reply.picture if reply is not None else None

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
    official_prompts: ClassVar[Mapping[str, str]] = {}  # metric -> the constant in `official_file` that is the paper's own prompt
    official_file: ClassVar[str] = ""
    published_judge: ClassVar[str] = ""  # who judged the published rows
    battle_metrics: ClassVar[tuple[str, ...]] = ()  # what `battle` asks about

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

    # generating

    def choose(self, given: Mapping[str, Any]) -> Any:
        """The options with what the user chose. Raises UserError for what there is not, or does not go together."""
        return choose(self.Options, given, self.name)

    def told(self, options: Any) -> list[str]:
        """The options in words, for a run's title: by default those that are not as usual."""
        usual = self.Options()
        changed = [name for name in self.Options.__struct_fields__ if getattr(options, name) != getattr(usual, name)]
        return [name if getattr(options, name) is True else f"{name} {getattr(options, name)}" for name in changed]

    def asks(self, turn: Turn, options: Any) -> bool:
        """Whether the model is asked this turn at all."""
        return True

    def needs(self, sample: Sample, turn: Turn, options: Any) -> set[int]:
        """Earlier turns whose replies this turn is shown: if one is missing through our fault, this turn waits, unscored."""
        return set()

    def outputs(self, folder: Path, blobs: Blobs) -> Endpoint:
        """Outputs made elsewhere, as a model: by default files under the names that `Turn.file` has."""
        return Folder(folder, blobs)

    # judging

    def rubrics(self, prompts: str) -> Rubrics:
        """The judge's prompts: our own (`rubrics/*.md` beside the benchmark's code), or the paper's from a checkout of its repository."""
        return read_rubrics(Path(inspect.getfile(type(self))).parent, prompts, self.official_file, self.official_prompts, self.name)

    def due(self, turn: Turn) -> tuple[str, ...]:
        """The metrics of a turn."""
        return self.metrics

    def detail(self, turn: Turn, reply: Reply) -> Any:
        """What tables need to know of a turn whatever became of it."""
        return None

    def unanswered(self, answered: Answered) -> Iterable[Item]:
        """A refusal, or nothing of the kind that was due: zero, the model's doing."""
        reply = answered.reply
        why = f"{reply.outcome}: {reply.reason}" if reply.reason else reply.outcome
        detail = self.detail(answered.turn, reply)
        return [answered.verdict(metric, 0.0, why, by="failure", detail=detail) for metric in self.due(answered.turn)]

    def read(self, question: Question, found: dict[str, Any]) -> Sequence[Mark]:
        """A judge's reply that fits its schema -> a mark for each metric; the share comes from the scale in the schema. It may raise
        `Unusable` for what a schema cannot say."""
        return plain_marks(question, found)

    def battle(self, first: Answered, second: Answered) -> Iterable[Question | Verdict]:
        """Questions about two replies to the same turn, of two runs. Shares are the first one's: 1 it wins, 0 it loses."""
        raise UserError(f"{self.name} has no battles")

    # looking

    def settle(self, verdicts: Sequence[Verdict]) -> list[Verdict]:
        """Pure: verdicts in, verdicts out. Variants of one metric become their mean; a benchmark may add what follows from others."""
        return settled(verdicts)

    def headline(self, verdicts: Sequence[Verdict], groups: Groups) -> Terms:
        """The main number: means of verdicts, with their weights. All alike, unless it says otherwise."""
        return [(1.0, verdicts)]

    def shown(self, gold: Any) -> list[str]:
        """What of a turn's gold data (as JSON has it) a person is shown, line by line; nothing: all of it, folded."""
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
    """Variants of one metric of one turn as one verdict: the mean of those that are scored, with their deviation."""
    groups: dict[tuple[str, int, str], list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault((verdict.sample, verdict.turn, verdict.metric), []).append(verdict)
    return [some[0] if len(some) == 1 and not some[0].variant else _merged(some) for some in groups.values()]


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
