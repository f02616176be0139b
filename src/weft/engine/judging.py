"""Judging: replies to verdicts, wherever the replies come from: a live turn, a stored run, or two stored runs side by side.

Questions go to the judge, each as often as repeats are asked for; checks of pixels run in a thread and may lead to questions; rules give
their verdicts at once. A reply that failed through no fault of the model is unscored whatever the benchmark would make of it.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from weft.benchmarks.base import Answered, Check, Item
from weft.engine.call import EndpointDown, Halt, Halted
from weft.engine.plan import Plan
from weft.errors import BudgetReached, PictureError, blaming
from weft.judges.vlm import VlmJudge
from weft.store.blobs import Blobs
from weft.store.journal import Journal
from weft.types import Place, Question, Reply, Verdict


class Progress:
    """Where a run stands; whoever wants to show it reads it."""

    def __init__(self, turns: int, samples: int) -> None:
        self.turns, self.samples = turns, samples
        self.turns_done = self.samples_done = self.verdicts_due = self.verdicts_done = 0
        self.outcomes: Counter[str] = Counter()
        self.unscored: Counter[str] = Counter()
        self.started = time.monotonic()


class Judging:
    """`others` are the replies of a second run, by sample and turn, where the questions are about two."""

    def __init__(
        self,
        plan: Plan,
        run: str,
        judge: VlmJudge,
        blobs: Blobs,
        journal: Journal,
        halt: Halt,
        progress: Progress,
        others: Mapping[str, Mapping[int, Reply]] | None = None,
    ) -> None:
        self._plan, self._run, self._judge, self._blobs, self._journal, self._halt = plan, run, judge, blobs, journal, halt
        self.progress, self._others = progress, others
        self._threads = asyncio.Semaphore(4)

    def take(self, answered: Answered, group: asyncio.TaskGroup) -> None:
        """Judge a reply, in tasks of `group` where that takes time."""
        for item in self._items(answered):
            if isinstance(item, Verdict):
                self.progress.verdicts_due += 1
                self._keep(item)
                continue
            self.progress.verdicts_due += len(item.metrics) * (self._plan.repeats if isinstance(item, Question) else 1)
            group.create_task(self._work(item, answered))

    def _items(self, answered: Answered) -> Sequence[Item]:
        benchmark = self._plan.benchmark
        with blaming(_where(self._plan, answered.place)):
            items = items_of(self._plan, answered, self._others)
            for item in items:
                checked(item, answered.place, (*benchmark.metrics, *benchmark.battle_metrics))
        return items

    async def _work(self, item: Question | Check, answered: Answered) -> None:
        try:
            if isinstance(item, Question):
                await self._ask(item)
            else:
                await self._look(item, answered)
        except (BudgetReached, EndpointDown, Halted) as error:
            self._halt.stop(error)

    async def _ask(self, question: Question) -> None:
        """As often as is asked for; the first draw is the call that a run without repeats makes."""
        question = replace(question, place=replace(question.place, benchmark=self._plan.benchmark.name))
        repeats = self._plan.repeats
        if repeats == 1:
            self._keep(*await self._judge.judge(question))
            return
        told = f"{question.variant}, " if question.variant else ""
        asked = [self._judge.judge(replace(question, variant=f"{told}repeat {draw + 1}"), draw) for draw in range(repeats)]
        for verdicts in await asyncio.gather(*asked):
            self._keep(*verdicts)

    async def _look(self, check: Check, answered: Answered) -> None:
        try:
            async with self._threads:
                with blaming(_where(self._plan, check.place)):
                    found = await asyncio.to_thread(check.work, self._blobs)
        except PictureError as error:
            found = [answered.verdict(metric, None, f"its picture {error}", detail=check.detail) for metric in check.metrics]
        for item in found:
            with blaming(_where(self._plan, check.place)):
                checked(item, check.place, check.metrics)
            if isinstance(item, Verdict):
                self._keep(item)
            else:
                self.progress.verdicts_due += len(item.metrics) * (self._plan.repeats - 1)
                await self._ask(item)

    def _keep(self, *verdicts: Verdict) -> None:
        for verdict in verdicts:
            self.progress.verdicts_done += 1
            if verdict.value is None:
                self.progress.unscored[verdict.reason] += 1
            self._journal.put_verdict(self._run, verdict)


def items_of(plan: Plan, answered: Answered, others: Mapping[str, Mapping[int, Reply]] | None = None) -> Sequence[Item]:
    """What is asked about a reply, or about it and another run's."""
    benchmark, turn, reply = plan.benchmark, answered.turn, answered.reply
    if others is not None:
        return _battle(plan, answered, others.get(answered.sample.id, {}))
    if reply.outcome == "failed":
        detail = benchmark.detail(turn, reply)
        return [answered.verdict(metric, None, reply.reason, detail=detail) for metric in benchmark.due(turn)]
    return list(benchmark.questions(answered) if reply.outcome == "answered" else benchmark.unanswered(answered))


def _battle(plan: Plan, first: Answered, other: Mapping[int, Reply]) -> Sequence[Item]:
    """Who has no answer loses to who has one; where a reply is missing through our fault, nothing is said."""
    replies = [first.reply, other.get(first.turn.number)]
    lost = [reply for reply in replies if reply is None or reply.outcome == "failed"]
    if lost:
        why = lost[0].reason if lost[0] is not None else "the other run has no reply to it"
        return [first.verdict(metric, None, why) for metric in plan.benchmark.battle_metrics]
    has = [reply is not None and reply.outcome == "answered" for reply in replies]
    if not all(has):
        value, why = (0.5, "neither answered") if not any(has) else (float(has[0]), "the other did not answer")
        return [first.verdict(metric, value, why) for metric in plan.benchmark.battle_metrics]
    return list(plan.benchmark.battle(first, replace(first, dialogue=other)))


def checked(item: Item, place: Place, metrics: Sequence[str]) -> None:
    """Raises if something is not for this turn, not one of the metrics, or no share."""
    of = (item.sample, item.turn) if isinstance(item, Verdict) else (item.place.sample, item.place.turn)
    asked = (item.metric,) if isinstance(item, Verdict) else item.metrics
    if of != (place.sample, place.turn) or not asked or not set(asked) <= set(metrics):
        raise ValueError(f"a {type(item).__name__} for {of}, {', '.join(asked)}: not this turn, or not among {', '.join(metrics)}")
    if isinstance(item, Verdict) and item.value is not None and not 0 <= item.value <= 1:
        raise ValueError(f"a verdict of {item.value:g} for {item.metric}: values are shares of full marks, from 0 to 1")


def _where(plan: Plan, place: Place) -> str:
    return f"benchmark {plan.benchmark.name}, sample {place.sample}, turn {place.turn}"
