"""PlanViz's protocol: one request, with the picture that is to be edited or none, and one picture back, judged by PlanScore: Cor, the share
of key points that it meets; Vis and Ef, from 0 to 5.

An edited picture that is nearly its source has no point, without a judge (`unchanged.py`). A workflow that is drawn from a page is looked
at without the page. With `witness ocr` the judge of the points is told which words a program read in the picture.

Under `official` what the released code has its judge look at is asked besides, for the official row: workflows beside their page, and
pictures that are nearly their source.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from weft.benchmarks.agreed import Agreed
from weft.benchmarks.base import Answered, Benchmark, Groups, Item, Terms
from weft.benchmarks.official import VARIANT
from weft.benchmarks.planviz import agreement, data, released, rubric, tables
from weft.benchmarks.planviz.data import Goal
from weft.benchmarks.planviz.facts import PlanFacts, plan_facts
from weft.benchmarks.planviz.official import OFFICIAL
from weft.benchmarks.planviz.outputs import Outputs
from weft.benchmarks.planviz.styles import Reworder
from weft.benchmarks.planviz.template import write_template
from weft.benchmarks.planviz.unchanged import is_unchanged
from weft.benchmarks.planviz.wordings import MOST, chosen, from_file, is_file, with_wordings
from weft.benchmarks.preparation import Preparation
from weft.benchmarks.presentation import Presentation
from weft.benchmarks.prompts import own_rubrics
from weft.benchmarks.records import digest_of
from weft.errors import PictureError, StoreError, UserError
from weft.judges.ocr import lines_in, quotations, reader
from weft.secrets import without_secrets
from weft.store.blobs import Blobs
from weft.types import Dialogue, Mark, Message, Model, Question, ReadDataset, Sample, Table, Turn, Verdict
from weft.untrusted import fields

Witness = Annotated[
    Literal["none", "ocr"],
    Meta(description="Whether the judge of the key points is told the words that OCR reads in a picture (extra ocr)."),
]
Deduct = Annotated[bool, Meta(description="Take points off for unnecessary steps of a workflow, as the released prompts do, not below 0.")]
Official = Annotated[
    bool,
    Meta(description="Ask the judge as the released code does too (workflows beside their page, copies), for the official row."),
]


Styles = Annotated[
    int,
    Meta(
        description="Give each task in so many other wordings too: the prompt-style study. The wordings come from --reword.", ge=0, le=MOST
    ),
]
Reword = Annotated[str, Meta(description="A model that says tasks in other words, or a file of wordings (docs/planviz.md).")]
Drawn = Annotated[
    int,
    Meta(description="Only so many tasks, drawn at random, evenly over sub-tasks and tasks, of those that --limit leaves; 0: all.", ge=0),
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
        return super().describe_options(replace(options, reword=Path(options.reword).name) if is_file(options.reword) else options)

    def describe_outputs(self, options: PlanVizOptions) -> list[str]:
        return self.describe_options(options)

    def canonical_group(self, axis: str, name: str) -> str:
        return data.canonical(axis, name)

    def agreement_tables(self, found: Agreed) -> Iterable[Table]:
        return agreement.tables(found)

    def describe_gold(self, gold: Any) -> list[str]:
        points: Any = fields(gold).get("points")
        return [str(point) for point in points or ()]


class PlanVizPreparation(Preparation, frozen=True):
    def auxiliary_models(self, options: PlanVizOptions) -> Mapping[str, str]:
        return {"reword": options.reword} if options.reword and not is_file(options.reword) else {}

    async def prepare(self, dataset: ReadDataset, options: PlanVizOptions, models: Mapping[str, Model]) -> ReadDataset:
        if not options.reword:
            some = chosen(dataset, options.sample, options.seed)
            return dataset if len(some) == len(dataset.samples) else replace(dataset, samples=tuple(some), digest=digest_of(some))
        if models:
            tasks = chosen(dataset, options.sample, options.seed)
            said, problems = await Reworder(models["reword"], own_rubrics(Path(__file__).parent), options.styles).all(tasks)
        else:
            said, problems = await asyncio.to_thread(from_file, Path(options.reword), dataset, options.styles)
            there = replace(dataset, samples=tuple(sample for sample in dataset.samples if sample.id in said))
            tasks = chosen(there, options.sample, options.seed)
        if not any(said.get(task.id) for task in tasks):
            why = f"; the first trouble: {problems[0]}" if problems else ""
            raise UserError(f"{without_secrets(options.reword)} gave no wording that could be used of any of {len(tasks)} tasks{why}")
        return with_wordings(dataset, tasks, said, problems)

    def describe_data(self, dataset: ReadDataset) -> list[str]:
        points = [point for sample in dataset.samples for point in sample.turns[0].gold.points]
        plain = sum(bool(quotations(point)) for point in points)
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
        axis_names={"task": data.TASKS, "subtask": data.SUBTASKS, "ended": data.ENDS},
        max_score=1.0,
        digits=2,
        spread_metrics=rubric.METRICS,
    )
    preparation = PlanVizPreparation(template=write_template, outputs=Outputs)

    load = staticmethod(data.load)  # pyright: ignore[reportAssignmentType]
    tables = staticmethod(tables.tables)  # pyright: ignore[reportAssignmentType]

    def choose(self, given: Mapping[str, Any]) -> PlanVizOptions:
        options: PlanVizOptions = super().choose(given)
        if options.witness == "ocr":
            reader()  # is it there at all
        if options.styles and not options.reword:
            raise UserError("--styles needs wordings: --reword MODEL has them made, --reword FILE reads them")
        if is_file(options.reword):
            return replace(options, reword=str(Path(options.reword).absolute()))
        return replace(options, styles=USUAL) if options.reword and not options.styles else options

    def build_messages(self, sample: Sample, turn: Turn, dialogue: Dialogue, options: PlanVizOptions) -> tuple[Message, ...]:
        return (Message("user", turn.ask),)

    def questions(self, answered: Answered) -> Iterable[Item]:
        goal: Goal = answered.turn.gold
        seen: list[Item] = [self._points(answered)]
        elsewhere = answered.rubrics.official and goal.edits and goal.alone
        beside = {"detail": PlanFacts(elsewhere=True)} if elsewhere else {}
        seen += [rubric.about(rubric.VISUAL, answered, alone=goal.alone, **beside)]
        if goal.edits and goal.alone and answered.options.official:
            seen += [rubric.about(rubric.VISUAL, answered, alone=False, variant=VARIANT)]
        return [*seen, rubric.about(rubric.EFFICIENT, answered, alone=not goal.edits)]

    def _points(self, answered: Answered) -> Item:
        goal: Goal = answered.turn.gold
        if not goal.edits and answered.options.witness == "none":
            return rubric.about_points(answered, None)
        return answered.check(rubric.CORRECT, lambda blobs: self._looked_at(answered, goal, blobs))

    def _looked_at(self, answered: Answered, goal: Goal, blobs: Blobs) -> Sequence[Question | Verdict]:
        """The question about the points, unless the picture is nearly its source."""
        if goal.source is not None:
            with blobs.opened(goal.source) as source, blobs.opened(answered.made) as made:
                same = is_unchanged(source, made)
            if same:
                why = "the picture is nearly the source again: nothing that could be seen was changed"
                facts = PlanFacts((0,) * len(goal.points), elsewhere=answered.rubrics.official)
                none = answered.verdict(rubric.CORRECT, 0.0, why, detail=facts, score=0)
                asked = [rubric.about_points(answered, None, variant=VARIANT)] if answered.options.official else []
                return [none, *asked]
        return [rubric.about_points(answered, self._words(answered, blobs))]

    def _words(self, answered: Answered, blobs: Blobs) -> Sequence[str] | None:
        if answered.options.witness == "none" or answered.rubrics.official:
            return None
        try:
            return [line.text for line in lines_in(answered.made, blobs)]
        except (PictureError, StoreError):
            raise
        except Exception as error:  # it is only a hint: whatever the reader makes of a picture, the judge has eyes
            return [f"(the program could not read this picture: {type(error).__name__})"]

    def parse_text(self, question: Question, text: str) -> dict[str, Any] | None:
        """A reply to a released prompt is two lines of words."""
        if not question.plain or text.lstrip().startswith(("{", "```")):
            return None
        full = len(question.gold.points) if question.metrics == (rubric.CORRECT,) else rubric.FULL
        return released.found(text, question.value, full)

    def to_scores(self, question: Question, found: dict[str, Any]) -> Sequence[Mark]:
        if question.metrics == (rubric.CORRECT,) and not question.plain:
            return [rubric.mark(question, found, deduct=plan_facts(question).deduct)]
        marks = super().to_scores(question, found)
        return [replace(one, detail=question.detail) for one in marks] if question.detail else marks

    def cluster_of(self, sample: str, groups: Mapping[str, str]) -> str:
        """Wordings of one task are no tasks of their own."""
        return groups.get("of", sample)

    def headline(self, verdicts: Sequence[Verdict], groups: Groups) -> Terms:
        """The plain mean of the cells that are there, each of which is the mean of its three metrics."""
        return tables.overall(verdicts, groups)
