"""WEAVEBench's protocol: what a model is shown (`history.py`), and what its replies are judged on.

A refusal or a missing output scores zero on every metric of its turn, without a judge call. So do key points and
consistency of an image whose reference is an earlier image that the model did not make. If something is missing
through no fault of the model, nothing is scored. The released scripts have missing outputs judged all the same: under
`official` the judge is asked about them as the scripts ask, for the official row alone (the variant `official`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from weft.benchmarks.base import Assessment, Benchmark, JudgedTurn, SampleGroups, WeightedMeans
from weft.benchmarks.official import OFFICIAL_VARIANT, find_released_image
from weft.benchmarks.paired_verdicts import PairedVerdicts
from weft.benchmarks.preparation import Preparation
from weft.benchmarks.presentation import Presentation
from weft.benchmarks.weave import agreement, data, history, history_official, rubric, tables
from weft.benchmarks.weave.data import KeyPoint
from weft.benchmarks.weave.official import OFFICIAL
from weft.benchmarks.weave.outputs import WeaveOutputs
from weft.benchmarks.weave.statistics import WEAVEBENCH_STATISTICS
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
OfficialInputs = Annotated[
    bool,
    Meta(
        description="Build inputs as the released scripts do, defects included; what is missing is judged, for the "
        "official row."
    ),
]
Loop = Annotated[
    Literal["bagel", "gpt"],
    Meta(
        description="Which released loop official follows: bagel (image and text turns) or gpt (text turns, as a chat)."
    ),
]


class WeaveOptions(Struct, frozen=True):
    """What a user may choose for WEAVEBench."""

    history: History = "partial"
    placement: Placement = "all-first"
    past: Past = "own"
    turns: Turns = "all"
    official: OfficialInputs = False
    loop: Loop = "bagel"

    def includes(self, turn: Turn) -> bool:
        """Whether the run asks this turn of the model; turns that it does not ask are filled in from the dataset."""
        return self.turns == "all" or (self.turns == "text") == (turn.modality == "text")


class WeavePresentation(Presentation, frozen=True):
    """How WEAVEBench's results are shown."""

    def describe_options(self, options: WeaveOptions) -> list[str]:
        descriptions = ["no history" if options.history == "none" else options.history]
        if options.placement == "inline":
            descriptions.append("inline images")
        if options.official:
            descriptions.append(f"official inputs ({options.loop})")
        elif options.past == "reference":
            descriptions.append("reference history")
        if options.turns != "all":
            descriptions.append(f"{options.turns} turns")
        return descriptions

    def describe_outputs(self, options: WeaveOptions) -> list[str]:
        descriptions: list[str] = []
        if options.official:
            descriptions.append("official")
        if options.turns != "all":
            descriptions.append(f"{options.turns} turns")
        return descriptions

    def agreement_tables(self, paired: PairedVerdicts) -> Iterable[Table]:
        return agreement.tables(paired)

    def describe_gold(self, gold: Any) -> list[str]:
        return [str(point["text"]) for point in gold or ()]


class Weave(Benchmark):
    """WEAVEBench."""

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
    preparation = Preparation(outputs=WeaveOutputs, statistics=WEAVEBENCH_STATISTICS)

    load = staticmethod(data.load)  # pyright: ignore[reportAssignmentType]
    tables = staticmethod(tables.tables)  # pyright: ignore[reportAssignmentType]

    def parse_options(self, values: Mapping[str, Any]) -> WeaveOptions:
        """Build the options. A run of text turns defaults to a reference history and, under `official`, to the chat."""
        defaults: dict[str, Any] = {}
        if values.get("turns") == "text":
            defaults["past"] = "reference"
            if values.get("official"):
                defaults["loop"] = "gpt"
        chosen = {name: value for name, value in values.items() if value is not None}
        options: WeaveOptions = super().parse_options({**defaults, **chosen})
        if options.official and options.past == "reference" and options.turns != "text":
            raise UserError(
                "official inputs have no reference history: the released scripts show the model its own images; "
                "leave out past or official"
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
            return history_official.build_messages(sample, turn, dialogue, options)
        return history.build_messages(sample, turn, dialogue, options)

    def depends_on(self, sample: Sample, turn: Turn, options: WeaveOptions) -> set[int]:
        if options.official:
            return history_official.depends_on(sample, turn, options)
        return history.depends_on(sample, turn, options)

    def metrics_for(self, turn: Turn) -> tuple[str, ...]:
        if turn.modality == "text":
            return rubric.TEXT_METRICS
        return rubric.IMAGE_METRICS

    def questions(self, judged_turn: JudgedTurn) -> Iterable[Assessment]:
        if judged_turn.turn.modality == "text":
            yield rubric.build_answer_question(judged_turn, judged_turn.reply.raw_text)
            return
        for metric in rubric.IMAGE_METRICS:
            yield from self._assess_image(metric, judged_turn)

    def on_no_answer(self, judged_turn: JudgedTurn) -> Iterable[Assessment]:
        """Yield zeros, and under `official` what the scripts ask about a missing output."""
        yield from super().on_no_answer(judged_turn)
        if judged_turn.options.official:
            yield from self._ask_about_missing_output(judged_turn)

    def on_failed(self, judged_turn: JudgedTurn) -> Iterable[Assessment]:
        """Yield unscored verdicts. To the scripts an output that they cannot open is a missing one."""
        yield from super().on_failed(judged_turn)
        if judged_turn.options.official and judged_turn.is_precomputed:
            yield from self._ask_about_missing_output(judged_turn)

    def _ask_about_missing_output(self, judged_turn: JudgedTurn) -> Iterator[Question]:
        """Yield the scripts' questions: to them a refusal in words is an answer, and so is an empty text."""
        if judged_turn.turn.modality == "text":
            answer = "None"
            if any(isinstance(part, Text) for part in judged_turn.reply.parts):
                answer = judged_turn.reply.raw_text
            yield rubric.build_answer_question(judged_turn, answer, variant=OFFICIAL_VARIANT)
            return
        for metric in rubric.IMAGE_METRICS:
            images = self._released_images(metric, judged_turn)
            yield rubric.build_image_question(metric, judged_turn, images, variant=OFFICIAL_VARIANT)

    def _assess_image(self, metric: str, judged_turn: JudgedTurn) -> Iterator[Assessment]:
        """Yield our question or verdict, and under `official` the scripts' question if it shows other images."""
        strict = self._strict_images(metric, judged_turn)
        may_be_asked_again = False
        if isinstance(strict, Verdict):
            yield strict
            may_be_asked_again = strict.value is None and not judged_turn.is_precomputed
        else:
            yield rubric.build_image_question(metric, judged_turn, strict)
        if not judged_turn.options.official or may_be_asked_again:
            return
        released = self._released_images(metric, judged_turn)
        if released != strict:
            yield rubric.build_image_question(metric, judged_turn, released, variant=OFFICIAL_VARIANT)

    def _strict_images(self, metric: str, judged_turn: JudgedTurn) -> tuple[Image | None, ...] | Verdict:
        """Return the images of a question: the model's image, then one for each key point that shows an image.

        Return a verdict instead if an image of the model's own is missing.
        """
        images: list[Image] = [judged_turn.image]
        for point, number in _points_with_image(metric, judged_turn):
            maker = judged_turn.sample.turn_of_image(number)
            if maker is None or point.source != "Image":
                images.append(judged_turn.sample.images[number - 1])
                continue
            image = judged_turn.image_of_turn(maker.number)
            if image is not None:
                images.append(image)
                continue
            reason = f'its reference "Image #{number}" is the image of turn {maker.number + 1}'
            if judged_turn.is_unavailable(maker.number):
                return judged_turn.verdict(metric, None, f"{reason}, which is missing through no fault of the model")
            return judged_turn.verdict(metric, 0.0, f"{reason}, which the model did not make", by="failure")
        return tuple(images)

    def _released_images(self, metric: str, judged_turn: JudgedTurn) -> tuple[Image | None, ...]:
        """Return the same images as the scripts find them. None is a missing image, left out of the prompt."""
        images: list[Image | None] = [find_released_image(judged_turn.reply)]
        for point, number in _points_with_image(metric, judged_turn):
            if point.source != "Image":
                images.append(judged_turn.sample.images[number - 1])
                continue
            maker = judged_turn.sample.turn_of_image(number)
            if maker is None:
                images.append(None)
            else:
                images.append(find_released_image(judged_turn.dialogue.get(maker.number)))
        return tuple(images)

    def headline(self, verdicts: Sequence[Verdict], groups: SampleGroups) -> WeightedMeans:
        """Return the paper's Avg as weighted means."""
        by_column: dict[str, list[Verdict]] = {}
        for verdict in verdicts:
            if verdict.metric in tables.SHORT_NAMES:
                by_column.setdefault(tables.SHORT_NAMES[verdict.metric], []).append(verdict)
        return [(weight, by_column[column]) for column, weight in tables.average_weights(by_column).items()]


def _points_with_image(metric: str, judged_turn: JudgedTurn) -> Iterator[tuple[KeyPoint, int]]:
    """Yield the key points that show an image, with its number. Image quality is judged without key points."""
    if metric == "image_quality":
        return
    points: tuple[KeyPoint, ...] = judged_turn.turn.gold
    for point in points:
        if point.number is not None:
            yield point, point.number
