"""WeaverBench's protocol: one request, one document back, words and pictures in any order; no history, no system prompt.

A judge gives eight scores from 0 to 10 in one call. Pictures are counted; where separate ones were asked for, the judge is asked besides
whether any of them is a collage. What follows from the count is in `rules.py`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from weft.benchmarks.base import Answered, Benchmark, Groups, Item, Terms, unscored, zeroed
from weft.benchmarks.documents import MOST, Most, pictures_in, sheets_of
from weft.benchmarks.interleaved_outputs import Outputs
from weft.benchmarks.preparation import Preparation
from weft.benchmarks.presentation import Presentation
from weft.benchmarks.weaverbench import data, rubric, tables
from weft.benchmarks.weaverbench.data import Goal
from weft.benchmarks.weaverbench.facts import DocumentFacts
from weft.benchmarks.weaverbench.official import OFFICIAL
from weft.benchmarks.weaverbench.rules import ruled
from weft.benchmarks.weaverbench.template import write_template
from weft.store.blobs import Blobs
from weft.types import Dialogue, Mark, Message, Question, ReadDataset, Reply, Sample, Turn, Verdict
from weft.untrusted import fields


class WeaverOptions(Struct, frozen=True):
    judge_pictures: Most = MOST


class WeaverPresentation(Presentation, frozen=True):
    def canonical_group(self, axis: str, name: str) -> str:
        return data.canonical(axis, name)

    def describe_gold(self, gold: Any) -> list[str]:
        facts: Mapping[str, Any] = fields(gold)
        required = facts.get("required")
        return [f"pictures: {Goal(required if isinstance(required, int) else None, '').due}"]


class WeaverPreparation(Preparation, frozen=True):
    def describe_data(self, dataset: ReadDataset) -> list[str]:
        goals: list[Goal] = [sample.turns[0].gold for sample in dataset.samples]
        pictures = sum(sample.groups["input"] == data.PICTURES for sample in dataset.samples)
        counted = sum(bool(goal.required) for goal in goals)
        categories = len({goal.category for goal in goals})
        return [f"{len(goals)} prompts of {categories} categories, {pictures} with pictures; {counted} say how many pictures they want"]


class WeaverBench(Benchmark):
    name = "weaverbench"
    version = "1"
    metrics = (*rubric.SCORES, rubric.COUNT, rubric.SEPARATE)
    Options = WeaverOptions
    axes = ("category", "input", "length", "count")
    official = OFFICIAL
    presentation = WeaverPresentation(
        title="WeaverBench",
        axis_names={"input": (data.WORDS, data.PICTURES), "length": data.LENGTHS, "count": (data.EXACT, data.FREE, data.NONE)},
        max_score=10.0,
        digits=2,
    )
    preparation = WeaverPreparation(template=write_template, outputs=Outputs)

    load = staticmethod(data.load)  # pyright: ignore[reportAssignmentType]
    tables = staticmethod(tables.tables)  # pyright: ignore[reportAssignmentType]

    def build_messages(self, sample: Sample, turn: Turn, dialogue: Dialogue, options: WeaverOptions) -> tuple[Message, ...]:
        return (Message("user", turn.ask),)

    def metrics_for(self, turn: Turn) -> tuple[str, ...]:
        goal: Goal = turn.gold
        scored = [metric for metric in rubric.SCORES if rubric.is_due(metric, goal)]
        return (*scored, rubric.COUNT, *((rubric.SEPARATE,) if goal.several else ()))

    def _facts(self, turn: Turn, reply: Reply) -> DocumentFacts:
        goal: Goal = turn.gold
        return DocumentFacts(len(reply.images), goal.required)

    def questions(self, answered: Answered) -> Iterable[Item]:
        goal: Goal = answered.turn.gold
        made = len(answered.reply.images)
        why = f"{made} picture{'s' * (made != 1)}, {goal.due} due"
        items: list[Item] = [
            answered.verdict(rubric.COUNT, float(goal.is_met(made)), why, detail=self._facts(answered.turn, answered.reply))
        ]
        metrics = tuple(metric for metric in self.metrics_for(answered.turn) if metric in rubric.SCORES)
        most = answered.options.judge_pictures
        if pictures_in(rubric.sections_of(answered)) > most:
            items.append(answered.check(metrics, lambda blobs: [_on_sheets(answered, metrics, most, blobs)]))
        else:
            items.append(rubric.about(answered, metrics))
        if goal.several:
            none = answered.verdict(rubric.SEPARATE, 0.0, "there is no picture")
            items += rubric.about_collages(answered, most) if made else [none]
        return items

    def on_no_answer(self, answered: Answered) -> Iterable[Item]:
        return zeroed(answered, self.metrics_for(answered.turn), self._facts(answered.turn, answered.reply))

    def on_failed(self, answered: Answered) -> Iterable[Item]:
        return unscored(answered, self.metrics_for(answered.turn), self._facts(answered.turn, answered.reply))

    def to_scores(self, question: Question, found: dict[str, Any]) -> Sequence[Mark]:
        return [rubric.separate(question, found)] if question.metrics == (rubric.SEPARATE,) else rubric.scores(question, found)

    def merge_variants(self, verdicts: Sequence[Verdict]) -> list[Verdict]:
        return ruled(verdicts)

    def headline(self, verdicts: Sequence[Verdict], groups: Groups) -> Terms:
        """Overall: the mean of the five dimensions."""
        return tables.overall(verdicts, whole=False)


def _on_sheets(answered: Answered, metrics: Sequence[str], most: int, blobs: Blobs) -> Question:
    return rubric.about(answered, metrics, sheets_of(rubric.sections_of(answered), most, blobs))
