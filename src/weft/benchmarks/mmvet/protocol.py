"""MM-Vet's protocol: an image and an open question, and an answer in words.

A judge that reads words alone compares the answer with the reference, from 0 to 1 in tenths. A score is the mean over
questions times 100, over all of them and over those that need a capability (arXiv 2308.02490).
"""

from collections.abc import Iterable, Sequence
from typing import Any

from weft.benchmarks.base import Assessment, Benchmark, JudgedTurn
from weft.benchmarks.mmvet import data, rubric, tables
from weft.benchmarks.mmvet.data import CAPABILITIES, list_capabilities
from weft.benchmarks.mmvet.official import OFFICIAL
from weft.benchmarks.mmvet.outputs import MMVetOutputs
from weft.benchmarks.preparation import Preparation
from weft.benchmarks.presentation import Presentation
from weft.types import Dialogue, LoadedDataset, Message, Question, Sample, Score, Turn
from weft.untrusted import dict_or_empty


class MMVetPresentation(Presentation, frozen=True):
    def describe_gold(self, gold: Any) -> list[str]:
        answer = dict_or_empty(gold).get("answer")
        return [f"the right answer: {answer}"] if answer else []


class MMVetPreparation(Preparation, frozen=True):
    def describe_data(self, dataset: LoadedDataset) -> list[str]:
        counts: dict[str, int] = dict.fromkeys(CAPABILITIES, 0)
        for sample in dataset.samples:
            for capability in list_capabilities(sample.groups):
                counts[capability] += 1
        needed = ", ".join(f"{capability} {count}" for capability, count in counts.items())
        return [f"{len(dataset.samples)} questions; capabilities that they need: {needed}"]


class MMVet(Benchmark):
    name = "mmvet"
    version = "1"
    metrics = (rubric.CORRECTNESS,)
    axes = ("capabilities",)
    official = OFFICIAL
    presentation = MMVetPresentation(
        title="MM-Vet",
        max_score=100.0,
        digits=1,
        glossary={
            "Total": "Mean over all questions",
            **{column: f"Questions that need {CAPABILITIES[name]}" for column, name in tables.COLUMNS.items()},
            rubric.CORRECTNESS: "How far the answer agrees with the reference, in tenths",
        },
    )
    preparation = MMVetPreparation(outputs=MMVetOutputs)

    load = staticmethod(data.load)  # pyright: ignore[reportAssignmentType]
    tables = staticmethod(tables.tables)  # pyright: ignore[reportAssignmentType]

    def build_messages(self, sample: Sample, turn: Turn, dialogue: Dialogue, options: Any) -> tuple[Message, ...]:
        return (Message("user", turn.prompt),)

    def questions(self, judged_turn: JudgedTurn) -> Iterable[Assessment]:
        return [rubric.build_question(judged_turn)]

    def parse_text(self, question: Question, text: str) -> dict[str, Any] | None:
        """Read a bare number, as the released prompt asks for."""
        if not question.text_only:
            return None
        return rubric.parse_number(text)

    def to_scores(self, question: Question, parsed: dict[str, Any]) -> Sequence[Score]:
        return [rubric.build_score(parsed)]
