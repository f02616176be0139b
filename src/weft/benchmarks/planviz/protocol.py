"""PlanViz's protocol: one request, with the image to edit or without, and one image back, judged by PlanScore.

PlanScore has three metrics: Cor, the share of key points that the image meets; Vis and Ef, from 0 to 5. An edited image
that is nearly its source meets no point, without a judge (`unchanged.py`). A workflow that is drawn from a page is
judged without the page. With `witness ocr` the judge of the points is told which words a program read in the image.

Under `official` the judge is also asked as the released code asks it, for the official row: workflows together with
their page, and images that are nearly their source.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from weft.benchmarks.base import Assessment, Benchmark, JudgedTurn, SampleGroups, WeightedMeans
from weft.benchmarks.official import OFFICIAL_VARIANT, find_released_image
from weft.benchmarks.paired_verdicts import PairedVerdicts
from weft.benchmarks.planviz import agreement, data, official_reading, rubric, tables
from weft.benchmarks.planviz.data import PlanVizGold
from weft.benchmarks.planviz.facts import PlanFacts, read_plan_facts
from weft.benchmarks.planviz.official import OFFICIAL
from weft.benchmarks.planviz.outputs import PlanVizOutputs
from weft.benchmarks.planviz.statistics import PLANVIZ_STATISTICS
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
from weft.types import Dialogue, Image, LoadedDataset, Message, Model, Question, Sample, Score, Table, Turn, Verdict
from weft.untrusted import dict_or_empty

Witness = Annotated[
    Literal["none", "ocr"],
    Meta(description="Whether the judge of the key points is told the words that OCR reads in an image (extra ocr)."),
]
Deduct = Annotated[
    bool,
    Meta(description="Take points off for unnecessary steps of a workflow, as the released prompts do, not below 0."),
]
Official = Annotated[
    bool,
    Meta(
        description="Also ask the judge as the released code does (workflows with their page, copies), for the "
        "official row."
    ),
]
Styles = Annotated[
    int,
    Meta(
        description="Give each task in this many other wordings too: the prompt-style study. The wordings come from "
        "--reword.",
        ge=0,
        le=MAX_WORDINGS,
    ),
]
Reword = Annotated[
    str, Meta(description="A model that rewords tasks, or a file of wordings (docs/how-to/prompt-wordings.md).")
]
SampleSize = Annotated[
    int,
    Meta(
        description="Only this many tasks, drawn at random, evenly over sub-tasks and tasks, of those that --limit "
        "leaves; 0: all.",
        ge=0,
    ),
]
Seed = Annotated[int, Meta(description="Seed of the draw of --sample.")]

DEFAULT_WORDINGS = 10  # by a model, where --styles is not given


class PlanVizOptions(Struct, frozen=True):
    witness: Witness = "none"
    deduct: Deduct = False
    official: Official = False
    styles: Styles = 0
    reword: Reword = ""
    sample: SampleSize = 0
    seed: Seed = 0


class PlanVizPresentation(Presentation, frozen=True):
    def describe_options(self, options: PlanVizOptions) -> list[str]:
        """Describe the options. A file is named without its folder, which may be private."""
        if is_wordings_file(options.reword):
            options = replace(options, reword=Path(options.reword).name)
        return super().describe_options(options)

    def describe_outputs(self, options: PlanVizOptions) -> list[str]:
        return self.describe_options(options)

    def canonical_group(self, axis: str, name: str) -> str:
        return data.canonical_group(axis, name)

    def agreement_tables(self, paired: PairedVerdicts) -> Iterable[Table]:
        return agreement.tables(paired)

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
        """Draw the sample of tasks, and add their wordings. Raises UserError if no task has a usable wording."""
        if not options.reword:
            tasks = sample_tasks(dataset, options.sample, options.seed)
            if len(tasks) == len(dataset.samples):
                return dataset
            return replace(dataset, samples=tuple(tasks), digest=digest_samples(tasks))
        if models:
            tasks = sample_tasks(dataset, options.sample, options.seed)
            reworder = Reworder(models["reword"], read_own_rubrics(Path(__file__).parent), options.styles)
            wordings, problems = await reworder.reword_all(tasks)
        else:
            wordings, problems = await asyncio.to_thread(read_wordings, Path(options.reword), dataset, options.styles)
            reworded = tuple(sample for sample in dataset.samples if sample.id in wordings)
            tasks = sample_tasks(replace(dataset, samples=reworded), options.sample, options.seed)
        if not any(wordings.get(task.id) for task in tasks):
            reason = ""
            if problems:
                reason = f"; the first problem: {problems[0]}"
            raise UserError(
                f"{strip_url_secrets(options.reword)} gave no usable wording of any of {len(tasks)} tasks{reason}"
            )
        return add_wordings(dataset, tasks, wordings, problems)

    def describe_data(self, dataset: LoadedDataset) -> list[str]:
        points = 0
        checkable = 0
        for sample in dataset.samples:
            gold: PlanVizGold = sample.turns[0].gold
            points += len(gold.points)
            checkable += sum(bool(find_checkable_phrases(point)) for point in gold.points)
        return [f"{points} key points, {checkable} of them plain words, which --judge ocr can decide"]


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
    preparation = PlanVizPreparation(template=write_template, outputs=PlanVizOutputs, statistics=PLANVIZ_STATISTICS)

    load = staticmethod(data.load)  # pyright: ignore[reportAssignmentType]
    tables = staticmethod(tables.tables)  # pyright: ignore[reportAssignmentType]

    def parse_options(self, given: Mapping[str, Any]) -> PlanVizOptions:
        options: PlanVizOptions = super().parse_options(given)
        if options.witness == "ocr":
            load_ocr()  # fails now, not in the middle of the run, if the extra is not installed
        if options.styles and not options.reword:
            raise UserError("--styles needs wordings: --reword MODEL has a model write them, --reword FILE reads them")
        if is_wordings_file(options.reword):
            return replace(options, reword=str(Path(options.reword).absolute()))
        if options.reword and not options.styles:
            return replace(options, styles=DEFAULT_WORDINGS)
        return options

    def build_messages(
        self, sample: Sample, turn: Turn, dialogue: Dialogue, options: PlanVizOptions
    ) -> tuple[Message, ...]:
        return (Message("user", turn.prompt),)

    def questions(self, judged_turn: JudgedTurn) -> Iterable[Assessment]:
        gold: PlanVizGold = judged_turn.turn.gold
        assessments: list[Assessment] = [self._assess_points(judged_turn)]
        without_source = gold.is_judged_without_source
        is_without_page = gold.is_edit and without_source
        detail: PlanFacts | None = None
        if judged_turn.rubrics.official_prompts and is_without_page:
            detail = PlanFacts(official_input_differs=True)
        assessments.append(
            rubric.build_question(rubric.VISUAL, judged_turn, without_source=without_source, detail=detail)
        )
        if judged_turn.options.official and is_without_page:
            assessments.append(
                rubric.build_question(rubric.VISUAL, judged_turn, without_source=False, variant=OFFICIAL_VARIANT)
            )
        assessments.append(rubric.build_question(rubric.EFFICIENT, judged_turn, without_source=not gold.is_edit))
        return assessments

    def on_failed(self, judged_turn: JudgedTurn) -> Iterable[Assessment]:
        """Yield unscored verdicts, and under `official` what the released code asks about an image that weft cannot
        read."""
        yield from super().on_failed(judged_turn)
        image = find_released_image(judged_turn.reply)
        if image is None or not judged_turn.options.official:
            return
        gold: PlanVizGold = judged_turn.turn.gold
        seen = replace(judged_turn, reply=replace(judged_turn.reply, outcome="answered", parts=(image,)))
        yield rubric.build_points_question(seen, None, variant=OFFICIAL_VARIANT)
        for metric in (rubric.VISUAL, rubric.EFFICIENT):
            yield rubric.build_question(metric, seen, without_source=not gold.is_edit, variant=OFFICIAL_VARIANT)

    def _assess_points(self, judged_turn: JudgedTurn) -> Assessment:
        gold: PlanVizGold = judged_turn.turn.gold
        if not gold.is_edit and judged_turn.options.witness == "none":
            return rubric.build_points_question(judged_turn, None)
        return judged_turn.check(rubric.CORRECT, lambda blobs: self._check_points(judged_turn, blobs))

    def _check_points(self, judged_turn: JudgedTurn, blobs: Blobs) -> Sequence[Question | Verdict]:
        """Return the question about the points, or the verdict 0 if the image is nearly its source."""
        gold: PlanVizGold = judged_turn.turn.gold
        if gold.source is None or not _is_copy(gold.source, judged_turn.image, blobs):
            return [rubric.build_points_question(judged_turn, self._read_words(judged_turn, blobs))]
        reason = "the image is nearly the source again: no visible change was made"
        facts = PlanFacts((0,) * len(gold.points), official_input_differs=judged_turn.rubrics.official_prompts)
        assessments: list[Question | Verdict] = [
            judged_turn.verdict(rubric.CORRECT, 0.0, reason, detail=facts, score=0),
        ]
        if judged_turn.options.official:
            assessments.append(rubric.build_points_question(judged_turn, None, variant=OFFICIAL_VARIANT))
        return assessments

    def _read_words(self, judged_turn: JudgedTurn, blobs: Blobs) -> Sequence[str] | None:
        """Return the lines that OCR reads in the image; None if the judge is not told them."""
        if judged_turn.options.witness == "none" or judged_turn.rubrics.official_prompts:
            return None
        try:
            return [line.text for line in read_lines(judged_turn.image, blobs)]
        except (ImageError, StoreError):
            raise
        except Exception as error:  # the words are only a hint: the judge sees the image, whatever OCR does with it
            return [f"(the program could not read this picture: {type(error).__name__})"]

    def parse_text(self, question: Question, text: str) -> dict[str, Any] | None:
        """Read a reply to a released prompt, which is two lines of text."""
        if not question.text_only or text.lstrip().startswith(("{", "```")):
            return None
        max_score = rubric.MAX_SCORE
        if question.metrics == (rubric.CORRECT,):
            max_score = len(question.gold.points)
        return official_reading.parse_score(text, question.value_key, max_score)

    def to_scores(self, question: Question, parsed: dict[str, Any]) -> Sequence[Score]:
        if question.metrics == (rubric.CORRECT,) and not question.text_only:
            return [rubric.build_points_score(question, parsed, deduct=read_plan_facts(question).deduct)]
        scores = super().to_scores(question, parsed)
        if question.detail:
            return [replace(score, detail=question.detail) for score in scores]
        return scores

    def cluster_of(self, sample: str, groups: Mapping[str, str]) -> str:
        """Wordings of one task belong to one cluster."""
        return groups.get("of", sample)

    def headline(self, verdicts: Sequence[Verdict], groups: SampleGroups) -> WeightedMeans:
        """The plain mean over pairs of task and sub-task, each of which is the mean of its three metrics."""
        return tables.overall_terms(verdicts, groups)


def _is_copy(source: Image, image: Image, blobs: Blobs) -> bool:
    with blobs.decode_within_memory(source) as source_pixels, blobs.decode_within_memory(image) as pixels:
        return is_unchanged(source_pixels, pixels)
