"""ROVER-TG's protocol: a question about a picture or two, answered with a picture of one's own on the way (`visual`),
in words alone (`text`), or both, item by item, so that the two can be compared.

A reply without a picture is asked for again, twice at most. If none comes, the picture on the way and its alignment are
zero; the answer of the first reply counts as it is. A record without a true picture on the way owes no verdict about
it."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from weft.benchmarks.base import Assessment, Benchmark, JudgedTurn, SampleGroups, WeightedMeans
from weft.benchmarks.official import OFFICIAL_VARIANT
from weft.benchmarks.paired_verdicts import PairedVerdicts
from weft.benchmarks.preparation import Preparation
from weft.benchmarks.presentation import Presentation
from weft.benchmarks.prompts import Rubrics
from weft.benchmarks.rover import agreement
from weft.benchmarks.rover.facts import RoverFacts
from weft.benchmarks.rover.ig.rubric import ALIGNMENT
from weft.benchmarks.rover.outputs import RoverOutputs
from weft.benchmarks.rover.task_messages import InsistOnImage, build_task_messages, read_instructions
from weft.benchmarks.rover.tg import answers, data, paths, rubric, tables
from weft.benchmarks.rover.tg.data import VISUAL_TURN, RoverTGGold
from weft.benchmarks.rover.thinking import extract_text, extract_text_after_image
from weft.models.thinking import split_thinking
from weft.types import Dialogue, Message, Reply, Sample, Table, Turn, Verdict
from weft.untrusted import dict_or_empty

Mode = Annotated[
    Literal["visual", "text", "both"],
    Meta(
        description="Answer with a picture of one's own on the way, in words alone, or both on the same items, which are then paired."
    ),
]
Official = Annotated[
    bool,
    Meta(
        description="Have the judge look at what the released code shows it too, a missing text; for the official row."
    ),
]


HERE = Path(__file__).parent


class RoverTGOptions(Struct, frozen=True):
    mode: Mode = "visual"
    official: Official = False


class RoverTGPresentation(Presentation, frozen=True):
    def describe_options(self, options: RoverTGOptions) -> list[str]:
        return [options.mode, *(["official"] if options.official else [])]

    def describe_outputs(self, options: RoverTGOptions) -> list[str]:
        return self.describe_options(options)

    def canonical_group(self, axis: str, name: str) -> str:
        return data.canonical_group(axis, name)

    def agreement_tables(self, found: PairedVerdicts) -> Iterable[Table]:
        return agreement.tables(found, {"IR": rubric.INTERLEAVED, "Align.": ALIGNMENT}, "figure9")

    def describe_gold(self, gold: Any) -> list[str]:
        facts = dict_or_empty(gold)
        if facts.get("answer"):
            return [f"the answer: {facts['answer']}"]
        return []


class RoverTGPreparation(Preparation, frozen=True):
    def rubrics(self, benchmark: Benchmark, prompts: str) -> Rubrics:
        if prompts.startswith("official:"):
            return rubric.read_official_rubrics(
                Path(prompts.removeprefix("official:")), super().rubrics(benchmark, "weft")
            )
        return super().rubrics(benchmark, prompts)


class RoverTG(Benchmark):
    name = "rover-tg"
    version = "1"
    metrics = (rubric.INTERLEAVED, ALIGNMENT, rubric.ACCURACY, rubric.TRACK, *rubric.TEXT_ONLY_METRICS.values())
    Options = RoverTGOptions
    axes = ("scenario", "type")
    official = rubric.OFFICIAL
    follow_up = InsistOnImage(HERE)
    presentation = RoverTGPresentation(
        title="ROVER-TG",
        max_score=100.0,
        digits=1,
        turn_names=tuple(tables.MODES.values()),
        glossary={
            "IR": "Interleaved Reasoning: the intermediate image helps to answer the question",
            "Align.": "Reasoning Alignment: the answer follows from the intermediate image",
            "Acc.": "Accuracy: correct final answers, without embodied questions",
            "Track": "Track: how close the path of an embodied question is to the reference path",
            "AVG": "Average of the scores that a judge gave",
            "interleaved_reasoning": "IR: the intermediate image helps to answer the question",
            "reasoning_alignment": "Align.: the answer follows from the intermediate image",
            "accuracy": "Acc.: correct final answers",
            "track": "Track: how close the path is to the reference path",
            "accuracy_in_words": "Acc. of answers without an intermediate image",
            "track_in_words": "Track of answers without an intermediate image",
        },
    )
    preparation = RoverTGPreparation(outputs=RoverOutputs)

    load = staticmethod(data.load)  # pyright: ignore[reportAssignmentType]
    tables = staticmethod(tables.tables)  # pyright: ignore[reportAssignmentType]

    def includes(self, turn: Turn, options: RoverTGOptions) -> bool:
        return options.mode == "both" or (options.mode == "visual") == (turn.number == VISUAL_TURN)

    def build_messages(
        self, sample: Sample, turn: Turn, dialogue: Dialogue, options: RoverTGOptions
    ) -> tuple[Message, ...]:
        puzzle: RoverTGGold = turn.gold
        name = f"{'ask' if turn.number == VISUAL_TURN else 'text'}_{puzzle.kind.replace('-', '_')}"
        return build_task_messages(read_instructions(HERE)[name], turn.prompt_text, puzzle.input_images(turn.number))

    def metrics_for(self, turn: Turn) -> tuple[str, ...]:
        puzzle: RoverTGGold = turn.gold
        if puzzle.is_track:
            answer = rubric.TRACK
        else:
            answer = rubric.ACCURACY
        if turn.number != VISUAL_TURN:
            return (rubric.TEXT_ONLY_METRICS[answer],)
        return (*((rubric.INTERLEAVED,) if puzzle.has_judgeable_image else ()), ALIGNMENT, answer)

    def questions(self, answered: JudgedTurn) -> Iterable[Assessment]:
        answer = self._answer(answered)
        if answered.turn.number != VISUAL_TURN:
            return [answer]
        due = [metric for metric in self.metrics_for(answered.turn) if metric in (rubric.INTERLEAVED, ALIGNMENT)]
        made = answered.reply.last_image
        said = extract_text(answered.reply)
        if made is None:
            why = "it made no picture"
            return [answer, *(answered.verdict(metric, 0.0, why, by="failure") for metric in due)]
        asked: list[Assessment] = [
            rubric.build_question(metric, answered, made, said)
            for metric in due
            if said or metric == rubric.INTERLEAVED
        ]
        if said:
            return [answer, *asked]
        silent = answered.verdict(ALIGNMENT, 0.0, "it gives no answer in words", detail=RoverFacts(no_text=True))
        theirs = (
            [rubric.build_question(ALIGNMENT, answered, made, "", variant=OFFICIAL_VARIANT)]
            if answered.options.official
            else []
        )
        return [answer, *asked, silent, *theirs]

    def _answer(self, answered: JudgedTurn) -> Verdict:
        puzzle: RoverTGGold = answered.turn.gold
        said = extract_answer_text(answered.reply)
        metric = self.metrics_for(answered.turn)[-1]
        if puzzle.is_track:
            found = paths.score_path(said, puzzle.answer, puzzle.source.width, puzzle.source.height)
            if found is None:
                return answered.verdict(metric, 0.0, "it names no path", by="failure")
            share, away = found
            why = f"its path lies {100 * away:.1f}% of the diagonal away on average"
            return answered.verdict(metric, share, why, detail=RoverFacts(path_distance=away))
        if not said:
            return answered.verdict(metric, 0.0, "it gives no answer in words", by="failure")
        right = answers.is_correct(puzzle.kind, said, puzzle.answer)
        return answered.verdict(
            metric, float(right), f"said {answers.extract_final_answer(said)[:200]!r}; {puzzle.answer[:200]!r} is right"
        )

    def headline(self, verdicts: Sequence[Verdict], groups: SampleGroups) -> WeightedMeans:
        """Whether the answers are right, with a picture on the way where they were asked for so."""
        with_picture = [verdict for verdict in verdicts if verdict.metric == rubric.ACCURACY]
        in_words = [verdict for verdict in verdicts if verdict.metric == rubric.TEXT_ONLY_METRICS[rubric.ACCURACY]]
        return [(1.0, with_picture or in_words)]


def extract_answer_text(reply: Reply) -> str:
    """The words that an answer is taken from, thinking aside: all of them where it is marked, else those after the last
    picture."""
    whole = split_thinking(extract_text(reply))[1] or extract_text(reply)
    after = split_thinking(extract_text_after_image(reply))[1]
    if answers.FINAL_ANSWER_MARKER.search(whole):
        return whole
    return after or whole
