"""WeaverBench's protocol: one request, one document back, text and images in any order; no history, no system prompt.

A judge gives eight scores from 0 to 10 in one call. Images are counted. If a document may have several images, the
judge is also asked whether any of them is a collage. `rules.py` has the consequences of the count.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
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
from weft.benchmarks.prompts import Rubrics, build_rubrics
from weft.benchmarks.weaverbench import data, rubric, tables
from weft.benchmarks.weaverbench.data import WeaverBenchGold
from weft.benchmarks.weaverbench.facts import DocumentFacts
from weft.benchmarks.weaverbench.official import OFFICIAL
from weft.benchmarks.weaverbench.plans import assess_plan, is_plan
from weft.benchmarks.weaverbench.rules import apply_rules
from weft.benchmarks.weaverbench.statistics import WEAVERBENCH_STATISTICS
from weft.benchmarks.weaverbench.template import write_template
from weft.errors import UserError
from weft.types import Dialogue, LoadedDataset, Message, Question, Sample, Score, Turn, Verdict
from weft.untrusted import dict_or_empty, read_text_file


class WeaverBenchOptions(Struct, frozen=True):
    judge_images: MaxImages = MAX_IMAGES


class WeaverBenchPresentation(Presentation, frozen=True):
    def canonical_group(self, axis: str, name: str) -> str:
        return data.canonical_group(axis, name)

    def describe_gold(self, gold: Any) -> list[str]:
        required = dict_or_empty(gold).get("required")
        if not isinstance(required, int):
            required = None
        return [f"images: {WeaverBenchGold(required, '').expected_count}"]


class WeaverBenchPreparation(Preparation, frozen=True):
    def rubrics(self, benchmark: Benchmark, prompts: str) -> Rubrics:
        """Read the judge's prompts; `official:FILE` is a text file with the prompt that the supplement prints."""
        if not prompts.startswith("official:"):
            return super().rubrics(benchmark, prompts)
        file = Path(prompts.removeprefix("official:"))
        if not file.is_file():
            raise UserError(f"--prompts {prompts}: no prompts are released; give a text file with the printed one")
        own = super().rubrics(benchmark, "weft").texts
        collages = {name: text for name, text in own.items() if name.startswith("collage")}
        return build_rubrics({**collages, "system": read_text_file(file)}, f"official {file.name}")

    def describe_data(self, dataset: LoadedDataset) -> list[str]:
        categories: set[str] = set()
        with_images = 0
        counted = 0
        for sample in dataset.samples:
            gold: WeaverBenchGold = sample.turns[0].gold
            categories.add(gold.category)
            with_images += sample.groups["input"] == data.IMAGE_INPUT
            counted += bool(gold.required)
        return [
            f"{len(dataset.samples)} prompts of {len(categories)} categories, {with_images} with images; "
            f"{counted} say how many images they want"
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
        glossary={
            "PA": "Prompt Adherence: the document does what was requested",
            "NC": "Narrative Coordination: text and images alternate so that a reader can follow",
            "CC": "Content Consistency: images and text agree with each other and with the request",
            "IC": "Image Consistency: subjects and style stay the same across images",
            "CP": "Completeness: nothing that the document needs is missing",
            "Overall": "Mean of the five dimensions",
            "Acc": "Accuracy of the image count: documents with exactly as many images as requested, in percent",
            "prompt_adherence": "PA: the document does what was requested",
            "narrative_coordination": "NC: text and images alternate so that a reader can follow",
            "intra_output": "CC: each image shows what the text around it says",
            "input_to_image": "CC: the images keep to what the request says about them",
            "input_to_text": "CC: the text keeps to the request",
            "entity": "IC: subjects stay the same across images",
            "style": "IC: the images share one style",
            "completeness": "CP: nothing that the document needs is missing",
            "count": "Acc: the document has as many images as requested",
            "separate": "Acc: each image is one image, not a collage",
        },
    )
    preparation = WeaverBenchPreparation(
        template=write_template, outputs=InterleavedOutputs, statistics=WEAVERBENCH_STATISTICS
    )

    load = staticmethod(data.load)  # pyright: ignore[reportAssignmentType]
    tables = staticmethod(tables.tables)  # pyright: ignore[reportAssignmentType]

    def build_messages(
        self, sample: Sample, turn: Turn, dialogue: Dialogue, options: WeaverBenchOptions
    ) -> tuple[Message, ...]:
        return (Message("user", turn.prompt),)

    def metrics_for(self, turn: Turn) -> tuple[str, ...]:
        gold: WeaverBenchGold = turn.gold
        metrics = (*rubric.list_expected_scores(gold), rubric.COUNT)
        if gold.allows_several_images:
            return (*metrics, rubric.SEPARATE)
        return metrics

    def questions(self, judged_turn: JudgedTurn) -> Iterable[Assessment]:
        if is_plan(judged_turn.reply):
            return assess_plan(judged_turn, self.metrics_for(judged_turn.turn))
        gold: WeaverBenchGold = judged_turn.turn.gold
        images = len(judged_turn.reply.images)
        max_images: int = judged_turn.options.judge_images
        reason = f"{images} image{'s' * (images != 1)}, {gold.expected_count} expected"
        count = judged_turn.verdict(rubric.COUNT, float(gold.is_met(images)), reason, detail=_build_facts(judged_turn))
        assessments: list[Assessment] = [count]
        metrics = rubric.list_expected_scores(gold)
        sections = rubric.build_sections(judged_turn)
        if count_images(sections) > max_images:
            question = judged_turn.check(
                metrics,
                lambda blobs: [rubric.build_question(judged_turn, metrics, build_sheets(sections, max_images, blobs))],
            )
            assessments.append(question)
        else:
            assessments.append(rubric.build_question(judged_turn, metrics))
        if gold.allows_several_images and images:
            assessments += rubric.build_collage_questions(judged_turn, max_images)
        elif gold.allows_several_images:
            assessments.append(judged_turn.verdict(rubric.SEPARATE, 0.0, "there is no image"))
        return assessments

    def on_no_answer(self, judged_turn: JudgedTurn) -> Iterable[Assessment]:
        if is_plan(judged_turn.reply):
            return assess_plan(judged_turn, self.metrics_for(judged_turn.turn))
        return score_zero(judged_turn, self.metrics_for(judged_turn.turn), _build_facts(judged_turn))

    def on_failed(self, judged_turn: JudgedTurn) -> Iterable[Assessment]:
        return leave_unscored(judged_turn, self.metrics_for(judged_turn.turn), _build_facts(judged_turn))

    def to_scores(self, question: Question, parsed: dict[str, Any]) -> Sequence[Score]:
        if question.metrics == (rubric.SEPARATE,):
            return [rubric.build_separate_score(question, parsed)]
        return rubric.build_scores(question, parsed)

    def merge_variants(self, verdicts: Sequence[Verdict]) -> list[Verdict]:
        return apply_rules(verdicts)

    def headline(self, verdicts: Sequence[Verdict], groups: SampleGroups) -> WeightedMeans:
        """Overall: the mean of the five dimensions, of one document alone that of those which it is judged by."""
        is_one_document = len({verdict.sample for verdict in verdicts}) == 1
        return tables.overall_terms(verdicts, whole=not is_one_document)


def _build_facts(judged_turn: JudgedTurn) -> DocumentFacts:
    gold: WeaverBenchGold = judged_turn.turn.gold
    return DocumentFacts(len(judged_turn.reply.images), gold.required)
