"""GenEval's protocol: one prompt, four images of it, and rules over the objects that a detector finds in each.

The judge finds objects; the rules decide (arXiv 2310.11513). An image is right or wrong, a task's score is the share of
its images that are right, and the overall score is the mean of six tasks.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct

from weft.benchmarks.base import Assessment, Benchmark, JudgedTurn, RunResults, SampleGroups, WeightedMeans
from weft.benchmarks.geneval import tables
from weft.benchmarks.geneval.data import IMAGES_PER_PROMPT, LONG, SHORT, TAGS, PromptForm, load
from weft.benchmarks.geneval.official import OFFICIAL
from weft.benchmarks.geneval.outputs import GenEvalOutputs
from weft.benchmarks.geneval.rubric import build_question
from weft.benchmarks.geneval.rules import ImageRules, find_faults
from weft.benchmarks.preparation import Preparation
from weft.benchmarks.presentation import Presentation
from weft.calls.structured_output import UnusableReply
from weft.judges.detections import COCO_CLASSES, read_detections
from weft.store.blobs import Blobs
from weft.types import Dataset, Dialogue, LoadedDataset, Message, Question, Sample, Score, Table, Turn
from weft.untrusted import dict_or_empty, list_or_empty

CORRECT = "correct"
DETECTORS = {"transformers": "detector/mask2former"}


class GenEvalOptions(Struct, frozen=True):
    images: Annotated[int, Meta(ge=1, le=IMAGES_PER_PROMPT, description="Images of each prompt; the paper has 4.")] = (
        IMAGES_PER_PROMPT
    )
    detector: Annotated[
        Literal["transformers"], Meta(description="The judge where --judge names none: detector/mask2former.")
    ] = "transformers"


class GenEvalPresentation(Presentation, frozen=True):
    def describe_gold(self, gold: Any) -> list[str]:
        lines: list[str] = []
        rules = dict_or_empty(gold)
        for entry in list_or_empty(rules.get("include")):
            rule = dict_or_empty(entry)
            words = [str(rule.get("count")), rule.get("color"), rule.get("name"), rule.get("relation")]
            lines.append(f"asked for: {' '.join(str(word) for word in words if word)}")
        for entry in list_or_empty(rules.get("exclude")):
            rule = dict_or_empty(entry)
            lines.append(f"fewer than {rule.get('count')} {rule.get('name')}")
        return lines


class GenEvalPreparation(Preparation, frozen=True):
    def judge(self, options: GenEvalOptions) -> str:
        return DETECTORS[options.detector]

    def describe_data(self, dataset: LoadedDataset) -> list[str]:
        counts: dict[str, int] = dict.fromkeys(TAGS, 0)
        unknown: set[str] = set()
        for sample in dataset.samples:
            rules: ImageRules = sample.turns[0].gold
            counts[rules.tag] += 1
            unknown |= {rule.name for rule in (*rules.include, *rules.exclude)} - set(COCO_CLASSES)
        lines = [f"{len(dataset.samples)} prompts: " + ", ".join(f"{tag} {counts[tag]}" for tag in TAGS if counts[tag])]
        if unknown:
            lines.append(f"classes that detector/mask2former does not know: {', '.join(sorted(unknown))}")
        return lines


def _presentation(title: str) -> GenEvalPresentation:
    return GenEvalPresentation(
        title=title,
        axis_names={"tag": TAGS},
        turn_names=tuple(f"image {number + 1}" for number in range(IMAGES_PER_PROMPT)),
        glossary={
            "Single": "One object is there",
            "Two": "Two objects are there",
            "Counting": "So many objects, and no more",
            "Colors": "One object in a colour",
            "Position": "One object beside, above or below another",
            "Attributes": "Two objects in two colours",
            "Overall": "Mean of the tasks",
            "Images": "Share of all images that are right",
            "Prompts": "Share of prompts with at least one right image",
            CORRECT: "The detected objects are those that the prompt asks for",
        },
    )


class GenEval(Benchmark):
    name = "geneval"
    version = "1"
    metrics = (CORRECT,)
    axes = ("tag",)
    Options = GenEvalOptions
    official = OFFICIAL
    presentation = _presentation("GenEval")
    preparation = GenEvalPreparation(outputs=GenEvalOutputs)
    form: ClassVar[PromptForm] = SHORT

    def load(self, data: Path, blobs: Blobs) -> Dataset:
        return load(data, blobs, self.form)

    def includes(self, turn: Turn, options: GenEvalOptions) -> bool:
        return turn.number < options.images

    def build_messages(self, sample: Sample, turn: Turn, dialogue: Dialogue, options: Any) -> tuple[Message, ...]:
        return (Message("user", turn.prompt),)

    def questions(self, judged_turn: JudgedTurn) -> Iterable[Assessment]:
        return [build_question(judged_turn, CORRECT)]

    def to_scores(self, question: Question, parsed: dict[str, Any]) -> Sequence[Score]:
        """Apply the rules to the objects that the judge found."""
        try:
            detections = read_detections(parsed)
        except ValueError as error:
            raise UnusableReply(str(error)) from None
        faults = find_faults(question.gold, detections)
        reason = "; ".join(faults) or "all that is asked for is there"
        return [Score(CORRECT, float(not faults), reason, float(not faults))]

    def headline(self, verdicts: Sequence[Any], groups: SampleGroups) -> WeightedMeans:
        """The mean of the tasks."""
        by_tag = tables.group_by_tag(verdicts, groups)
        return [(1 / len(by_tag), own) for own in by_tag.values()]

    def tables(self, runs: Sequence[RunResults]) -> Iterable[Table]:
        return tables.build_tables(runs, self.form)


class GenEvalLong(GenEval):
    name = "geneval-long"
    presentation = _presentation("GenEval, long prompts")
    form = LONG
