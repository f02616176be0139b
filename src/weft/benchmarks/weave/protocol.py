"""WEAVEBench's protocol: what a model is shown (`history.py`), and what its replies are judged on.

A refusal or a missing output scores zero on every metric of its turn, without a judge call. So do key points and consistency of a
picture whose reference is an own earlier picture that the model did not make. Where something of ours is missing, nothing is scored.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from weft.benchmarks.base import Answered, Benchmark, Groups, Item, Terms
from weft.benchmarks.weave import data, history, rubric, tables
from weft.benchmarks.weave.data import KeyPoint
from weft.benchmarks.weave.options import WeaveOptions
from weft.errors import UserError
from weft.numbering import maker_of
from weft.types import Image, Text, Turn, Verdict


class Weave(Benchmark):
    name = "weave"
    version = "1"
    title = "WEAVEBench"
    metrics = rubric.IMAGE_METRICS + rubric.TEXT_METRICS
    Options = WeaveOptions
    axes = ("class", "domain")
    official_file, official_prompts = rubric.OFFICIAL_FILE, rubric.OFFICIAL_PROMPTS
    published_judge = "gpt-4o"

    load = staticmethod(data.load)  # pyright: ignore[reportAssignmentType]
    see = staticmethod(history.see)  # pyright: ignore[reportAssignmentType]
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

    def due(self, turn: Turn) -> tuple[str, ...]:
        return rubric.TEXT_METRICS if turn.want == "text" else rubric.IMAGE_METRICS

    def questions(self, answered: Answered) -> Iterable[Item]:
        if answered.turn.want == "text":
            reference = "".join(part.text for part in answered.turn.truth if isinstance(part, Text))
            return [rubric.about_answer(answered, reference)]
        return [self._about_picture(metric, answered) for metric in rubric.IMAGE_METRICS]

    def _about_picture(self, metric: str, answered: Answered) -> Item:
        points: tuple[KeyPoint, ...] = answered.turn.gold
        references: list[Image] = []
        for point in points if metric != "image_quality" else ():
            if point.number is None:
                continue
            maker = maker_of(answered.sample, point.number) if point.source == "Image" else None
            found = answered.sample.pictures[point.number - 1] if maker is None else answered.picture_of(maker.number)
            if found is None and maker is not None:
                what = f'its reference "Image #{point.number}" is the picture of turn {maker.number}'
                if answered.is_lost(maker.number):
                    return answered.verdict(metric, None, f"{what}, which is missing through no fault of the model")
                return answered.verdict(metric, 0.0, f"{what}, which the model did not make", by="failure")
            references += [found] if found is not None else []
        return rubric.about_picture(metric, answered, points, references)

    def headline(self, verdicts: Sequence[Verdict], groups: Groups) -> Terms:
        """The paper's Avg as weighted means."""
        parts = {short: [verdict for verdict in verdicts if verdict.metric == metric] for metric, short in tables.SHORT.items()}
        return [(weight, parts[name]) for name, weight in tables.weights([name for name, some in parts.items() if some]).items()]

    def shown(self, gold: Any) -> list[str]:
        return [str(point["text"]) for point in gold or ()]
