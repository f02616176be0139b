"""WEAVEBench's protocol: what a model is shown (`history.py`), and what its replies are judged on.

A refusal or a missing output scores zero on every metric of its turn, without a judge call. So do key points and
consistency of a picture whose reference is an own earlier picture that the model did not make. Where something of ours
is missing, nothing is scored. The released scripts have what is missing judged all the same: under `official` the judge
is asked about it as they ask, for the official row alone (`variant` official)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from weft.benchmarks.base import Assessment, Benchmark, JudgedTurn, SampleGroups, WeightedMeans
from weft.benchmarks.official import OFFICIAL_VARIANT
from weft.benchmarks.paired_verdicts import PairedVerdicts
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
    Literal["all-first", "inline"],
    Meta(description="Where images stand in a dialogue: all first, or inline at their first mention."),
]
Past = Annotated[
    Literal["own", "reference"],
    Meta(description="Earlier replies in the history: the model's own outputs, or the dataset's references."),
]
Turns = Annotated[
    Literal["all", "image", "text"], Meta(description="Which turns are asked; others are filled in from the dataset.")
]
Official = Annotated[
    bool,
    Meta(
        description="Build inputs as the released scripts do, defects included; what is missing is judged, for the official row."
    ),
]
Loop = Annotated[
    Literal["bagel", "gpt"],
    Meta(
        description="Which released loop official follows: bagel (image and text turns) or gpt (text turns, as a chat)."
    ),
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
        return self.turns == "all" or (self.turns == "text") == (turn.modality == "text")


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
        return [
            *(["official"] if options.official else []),
            *([f"{options.turns} turns"] if options.turns != "all" else []),
        ]

    def agreement_tables(self, found: PairedVerdicts) -> Iterable[Table]:
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
    presentation = WeavePresentation(
        title="WEAVEBench",
        glossary={
            "KP": "Key Point: the image meets the listed requirements",
            "VC": "Visual Consistency: what no requirement names stays the same",
            "IQ": "Image Quality: structure, fidelity, artifacts, naturalness",
            "ACC": "Accuracy: the text answer agrees with the reference answer",
            "Avg": "Average of the metrics that were measured, with the weights of the paper",
            "key_point": "KP, Key Point: the image meets the listed requirements",
            "visual_consistency": "VC, Visual Consistency: what no requirement names stays the same",
            "image_quality": "IQ, Image Quality: structure, fidelity, artifacts, naturalness",
            "accuracy": "ACC, Accuracy: the text answer agrees with the reference answer",
        },
    )

    load = staticmethod(data.load)  # pyright: ignore[reportAssignmentType]
    tables = staticmethod(tables.tables)  # pyright: ignore[reportAssignmentType]

    def parse_options(self, given: Mapping[str, Any]) -> WeaveOptions:
        """A text-only run gets a true past, and of the released loops the chat, unless told otherwise."""
        usual = (
            {"past": "reference", **({"loop": "gpt"} if given.get("official") else {})}
            if given.get("turns") == "text"
            else {}
        )
        options: WeaveOptions = super().parse_options(
            {**usual, **{name: value for name, value in given.items() if value is not None}}
        )
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

    def build_messages(
        self, sample: Sample, turn: Turn, dialogue: Dialogue, options: WeaveOptions
    ) -> tuple[Message, ...]:
        if options.official:
            build = history_official.build_messages
        else:
            build = history.build_messages
        return build(sample, turn, dialogue, options)

    def depends_on(self, sample: Sample, turn: Turn, options: WeaveOptions) -> set[int]:
        return (history_official if options.official else history).depends_on(sample, turn, options)

    def metrics_for(self, turn: Turn) -> tuple[str, ...]:
        if turn.modality == "text":
            return rubric.TEXT_METRICS
        return rubric.IMAGE_METRICS

    def questions(self, answered: JudgedTurn) -> Iterable[Assessment]:
        if answered.turn.modality == "text":
            return [rubric.build_answer_question(answered, answered.reply.raw_text)]
        return [item for metric in rubric.IMAGE_METRICS for item in self._about_picture(metric, answered)]

    def on_no_answer(self, answered: JudgedTurn) -> Iterable[Assessment]:
        """Zero, and what the scripts ask about an output that is not there."""
        return [*super().on_no_answer(answered), *(self._about_nothing(answered) if answered.options.official else ())]

    def on_failed(self, answered: JudgedTurn) -> Iterable[Assessment]:
        """Unscored. To the scripts an output that cannot be opened is one that is not there."""
        return [
            *super().on_failed(answered),
            *(self._about_nothing(answered) if answered.options.official and answered.is_precomputed else ()),
        ]

    def _about_nothing(self, answered: JudgedTurn) -> list[Question]:
        """They keep a refusal in words as an answer, and an empty answer as it is."""
        if answered.turn.modality == "text":
            if any(isinstance(part, Text) for part in answered.reply.parts):
                said = answered.reply.raw_text
            else:
                said = "None"
            return [rubric.build_answer_question(answered, said, variant=OFFICIAL_VARIANT)]
        asked = {metric: self._as_released(metric, answered) for metric in rubric.IMAGE_METRICS}
        return [
            rubric.build_image_question(metric, answered, pictures, variant=OFFICIAL_VARIANT)
            for metric, pictures in asked.items()
        ]

    def _about_picture(self, metric: str, answered: JudgedTurn) -> list[Assessment]:
        strict = self._strictly(metric, answered)
        released = self._as_released(metric, answered)
        if isinstance(strict, Verdict):
            asked = strict
        else:
            asked = rubric.build_image_question(metric, answered, strict)
        # for a call that may be made again
        waits = isinstance(strict, Verdict) and strict.value is None and not answered.is_precomputed
        if not answered.options.official or released == strict or waits:
            return [asked]
        return [asked, rubric.build_image_question(metric, answered, released, variant=OFFICIAL_VARIANT)]

    def _strictly(self, metric: str, answered: JudgedTurn) -> tuple[Image | None, ...] | Verdict:
        """The pictures of a question: the one that was made, then one for each key point that shows one. A verdict
        where one is missing."""
        pictures: list[Image] = [answered.image]
        for point, number in _shown_points(metric, answered):
            if point.source == "Image":
                maker = answered.sample.turn_of_image(number)
            else:
                maker = None
            if maker is None:
                found = answered.sample.images[number - 1]
            else:
                found = answered.image_of_turn(maker.number)
            if found is None:
                assert maker is not None
                what = f'its reference "Image #{number}" is the picture of turn {maker.number + 1}'
                if answered.is_unavailable(maker.number):
                    return answered.verdict(metric, None, f"{what}, which is missing through no fault of the model")
                return answered.verdict(metric, 0.0, f"{what}, which the model did not make", by="failure")
            pictures.append(found)
        return tuple(pictures)

    def _as_released(self, metric: str, answered: JudgedTurn) -> tuple[Image | None, ...]:
        """The same as the scripts find them, among the outputs or in the dataset; what is not there is left out of the
        prompt."""
        pictures: list[Image | None] = [answered.reply.last_image]
        for point, number in _shown_points(metric, answered):
            if point.source == "Image":
                maker = answered.sample.turn_of_image(number)
            else:
                maker = None
            if maker is not None:
                own = answered.image_of_turn(maker.number)
            else:
                own = None
            pictures.append(own if point.source == "Image" else answered.sample.images[number - 1])
        return tuple(pictures)

    def headline(self, verdicts: Sequence[Verdict], groups: SampleGroups) -> WeightedMeans:
        """The paper's Avg as weighted means."""
        parts = {
            short: [verdict for verdict in verdicts if verdict.metric == metric]
            for metric, short in tables.SHORT_NAMES.items()
        }
        return [
            (weight, parts[name])
            for name, weight in tables.average_weights([name for name, some in parts.items() if some]).items()
        ]


def _shown_points(metric: str, answered: JudgedTurn) -> Iterator[tuple[KeyPoint, int]]:
    """The key points that show a picture, with its number."""
    if metric != "image_quality":
        points: tuple[KeyPoint, ...] = answered.turn.gold
    else:
        points = ()
    for point in points:
        if point.number is not None:
            yield point, point.number
