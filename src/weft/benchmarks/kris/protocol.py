"""KRIS-Bench's protocol: one or several images and a request, and one image back.

A judge scores visual consistency, visual quality and whether the instruction was followed from 1 to 5, and in three
dimensions whether the result agrees with knowledge of the world. All scores count alike (arXiv 2505.16707).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.benchmarks.base import Assessment, JudgedTurn
from weft.benchmarks.edits.protocol import JudgedEdits
from weft.benchmarks.kris import data, official, rubric, tables
from weft.benchmarks.kris.outputs import KrisOutputs
from weft.benchmarks.preparation import Preparation
from weft.benchmarks.presentation import Presentation
from weft.types import LoadedDataset, Question, Score, Turn
from weft.untrusted import dict_or_empty

if TYPE_CHECKING:
    from weft.benchmarks.base import Benchmark
    from weft.benchmarks.prompts import Rubrics


class KrisPresentation(Presentation, frozen=True):
    def describe_gold(self, gold: Any) -> list[str]:
        explanation = dict_or_empty(gold).get("explanation")
        return [f"what the result must show: {explanation}"] if explanation else []


class KrisPreparation(Preparation, frozen=True):
    def describe_data(self, dataset: LoadedDataset) -> list[str]:
        counts = Counter(sample.groups["dimension"] for sample in dataset.samples)
        return [", ".join(f"{dimension} {counts[dimension]}" for dimension in data.DIMENSIONS if counts[dimension])]

    def rubrics(self, benchmark: "Benchmark", prompts: str) -> "Rubrics":
        if prompts.startswith("official:"):
            return official.read_official_rubrics(Path(prompts.removeprefix("official:")))
        return super().rubrics(benchmark, prompts)


class Kris(JudgedEdits):
    name = "kris"
    version = "1"
    metrics = rubric.METRICS
    axes = ("dimension", "category")
    official = official.OFFICIAL
    presentation = KrisPresentation(
        title="KRIS-Bench",
        axis_names={"dimension": tuple(data.DIMENSIONS)},
        max_score=100.0,
        digits=2,
        glossary={
            "VC": "Visual consistency: what the request leaves alone is as it was",
            "VQ": "Visual quality: the image is whole and natural",
            "IF": "Instruction following: what was asked for is done",
            "KP": "Knowledge plausibility: the result agrees with knowledge of the world",
            "Overall": "Mean over all single scores",
            "Factual": "Attribute, Spatial and Temporal",
            "Conceptual": "Social and Natural",
            "Procedural": "Logical and Decomposition",
            "consistency": "VC: what the request leaves alone is as it was",
            "quality": "VQ: the image is whole and natural",
            "instruction": "IF: what was asked for is done",
            "knowledge": "KP: the result agrees with knowledge of the world",
        },
    )
    preparation = KrisPreparation(outputs=KrisOutputs)

    load = staticmethod(data.load)  # pyright: ignore[reportAssignmentType]
    tables = staticmethod(tables.tables)  # pyright: ignore[reportAssignmentType]

    def metrics_for(self, turn: Turn) -> tuple[str, ...]:
        return rubric.list_metrics(turn)

    def questions(self, judged_turn: JudgedTurn) -> Iterable[Assessment]:
        return rubric.build_questions(judged_turn)

    def to_scores(self, question: Question, parsed: dict[str, Any]) -> Sequence[Score]:
        if not question.text_only:
            return super().to_scores(question, parsed)
        reasons = [str(parsed[name]) for name in rubric.REASONS if parsed.get(name)]
        scores = {metric: float(parsed[f"{metric}_score"]) for metric in question.metrics}
        return [Score(metric, (score - 1) / 4, "\n".join(reasons), score) for metric, score in scores.items()]
