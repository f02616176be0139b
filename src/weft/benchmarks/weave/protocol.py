"""WEAVEBench's protocol: what a model is shown (`history.py`), and what its replies are judged on.

A refusal or a missing output scores zero on every metric of its turn, without a judge call. So do key points and consistency of a
picture whose reference is an own earlier picture that the model did not make. Where something of ours is missing, nothing is scored.
The released scripts have what is missing judged all the same: under `official` the judge is asked about it as they ask, for the official
row alone (`variant` official).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from weft.benchmarks.agreed import Agreed
from weft.benchmarks.base import Answered, Benchmark, Groups, Item, Terms
from weft.benchmarks.official import VARIANT
from weft.benchmarks.presentation import Presentation
from weft.benchmarks.weave import agreement, data, history, history_official, rubric, tables
from weft.benchmarks.weave.data import KeyPoint
from weft.benchmarks.weave.official import OFFICIAL
from weft.errors import UserError
from weft.types import Dialogue, Image, Message, Question, Sample, Table, Text, Turn, Verdict

History = Annotated[
    Literal["none", "partial", "full", "dialogue"],
    Meta(description="What of the dialogue a model sees; dialogue is everything, interleaved."),
]
Placement = Annotated[
    Literal["all-first", "inline"], Meta(description="Where images stand in a dialogue: all first, or inline at their first mention.")
]
Past = Annotated[
    Literal["own", "reference"], Meta(description="Earlier replies in the history: the model's own outputs, or the dataset's references.")
]
Turns = Annotated[Literal["all", "image", "text"], Meta(description="Which turns are asked; others are filled in from the dataset.")]
Official = Annotated[
    bool, Meta(description="Build inputs as the released scripts do, defects included; what is missing is judged, for the official row.")
]
Loop = Annotated[
    Literal["bagel", "gpt"],
    Meta(description="Which released loop official follows: bagel (image and text turns) or gpt (text turns, as a chat)."),
]


class WeaveOptions(Struct, frozen=True):
    history: History = "partial"
    placement: Placement = "all-first"
    past: Past = "own"
    turns: Turns = "all"
    official: Official = False
    loop: Loop = "bagel"

    def includes(self, turn: Turn) -> bool:
        """Whether the run asks this turn of the model; turns that it does not ask are filled in from the dataset."""
        return self.turns == "all" or (self.turns == "text") == (turn.want == "text")


class WeavePresentation(Presentation, frozen=True):
    def describe_options(self, options: WeaveOptions) -> list[str]:
        return [
            options.history,
            *(["inline images"] if options.placement == "inline" else []),
            *([f"official inputs ({options.loop})"] if options.official else []),
            *(["reference history"] if options.past == "reference" and not options.official else []),
            *([f"{options.turns} turns"] if options.turns != "all" else []),
        ]

    def describe_outputs(self, options: WeaveOptions) -> list[str]:
        return [*(["official"] if options.official else []), *([f"{options.turns} turns"] if options.turns != "all" else [])]

    def agreement_tables(self, found: Agreed) -> Iterable[Table]:
        return agreement.tables(found)

    def describe_gold(self, gold: Any) -> list[str]:
        return [str(point["text"]) for point in gold or ()]


class Weave(Benchmark):
    name = "weave"
    version = "1"
    metrics = rubric.IMAGE_METRICS + rubric.TEXT_METRICS
    Options = WeaveOptions
    axes = ("class", "domain")
    official = OFFICIAL
    presentation = WeavePresentation(title="WEAVEBench")

    load = staticmethod(data.load)  # pyright: ignore[reportAssignmentType]
    tables = staticmethod(tables.tables)  # pyright: ignore[reportAssignmentType]

    def choose(self, given: Mapping[str, Any]) -> WeaveOptions:
        """A text-only run gets a true past, and of the released loops the chat, unless told otherwise."""
        usual = {"past": "reference", **({"loop": "gpt"} if given.get("official") else {})} if given.get("turns") == "text" else {}
        options: WeaveOptions = super().choose({**usual, **{name: value for name, value in given.items() if value is not None}})
        if options.official and options.past == "reference" and options.turns != "text":
            raise UserError(
                "official inputs have no true past: the released scripts show the model its own pictures; leave out past or official"
            )
        if options.official and options.history == "dialogue":
            raise UserError("history dialogue is weft's own; with official choose none, partial or full")
        if options.loop == "gpt" and not (options.official and options.turns == "text"):
            raise UserError("loop gpt is the released chat for text turns; it goes with official and turns text")
        return options

    def includes(self, turn: Turn, options: WeaveOptions) -> bool:
        return options.includes(turn)

    def build_messages(self, sample: Sample, turn: Turn, dialogue: Dialogue, options: WeaveOptions) -> tuple[Message, ...]:
        build = history_official.build_messages if options.official else history.build_messages
        return build(sample, turn, dialogue, options)

    def depends_on(self, sample: Sample, turn: Turn, options: WeaveOptions) -> set[int]:
        return (history_official if options.official else history).depends_on(sample, turn, options)

    def metrics_for(self, turn: Turn) -> tuple[str, ...]:
        return rubric.TEXT_METRICS if turn.want == "text" else rubric.IMAGE_METRICS

    def questions(self, answered: Answered) -> Iterable[Item]:
        if answered.turn.want == "text":
            return [rubric.about_answer(answered, answered.reply.words)]
        return [item for metric in rubric.IMAGE_METRICS for item in self._about_picture(metric, answered)]

    def on_no_answer(self, answered: Answered) -> Iterable[Item]:
        """Zero, and what the scripts ask about an output that is not there."""
        return [*super().on_no_answer(answered), *(self._about_nothing(answered) if answered.options.official else ())]

    def on_failed(self, answered: Answered) -> Iterable[Item]:
        """Unscored. To the scripts an output that cannot be opened is one that is not there."""
        return [*super().on_failed(answered), *(self._about_nothing(answered) if answered.options.official and answered.is_output else ())]

    def _about_nothing(self, answered: Answered) -> list[Question]:
        """They keep a refusal in words as an answer, and an empty answer as it is."""
        if answered.turn.want == "text":
            said = answered.reply.words if any(isinstance(part, Text) for part in answered.reply.parts) else "None"
            return [rubric.about_answer(answered, said, variant=VARIANT)]
        asked = {metric: self._as_released(metric, answered) for metric in rubric.IMAGE_METRICS}
        return [rubric.about_picture(metric, answered, pictures, variant=VARIANT) for metric, pictures in asked.items()]

    def _about_picture(self, metric: str, answered: Answered) -> list[Item]:
        strict = self._strictly(metric, answered)
        released = self._as_released(metric, answered)
        asked = strict if isinstance(strict, Verdict) else rubric.about_picture(metric, answered, strict)
        waits = isinstance(strict, Verdict) and strict.value is None and not answered.is_output  # for a call that may be made again
        if not answered.options.official or released == strict or waits:
            return [asked]
        return [asked, rubric.about_picture(metric, answered, released, variant=VARIANT)]

    def _strictly(self, metric: str, answered: Answered) -> tuple[Image | None, ...] | Verdict:
        """The pictures of a question: the one that was made, then one for each key point that shows one. A verdict where one is missing."""
        pictures: list[Image] = [answered.made]
        for point, number in _shown_points(metric, answered):
            maker = answered.sample.maker_of(number) if point.source == "Image" else None
            found = answered.sample.pictures[number - 1] if maker is None else answered.picture_of(maker.number)
            if found is None:
                assert maker is not None
                what = f'its reference "Image #{number}" is the picture of turn {maker.number + 1}'
                if answered.is_lost(maker.number):
                    return answered.verdict(metric, None, f"{what}, which is missing through no fault of the model")
                return answered.verdict(metric, 0.0, f"{what}, which the model did not make", by="failure")
            pictures.append(found)
        return tuple(pictures)

    def _as_released(self, metric: str, answered: Answered) -> tuple[Image | None, ...]:
        """The same as the scripts find them, among the outputs or in the dataset; what is not there is left out of the prompt."""
        pictures: list[Image | None] = [answered.reply.picture]
        for point, number in _shown_points(metric, answered):
            maker = answered.sample.maker_of(number) if point.source == "Image" else None
            own = answered.picture_of(maker.number) if maker is not None else None
            pictures.append(own if point.source == "Image" else answered.sample.pictures[number - 1])
        return tuple(pictures)

    def headline(self, verdicts: Sequence[Verdict], groups: Groups) -> Terms:
        """The paper's Avg as weighted means."""
        parts = {short: [verdict for verdict in verdicts if verdict.metric == metric] for metric, short in tables.SHORT.items()}
        return [(weight, parts[name]) for name, weight in tables.weights([name for name, some in parts.items() if some]).items()]


def _shown_points(metric: str, answered: Answered) -> Iterator[tuple[KeyPoint, int]]:
    """The key points that show a picture, with its number."""
    points: tuple[KeyPoint, ...] = answered.turn.gold if metric != "image_quality" else ()
    for point in points:
        if point.number is not None:
            yield point, point.number
