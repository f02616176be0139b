"""ROVER-TG's protocol: a question about one or two images, answered with an intermediate image (`visual`), in text
alone (`text`), or both, item by item, so that the two can be compared. With `given` the reference image stands where
the model's own would: an upper bound on what an intermediate image can gain (paper, Appendix B).

A reply without an image is asked for again, twice at most. If none comes, the intermediate image and its alignment are
zero; the answer of the first reply counts as it is. A record without a reference image gets no verdict about the
intermediate image.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from weft.benchmarks.base import Assessment, Benchmark, JudgedTurn, SampleGroups, WeightedMeans
from weft.benchmarks.official import OFFICIAL_VARIANT, find_released_image
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
from weft.benchmarks.rover.tg.data import GIVEN_TURN, TEXT_TURN, VISUAL_TURN, RoverTGGold
from weft.benchmarks.rover.tg.statistics import STATISTICS
from weft.benchmarks.rover.thinking import extract_text, extract_text_after_image
from weft.models.thinking import split_thinking
from weft.types import Dialogue, Message, Reply, Sample, Table, Text, Turn, Verdict
from weft.untrusted import dict_or_empty

Mode = Annotated[
    Literal["visual", "text", "both", "given", "all"],
    Meta(
        description="Answer with an intermediate image of the model's own, in text alone, or both on the same items, "
        "which are then paired; with the reference image in place of its own (given); or all three."
    ),
]
Official = Annotated[
    bool,
    Meta(
        description="Also ask the judge about what the released code shows it (a missing text), for the official row."
    ),
]
HERE = Path(__file__).parent
MODE_TURNS = {
    "visual": (VISUAL_TURN,),
    "text": (TEXT_TURN,),
    "both": (VISUAL_TURN, TEXT_TURN),
    "given": (GIVEN_TURN,),
    "all": (VISUAL_TURN, TEXT_TURN, GIVEN_TURN),
}


class RoverTGOptions(Struct, frozen=True):
    mode: Mode = "visual"
    official: Official = False


class RoverTGPresentation(Presentation, frozen=True):
    def describe_options(self, options: RoverTGOptions) -> list[str]:
        if options.official:
            return [options.mode, "official"]
        return [options.mode]

    def describe_outputs(self, options: RoverTGOptions) -> list[str]:
        return self.describe_options(options)

    def canonical_group(self, axis: str, name: str) -> str:
        return data.canonical_group(axis, name)

    def agreement_tables(self, paired: PairedVerdicts) -> Iterable[Table]:
        return agreement.tables(paired, {"IR": rubric.INTERLEAVED, "Align.": ALIGNMENT}, "figure9")

    def describe_gold(self, gold: Any) -> list[str]:
        answer = dict_or_empty(gold).get("answer")
        if answer:
            return [f"the answer: {answer}"]
        return []


class RoverTGPreparation(Preparation, frozen=True):
    def rubrics(self, benchmark: Benchmark, prompts: str) -> Rubrics:
        if prompts.startswith("official:"):
            checkout = Path(prompts.removeprefix("official:"))
            return rubric.read_official_rubrics(checkout, super().rubrics(benchmark, "weft"))
        return super().rubrics(benchmark, prompts)


class RoverTG(Benchmark):
    name = "rover-tg"
    version = "1"
    metrics = (
        rubric.INTERLEAVED,
        ALIGNMENT,
        rubric.ACCURACY,
        rubric.TRACK,
        *rubric.TEXT_ONLY_METRICS.values(),
        *rubric.GIVEN_METRICS.values(),
    )
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
            "accuracy_given": "Acc. of answers after the reference image",
            "track_given": "Track of answers after the reference image",
        },
    )
    preparation = RoverTGPreparation(outputs=RoverOutputs, statistics=STATISTICS)

    load = staticmethod(data.load)  # pyright: ignore[reportAssignmentType]
    tables = staticmethod(tables.tables)  # pyright: ignore[reportAssignmentType]

    def includes(self, turn: Turn, options: RoverTGOptions) -> bool:
        return turn.number in MODE_TURNS[options.mode]

    def build_messages(
        self, sample: Sample, turn: Turn, dialogue: Dialogue, options: RoverTGOptions
    ) -> tuple[Message, ...]:
        gold: RoverTGGold = turn.gold
        prefix = "ask"
        if turn.number == TEXT_TURN:
            prefix = "text"
        instruction = read_instructions(HERE)[f"{prefix}_{gold.kind.replace('-', '_')}"]
        messages = build_task_messages(instruction, turn.prompt_text, gold.input_images(turn.number))
        if turn.number != GIVEN_TURN or gold.reference is None:
            return messages
        go_on = read_instructions(HERE / "given")["go_on"]
        return (*messages, Message("assistant", (gold.reference,)), Message("user", (Text(go_on),)))

    def metrics_for(self, turn: Turn) -> tuple[str, ...]:
        """Return the metrics of a turn; that of the answer is the last."""
        gold: RoverTGGold = turn.gold
        answer_metric = rubric.ACCURACY
        if gold.is_track:
            answer_metric = rubric.TRACK
        if turn.number == TEXT_TURN:
            return (rubric.TEXT_ONLY_METRICS[answer_metric],)
        if turn.number == GIVEN_TURN:
            return (rubric.GIVEN_METRICS[answer_metric],)
        if gold.has_judgeable_image:
            return (rubric.INTERLEAVED, ALIGNMENT, answer_metric)
        return (ALIGNMENT, answer_metric)

    def questions(self, judged_turn: JudgedTurn) -> Iterable[Assessment]:
        assessments: list[Assessment] = [self._assess_answer(judged_turn)]
        if judged_turn.turn.number != VISUAL_TURN:
            return assessments
        *judged_metrics, _ = self.metrics_for(judged_turn.turn)
        image = judged_turn.reply.last_image
        text = extract_text(judged_turn.reply)
        for metric in judged_metrics:
            if image is None:
                assessments.append(judged_turn.verdict(metric, 0.0, "it made no image", by="failure"))
            elif text or metric == rubric.INTERLEAVED:
                assessments.append(rubric.build_question(metric, judged_turn, image, text))
        if image is not None and not text:
            facts = RoverFacts(no_text=True)
            assessments.append(judged_turn.verdict(ALIGNMENT, 0.0, "it gives no answer in text", detail=facts))
            if judged_turn.options.official:
                assessments.append(rubric.build_question(ALIGNMENT, judged_turn, image, "", variant=OFFICIAL_VARIANT))
        return assessments

    def on_failed(self, judged_turn: JudgedTurn) -> Iterable[Assessment]:
        """Yield unscored verdicts, and under `official` what the released code asks about outputs that weft cannot
        read."""
        yield from super().on_failed(judged_turn)
        image = find_released_image(judged_turn.reply)
        if image is None or not judged_turn.options.official or judged_turn.turn.number != VISUAL_TURN:
            return
        text = extract_text(judged_turn.reply)
        *judged_metrics, _ = self.metrics_for(judged_turn.turn)
        for metric in judged_metrics:
            yield rubric.build_question(metric, judged_turn, image, text, variant=OFFICIAL_VARIANT)

    def _assess_answer(self, judged_turn: JudgedTurn) -> Verdict:
        """Return the verdict on the answer, which needs no judge."""
        gold: RoverTGGold = judged_turn.turn.gold
        text = extract_answer_text(judged_turn.reply)
        metric = self.metrics_for(judged_turn.turn)[-1]
        if gold.is_track:
            result = paths.score_path(text, gold.answer, gold.source.width, gold.source.height)
            if result is None:
                return judged_turn.verdict(metric, 0.0, "it names no path", by="failure")
            share, distance = result
            reason = f"its path is {100 * distance:.1f}% of the diagonal away on average"
            return judged_turn.verdict(metric, share, reason, detail=RoverFacts(path_distance=distance))
        if not text:
            return judged_turn.verdict(metric, 0.0, "it gives no answer in text", by="failure")
        is_correct = answers.is_correct(gold.kind, text, gold.answer)
        answer = answers.extract_final_answer(text)
        reason = f"answered {answer[:200]!r}; {gold.answer[:200]!r} is correct"
        return judged_turn.verdict(metric, float(is_correct), reason)

    def headline(self, verdicts: Sequence[Verdict], groups: SampleGroups) -> WeightedMeans:
        """Accuracy with an intermediate image of its own; else in text alone; else after the reference image."""
        metrics = (
            rubric.ACCURACY,
            rubric.TEXT_ONLY_METRICS[rubric.ACCURACY],
            rubric.GIVEN_METRICS[rubric.ACCURACY],
        )
        for metric in metrics:
            answers_in_mode = [verdict for verdict in verdicts if verdict.metric == metric]
            if answers_in_mode:
                return [(1.0, answers_in_mode)]
        return [(1.0, ())]


def extract_answer_text(reply: Reply) -> str:
    """Return the text that an answer is read from, without thinking: all of it if the answer is marked, else the text
    after the last image."""
    text = extract_text(reply)
    answer = split_thinking(text)[1] or text
    if answers.FINAL_ANSWER_MARKER.search(answer):
        return answer
    return split_thinking(extract_text_after_image(reply))[1] or answer
