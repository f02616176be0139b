"""The questions of a stored run as its judge got them. They are made anew from the stored replies, by the benchmark's own code: nobody is
asked, and nothing of the journal is changed.

What released scripts ask for their own row alone is no question to people; nor are repeats: the same question is asked once."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from weft.benchmarks.base import Answered, Benchmark, is_inner
from weft.benchmarks.official import VARIANT
from weft.errors import StoreError, UserError
from weft.evaluation.config import RunConfig
from weft.evaluation.dry_run import questions_in
from weft.evaluation.generate import dialogues_of
from weft.evaluation.judging import items_of
from weft.evaluation.plan import Plan
from weft.evaluation.session import Session, open_run
from weft.evaluation.sources import StoredRun
from weft.results.run import Run, load_run
from weft.store.manifest import Manifest
from weft.types import Place, Question, Reply, Sample, Turn
from weft.workspace import open_journal


class Asked(Struct, frozen=True):
    """A question with what its form needs besides: `lines` are what a reader is shown of the turn's gold data, `made` the digests of the
    pictures that the reply has. `item` names the question, whatever home it lies in, and nothing but this question."""

    item: str
    question: Question
    lines: tuple[str, ...] = ()
    made: frozenset[str] = frozenset()


class Source(Struct, frozen=True):
    """A run with all of its questions."""

    run: Run
    asked: tuple[Asked, ...]
    rubric: str  # the digest of the prompts
    warning: str = ""

    @property
    def benchmark(self) -> Benchmark:
        return self.run.benchmark


async def source_of(run: str, home: str | Path, *, data: str | Path = "", prompts: str = "weft", benchmark: Any = None) -> Source:
    """Raises UserError where the run's dataset is not there, or its judge was asked with other prompts."""
    journal = open_journal(Path(home))
    try:
        stored = load_run(journal, run, benchmark)
    finally:
        journal.close()
    manifest = stored.record.manifest
    if is_inner(stored.benchmark.name):
        raise UserError(f"{stored.id} is no run of a dataset: people rate runs of `weft run`, `weft score` and `weft judge`")
    config = RunConfig(judge="constant/max", data=data, benchmark=benchmark, home=home, prompts=prompts, probe=False)
    async with open_run(config, StoredRun(stored.id), dry=True) as session:
        plan = session.plan
        warning = _same_prompts(plan, manifest)
        replies = dialogues_of(stored.turns)
        asked: list[Asked] = []
        for _, sample in plan.mine():
            dialogue: dict[int, Reply] = {}
            for turn in sample.turns:
                if plan.asks(turn) and turn.number in replies.get(sample.id, {}):
                    dialogue[turn.number] = replies[sample.id][turn.number]
                    place = Place(sample.id, turn.number, turn.file, plan.benchmark.name)
                    answered = Answered(sample, turn, dialogue[turn.number], dict(dialogue), place, plan.options, plan.rubrics)
                    asked += await _asked(plan, session, sample, turn, answered)
    if not asked:
        raise UserError(f"{stored.id} has no question that a judge was asked: there is nothing to rate")
    return Source(stored, tuple(asked), plan.rubrics.digest, warning)


async def _asked(plan: Plan, session: Session, sample: Sample, turn: Turn, answered: Answered) -> list[Asked]:
    found: list[Question] = []
    for item in items_of(plan, answered):
        try:
            found += await questions_in([item], session.blobs)
        except StoreError:
            raise
        except Exception:  # what a benchmark raises about a picture: its judge was not asked either
            continue
    lines, made = _lines(plan.benchmark, turn), frozenset(image.digest for image in answered.reply.images)
    return [Asked(item_of(one), one, lines, made) for one in found if not one.variant.startswith(VARIANT)]


def item_of(question: Question) -> str:
    place = question.place
    told: list[Any] = [place.sample, place.turn, question.metrics, question.variant, question.messages, question.schema]
    return hashlib.sha256(msgspec.json.encode(told, order="deterministic")).hexdigest()[:16]


def _lines(benchmark: Benchmark, turn: Turn) -> tuple[str, ...]:
    try:
        gold = msgspec.json.decode(msgspec.json.encode(turn.gold, enc_hook=str))
        return tuple(benchmark.presentation.describe_gold(gold)) if gold is not None else ()
    except Exception:  # it is a help, and no more
        return ()


def _same_prompts(plan: Plan, manifest: Manifest) -> str:
    """What to say where people get other words than the judge got."""
    there, here = manifest.prompts, plan.rubrics
    if there.digest == here.digest:
        return ""
    if there.source != here.source:
        raise UserError(f"its judge was asked with the prompts of {there.source}: give --prompts official:DIR, with that checkout")
    return "the prompts have changed since this run was judged: people get those of today"


def places_of(asked: Sequence[Asked]) -> dict[tuple[str, int, str], list[Asked]]:
    """By sample, turn and metric."""
    made: dict[tuple[str, int, str], list[Asked]] = {}
    for one in asked:
        for metric in one.question.metrics:
            made.setdefault((one.question.place.sample, one.question.place.turn, metric), []).append(one)
    return made
