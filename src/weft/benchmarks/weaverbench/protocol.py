"""WeaverBench's protocol: one request, one document back, words and pictures in any order; no history, no system
prompt.

A judge gives eight scores from 0 to 10 in one call. Pictures are counted; where separate ones were asked for, the judge
is asked besides whether any of them is a collage. What follows from the count is in `rules.py`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from weft.benchmarks.base import (
    Assessment,
    Benchmark,
    JudgedTurn,
    SampleGroups,
    WeightedMeans,
    leave_unscored,
    score_zero,
)
from weft.benchmarks.documents import MAX_IMAGES, MaxImages, build_sheets, count_images
from weft.benchmarks.interleaved_outputs import InterleavedOutputs
from weft.benchmarks.preparation import Preparation
from weft.benchmarks.presentation import Presentation
from weft.benchmarks.weaverbench import data, rubric, tables
from weft.benchmarks.weaverbench.data import WeaverBenchGold
from weft.benchmarks.weaverbench.facts import DocumentFacts
from weft.benchmarks.weaverbench.official import OFFICIAL
from weft.benchmarks.weaverbench.rules import apply_rules
from weft.benchmarks.weaverbench.template import write_template
from weft.store.blobs import Blobs
from weft.types import Dialogue, LoadedDataset, Message, Question, Reply, Sample, Score, Turn, Verdict
from weft.untrusted import dict_or_empty


class WeaverBenchOptions(Struct, frozen=True):
    judge_images: MaxImages = MAX_IMAGES


class WeaverBenchPresentation(Presentation, frozen=True):
    def canonical_group(self, axis: str, name: str) -> str:
        return data.canonical_group(axis, name)

    def describe_gold(self, gold: Any) -> list[str]:
        facts: Mapping[str, Any] = dict_or_empty(gold)
        required = facts.get("required")
        return [f"pictures: {WeaverBenchGold(required if isinstance(required, int) else None, '').expected_count}"]


class WeaverBenchPreparation(Preparation, frozen=True):
    def describe_data(self, dataset: LoadedDataset) -> list[str]:
        goals: list[WeaverBenchGold] = [sample.turns[0].gold for sample in dataset.samples]
        pictures = sum(sample.groups["input"] == data.IMAGE_INPUT for sample in dataset.samples)
        counted = sum(bool(goal.required) for goal in goals)
        categories = len({goal.category for goal in goals})
        return [
            f"{len(goals)} prompts of {categories} categories, {pictures} with pictures; {counted} say how many pictures they want"
        ]


class WeaverBench(Benchmark):
    name = "weaverbench"
    version = "1"
    metrics = (*rubric.SCORES, rubric.COUNT, rubric.SEPARATE)
    Options = WeaverBenchOptions
    axes = ("category", "input", "length", "count")
    official = OFFICIAL
    presentation = WeaverBenchPresentation(
        title="WeaverBench",
        axis_names={
            "input": (data.TEXT_INPUT, data.IMAGE_INPUT),
            "length": data.LENGTHS,
            "count": (data.EXACT, data.FREE, data.NONE),
        },
        max_score=10.0,
        digits=2,
    )
    preparation = WeaverBenchPreparation(template=write_template, outputs=InterleavedOutputs)

    load = staticmethod(data.load)  # pyright: ignore[reportAssignmentType]
    tables = staticmethod(tables.tables)  # pyright: ignore[reportAssignmentType]

    def build_messages(
        self, sample: Sample, turn: Turn, dialogue: Dialogue, options: WeaverBenchOptions
    ) -> tuple[Message, ...]:
        return (Message("user", turn.prompt),)

    def metrics_for(self, turn: Turn) -> tuple[str, ...]:
        goal: WeaverBenchGold = turn.gold
        scored = [metric for metric in rubric.SCORES if rubric.is_expected(metric, goal)]
        return (*scored, rubric.COUNT, *((rubric.SEPARATE,) if goal.wants_several_images else ()))

    def _facts(self, turn: Turn, reply: Reply) -> DocumentFacts:
        goal: WeaverBenchGold = turn.gold
        return DocumentFacts(len(reply.images), goal.required)

    def questions(self, answered: JudgedTurn) -> Iterable[Assessment]:
        goal: WeaverBenchGold = answered.turn.gold
        made = len(answered.reply.images)
        why = f"{made} picture{'s' * (made != 1)}, {goal.expected_count} due"
        items: list[Assessment] = [
            answered.verdict(
                rubric.COUNT, float(goal.is_met(made)), why, detail=self._facts(answered.turn, answered.reply)
            )
        ]
        metrics = tuple(metric for metric in self.metrics_for(answered.turn) if metric in rubric.SCORES)
        most = answered.options.judge_images
        if count_images(rubric.build_sections(answered)) > most:
            items.append(answered.check(metrics, lambda blobs: [_on_sheets(answered, metrics, most, blobs)]))
        else:
            items.append(rubric.build_question(answered, metrics))
        if goal.wants_several_images:
            none = answered.verdict(rubric.SEPARATE, 0.0, "there is no picture")
            items += rubric.build_collage_questions(answered, most) if made else [none]
        return items

    def on_no_answer(self, answered: JudgedTurn) -> Iterable[Assessment]:
        return score_zero(answered, self.metrics_for(answered.turn), self._facts(answered.turn, answered.reply))

    def on_failed(self, answered: JudgedTurn) -> Iterable[Assessment]:
        return leave_unscored(answered, self.metrics_for(answered.turn), self._facts(answered.turn, answered.reply))

    def to_scores(self, question: Question, found: dict[str, Any]) -> Sequence[Score]:
        if question.metrics == (rubric.SEPARATE,):
            return [rubric.build_separate_score(question, found)]
        return rubric.build_scores(question, found)

    def merge_variants(self, verdicts: Sequence[Verdict]) -> list[Verdict]:
        return apply_rules(verdicts)

    def headline(self, verdicts: Sequence[Verdict], groups: SampleGroups) -> WeightedMeans:
        """Overall: the mean of the five dimensions."""
        return tables.overall_terms(verdicts, whole=False)


def _on_sheets(answered: JudgedTurn, metrics: Sequence[str], most: int, blobs: Blobs) -> Question:
    return rubric.build_question(answered, metrics, build_sheets(rubric.build_sections(answered), most, blobs))
