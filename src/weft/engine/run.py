"""Samples to verdicts.

Many samples are in flight together; the turns of one are asked in order, and a turn is judged while the next is generated. Everything
is journalled as it happens, and every answer comes from the journal where it is already there: to go on after a crash is to run
the same command again. Ending early (Ctrl-C, budget, an endpoint that is gone) loses nothing but calls in flight.
"""

import asyncio
import contextlib
import hashlib
import re
import time
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from weft import __version__
from weft.benchmarks import Benchmark, Rubrics
from weft.engine.call import EndpointDown, Halt, Halted
from weft.errors import BudgetReached, PictureError, WeftError
from weft.fit import fitted
from weft.judges import Judge
from weft.models.endpoint import Endpoint
from weft.numbering import maker_of, mentions
from weft.store.blobs import Blobs
from weft.store.journal import Journal, TurnRecord
from weft.types import Dataset, Model, Part, Place, Question, Reply, Sample, Turn, Verdict, View, Want


class Progress:
    """Where a run stands; whoever wants to show it reads it."""

    def __init__(self, turns: int, samples: int) -> None:
        self.turns, self.samples = turns, samples
        self.turns_done = self.samples_done = self.verdicts_due = self.verdicts_done = 0
        self.outcomes: Counter[str] = Counter()
        self.unscored: Counter[str] = Counter()
        self.started = time.monotonic()


class Plan(Struct, frozen=True):
    """Everything that decides what a run asks and how it is scored; its digest names the run."""

    benchmark: Benchmark
    dataset: Dataset
    view: View
    rubrics: Rubrics
    model: Endpoint
    judge: Endpoint
    strategy: str
    chosen: Mapping[str, Any]

    def manifest(self) -> dict[str, Any]:
        return {
            "weft": __version__,
            "benchmark": {"name": self.benchmark.name, "version": self.benchmark.version},
            "dataset": {
                "name": self.dataset.name,
                "digest": self.dataset.digest,
                "samples": len(self.dataset.samples),
                "turns": self.turns(),
            },
            "model": {"name": self.model.name, "takes": msgspec.to_builtins(self.model.takes), **self.model.identity},
            "judge": {"name": self.judge.name, "takes": msgspec.to_builtins(self.judge.takes), **self.judge.identity},
            "rubric": {"source": self.rubrics.source, "digest": self.rubrics.digest},
            "view": msgspec.to_builtins(self.view),
            "strategy": self.strategy,
            **self.chosen,
        }

    def run_id(self) -> str:
        digest = hashlib.sha256(msgspec.json.encode(self.manifest(), order="deterministic")).hexdigest()
        slug = re.sub(r"[^a-z0-9.]+", "-", self.model.name.lower().rsplit("/", 1)[-1]).strip("-.") or "model"
        return f"{re.sub(r'[^a-z0-9.]+', '-', self.benchmark.name.lower())}-{slug}-{digest[:8]}"

    def turns(self) -> int:
        return sum(self.asked(turn) for sample in self.dataset.samples for turn in sample.turns)

    def asked(self, turn: Turn) -> bool:
        return self.view.turns == "all" or (self.view.turns == "text") == (turn.want == "text")


class Runner:
    def __init__(self, plan: Plan, run: str, model: Model, judge: Judge, blobs: Blobs, journal: Journal, halt: Halt, width: int) -> None:
        self.halt = halt
        self._plan, self._run, self._model, self._judge = plan, run, model, judge
        self._blobs, self._journal = blobs, journal
        self._window = asyncio.Semaphore(width)
        self.progress = Progress(plan.turns(), len(plan.dataset.samples))

    async def run(self) -> None:
        """All samples. What ends a run early is not raised: `halt` has the reason, once the calls in flight have come back."""
        async with asyncio.TaskGroup() as group:
            for position, sample in enumerate(self._plan.dataset.samples):
                await self._window.acquire()
                if self.halt.reason:
                    break
                group.create_task(self._sample(position, sample, group))

    async def _sample(self, position: int, sample: Sample, group: asyncio.TaskGroup) -> None:
        try:
            dialogue: dict[int, Reply] = {}
            for turn in sample.turns:
                if not self._plan.asked(turn) or self.halt.reason:
                    continue
                seen, reply = await self._turn(sample, turn, dialogue)
                dialogue[turn.number] = reply
                self.progress.outcomes[reply.outcome] += 1
                self.progress.turns_done += 1
                about = msgspec.json.encode({"ask": asked(sample, turn), "truth": turn.truth, "gold": turn.gold}, enc_hook=str).decode()
                record = TurnRecord(sample.id, turn.number, position, dict(sample.groups), turn.want, seen, reply, about)
                self._journal.put_turn(self._run, record)
                for item in self._questions(sample, turn, dialogue):
                    self.progress.verdicts_due += 1
                    if isinstance(item, Verdict):
                        self._keep(item)
                    else:
                        group.create_task(self._judge_one(item))
            self.progress.samples_done += not self.halt.reason
        except (BudgetReached, EndpointDown, Halted) as error:
            self.halt.stop(error)
        finally:
            self._window.release()

    async def _turn(self, sample: Sample, turn: Turn, dialogue: Mapping[int, Reply]) -> tuple[str, Reply]:
        await asyncio.sleep(0)  # a model that never waits must not keep the others, or Ctrl-C, from their turn
        with self._blaming_benchmark(sample, turn):
            needed = sorted(self._plan.benchmark.needs(sample, turn, self._plan.view))
        waits = [number for number in needed if number in dialogue and dialogue[number].outcome == "failed"]
        if not getattr(self._plan.model, "sees", True):
            waits = []
        if waits:
            return "[]", Reply("failed", reason=f"waits for turn {waits[0]}, which failed: {dialogue[waits[0]].reason}")
        with self._blaming_benchmark(sample, turn):
            messages = self._plan.benchmark.see(sample, turn, dialogue, self._plan.view)
        try:
            seen = await fitted(messages, self._model.takes, self._blobs)
        except PictureError as error:
            return "[]", Reply("failed", reason=f"what the model is to see cannot be made: {error}")
        reply = await self._model.reply(seen, Want(turn.want, place=Place(sample.id, turn.number, turn.file)))
        return msgspec.json.encode(seen).decode(), reply

    def _questions(self, sample: Sample, turn: Turn, dialogue: Mapping[int, Reply]) -> Sequence[Question | Verdict]:
        with self._blaming_benchmark(sample, turn):
            items = self._plan.benchmark.questions(sample, turn, dialogue, self._plan.view, self._plan.rubrics)
            for item in items:
                of = (item.sample, item.turn) if isinstance(item, Verdict) else (item.place.sample, item.place.turn)
                if of != (sample.id, turn.number) or item.metric not in self._plan.benchmark.metrics:
                    raise ValueError(
                        f"a {type(item).__name__} for {of}, metric {item.metric!r}, which is not this turn or not in `metrics`"
                    )
        reply = dialogue[turn.number]
        return [_unscored(item, reply.reason) for item in items] if reply.outcome == "failed" else items

    @contextlib.contextmanager
    def _blaming_benchmark(self, sample: Sample, turn: Turn) -> Generator[None]:
        try:
            yield
        except WeftError:
            raise
        except Exception as error:
            where = f"benchmark {self._plan.benchmark.name}, sample {sample.id}, turn {turn.number}"
            raise WeftError(f"{where}: {type(error).__name__}: {error}") from error

    async def _judge_one(self, question: Question) -> None:
        try:
            self._keep(await self._judge.judge(question))
        except (BudgetReached, EndpointDown, Halted) as error:
            self.halt.stop(error)

    def _keep(self, verdict: Verdict) -> None:
        self.progress.verdicts_done += 1
        if verdict.value is None:
            self.progress.unscored[verdict.reason] += 1
        self._journal.put_verdict(self._run, verdict)


def asked(sample: Sample, turn: Turn) -> tuple[Part, ...]:
    """A request with the given pictures that it calls by number, for those who look at it later."""
    given = {number: image for number, image in enumerate(sample.pictures, start=1) if maker_of(sample, number) is None}
    called = [number for number in dict.fromkeys(mentions(turn.asked)) if number in given]
    return (*turn.ask, *(msgspec.structs.replace(given[number], label=number) for number in called))


def _unscored(item: Question | Verdict, reason: str) -> Verdict:
    """Of a reply that failed through no fault of the model's, whatever the benchmark would make of it: no error becomes a number."""
    if isinstance(item, Verdict):
        return item if item.value is None else msgspec.structs.replace(item, value=None, reason=reason, by="rule")
    return Verdict(item.place.sample, item.place.turn, item.metric, None, reason, "rule", detail=item.detail)


def narrowed(dataset: Dataset, limit: int | None, where: Mapping[str, str]) -> Dataset:
    """The first `limit` samples of the groups asked for."""
    kept = [sample for sample in dataset.samples if all(sample.groups.get(name) == value for name, value in where.items())]
    return msgspec.structs.replace(dataset, samples=tuple(kept[:limit] if limit is not None else kept))
