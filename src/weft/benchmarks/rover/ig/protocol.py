"""ROVER-IG's protocol: one request about one picture; the model thinks in words, then makes a picture, and both are
judged.

A reply without a picture is asked for again, twice at most, more urgently. If none comes at all the task scores zero,
but for thinking that is there: that is judged. A picture without thinking scores 1 (zero) on process and alignment,
without a judge; a model that never shows any thinking cannot be judged on it, and has neither.

Under `official` what the released code has its judge look at is asked besides, for the official row: a missing text, or
what stands between whole tags where the thinking stands elsewhere."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from weft.benchmarks.base import Assessment, Benchmark, JudgedTurn, SampleGroups, WeightedMeans
from weft.benchmarks.official import OFFICIAL_VARIANT
from weft.benchmarks.paired_verdicts import PairedVerdicts
from weft.benchmarks.preparation import Preparation
from weft.benchmarks.presentation import Presentation
from weft.benchmarks.prompts import Rubrics
from weft.benchmarks.rover import agreement
from weft.benchmarks.rover.facts import RoverFacts, read_rover_facts
from weft.benchmarks.rover.ig import data, rubric, tables
from weft.benchmarks.rover.ig.data import RoverIGGold
from weft.benchmarks.rover.ig.tables import CAPPED_ALIGNMENT
from weft.benchmarks.rover.outputs import RoverOutputs
from weft.benchmarks.rover.task_messages import InsistOnImage, build_task_messages, read_instructions
from weft.benchmarks.rover.thinking import extract_tagged_thinking, extract_thinking
from weft.types import Dialogue, Image, Message, OfficialReading, Question, Sample, Table, Turn, Verdict
from weft.untrusted import dict_or_empty

Thinks = Annotated[
    Literal["yes", "no"],
    Meta(
        description="Whether the model is asked to think in words before it draws; no is for models that make pictures alone."
    ),
]
Official = Annotated[
    bool,
    Meta(
        description="Have the judge look at what the released code shows it too: a missing text, tags alone; for the official row."
    ),
]
WORDS = (rubric.PROCESS, rubric.ALIGNMENT, CAPPED_ALIGNMENT)  # metrics of what a model says


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

    def agreement_tables(self, found: PairedVerdicts) -> Iterable[Table]:
        return agreement.tables(
            found, {name: metric for name, metric in tables.COLUMNS.items() if metric != CAPPED_ALIGNMENT}, "figure8"
        )

    def describe_gold(self, gold: Any) -> list[str]:
        facts = dict_or_empty(gold)
        told = [str(facts.get("description") or ""), f"keywords: {facts['keywords']}" if facts.get("keywords") else ""]
        return [line for line in told if line]


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
    preparation = RoverIGPreparation(outputs=RoverOutputs)

    load = staticmethod(data.load)  # pyright: ignore[reportAssignmentType]
    tables = staticmethod(tables.tables)  # pyright: ignore[reportAssignmentType]

    def build_messages(
        self, sample: Sample, turn: Turn, dialogue: Dialogue, options: RoverIGOptions
    ) -> tuple[Message, ...]:
        goal: RoverIGGold = turn.gold
        how = read_instructions(HERE)["ask" if options.thinks == "yes" else "ask_plain"]
        return build_task_messages(how, turn.prompt_text, [goal.source])

    def questions(self, answered: JudgedTurn) -> Iterable[Assessment]:
        if answered.options.thinks == "yes":
            thinking = extract_thinking(answered.reply)
        else:
            thinking = ""
        made = answered.image
        seen: list[Assessment] = [
            self._about(metric, answered, thinking, made) for metric in rubric.METRICS if metric not in WORDS
        ]
        if answered.is_precomputed:
            saved = thinking
        else:
            saved = extract_tagged_thinking(answered.reply)
        if saved.split() == thinking.split():
            thinking = saved
        if thinking:
            unknown = (
                {"detail": RoverFacts(thinking_outside_tags=True)}
                if saved != thinking and not answered.options.official
                else {}
            )
            seen += [
                self._about(metric, answered, thinking, made, **unknown)
                for metric in (rubric.PROCESS, rubric.ALIGNMENT)
            ]
        else:
            why = "it shows no thinking"
            seen += [
                answered.verdict(metric, 0.0, why, detail=RoverFacts(no_text=True))
                for metric in (rubric.PROCESS, rubric.ALIGNMENT)
            ]
        if answered.options.official and (saved != thinking or not thinking):
            seen += [
                self._about(metric, answered, saved, made, variant=OFFICIAL_VARIANT)
                for metric in (rubric.PROCESS, rubric.ALIGNMENT)
            ]
        return seen

    def on_no_answer(self, answered: JudgedTurn) -> Iterable[Assessment]:
        """Zero, but for thinking that came without a picture. The released code leaves such a task out."""
        if answered.reply.outcome == "empty":
            thinking = extract_thinking(answered.reply)
        else:
            thinking = ""
        zero = list(super().on_no_answer(answered))
        if not thinking:
            return zero
        asked = self._about(rubric.PROCESS, answered, thinking, None)
        return [asked, *(one for one in zero if not (isinstance(one, Verdict) and one.metric == rubric.PROCESS))]

    def _about(self, metric: str, answered: JudgedTurn, thinking: str, made: Image | None, **more: Any) -> Question:
        known = {"detail": RoverFacts(no_image=True)} if made is None else {}
        return rubric.build_question(metric, answered, thinking, made=made, **known, **more)

    def to_scores(self, question: Question, found: dict[str, Any]) -> Any:
        marks = super().to_scores(question, found)
        if question.detail:
            return [replace(mark, detail=question.detail) for mark in marks]
        return marks

    def merge_variants(self, verdicts: Sequence[Verdict]) -> list[Verdict]:
        """Alignment again, held to one point above the picture's own score: the rubric asks for that, and the judge of
        one cannot know the other. What is said of the words of a model that has none is dropped, and kept beside the
        picture's score for the official row."""
        found = super().merge_variants(verdicts)
        if _is_silent(found):
            return list(_without_words(found))
        seen = {(one.sample, one.turn): one for one in found if one.metric == rubric.VISUAL}
        made: list[Verdict] = []
        for one in found:
            made.append(one)
            if one.metric == rubric.ALIGNMENT:
                made.append(_held(one, seen.get((one.sample, one.turn))))
        return made

    def headline(self, verdicts: Sequence[Verdict], groups: SampleGroups) -> WeightedMeans:
        """What the picture shows: the metric that every model has."""
        return [(1.0, [verdict for verdict in verdicts if verdict.metric == rubric.VISUAL])]


def _held(alignment: Verdict, visual: Verdict | None) -> Verdict:
    both = visual is not None and visual.value is not None and alignment.value is not None
    if not both:
        return replace(alignment, metric=CAPPED_ALIGNMENT, value=None, score=None, merged_from=())
    assert visual is not None and visual.value is not None and alignment.value is not None
    value = min(alignment.value, visual.value + 0.25)
    if value == alignment.value:
        told = alignment.reason
    else:
        told = f"held to one point above what the picture got; {alignment.reason}"
    return replace(
        alignment,
        metric=CAPPED_ALIGNMENT,
        value=value,
        score=1 + 4 * value,
        reason=told,
        merged_from=(),
        standard_deviation=None,
    )


def _is_silent(verdicts: Sequence[Verdict]) -> bool:
    """Whether there are pictures, and no thinking with any of them."""
    process = [one for one in verdicts if one.metric == rubric.PROCESS]
    thought = [one for one in process if one.by == "judge" and not read_rover_facts(one).no_image]
    return not thought and any(read_rover_facts(one).no_text for one in process)


def _without_words(verdicts: Sequence[Verdict]) -> Iterable[Verdict]:
    unsaid: dict[str, dict[str, OfficialReading]] = {}
    for one in verdicts:
        if one.metric in WORDS:
            kept = rubric.OFFICIAL.find_reading(one)
        else:
            kept = None
        if isinstance(kept, OfficialReading) and kept != OfficialReading():
            unsaid.setdefault(one.sample, {})[one.metric] = kept
    for one in verdicts:
        if one.metric == rubric.VISUAL and one.sample in unsaid:
            yield replace(one, detail=replace(read_rover_facts(one), official_readings=unsaid[one.sample]))
        elif one.metric not in WORDS:
            yield one
