"""The questions of a stored run as its judge got them. They are made anew from the stored replies, by the benchmark's
own code: nobody is asked, and nothing of the journal is changed.

What released scripts ask for their own row alone is no question to people; nor are repeats: the same question is asked
once."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from weft.benchmarks.base import Benchmark, JudgedTurn, is_internal
from weft.benchmarks.official import OFFICIAL_VARIANT
from weft.errors import StoreError, UserError
from weft.evaluation.config import RunConfig
from weft.evaluation.dry_run import collect_questions
from weft.evaluation.generate import group_dialogues
from weft.evaluation.judging import build_items
from weft.evaluation.plan import RunPlan
from weft.evaluation.session import Session, open_run
from weft.evaluation.sources import StoredRun
from weft.results.run import Run, load_run
from weft.store.manifest import Manifest
from weft.types import Question, Reply, Sample, Turn, TurnRef
from weft.workspace import open_journal


class AnnotatedQuestion(Struct, frozen=True):
    """A question with what its form needs besides: `lines` are what a reader is shown of the turn's gold data, `made`
    the digests of the pictures that the reply has. `item` names the question, whatever home it lies in, and nothing but
    this question."""

    item: str
    question: Question
    lines: tuple[str, ...] = ()
    made: frozenset[str] = frozenset()


class StudySource(Struct, frozen=True):
    """A run with all of its questions."""

    run: Run
    asked: tuple[AnnotatedQuestion, ...]
    rubric: str  # the digest of the prompts
    warning: str = ""

    @property
    def benchmark(self) -> Benchmark:
        return self.run.benchmark


async def open_study_source(
    run: str, home: str | Path, *, data: str | Path = "", prompts: str = "weft", benchmark: Any = None
) -> StudySource:
    """Raises UserError where the run's dataset is not there, or its judge was asked with other prompts."""
    journal = open_journal(Path(home))
    try:
        stored = load_run(journal, run, benchmark)
    finally:
        journal.close()
    manifest = stored.record.manifest
    if is_internal(stored.benchmark.name):
        raise UserError(
            f"{stored.id} is no run of a dataset: people rate runs of `weft run`, `weft score` and `weft judge`"
        )
    config = RunConfig(judge="constant/max", data=data, benchmark=benchmark, home=home, prompts=prompts, probe=False)
    async with open_run(config, StoredRun(stored.id), dry=True) as session:
        plan = session.plan
        warning = _same_prompts(plan, manifest)
        replies = group_dialogues(stored.turns)
        asked: list[AnnotatedQuestion] = []
        for _, sample in plan.own_samples():
            dialogue: dict[int, Reply] = {}
            for turn in sample.turns:
                if plan.includes(turn) and turn.number in replies.get(sample.id, {}):
                    dialogue[turn.number] = replies[sample.id][turn.number]
                    place = TurnRef(sample.id, turn.number, turn.file, plan.benchmark.name)
                    answered = JudgedTurn(
                        sample, turn, dialogue[turn.number], dict(dialogue), place, plan.options, plan.rubrics
                    )
                    asked += await _asked(plan, session, sample, turn, answered)
    if not asked:
        raise UserError(f"{stored.id} has no question that a judge was asked: there is nothing to rate")
    return StudySource(stored, tuple(asked), plan.rubrics.digest, warning)


async def _asked(
    plan: RunPlan, session: Session, sample: Sample, turn: Turn, answered: JudgedTurn
) -> list[AnnotatedQuestion]:
    found: list[Question] = []
    for item in build_items(plan, answered):
        try:
            found += await collect_questions([item], session.blobs)
        except StoreError:
            raise
        except Exception:  # what a benchmark raises about a picture: its judge was not asked either
            continue
    lines = _lines(plan.benchmark, turn)
    made = frozenset(image.digest for image in answered.reply.images)
    return [
        AnnotatedQuestion(item_of(one), one, lines, made)
        for one in found
        if not one.variant.startswith(OFFICIAL_VARIANT)
    ]


def item_of(question: Question) -> str:
    place = question.turn_ref
    told: list[Any] = [place.sample, place.turn, question.metrics, question.variant, question.messages, question.schema]
    return hashlib.sha256(msgspec.json.encode(told, order="deterministic")).hexdigest()[:16]


def _lines(benchmark: Benchmark, turn: Turn) -> tuple[str, ...]:
    try:
        gold = msgspec.json.decode(msgspec.json.encode(turn.gold, enc_hook=str))
        if gold is not None:
            return tuple(benchmark.presentation.describe_gold(gold))
        return ()
    except Exception:  # it is a help, and no more
        return ()


def _same_prompts(plan: RunPlan, manifest: Manifest) -> str:
    """What to say where people get other words than the judge got."""
    there = manifest.prompts
    here = plan.rubrics
    if there.digest == here.digest:
        return ""
    if there.source != here.source:
        raise UserError(
            f"its judge was asked with the prompts of {there.source}: give --prompts official:DIR, with that checkout"
        )
    return "the prompts have changed since this run was judged: people get those of today"


def places_of(asked: Sequence[AnnotatedQuestion]) -> dict[tuple[str, int, str], list[AnnotatedQuestion]]:
    """By sample, turn and metric."""
    made: dict[tuple[str, int, str], list[AnnotatedQuestion]] = {}
    for one in asked:
        for metric in one.question.metrics:
            made.setdefault((one.question.turn_ref.sample, one.question.turn_ref.turn, metric), []).append(one)
    return made
