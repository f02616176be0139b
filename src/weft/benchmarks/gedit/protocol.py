"""GEdit-Bench's protocol: an image and a request in English or Chinese, and one image back.

A judge scores semantics (SC: was it done, was the rest left alone) and quality (PQ: is it natural, is it free of
damage), each from 0 to 10; of each pair the lower counts. Overall is the square root of their product, per edit
(VIEScore, arXiv 2312.14867; GEdit-Bench, arXiv 2504.17761).
"""

import math
import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from weft.benchmarks.base import Assessment, JudgedTurn, SampleGroups, WeightedMeans
from weft.benchmarks.edits.protocol import JudgedEdits, PartVerdicts
from weft.benchmarks.gedit import data, rubric, tables
from weft.benchmarks.gedit.data import GEditGold
from weft.benchmarks.gedit.official import MAX_SCORE, OFFICIAL, combine
from weft.benchmarks.gedit.outputs import GEditOutputs
from weft.benchmarks.preparation import Preparation
from weft.benchmarks.presentation import Presentation
from weft.types import LoadedDataset, Question, Score, Turn, Verdict

Subset = Annotated[
    Literal["full", "intersection"],
    Meta(description="All requests, or those alone that every method of the paper answered."),
]
BARE_PAIR = re.compile(r"\s*\[\s*(\d+(?:\.\d+)?)\s*,\s*(\d+(?:\.\d+)?)\s*\]\s*")


class GEditOptions(Struct, frozen=True):
    subset: Subset = "full"


class GEditPresentation(Presentation, frozen=True):
    def describe_outputs(self, options: GEditOptions) -> list[str]:
        return self.describe_options(options)

    def describe_gold(self, gold: Any) -> list[str]:
        return []


class GEditPreparation(Preparation, frozen=True):
    def describe_data(self, dataset: LoadedDataset) -> list[str]:
        counts: dict[str, int] = dict.fromkeys(data.LANGUAGES, 0)
        intersection = 0
        for sample in dataset.samples:
            gold: GEditGold = sample.turns[0].gold
            counts[sample.groups["language"]] += 1
            intersection += gold.is_in_intersection
        languages = ", ".join(f"{count} {language}" for language, count in counts.items())
        return [f"{len(dataset.samples)} edits ({languages}), {intersection} in the intersection"]


class GEdit(JudgedEdits):
    name = "gedit"
    version = "1"
    metrics = (*rubric.METRICS, "overall")
    derived_metrics = ("overall",)
    Options = GEditOptions
    axes = ("language", "task")
    official = OFFICIAL
    presentation = GEditPresentation(
        title="GEdit-Bench",
        axis_names={"language": data.LANGUAGES, "task": data.TASKS},
        max_score=10.0,
        digits=2,
        distribution_metrics=("overall",),
        glossary={
            "SC": "Semantics: the request is met, and nothing else was changed; the lower of two scores",
            "PQ": "Quality: the image is natural and free of damage; the lower of two scores",
            "O": "Overall: square root of SC times PQ, per edit",
            "Avg": "Mean of the tasks, whatever their size",
            "sc": "SC: the request is met, and nothing else was changed; the lower of two scores",
            "pq": "PQ: the image is natural and free of damage; the lower of two scores",
            "overall": "O: square root of SC times PQ, per edit",
            **tables.TASK_MEANINGS,
        },
    )
    preparation = GEditPreparation(outputs=GEditOutputs)

    load = staticmethod(data.load)  # pyright: ignore[reportAssignmentType]
    tables = staticmethod(tables.tables)  # pyright: ignore[reportAssignmentType]

    def includes(self, turn: Turn, options: GEditOptions) -> bool:
        gold: GEditGold = turn.gold
        return options.subset == "full" or gold.is_in_intersection

    def questions(self, judged_turn: JudgedTurn) -> Iterable[Assessment]:
        if judged_turn.rubrics.official_prompts:
            return [
                judged_turn.check(rubric.METRICS, lambda blobs: rubric.build_released_questions(judged_turn, blobs))
            ]
        return rubric.build_questions(judged_turn)

    def parse_text(self, question: Question, text: str) -> dict[str, Any] | None:
        """Read a pair of numbers without anything else, which judges send in place of the object with it."""
        pair = BARE_PAIR.fullmatch(text)
        if not question.text_only or pair is None or max(map(float, pair.groups())) > MAX_SCORE:
            return None
        return {"score": [float(number) for number in pair.groups()]}

    def to_scores(self, question: Question, parsed: dict[str, Any]) -> Sequence[Score]:
        return [rubric.build_score(question, parsed)]

    def derive(self, parts: PartVerdicts) -> Iterable[Verdict]:
        """Overall follows from SC and PQ of one edit."""
        if not set(rubric.METRICS) <= set(parts):
            return
        sc = parts[rubric.SEMANTICS]
        pq = parts[rubric.QUALITY]
        value: float | None = None
        reason = "SC and PQ are not both scored"
        if sc.value is not None and pq.value is not None:
            value = math.sqrt(sc.value * pq.value)
            reason = f"square root of SC {MAX_SCORE * sc.value:g} times PQ {MAX_SCORE * pq.value:g}"
        yield Verdict(
            sc.sample,
            sc.turn,
            "overall",
            value,
            reason,
            by="failure" if sc.by == "failure" else "rule",
            keys=(*sc.keys, *pq.keys),
            variant=sc.variant,
            reading=combine(sc, pq),
        )

    def headline(self, verdicts: Sequence[Verdict], groups: SampleGroups) -> WeightedMeans:
        """The mean over tasks of the overall scores; over both languages the mean of the two."""
        return tables.overall_terms(verdicts, groups)
