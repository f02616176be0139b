"""The questions of a stored run, as its judge got them.

They are built again from the stored replies by the benchmark's own code: nobody is asked, and the journal is not
changed. Questions that exist only for a released script's row, and repeats of the same question, are left out."""

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
from weft.judge_eval.annotation.form import build_form
from weft.results.run import Run, load_run
from weft.store.manifest import Manifest
from weft.types import Question, Reply, Sample, Turn, TurnRef
from weft.workspace import open_journal


class AnnotatedQuestion(Struct, frozen=True):
    """A judge's question with what its form needs in addition."""

    item: str  # identifies the question by its content, in any home
    question: Question
    lines: tuple[str, ...] = ()  # the turn's gold data as readers see it
    reply_images: frozenset[str] = frozenset()  # digests of the images in the model's reply


class StudySource(Struct, frozen=True):
    """A run with all of its questions."""

    run: Run
    questions: tuple[AnnotatedQuestion, ...]
    rubric: str  # the digest of the prompts
    warning: str = ""  # for the user, where the prompts have changed since

    @property
    def benchmark(self) -> Benchmark:
        return self.run.benchmark


async def open_study_source(
    run: str, home: str | Path, *, data: str | Path = "", prompts: str = "weft", benchmark: Any = None
) -> StudySource:
    """Build all questions of a run. Raises UserError where its dataset is missing, or its judge was asked with other
    prompts."""
    journal = open_journal(Path(home))
    try:
        stored = load_run(journal, run, benchmark)
    finally:
        journal.close()
    if is_internal(stored.benchmark.name):
        raise UserError(
            f"{stored.id} is not a run of a dataset: people annotate runs of `weft run`, `weft score` and `weft judge`"
        )
    config = RunConfig(
        judge="constant/max", data=data, benchmark=benchmark, home=home, prompts=prompts, preflight=False
    )
    async with open_run(config, StoredRun(stored.id), dry=True) as session:
        warning = _check_prompts(session.plan, stored.record.manifest)
        replies = group_dialogues(stored.turns)
        questions: list[AnnotatedQuestion] = []
        for _, sample in session.plan.own_samples():
            questions += await build_sample_questions(session, sample, replies.get(sample.id, {}))
        rubric = session.plan.rubrics.digest
    if not questions:
        raise UserError(f"{stored.id} has no question that a judge was asked: there is nothing to annotate")
    _check_form(stored.id, questions[0])
    return StudySource(stored, tuple(questions), rubric, warning)


def _check_form(run: str, question: AnnotatedQuestion) -> None:
    """Raise UserError for questions that people have no form for: those to a program that lists what it finds."""
    try:
        build_form(question.question.schema, question.lines)
    except UserError as error:
        raise UserError(f"{run}: its questions are for a program, and people cannot annotate them ({error})") from None


async def build_sample_questions(
    session: Session, sample: Sample, replies: dict[int, Reply]
) -> list[AnnotatedQuestion]:
    """The questions about the replies of one dialogue."""
    plan = session.plan
    questions: list[AnnotatedQuestion] = []
    dialogue: dict[int, Reply] = {}
    for turn in sample.turns:
        if not plan.includes(turn) or turn.number not in replies:
            continue
        reply = replies[turn.number]
        dialogue[turn.number] = reply
        turn_ref = TurnRef(sample.id, turn.number, turn.file, plan.benchmark.name)
        judged = JudgedTurn(sample, turn, reply, dict(dialogue), turn_ref, plan.options, plan.rubrics)
        questions += await _turn_questions(session, turn, judged)
    return questions


async def _turn_questions(session: Session, turn: Turn, judged: JudgedTurn) -> list[AnnotatedQuestion]:
    plan = session.plan
    questions: list[Question] = []
    for item in build_items(plan, judged):
        try:
            questions += await collect_questions([item], session.blobs)
        except StoreError:
            raise
        except Exception:  # a benchmark may raise about an image: its judge was not asked either
            continue
    lines = _describe_gold(plan.benchmark, turn)
    reply_images = frozenset(image.digest for image in judged.reply.images)
    return [
        AnnotatedQuestion(item_id(question), question, lines, reply_images)
        for question in questions
        if not question.variant.startswith(OFFICIAL_VARIANT)
    ]


def item_id(question: Question) -> str:
    """A digest of what a question is about and how it is asked."""
    turn_ref = question.turn_ref
    identity: list[Any] = [
        turn_ref.sample,
        turn_ref.turn,
        question.metrics,
        question.variant,
        question.messages,
        question.schema,
    ]
    return hashlib.sha256(msgspec.json.encode(identity, order="deterministic")).hexdigest()[:16]


def _describe_gold(benchmark: Benchmark, turn: Turn) -> tuple[str, ...]:
    try:
        gold = msgspec.json.decode(msgspec.json.encode(turn.gold, enc_hook=str))
        if gold is None:
            return ()
        return tuple(benchmark.presentation.describe_gold(gold))
    except Exception:  # the lines only help readers: a form works without them
        return ()


def _check_prompts(plan: RunPlan, manifest: Manifest) -> str:
    """A warning where people get other prompts than the judge got. Raises UserError where they come from elsewhere."""
    stored = manifest.prompts
    current = plan.rubrics
    if stored.digest == current.digest:
        return ""
    if stored.source != current.source:
        raise UserError(
            f"its judge was asked with the prompts of {stored.source}: give --prompts official:DIR, with that checkout"
        )
    return "the prompts have changed since this run was judged: annotators get the current ones"


def group_by_verdict(questions: Sequence[AnnotatedQuestion]) -> dict[tuple[str, int, str], list[AnnotatedQuestion]]:
    """Questions by sample, turn and metric."""
    grouped: dict[tuple[str, int, str], list[AnnotatedQuestion]] = {}
    for question in questions:
        turn_ref = question.question.turn_ref
        for metric in question.question.metrics:
            grouped.setdefault((turn_ref.sample, turn_ref.turn, metric), []).append(question)
    return grouped
