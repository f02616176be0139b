"""Judging: replies to verdicts, wherever the replies come from: a live turn or a stored run.

Questions go to the judge, each as often as repeats are asked for; checks of pixels run in a thread and may lead to questions; rules give
their verdicts at once. A reply that failed through no fault of the model is unscored whatever the benchmark would make of it.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence

from weft.benchmarks.base import Answered, Check, Item
from weft.calls.caller import EndpointDown, Halt, Halted
from weft.errors import BudgetReached, JudgeUseless, PictureError, StoreError, blamed, trace_of
from weft.evaluation.plan import Plan
from weft.judges.vlm import VlmJudge
from weft.secrets import scrub
from weft.store.blobs import Blobs
from weft.store.journal import Journal
from weft.types import Place, Question, Verdict, check_messages

Raised = Callable[[Place, Exception], None]


class Progress:
    """Where a run stands; whoever wants to show it reads it. `turns` and `samples` are those read so far, `expected` the samples that there
    are about."""

    def __init__(self, expected: int) -> None:
        self.expected, self.turns, self.samples = expected, 0, 0
        self.turns_done = self.samples_done = self.verdicts_due = self.verdicts_done = 0
        self.outcomes: Counter[str] = Counter()
        self.unscored: Counter[str] = Counter()
        self.started = time.monotonic()


class Judging:
    def __init__(
        self,
        plan: Plan,
        run: str,
        judge: VlmJudge,
        blobs: Blobs,
        journal: Journal,
        halt: Halt,
    ) -> None:
        self._plan, self._run, self._judge, self._blobs, self._journal, self._halt = plan, run, judge, blobs, journal, halt
        self.progress = Progress(plan.expected())
        self._threads = asyncio.Semaphore(4)

    def take(self, answered: Answered, group: asyncio.TaskGroup) -> None:
        """Judge a reply, in tasks of `group` where that takes time."""
        items = items_of(self._plan, answered, self._raised)
        given = [item for item in items if isinstance(item, Verdict)]
        self.progress.verdicts_due += len(given)
        self._keep(given)
        for item in items:
            if not isinstance(item, Verdict):
                self.progress.verdicts_due += len(item.metrics) * (self._plan.repeats if isinstance(item, Question) else 1)
                group.create_task(self._work(item, answered))

    def _raised(self, place: Place, error: Exception) -> None:
        self._journal.put_trace(self._run, place.sample, place.turn, scrub(trace_of(error)))

    def _keep(self, verdicts: Sequence[Verdict]) -> None:
        for verdict in verdicts:
            self.progress.verdicts_done += 1
            if verdict.value is None and not verdict.undecided:
                self.progress.unscored[verdict.reason] += 1
            self._journal.put_verdict(self._run, verdict)

    async def _work(self, item: Question | Check, answered: Answered) -> None:
        try:
            if isinstance(item, Question):
                await self._ask(item)
            else:
                await self._look(item, answered)
        except (BudgetReached, EndpointDown, Halted, JudgeUseless, StoreError) as error:
            self._halt.stop(error)

    async def _ask(self, question: Question) -> None:
        """As often as is asked for; the first draw is the call that a run without repeats makes."""
        repeats = self._plan.repeats
        if repeats == 1:
            self._keep(await self._judge.judge(question))
            return
        asked = [self._judge.judge(question, draw, f"repeat {draw + 1}") for draw in range(repeats)]
        found = await asyncio.gather(*asked, return_exceptions=True)  # all come back, whatever one does: each may have been paid for
        for verdicts in found:
            if not isinstance(verdicts, BaseException):
                self._keep(verdicts)
        raised = next((one for one in found if isinstance(one, BaseException)), None)
        if raised is not None:
            raise raised

    async def _look(self, check: Check, answered: Answered) -> None:
        try:
            async with self._threads:
                found = list(await asyncio.to_thread(check.work, self._blobs))
            checked(found, check.place, check.metrics)
        except StoreError:
            raise
        except PictureError as error:
            found = [answered.verdict(metric, None, f"its picture {error}", detail=check.detail) for metric in check.metrics]
        except Exception as error:
            self._raised(answered.place, error)
            found = _lost(self._plan, answered, check.metrics, error)
        given = [item for item in found if isinstance(item, Verdict)]
        asked = [item for item in found if isinstance(item, Question)]
        led_to = len(given) + sum(len(item.metrics) * self._plan.repeats for item in asked)
        self.progress.verdicts_due += led_to - len(check.metrics)
        self._keep(given)
        for item in asked:
            await self._ask(item)


def items_of(plan: Plan, answered: Answered, raised: Raised | None = None) -> Sequence[Item]:
    """What is asked about a reply. Whatever a benchmark makes of a reply, it costs that reply alone: it is
    stored, and comes again with every run. `raised` is told what it raised."""
    benchmark, reply = plan.benchmark, answered.reply
    try:
        due = benchmark.metrics_for(answered.turn)
    except Exception as error:
        raise blamed(_where(plan, answered.place), error) from error
    items: Sequence[Item]
    try:
        if reply.outcome == "failed":
            items = list(benchmark.on_failed(answered))
        else:
            items = list(benchmark.questions(answered) if reply.outcome == "answered" else benchmark.on_no_answer(answered))
        checked(items, answered.place, due)
    except Exception as error:
        if raised is not None:
            raised(answered.place, error)
        return _lost(plan, answered, due, error)
    return items


def _lost(plan: Plan, answered: Answered, metrics: Sequence[str], error: Exception) -> list[Verdict]:
    why = str(blamed(_where(plan, answered.place), error))
    return [answered.verdict(metric, None, why) for metric in metrics]


def checked(items: Sequence[Item], place: Place, due: Sequence[str]) -> None:
    """Raises if something is not for this turn, not due there or no share; if something due is missing, or is said twice."""
    said: set[tuple[str, str]] = set()
    for item in items:
        if isinstance(item, Question):
            check_messages(item.messages)
        of = (item.sample, item.turn) if isinstance(item, Verdict) else (item.place.sample, item.place.turn)
        asked = (item.metric,) if isinstance(item, Verdict) else item.metrics
        if of != (place.sample, place.turn) or not asked or not set(asked) <= set(due):
            raise ValueError(
                f"a {type(item).__name__} for {of[0]}, turn {of[1] + 1}, {', '.join(asked)}: "
                f"not this turn, or none of its metrics ({', '.join(due)})"
            )
        if isinstance(item, Verdict) and item.value is not None and not 0 <= item.value <= 1:
            raise ValueError(f"a verdict of {item.value:g} for {item.metric}: values are shares of full marks, from 0 to 1")
        variant = "" if isinstance(item, Check) else item.variant
        twice = [metric for metric in asked if (metric, variant) in said]
        if twice:
            raise ValueError(f"{twice[0]} is asked for twice; tell the two apart by their `variant`")
        said |= {(metric, variant) for metric in asked}
    missing = [metric for metric in due if metric not in {metric for metric, _ in said}]
    if missing:
        raise ValueError(f"nothing is asked or said about {', '.join(missing)}; `metrics_for` tells which metrics a turn has")


def _where(plan: Plan, place: Place) -> str:
    return f"benchmark {plan.benchmark.name}, sample {place.sample}, turn {place.turn + 1}"
