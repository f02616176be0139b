"""Stored answers of any benchmark, each scored by itself as in OpenING: seven criteria, 0 to 10, in one call."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from weft.arena.contestants import Duel
from weft.arena.tables import build_answer_score_table
from weft.benchmarks.base import Assessment, Benchmark, JudgedTurn, RunResults, SampleGroups, WeightedMeans
from weft.benchmarks.documents import MAX_IMAGES, MaxImages
from weft.benchmarks.opening import Opening
from weft.benchmarks.opening.protocol import build_questions
from weft.benchmarks.opening.rubric import CRITERIA
from weft.benchmarks.preparation import Preparation
from weft.benchmarks.presentation import Presentation
from weft.benchmarks.prompts import Rubrics
from weft.errors import UserError
from weft.store.blobs import Blobs
from weft.types import Dataset, Dialogue, Message, Part, Sample, Table, Turn, Verdict


class CriteriaOptions(Struct, frozen=True):
    judge_images: MaxImages = MAX_IMAGES


class CriteriaPresentation(Presentation, frozen=True):
    def side_by_side(self, gold: Any) -> list[tuple[str, tuple[Part, ...]]]:
        duel = msgspec.convert(gold, Duel)
        return [(duel.first.name, duel.first.parts)]


class CriteriaPreparation(Preparation, frozen=True):
    def rubrics(self, benchmark: Benchmark, prompts: str) -> Rubrics:
        return Opening.preparation.rubrics(Opening(), prompts)


class Criteria(Benchmark):
    """The benchmark behind `weft arena score`. Its samples are stored answers; it has no dataset of its own."""

    name = "arena-scores"
    version = "1"
    metrics = CRITERIA
    Options = CriteriaOptions
    axes = ("model", "group")
    presentation = CriteriaPresentation(title="Arena, single answers", max_score=10.0, digits=2)
    preparation = CriteriaPreparation()

    def load(self, data: Path, blobs: Blobs) -> Dataset:
        raise UserError("stored answers are scored: weft arena score RUN RUN --judge JUDGE")

    def build_messages(
        self, sample: Sample, turn: Turn, dialogue: Dialogue, options: CriteriaOptions
    ) -> tuple[Message, ...]:
        return (Message("user", turn.prompt),)

    def questions(self, judged_turn: JudgedTurn) -> Iterable[Assessment]:
        duel: Duel = judged_turn.turn.gold
        if not duel.first.answered:
            return [judged_turn.verdict(metric, 0.0, "there is no answer", by="failure") for metric in CRITERIA]
        return build_questions(judged_turn, duel.first.parts, judged_turn.options.judge_images)

    def cluster_of(self, sample: str, groups: Mapping[str, str]) -> str:
        return groups.get("item", sample)

    def headline(self, verdicts: Sequence[Verdict], groups: SampleGroups) -> WeightedMeans:
        return Opening().headline(verdicts, groups)

    def tables(self, runs: Sequence[RunResults]) -> Iterator[Table]:
        for run in runs:
            yield build_answer_score_table(run, f"Scores, judged by {run.judge}")
