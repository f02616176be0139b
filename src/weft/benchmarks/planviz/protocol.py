"""PlanViz's protocol: one request, with the picture that is to be edited or none, and one picture back, judged by
PlanScore: Cor, the share of key points that it meets; Vis and Ef, from 0 to 5.

An edited picture that is nearly its source has no point, without a judge (`unchanged.py`). A workflow that is drawn
from a page is looked at without the page. With `witness ocr` the judge of the points is told which words a program read
in the picture.

Under `official` what the released code has its judge look at is asked besides, for the official row: workflows beside
their page, and pictures that are nearly their source."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from weft.benchmarks.base import Assessment, Benchmark, JudgedTurn, SampleGroups, WeightedMeans
from weft.benchmarks.official import OFFICIAL_VARIANT
from weft.benchmarks.paired_verdicts import PairedVerdicts
from weft.benchmarks.planviz import agreement, data, released, rubric, tables
from weft.benchmarks.planviz.data import PlanVizGold
from weft.benchmarks.planviz.facts import PlanFacts, read_plan_facts
from weft.benchmarks.planviz.official import OFFICIAL
from weft.benchmarks.planviz.outputs import PlanVizOutputs
from weft.benchmarks.planviz.styles import Reworder
from weft.benchmarks.planviz.template import write_template
from weft.benchmarks.planviz.unchanged import is_unchanged
from weft.benchmarks.planviz.wordings import MAX_WORDINGS, add_wordings, is_wordings_file, read_wordings, sample_tasks
from weft.benchmarks.preparation import Preparation
from weft.benchmarks.presentation import Presentation
from weft.benchmarks.prompts import read_own_rubrics
from weft.benchmarks.records import digest_samples
from weft.errors import ImageError, StoreError, UserError
from weft.judges.ocr import find_checkable_phrases, load_ocr, read_lines
from weft.secrets import strip_url_secrets
from weft.store.blobs import Blobs
from weft.types import Dialogue, LoadedDataset, Message, Model, Question, Sample, Score, Table, Turn, Verdict
from weft.untrusted import dict_or_empty

Witness = Annotated[
    Literal["none", "ocr"],
    Meta(description="Whether the judge of the key points is told the words that OCR reads in a picture (extra ocr)."),
]
Deduct = Annotated[
    bool,
    Meta(description="Take points off for unnecessary steps of a workflow, as the released prompts do, not below 0."),
]
Official = Annotated[
    bool,
    Meta(
        description="Ask the judge as the released code does too (workflows beside their page, copies), for the official row."
    ),
]


Styles = Annotated[
    int,
    Meta(
        description="Give each task in so many other wordings too: the prompt-style study. The wordings come from --reword.",
        ge=0,
        le=MAX_WORDINGS,
    ),
]
Reword = Annotated[
    str, Meta(description="A model that says tasks in other words, or a file of wordings (docs/planviz.md).")
]
Drawn = Annotated[
    int,
    Meta(
        description="Only so many tasks, drawn at random, evenly over sub-tasks and tasks, of those that --limit leaves; 0: all.",
        ge=0,
    ),
]
Seed = Annotated[int, Meta(description="Which tasks --sample draws.")]

USUAL = 10  # wordings by a model, where nobody says how many


class PlanVizOptions(Struct, frozen=True):
    witness: Witness = "none"
    deduct: Deduct = False
    official: Official = False
    styles: Styles = 0
    reword: Reword = ""
    sample: Drawn = 0
    seed: Seed = 0


class PlanVizPresentation(Presentation, frozen=True):
    def describe_options(self, options: PlanVizOptions) -> list[str]:
        """A file is called by its name: where it lies is nobody's business."""
        return super().describe_options(
            replace(options, reword=Path(options.reword).name) if is_wordings_file(options.reword) else options
        )

    def describe_outputs(self, options: PlanVizOptions) -> list[str]:
        return self.describe_options(options)

    def canonical_group(self, axis: str, name: str) -> str:
        return data.canonical_group(axis, name)

    def agreement_tables(self, found: PairedVerdicts) -> Iterable[Table]:
        return agreement.tables(found)

    def describe_gold(self, gold: Any) -> list[str]:
        points: Any = dict_or_empty(gold).get("points")
        return [str(point) for point in points or ()]


class PlanVizPreparation(Preparation, frozen=True):
    def auxiliary_models(self, options: PlanVizOptions) -> Mapping[str, str]:
        if options.reword and not is_wordings_file(options.reword):
            return {"reword": options.reword}
        return {}

    async def prepare(
        self, dataset: LoadedDataset, options: PlanVizOptions, models: Mapping[str, Model]
    ) -> LoadedDataset:
        if not options.reword:
            some = sample_tasks(dataset, options.sample, options.seed)
            if len(some) == len(dataset.samples):
                return dataset
            return replace(dataset, samples=tuple(some), digest=digest_samples(some))
        if models:
            tasks = sample_tasks(dataset, options.sample, options.seed)
            said, problems = await Reworder(
                models["reword"], read_own_rubrics(Path(__file__).parent), options.styles
            ).reword_all(tasks)
        else:
            said, problems = await asyncio.to_thread(read_wordings, Path(options.reword), dataset, options.styles)
            there = replace(dataset, samples=tuple(sample for sample in dataset.samples if sample.id in said))
            tasks = sample_tasks(there, options.sample, options.seed)
        if not any(said.get(task.id) for task in tasks):
            if problems:
                why = f"; the first trouble: {problems[0]}"
            else:
                why = ""
            raise UserError(
                f"{strip_url_secrets(options.reword)} gave no wording that could be used of any of {len(tasks)} tasks{why}"
            )
        return add_wordings(dataset, tasks, said, problems)

    def describe_data(self, dataset: LoadedDataset) -> list[str]:
        points = [point for sample in dataset.samples for point in sample.turns[0].gold.points]
        plain = sum(bool(find_checkable_phrases(point)) for point in points)
        return [f"{len(points)} key points, {plain} of them plain words, which --judge ocr can decide"]


class PlanViz(Benchmark):
    name = "planviz"
    version = "1"
    metrics = rubric.METRICS
    Options = PlanVizOptions
    axes = ("task", "subtask", "ended")
    official = OFFICIAL
    presentation = PlanVizPresentation(
        title="PlanViz",
        axis_names={"task": data.TASKS, "subtask": data.SUBTASKS, "ended": data.QUESTION_TYPES},
        max_score=1.0,
        digits=2,
        distribution_metrics=rubric.METRICS,
        glossary={
            "Cor": "Correctness: key points of the task that the image meets",
            "Vis": "Visual: the image is coherent; an edited one keeps the rest of its source",
            "Ef": "Efficiency: the image has nothing that was not requested",
            "Avg": "Mean of Cor, Vis and Ef",
            "Overall as printed": "Overall as the paper prints it, which is not always the mean",
            "Overall": "Mean of the sub-tasks' averages",
            "correctness": "Cor: key points of the task that the image meets",
            "visual": "Vis: the image is coherent; an edited one keeps the rest of its source",
            "efficiency": "Ef: the image has nothing that was not requested",
        },
    )
    preparation = PlanVizPreparation(template=write_template, outputs=PlanVizOutputs)

    load = staticmethod(data.load)  # pyright: ignore[reportAssignmentType]
    tables = staticmethod(tables.tables)  # pyright: ignore[reportAssignmentType]

    def parse_options(self, given: Mapping[str, Any]) -> PlanVizOptions:
        options: PlanVizOptions = super().parse_options(given)
        if options.witness == "ocr":
            load_ocr()  # is it there at all
        if options.styles and not options.reword:
            raise UserError("--styles needs wordings: --reword MODEL has them made, --reword FILE reads them")
        if is_wordings_file(options.reword):
            return replace(options, reword=str(Path(options.reword).absolute()))
        if options.reword and not options.styles:
            return replace(options, styles=USUAL)
        return options

    def build_messages(
        self, sample: Sample, turn: Turn, dialogue: Dialogue, options: PlanVizOptions
    ) -> tuple[Message, ...]:
        return (Message("user", turn.prompt),)

    def questions(self, answered: JudgedTurn) -> Iterable[Assessment]:
        goal: PlanVizGold = answered.turn.gold
        seen: list[Assessment] = [self._points(answered)]
        elsewhere = answered.rubrics.official and goal.is_edit and goal.is_judged_without_source
        beside = {"detail": PlanFacts(official_input_differs=True)} if elsewhere else {}
        seen += [rubric.build_question(rubric.VISUAL, answered, alone=goal.is_judged_without_source, **beside)]
        if goal.is_edit and goal.is_judged_without_source and answered.options.official:
            seen += [rubric.build_question(rubric.VISUAL, answered, alone=False, variant=OFFICIAL_VARIANT)]
        return [*seen, rubric.build_question(rubric.EFFICIENT, answered, alone=not goal.is_edit)]

    def _points(self, answered: JudgedTurn) -> Assessment:
        goal: PlanVizGold = answered.turn.gold
        if not goal.is_edit and answered.options.witness == "none":
            return rubric.build_points_question(answered, None)
        return answered.check(rubric.CORRECT, lambda blobs: self._looked_at(answered, goal, blobs))

    def _looked_at(self, answered: JudgedTurn, goal: PlanVizGold, blobs: Blobs) -> Sequence[Question | Verdict]:
        """The question about the points, unless the picture is nearly its source."""
        if goal.source is not None:
            with blobs.decode_within_memory(goal.source) as source, blobs.decode_within_memory(answered.image) as made:
                same = is_unchanged(source, made)
            if same:
                why = "the picture is nearly the source again: nothing that could be seen was changed"
                facts = PlanFacts((0,) * len(goal.points), official_input_differs=answered.rubrics.official)
                none = answered.verdict(rubric.CORRECT, 0.0, why, detail=facts, score=0)
                asked = (
                    [rubric.build_points_question(answered, None, variant=OFFICIAL_VARIANT)]
                    if answered.options.official
                    else []
                )
                return [none, *asked]
        return [rubric.build_points_question(answered, self._words(answered, blobs))]

    def _words(self, answered: JudgedTurn, blobs: Blobs) -> Sequence[str] | None:
        if answered.options.witness == "none" or answered.rubrics.official:
            return None
        try:
            return [line.text for line in read_lines(answered.image, blobs)]
        except (ImageError, StoreError):
            raise
        except Exception as error:  # it is only a hint: whatever the reader makes of a picture, the judge has eyes
            return [f"(the program could not read this picture: {type(error).__name__})"]

    def parse_text(self, question: Question, text: str) -> dict[str, Any] | None:
        """A reply to a released prompt is two lines of words."""
        if not question.text_only or text.lstrip().startswith(("{", "```")):
            return None
        if question.metrics == (rubric.CORRECT,):
            full = len(question.gold.points)
        else:
            full = rubric.FULL
        return released.parse_score(text, question.value_key, full)

    def to_scores(self, question: Question, found: dict[str, Any]) -> Sequence[Score]:
        if question.metrics == (rubric.CORRECT,) and not question.text_only:
            return [rubric.build_points_score(question, found, deduct=read_plan_facts(question).deduct)]
        marks = super().to_scores(question, found)
        if question.detail:
            return [replace(one, detail=question.detail) for one in marks]
        return marks

    def cluster_of(self, sample: str, groups: Mapping[str, str]) -> str:
        """Wordings of one task are no tasks of their own."""
        return groups.get("of", sample)

    def headline(self, verdicts: Sequence[Verdict], groups: SampleGroups) -> WeightedMeans:
        """The plain mean of the cells that are there, each of which is the mean of its three metrics."""
        return tables.overall_terms(verdicts, groups)
