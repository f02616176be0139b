"""OpenING's protocol: one request, and an answer in steps, each a text and an image.

The model is told how many steps the reference has, as in the authors' own generation. One call to a judge gives seven
scores from 0 to 10.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from weft.benchmarks.base import Assessment, Benchmark, JudgedTurn, SampleGroups, WeightedMeans
from weft.benchmarks.documents import MAX_IMAGES, MaxImages, build_sheets, count_images
from weft.benchmarks.interleaved_outputs import InterleavedOutputs
from weft.benchmarks.opening import data, official_questions, rubric, tables
from weft.benchmarks.opening.data import OpeningGold
from weft.benchmarks.opening.official import OFFICIAL
from weft.benchmarks.opening.statistics import OPENING_STATISTICS
from weft.benchmarks.preparation import Preparation
from weft.benchmarks.presentation import Presentation
from weft.benchmarks.prompts import Rubrics
from weft.types import Dialogue, LoadedDataset, Message, Part, Sample, Text, Turn, Verdict
from weft.untrusted import dict_or_empty

Hint = Annotated[Literal["yes", "no"], Meta(description="Whether the model is told how many steps the reference has.")]
HINT = "Answer in {steps} step{s}, each a short text with one picture.\n\n"  # part of the model's messages


class OpeningOptions(Struct, frozen=True):
    hint: Hint = "yes"
    judge_images: MaxImages = MAX_IMAGES


class OpeningPresentation(Presentation, frozen=True):
    def describe_gold(self, gold: Any) -> list[str]:
        return [f"steps of the reference: {dict_or_empty(gold).get('steps')}"]


class OpeningPreparation(Preparation, frozen=True):
    def describe_data(self, dataset: LoadedDataset) -> list[str]:
        steps = [sample.turns[0].gold.steps for sample in dataset.samples]
        subtasks = {sample.groups["subtask"] for sample in dataset.samples}
        return [f"{len(steps)} items of {len(subtasks)} subtasks; references have up to {max(steps, default=0)} steps"]

    def rubrics(self, benchmark: Benchmark, prompts: str) -> Rubrics:
        if prompts.startswith("official:"):
            return official_questions.read_official_rubrics(Path(prompts.removeprefix("official:")), "criteria")
        return super().rubrics(benchmark, prompts)


class Opening(Benchmark):
    name = "opening"
    version = "1"
    metrics = rubric.CRITERIA
    Options = OpeningOptions
    axes = ("subtask", "task")
    official = OFFICIAL
    presentation = OpeningPresentation(
        title="OpenING",
        max_score=10.0,
        digits=2,
        glossary={
            "Completeness": "No step, image or answer is missing",
            "Content Quality": "Images are well made and sharp, texts are clear and without mistakes",
            "Content Richness": "Detail and variety, where they serve the request",
            "Correctness": "What is said and shown is true, and is what was requested",
            "Human Preference Alignment": "What people like to look at and read; nothing offensive or harmful",
            "Image-Text Coherency": "Images show what the text beside them says",
            "Multi-step Consistency": "Subjects and style stay the same, and the steps follow from one another",
            "Overall": "Mean of the seven criteria",
        },
    )
    preparation = OpeningPreparation(outputs=InterleavedOutputs, statistics=OPENING_STATISTICS)

    load = staticmethod(data.load)  # pyright: ignore[reportAssignmentType]
    tables = staticmethod(tables.tables)  # pyright: ignore[reportAssignmentType]

    def build_messages(
        self, sample: Sample, turn: Turn, dialogue: Dialogue, options: OpeningOptions
    ) -> tuple[Message, ...]:
        if options.hint == "no":
            return (Message("user", turn.prompt),)
        gold: OpeningGold = turn.gold
        hint = Text(HINT.format(steps=gold.steps, s="s" * (gold.steps != 1)))
        return (Message("user", (hint, *turn.prompt)),)

    def questions(self, judged_turn: JudgedTurn) -> Iterable[Assessment]:
        return build_questions(judged_turn, judged_turn.reply.output, judged_turn.options.judge_images)

    def headline(self, verdicts: Sequence[Verdict], groups: SampleGroups) -> WeightedMeans:
        """The mean of the seven criteria."""
        terms: list[tuple[float, Sequence[Verdict]]] = []
        for metric in rubric.CRITERIA:
            own_verdicts = [verdict for verdict in verdicts if verdict.metric == metric]
            terms.append((1 / len(rubric.CRITERIA), own_verdicts))
        return terms


def build_questions(judged_turn: JudgedTurn, output: Sequence[Part], max_images: int) -> list[Assessment]:
    """Return the one question about an answer, with images on sheets if there are more than `max_images`."""
    if judged_turn.rubrics.official_prompts:
        return [
            judged_turn.check(
                rubric.CRITERIA, lambda blobs: [rubric.build_released_question(judged_turn, output, blobs)]
            )
        ]
    sections = rubric.build_sections(judged_turn.turn.prompt, output)
    if count_images(sections) <= max_images:
        return [rubric.build_question(judged_turn, output)]
    return [
        judged_turn.check(
            rubric.CRITERIA,
            lambda blobs: [rubric.build_question(judged_turn, output, build_sheets(sections, max_images, blobs))],
        )
    ]
