"""GenEval 2's protocol (Soft-TIFA): one image of a prompt, and a question about each of its atoms.

An atom's score is the probability that a judge gives to the right answer. A prompt has two scores: the arithmetic mean
of its atoms (AM), and their geometric mean (GM), which is near the probability that all are right (arXiv 2512.16853).
"""

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from weft.benchmarks.base import (
    Assessment,
    Benchmark,
    JudgedTurn,
    SampleGroups,
    WeightedMeans,
    average_variants,
)
from weft.benchmarks.geneval2 import data, rubric, tables
from weft.benchmarks.geneval2.data import ATOMS, AtomGold
from weft.benchmarks.geneval2.outputs import GenEval2Outputs
from weft.benchmarks.preparation import Preparation
from weft.benchmarks.presentation import Presentation
from weft.types import Dialogue, LoadedDataset, Message, Question, Sample, Score, Turn, Verdict
from weft.untrusted import dict_or_empty, list_or_empty

GM = "gm"


class GenEval2Presentation(Presentation, frozen=True):
    def describe_gold(self, gold: Any) -> list[str]:
        entries = map(dict_or_empty, list_or_empty(dict_or_empty(gold).get("questions")))
        return [f"{entry.get('text')} {entry.get('answer')}" for entry in entries]


class GenEval2Preparation(Preparation, frozen=True):
    def describe_data(self, dataset: LoadedDataset) -> list[str]:
        counts: Counter[str] = Counter()
        for sample in dataset.samples:
            gold: AtomGold = sample.turns[0].gold
            counts.update(question.skill for question in gold.questions)
        skills = ", ".join(f"{skill} {counts[skill]}" for skill in data.SKILLS if counts[skill])
        return [f"{len(dataset.samples)} prompts, {counts.total():,} questions: {skills}"]


class GenEval2(Benchmark):
    name = "geneval2"
    version = "1"
    metrics = (rubric.AM, GM)
    derived_metrics = (GM,)
    axes = ("atoms",)
    presentation = GenEval2Presentation(
        title="GenEval 2",
        axis_names={"atoms": tuple(map(str, ATOMS))},
        max_score=100.0,
        digits=1,
        glossary={
            **{column: f"Mean over questions about {skill}s" for column, skill in tables.SKILL_COLUMNS.items()},
            "AM": "Mean over prompts of the arithmetic mean of their questions",
            "GM": "Mean over prompts of the geometric mean of their questions",
            rubric.AM: "Arithmetic mean over the questions about an image of the probability of the right answer",
            GM: "Geometric mean of the same",
        },
    )
    preparation = GenEval2Preparation(outputs=GenEval2Outputs)

    load = staticmethod(data.load)  # pyright: ignore[reportAssignmentType]
    tables = staticmethod(tables.tables)  # pyright: ignore[reportAssignmentType]

    def build_messages(self, sample: Sample, turn: Turn, dialogue: Dialogue, options: Any) -> tuple[Message, ...]:
        return (Message("user", turn.prompt),)

    def questions(self, judged_turn: JudgedTurn) -> Iterable[Assessment]:
        return rubric.build_questions(judged_turn)

    def on_no_answer(self, judged_turn: JudgedTurn) -> Iterable[Assessment]:
        """No image: each of its questions has the answer no."""
        reply = judged_turn.reply
        reason = f"{reply.outcome}: {reply.reason}" if reply.reason else str(reply.outcome)
        for _, variant, facts in rubric.list_atoms(judged_turn):
            yield judged_turn.verdict(rubric.AM, 0.0, reason, by="failure", detail=facts, variant=variant)

    def on_failed(self, judged_turn: JudgedTurn) -> Iterable[Assessment]:
        for _, variant, facts in rubric.list_atoms(judged_turn):
            yield judged_turn.verdict(rubric.AM, None, judged_turn.reply.reason, detail=facts, variant=variant)

    def parse_text(self, question: Question, text: str) -> dict[str, Any] | None:
        return rubric.parse_tokens(text)

    def to_scores(self, question: Question, parsed: dict[str, Any]) -> Sequence[Score]:
        return [rubric.build_score(question, parsed["tokens"])]

    def merge_variants(self, verdicts: Sequence[Verdict]) -> list[Verdict]:
        """Merge the verdicts about the atoms of a prompt: both means, or none if one of them is missing."""
        merged: list[Verdict] = []
        for verdict in average_variants(verdicts):
            atoms = verdict.merged_from or (verdict,)
            missing = sum(atom.value is None for atom in atoms)
            if missing:
                reason = next(atom.reason for atom in atoms if atom.value is None)
                words = f"{missing} of {len(atoms)} questions unscored: {reason}" if len(atoms) > 1 else reason
                verdict = replace(verdict, value=None, score=None, standard_deviation=None, reason=words)
            merged += [verdict, _derive(verdict, atoms)]
        return merged

    def headline(self, verdicts: Sequence[Verdict], groups: SampleGroups) -> WeightedMeans:
        """The mean over prompts of the geometric mean of their atoms."""
        return [(1.0, [verdict for verdict in verdicts if verdict.metric == GM])]


def _derive(verdict: Verdict, atoms: Sequence[Verdict]) -> Verdict:
    """Return the geometric mean of atoms, each of which is first averaged over its repeats."""
    value = verdict.value
    reason = verdict.reason
    if value is not None and verdict.by != "failure":
        repeats: dict[int, list[float]] = {}
        for atom in atoms:
            if atom.value is not None:
                repeats.setdefault(rubric.find_number(atom), []).append(atom.value)
        means = [statistics.fmean(values) for values in repeats.values()]
        value = 0.0 if 0.0 in means else math.exp(math.fsum(map(math.log, means)) / len(means))
        reason = f"geometric mean of {len(means)} questions"
    by = "failure" if verdict.by == "failure" else "rule"
    return Verdict(verdict.sample, verdict.turn, GM, value, reason, by=by, keys=verdict.keys)
