"""ROVER-IG's protocol: one request about one picture; the model thinks in words, then makes a picture, and both are judged.

A reply without a picture is asked for again, twice at most, more urgently. If none comes at all the task scores zero, but for thinking
that is there: that is judged. A picture without thinking scores 1 (zero) on process and alignment, without a judge; a model that never
shows any thinking cannot be judged on it, and has neither.

Under `official` what the released code has its judge look at is asked besides, for the official row: a missing text, or what stands
between whole tags where the thinking stands elsewhere.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from weft.benchmarks.agreed import Agreed
from weft.benchmarks.base import Answered, Benchmark, Groups, Item, Terms
from weft.benchmarks.official import VARIANT
from weft.benchmarks.preparation import Preparation
from weft.benchmarks.presentation import Presentation
from weft.benchmarks.prompts import Rubrics
from weft.benchmarks.rover import agreement
from weft.benchmarks.rover.asking import InsistOnImage, instructions, request
from weft.benchmarks.rover.facts import RoverFacts, rover_facts
from weft.benchmarks.rover.ig import data, rubric, tables
from weft.benchmarks.rover.ig.data import Goal
from weft.benchmarks.rover.ig.tables import HELD
from weft.benchmarks.rover.outputs import Outputs
from weft.benchmarks.rover.thinking import as_saved, thinking_of
from weft.types import Dialogue, Image, Message, Question, Reading, Sample, Table, Turn, Verdict
from weft.untrusted import fields

Thinks = Annotated[
    Literal["yes", "no"],
    Meta(description="Whether the model is asked to think in words before it draws; no is for models that make pictures alone."),
]
Official = Annotated[
    bool, Meta(description="Have the judge look at what the released code shows it too: a missing text, tags alone; for the official row.")
]
WORDS = (rubric.PROCESS, rubric.ALIGNMENT, HELD)  # metrics of what a model says


HERE = Path(__file__).parent


class IGOptions(Struct, frozen=True):
    thinks: Thinks = "yes"
    official: Official = False


class IGPresentation(Presentation, frozen=True):
    def describe_outputs(self, options: IGOptions) -> list[str]:
        return ["official"] if options.official else []

    def canonical_group(self, axis: str, name: str) -> str:
        return data.canonical(axis, name)

    def agreement_tables(self, found: Agreed) -> Iterable[Table]:
        return agreement.tables(found, {name: metric for name, metric in tables.COLUMNS.items() if metric != HELD}, "figure8")

    def describe_gold(self, gold: Any) -> list[str]:
        facts = fields(gold)
        told = [str(facts.get("description") or ""), f"keywords: {facts['keywords']}" if facts.get("keywords") else ""]
        return [line for line in told if line]


class IGPreparation(Preparation, frozen=True):
    def rubrics(self, benchmark: Benchmark, prompts: str) -> Rubrics:
        if prompts.startswith("official:"):
            return rubric.official(Path(prompts.removeprefix("official:")))
        return super().rubrics(benchmark, prompts)


class RoverIG(Benchmark):
    name = "rover-ig"
    version = "1"
    metrics = (*rubric.METRICS, HELD)
    derived_metrics = (HELD,)
    Options = IGOptions
    axes = ("dimension", "type")
    official = rubric.OFFICIAL
    follow_up = InsistOnImage(HERE)
    presentation = IGPresentation(title="ROVER-IG", max_score=100.0, digits=1)
    preparation = IGPreparation(outputs=Outputs)

    load = staticmethod(data.load)  # pyright: ignore[reportAssignmentType]
    tables = staticmethod(tables.tables)  # pyright: ignore[reportAssignmentType]

    def build_messages(self, sample: Sample, turn: Turn, dialogue: Dialogue, options: IGOptions) -> tuple[Message, ...]:
        goal: Goal = turn.gold
        how = instructions(HERE)["ask" if options.thinks == "yes" else "ask_plain"]
        return request(how, turn.words, [goal.source])

    def questions(self, answered: Answered) -> Iterable[Item]:
        thinking, made = thinking_of(answered.reply) if answered.options.thinks == "yes" else "", answered.made
        seen: list[Item] = [self._about(metric, answered, thinking, made) for metric in rubric.METRICS if metric not in WORDS]
        saved = thinking if answered.is_output else as_saved(answered.reply)
        thinking = saved if saved.split() == thinking.split() else thinking
        if thinking:
            unknown = {"detail": RoverFacts(elsewhere=True)} if saved != thinking and not answered.options.official else {}
            seen += [self._about(metric, answered, thinking, made, **unknown) for metric in (rubric.PROCESS, rubric.ALIGNMENT)]
        else:
            why = "it shows no thinking"
            seen += [answered.verdict(metric, 0.0, why, detail=RoverFacts(silent=True)) for metric in (rubric.PROCESS, rubric.ALIGNMENT)]
        if answered.options.official and (saved != thinking or not thinking):
            seen += [self._about(metric, answered, saved, made, variant=VARIANT) for metric in (rubric.PROCESS, rubric.ALIGNMENT)]
        return seen

    def on_no_answer(self, answered: Answered) -> Iterable[Item]:
        """Zero, but for thinking that came without a picture. The released code leaves such a task out."""
        thinking = thinking_of(answered.reply) if answered.reply.outcome == "empty" else ""
        zero = list(super().on_no_answer(answered))
        if not thinking:
            return zero
        asked = self._about(rubric.PROCESS, answered, thinking, None)
        return [asked, *(one for one in zero if not (isinstance(one, Verdict) and one.metric == rubric.PROCESS))]

    def _about(self, metric: str, answered: Answered, thinking: str, made: Image | None, **more: Any) -> Question:
        known = {"detail": RoverFacts(no_picture=True)} if made is None else {}
        return rubric.about(metric, answered, thinking, made=made, **known, **more)

    def to_scores(self, question: Question, found: dict[str, Any]) -> Any:
        marks = super().to_scores(question, found)
        return [replace(mark, detail=question.detail) for mark in marks] if question.detail else marks

    def merge_variants(self, verdicts: Sequence[Verdict]) -> list[Verdict]:
        """Alignment again, held to one point above the picture's own score: the rubric asks for that, and the judge of one cannot know the
        other. What is said of the words of a model that has none is dropped, and kept beside the picture's score for the official row."""
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

    def headline(self, verdicts: Sequence[Verdict], groups: Groups) -> Terms:
        """What the picture shows: the metric that every model has."""
        return [(1.0, [verdict for verdict in verdicts if verdict.metric == rubric.VISUAL])]


def _held(alignment: Verdict, visual: Verdict | None) -> Verdict:
    both = visual is not None and visual.value is not None and alignment.value is not None
    if not both:
        return replace(alignment, metric=HELD, value=None, score=None, behind=())
    assert visual is not None and visual.value is not None and alignment.value is not None
    value = min(alignment.value, visual.value + 0.25)
    told = alignment.reason if value == alignment.value else f"held to one point above what the picture got; {alignment.reason}"
    return replace(alignment, metric=HELD, value=value, score=1 + 4 * value, reason=told, behind=(), spread=None)


def _is_silent(verdicts: Sequence[Verdict]) -> bool:
    """Whether there are pictures, and no thinking with any of them."""
    process = [one for one in verdicts if one.metric == rubric.PROCESS]
    thought = [one for one in process if one.by == "judge" and not rover_facts(one).no_picture]
    return not thought and any(rover_facts(one).silent for one in process)


def _without_words(verdicts: Sequence[Verdict]) -> Iterable[Verdict]:
    unsaid: dict[str, dict[str, Reading]] = {}
    for one in verdicts:
        kept = rubric.OFFICIAL.kept(one) if one.metric in WORDS else None
        if isinstance(kept, Reading) and kept != Reading():
            unsaid.setdefault(one.sample, {})[one.metric] = kept
    for one in verdicts:
        if one.metric == rubric.VISUAL and one.sample in unsaid:
            yield replace(one, detail=replace(rover_facts(one), unsaid=unsaid[one.sample]))
        elif one.metric not in WORDS:
            yield one
