"""WEAVEBench's protocol: what a model is shown (`history.py`), and what its replies are judged on.

A refusal or a missing output scores zero on every metric of its turn, without a judge call. So do key points and consistency of a
picture whose reference is an own earlier picture that the model did not make. Where something of ours is missing, nothing is scored.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from weft.benchmarks.base import Answered, Benchmark, Groups, Item, Terms
from weft.benchmarks.weave import data, history, history_official, rubric, tables
from weft.benchmarks.weave.data import KeyPoint
from weft.errors import UserError
from weft.types import Dialogue, Image, Message, Sample, Text, Turn, Verdict

History = Annotated[
    Literal["none", "partial", "full", "dialogue"],
    Meta(description="What of the dialogue a model sees; dialogue is everything, interleaved."),
]
Placement = Annotated[Literal["front", "first"], Meta(description="Where pictures stand in a dialogue: front, or first (mention).")]
Past = Annotated[Literal["own", "truth"], Meta(description="Earlier replies in the history: the model's own, or the true ones.")]
Turns = Annotated[Literal["all", "image", "text"], Meta(description="Which turns are asked; others are filled in from the dataset.")]
Official = Annotated[bool, Meta(description="Build inputs as the released scripts do, defects included.")]


class WeaveOptions(Struct, frozen=True):
    history: History = "partial"
    placement: Placement = "front"
    past: Past = "own"
    turns: Turns = "all"
    official: Official = False

    def asks(self, turn: Turn) -> bool:
        """Whether the run asks this turn of the model; turns that it does not ask are filled in from the dataset."""
        return self.turns == "all" or (self.turns == "text") == (turn.want == "text")


class Weave(Benchmark):
    name = "weave"
    version = "1"
    title = "WEAVEBench"
    metrics = rubric.IMAGE_METRICS + rubric.TEXT_METRICS
    Options = WeaveOptions
    axes = ("class", "domain")
    official_file, official_prompts = rubric.OFFICIAL_FILE, rubric.OFFICIAL_PROMPTS
    published_judge = tables.JUDGE

    load = staticmethod(data.load)  # pyright: ignore[reportAssignmentType]
    needs = staticmethod(history.needs)  # pyright: ignore[reportAssignmentType]
    tables = staticmethod(tables.tables)  # pyright: ignore[reportAssignmentType]

    def choose(self, given: Mapping[str, Any]) -> WeaveOptions:
        """A text-only run gets a true past unless told otherwise."""
        true_past = {"past": "truth"} if given.get("turns") == "text" and given.get("past") is None else {}
        options: WeaveOptions = super().choose({**given, **true_past})
        if options.official and options.past == "truth" and options.turns != "text":
            raise UserError(
                "official inputs have no true past: the released scripts show the model its own pictures; leave out past or official"
            )
        if options.official and options.history == "dialogue":
            raise UserError("history dialogue is weft's own; with official choose none, partial or full")
        return options

    def told(self, options: WeaveOptions) -> list[str]:
        return [
            options.history, *(["official inputs"] if options.official else []), *(["true past"] if options.past == "truth" else [])
        ]  # fmt: skip

    def asks(self, turn: Turn, options: WeaveOptions) -> bool:
        return options.asks(turn)

    def see(self, sample: Sample, turn: Turn, dialogue: Dialogue, options: WeaveOptions) -> tuple[Message, ...]:
        build = history_official.see if options.official else history.see
        return build(sample, turn, dialogue, options)

    def due(self, turn: Turn) -> tuple[str, ...]:
        return rubric.TEXT_METRICS if turn.want == "text" else rubric.IMAGE_METRICS

    def questions(self, answered: Answered) -> Iterable[Item]:
        if answered.turn.want == "text":
            reference = "".join(part.text for part in answered.turn.truth if isinstance(part, Text))
            return [rubric.about_answer(answered, reference)]
        made = answered.reply.picture
        assert made is not None, "an answered image turn has a picture"
        return [self._about_picture(metric, answered, made) for metric in rubric.IMAGE_METRICS]

    def _about_picture(self, metric: str, answered: Answered, made: Image) -> Item:
        points: tuple[KeyPoint, ...] = answered.turn.gold
        references: list[Image] = []
        for point in points if metric != "image_quality" else ():
            if point.number is None:
                continue
            maker = answered.sample.maker_of(point.number) if point.source == "Image" else None
            found = answered.sample.pictures[point.number - 1] if maker is None else answered.picture_of(maker.number)
            if found is None and maker is not None:
                what = f'its reference "Image #{point.number}" is the picture of turn {maker.number}'
                if answered.is_lost(maker.number):
                    return answered.verdict(metric, None, f"{what}, which is missing through no fault of the model")
                return answered.verdict(metric, 0.0, f"{what}, which the model did not make", by="failure")
            references += [found] if found is not None else []
        return rubric.about_picture(metric, answered, made, points, references)

    def headline(self, verdicts: Sequence[Verdict], groups: Groups) -> Terms:
        """The paper's Avg as weighted means."""
        parts = {short: [verdict for verdict in verdicts if verdict.metric == metric] for metric, short in tables.SHORT.items()}
        return [(weight, parts[name]) for name, weight in tables.weights([name for name, some in parts.items() if some]).items()]

    def shown(self, gold: Any) -> list[str]:
        return [str(point["text"]) for point in gold or ()]
