"""ROVER-IG's protocol: one request about one image; the model thinks in text, then makes an image; both are judged.

A reply without an image is asked for again, twice at most, more urgently. If no image comes the task scores zero, but
thinking that came is judged. An image without thinking scores 1 (zero) on process and alignment, without a judge; a
model that never shows any thinking cannot be judged on it, and has neither metric.

Under `official` the judge is also asked about what the released code shows it, for the official row: a missing text, or
only the text between whole tags where the thinking is elsewhere.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from weft.benchmarks.base import Assessment, Benchmark, JudgedTurn, SampleGroups, WeightedMeans
from weft.benchmarks.official import OFFICIAL_VARIANT, Unscored, find_released_image
from weft.benchmarks.paired_verdicts import PairedVerdicts
from weft.benchmarks.preparation import Preparation
from weft.benchmarks.presentation import Presentation
from weft.benchmarks.prompts import Rubrics
from weft.benchmarks.rover import agreement
from weft.benchmarks.rover.facts import RoverFacts, read_rover_facts
from weft.benchmarks.rover.ig import data, rubric, tables
from weft.benchmarks.rover.ig.data import RoverIGGold
from weft.benchmarks.rover.ig.statistics import STATISTICS
from weft.benchmarks.rover.ig.tables import CAPPED_ALIGNMENT
from weft.benchmarks.rover.outputs import RoverOutputs
from weft.benchmarks.rover.task_messages import InsistOnImage, build_task_messages, read_instructions
from weft.benchmarks.rover.thinking import extract_tagged_thinking, extract_thinking
from weft.types import Dialogue, Message, OfficialReading, Question, Sample, Score, Table, Turn, Verdict
from weft.untrusted import dict_or_empty

Thinks = Annotated[
    Literal["yes", "no"],
    Meta(
        description="Whether the model is asked to think in text before it makes an image; no is for models that make "
        "images alone."
    ),
]
Official = Annotated[
    bool,
    Meta(
        description="Also ask the judge about what the released code shows it (a missing text, only the text between "
        "tags), for the official row."
    ),
]
THINKING_METRICS = (rubric.PROCESS, rubric.ALIGNMENT)
TEXT_METRICS = (*THINKING_METRICS, CAPPED_ALIGNMENT)
IMAGE_METRICS = (rubric.VISUAL, rubric.CONSISTENCY, rubric.QUALITY)
HERE = Path(__file__).parent


class RoverIGOptions(Struct, frozen=True):
    thinks: Thinks = "yes"
    official: Official = False


class RoverIGPresentation(Presentation, frozen=True):
    def describe_outputs(self, options: RoverIGOptions) -> list[str]:
        if options.official:
            return ["official"]
        return []

    def canonical_group(self, axis: str, name: str) -> str:
        return data.canonical_group(axis, name)

    def agreement_tables(self, paired: PairedVerdicts) -> Iterable[Table]:
        metrics = {name: metric for name, metric in tables.COLUMNS.items() if metric != CAPPED_ALIGNMENT}
        return agreement.tables(paired, metrics, "figure8")

    def describe_gold(self, gold: Any) -> list[str]:
        fields = dict_or_empty(gold)
        lines: list[str] = []
        if fields.get("description"):
            lines.append(str(fields["description"]))
        if fields.get("keywords"):
            lines.append(f"keywords: {fields['keywords']}")
        return lines


class RoverIGPreparation(Preparation, frozen=True):
    def rubrics(self, benchmark: Benchmark, prompts: str) -> Rubrics:
        if prompts.startswith("official:"):
            return rubric.read_official_rubrics(Path(prompts.removeprefix("official:")))
        return super().rubrics(benchmark, prompts)


class RoverIG(Benchmark):
    name = "rover-ig"
    version = "1"
    metrics = (*rubric.METRICS, CAPPED_ALIGNMENT)
    derived_metrics = (CAPPED_ALIGNMENT,)
    Options = RoverIGOptions
    axes = ("dimension", "type")
    official = rubric.OFFICIAL
    follow_up = InsistOnImage(HERE)
    presentation = RoverIGPresentation(
        title="ROVER-IG",
        max_score=100.0,
        digits=1,
        glossary={
            "RP": "Reasoning Process: the written reasoning is sound and complete",
            "Align.": "Reasoning Alignment: the image shows what the written reasoning announces",
            "Align. held": "Reasoning Alignment, at most one point (25) above RV",
            "RV": "Reasoning Visual: the image shows the expected result",
            "VC": "Visual Consistency: what the request does not touch stays the same",
            "IQ": "Image Quality: structure, sharpness, artifacts, naturalness",
            "AVG": "Average of all scores of the five metrics",
            "reasoning_process": "RP: the written reasoning is sound and complete",
            "reasoning_visual": "RV: the image shows the expected result",
            "reasoning_alignment": "Align.: the image shows what the written reasoning announces",
            "visual_consistency": "VC: what the request does not touch stays the same",
            "image_quality": "IQ: structure, sharpness, artifacts, naturalness",
            "alignment_held": "Align. held: reasoning alignment, at most one point (25) above RV",
        },
    )
    preparation = RoverIGPreparation(outputs=RoverOutputs, statistics=STATISTICS)

    load = staticmethod(data.load)  # pyright: ignore[reportAssignmentType]
    tables = staticmethod(tables.tables)  # pyright: ignore[reportAssignmentType]

    def build_messages(
        self, sample: Sample, turn: Turn, dialogue: Dialogue, options: RoverIGOptions
    ) -> tuple[Message, ...]:
        gold: RoverIGGold = turn.gold
        instruction = "ask_plain"
        if options.thinks == "yes":
            instruction = "ask"
        return build_task_messages(read_instructions(HERE)[instruction], turn.prompt_text, [gold.source])

    def questions(self, judged_turn: JudgedTurn) -> Iterable[Assessment]:
        image = judged_turn.image
        thinking = ""
        if judged_turn.options.thinks == "yes":
            thinking = extract_thinking(judged_turn.reply)
        assessments: list[Assessment] = [
            rubric.build_question(metric, judged_turn, thinking, image=image) for metric in IMAGE_METRICS
        ]
        released_thinking = thinking  # what the released scripts would store
        if not judged_turn.is_precomputed:
            released_thinking = extract_tagged_thinking(judged_turn.reply)
        if released_thinking.split() == thinking.split():
            thinking = released_thinking
        assessments += self._assess_thinking(judged_turn, thinking, released_thinking)
        if judged_turn.options.official and (released_thinking != thinking or not thinking):
            for metric in THINKING_METRICS:
                question = rubric.build_question(
                    metric, judged_turn, released_thinking, image=image, variant=OFFICIAL_VARIANT
                )
                assessments.append(question)
        return assessments

    def _assess_thinking(self, judged_turn: JudgedTurn, thinking: str, released_thinking: str) -> list[Assessment]:
        assessments: list[Assessment] = []
        detail: RoverFacts | None = None
        if released_thinking != thinking and not judged_turn.options.official:
            detail = RoverFacts(thinking_outside_tags=True)
        for metric in THINKING_METRICS:
            if thinking:
                question = rubric.build_question(metric, judged_turn, thinking, image=judged_turn.image, detail=detail)
                assessments.append(question)
            else:
                verdict = judged_turn.verdict(metric, 0.0, "it shows no thinking", detail=RoverFacts(no_text=True))
                assessments.append(verdict)
        return assessments

    def on_no_answer(self, judged_turn: JudgedTurn) -> Iterable[Assessment]:
        """Zero, but thinking that came without an image is judged. The released code leaves such a task out."""
        zeros = list(super().on_no_answer(judged_turn))
        thinking = ""
        if judged_turn.reply.outcome == "empty":
            thinking = extract_thinking(judged_turn.reply)
        if not thinking:
            return zeros
        question = rubric.build_question(
            rubric.PROCESS, judged_turn, thinking, image=None, detail=RoverFacts(no_image=True)
        )
        others = [zero for zero in zeros if not (isinstance(zero, Verdict) and zero.metric == rubric.PROCESS)]
        return [question, *others]

    def on_failed(self, judged_turn: JudgedTurn) -> Iterable[Assessment]:
        """Yield unscored verdicts, and under `official` what the released code asks about outputs that weft cannot
        read. It sends a broken image as it is, which no judge accepts: that leaves the process, judged without one."""
        yield from super().on_failed(judged_turn)
        if not (judged_turn.options.official and judged_turn.is_precomputed and judged_turn.reply.parts):
            return
        image = find_released_image(judged_turn.reply)
        thinking = ""
        if judged_turn.options.thinks == "yes":
            thinking = judged_turn.reply.thoughts
        metrics = (rubric.PROCESS,) if image is None else rubric.METRICS
        for metric in metrics:
            yield rubric.build_question(metric, judged_turn, thinking, image=image, variant=OFFICIAL_VARIANT)

    def to_scores(self, question: Question, parsed: dict[str, Any]) -> Sequence[Score]:
        scores = super().to_scores(question, parsed)
        if question.detail:
            return [replace(score, detail=question.detail) for score in scores]
        return scores

    def merge_variants(self, verdicts: Sequence[Verdict]) -> list[Verdict]:
        """Merge variants, and add alignment capped at one point above the image's own score.

        The rubric asks for the cap, and the judge of one metric cannot know the other. If the model never shows
        thinking, verdicts about text are dropped, and stored with the image's score for the official row.
        """
        merged = super().merge_variants(verdicts)
        if _never_shows_thinking(merged):
            return list(_drop_text_metrics(merged))
        visual: dict[tuple[str, int], Verdict] = {}
        for verdict in merged:
            if verdict.metric == rubric.VISUAL:
                visual[verdict.sample, verdict.turn] = verdict
        with_capped: list[Verdict] = []
        for verdict in merged:
            with_capped.append(verdict)
            if verdict.metric == rubric.ALIGNMENT:
                with_capped.append(_cap_alignment(verdict, visual.get((verdict.sample, verdict.turn))))
        return with_capped

    def headline(self, verdicts: Sequence[Verdict], groups: SampleGroups) -> WeightedMeans:
        """The score of the image's content: the metric that every model has."""
        return [(1.0, [verdict for verdict in verdicts if verdict.metric == rubric.VISUAL])]


def _cap_alignment(alignment: Verdict, visual: Verdict | None) -> Verdict:
    if visual is None or visual.value is None or alignment.value is None:
        return replace(alignment, metric=CAPPED_ALIGNMENT, value=None, score=None, merged_from=())
    value = min(alignment.value, visual.value + 0.25)
    reason = alignment.reason
    if value != alignment.value:
        reason = f"capped at one point above the image's score; {reason}"
    return replace(
        alignment,
        metric=CAPPED_ALIGNMENT,
        value=value,
        score=1 + 4 * value,
        reason=reason,
        merged_from=(),
        standard_deviation=None,
    )


def _never_shows_thinking(verdicts: Sequence[Verdict]) -> bool:
    """Whether there are images, and no thinking with any of them."""
    is_missing = False
    for verdict in verdicts:
        if verdict.metric != rubric.PROCESS:
            continue
        facts = read_rover_facts(verdict)
        if verdict.by == "judge" and not facts.no_image:
            return False
        is_missing = is_missing or facts.no_text
    return is_missing


def _drop_text_metrics(verdicts: Sequence[Verdict]) -> Iterable[Verdict]:
    """Yield the verdicts about images; those about text are stored with them as the released code would read them."""
    readings: dict[str, dict[str, OfficialReading]] = {}
    for verdict in verdicts:
        if verdict.metric in TEXT_METRICS:
            reading = rubric.OFFICIAL.find_reading(verdict)
            if isinstance(reading, Unscored):
                reading = OfficialReading(failed=True)
            if isinstance(reading, OfficialReading) and reading != OfficialReading():
                readings.setdefault(verdict.sample, {})[verdict.metric] = reading
    for verdict in verdicts:
        if verdict.metric == rubric.VISUAL and verdict.sample in readings:
            facts = replace(read_rover_facts(verdict), official_readings=readings[verdict.sample])
            yield replace(verdict, detail=facts)
        elif verdict.metric not in TEXT_METRICS:
            yield verdict
