"""Judging: replies to verdicts, wherever the replies come from: a live turn or a stored run.

Questions go to the judge, each as often as repeats are asked for; checks of pixels run in a thread and may lead to
questions; rules give their verdicts at once. A reply that failed through no fault of the model is unscored whatever the
benchmark would make of it."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence

from weft.benchmarks.base import Assessment, Check, JudgedTurn
from weft.calls.caller import EndpointDown, Halt, RunHalted
from weft.errors import BudgetReached, ImageError, StoreError, UnusableJudge, format_trace, wrap_error
from weft.evaluation.plan import RunPlan
from weft.judges.vlm import VlmJudge
from weft.secrets import scrub
from weft.store.blobs import Blobs
from weft.store.journal import Journal
from weft.types import Question, TurnRef, Verdict, check_messages

OnError = Callable[[TurnRef, Exception], None]


class RunProgress:
    """Where a run stands; whoever wants to show it reads it. `turns` and `samples` are those read so far, `expected`
    the samples that there are about."""

    def __init__(self, expected_samples: int) -> None:
        self.expected = expected_samples
        self.turns = 0
        self.samples = 0
        self.turns_done = self.samples_done = self.verdicts_expected = self.verdicts_done = 0
        self.outcomes: Counter[str] = Counter()
        self.unscored: Counter[str] = Counter()
        self.started = time.monotonic()


class TurnJudge:
    def __init__(
        self,
        plan: RunPlan,
        run: str,
        judge: VlmJudge,
        blobs: Blobs,
        journal: Journal,
        halt: Halt,
    ) -> None:
        self._plan = plan
        self._run = run
        self._judge = judge
        self._blobs = blobs
        self._journal = journal
        self._halt = halt
        self.progress = RunProgress(plan.expected_samples())
        self._threads = asyncio.Semaphore(4)

    def judge_turn(self, answered: JudgedTurn, group: asyncio.TaskGroup) -> None:
        """Judge a reply, in tasks of `group` where that takes time."""
        items = build_items(self._plan, answered, self._raised)
        given = [item for item in items if isinstance(item, Verdict)]
        self.progress.verdicts_expected += len(given)
        self._keep(given)
        for item in items:
            if not isinstance(item, Verdict):
                self.progress.verdicts_expected += len(item.metrics) * (
                    self._plan.repeats if isinstance(item, Question) else 1
                )
                group.create_task(self._work(item, answered))

    def _raised(self, place: TurnRef, error: Exception) -> None:
        self._journal.put_trace(self._run, place.sample, place.turn, scrub(format_trace(error)))

    def _keep(self, verdicts: Sequence[Verdict]) -> None:
        for verdict in verdicts:
            self.progress.verdicts_done += 1
            if verdict.value is None and not verdict.undecided:
                self.progress.unscored[verdict.reason] += 1
            self._journal.put_verdict(self._run, verdict)

    async def _work(self, item: Question | Check, answered: JudgedTurn) -> None:
        try:
            if isinstance(item, Question):
                await self._ask(item)
            else:
                await self._look(item, answered)
        except (BudgetReached, EndpointDown, RunHalted, UnusableJudge, StoreError) as error:
            self._halt.stop(error)

    async def _ask(self, question: Question) -> None:
        """As often as is asked for; the first draw is the call that a run without repeats makes."""
        repeats = self._plan.repeats
        if repeats == 1:
            self._keep(await self._judge.judge(question))
            return
        asked = [self._judge.judge(question, draw, f"repeat {draw + 1}") for draw in range(repeats)]
        # all come back, whatever one does: each may have been paid for
        found = await asyncio.gather(*asked, return_exceptions=True)
        for verdicts in found:
            if not isinstance(verdicts, BaseException):
                self._keep(verdicts)
        raised = next((one for one in found if isinstance(one, BaseException)), None)
        if raised is not None:
            raise raised

    async def _look(self, check: Check, answered: JudgedTurn) -> None:
        try:
            async with self._threads:
                found = list(await asyncio.to_thread(check.work, self._blobs))
            check_items(found, check.turn_ref, check.metrics)
        except StoreError:
            raise
        except ImageError as error:
            found = [
                answered.verdict(metric, None, f"its picture {error}", detail=check.detail) for metric in check.metrics
            ]
        except Exception as error:
            self._raised(answered.turn_ref, error)
            found = _lost(self._plan, answered, check.metrics, error)
        given = [item for item in found if isinstance(item, Verdict)]
        asked = [item for item in found if isinstance(item, Question)]
        led_to = len(given) + sum(len(item.metrics) * self._plan.repeats for item in asked)
        self.progress.verdicts_expected += led_to - len(check.metrics)
        self._keep(given)
        for item in asked:
            await self._ask(item)


def build_items(plan: RunPlan, answered: JudgedTurn, raised: OnError | None = None) -> Sequence[Assessment]:
    """What is asked about a reply. Whatever a benchmark makes of a reply, it costs that reply alone: it is
    stored, and comes again with every run. `raised` is told what it raised."""
    benchmark = plan.benchmark
    reply = answered.reply
    try:
        due = benchmark.metrics_for(answered.turn)
    except Exception as error:
        raise wrap_error(_where(plan, answered.turn_ref), error) from error
    items: Sequence[Assessment]
    try:
        if reply.outcome == "failed":
            items = list(benchmark.on_failed(answered))
        else:
            items = list(
                benchmark.questions(answered) if reply.outcome == "answered" else benchmark.on_no_answer(answered)
            )
        check_items(items, answered.turn_ref, due)
    except Exception as error:
        if raised is not None:
            raised(answered.turn_ref, error)
        return _lost(plan, answered, due, error)
    return items


def _lost(plan: RunPlan, answered: JudgedTurn, metrics: Sequence[str], error: Exception) -> list[Verdict]:
    why = str(wrap_error(_where(plan, answered.turn_ref), error))
    return [answered.verdict(metric, None, why) for metric in metrics]


def check_items(items: Sequence[Assessment], place: TurnRef, due: Sequence[str]) -> None:
    """Raises if something is not for this turn, not due there or no share; if something due is missing, or is said
    twice."""
    said: set[tuple[str, str]] = set()
    for item in items:
        if isinstance(item, Question):
            check_messages(item.messages, "a question's messages hold")
        if isinstance(item, Verdict):
            of = (item.sample, item.turn)
        else:
            of = (item.turn_ref.sample, item.turn_ref.turn)
        if isinstance(item, Verdict):
            asked = (item.metric,)
        else:
            asked = item.metrics
        if of != (place.sample, place.turn) or not asked or not set(asked) <= set(due):
            raise ValueError(
                f"a {type(item).__name__} for {of[0]}, turn {of[1] + 1}, {', '.join(asked)}: "
                f"not this turn, or none of its metrics ({', '.join(due)})"
            )
        if isinstance(item, Verdict) and item.value is not None and not 0 <= item.value <= 1:
            raise ValueError(
                f"a verdict of {item.value:g} for {item.metric}: values are shares of full marks, from 0 to 1"
            )
        if isinstance(item, Check):
            variant = ""
        else:
            variant = item.variant
        twice = [metric for metric in asked if (metric, variant) in said]
        if twice:
            raise ValueError(f"{twice[0]} is asked for twice; tell the two apart by their `variant`")
        said |= {(metric, variant) for metric in asked}
    missing = [metric for metric in due if metric not in {metric for metric, _ in said}]
    if missing:
        raise ValueError(
            f"nothing is asked or said about {', '.join(missing)}; `metrics_for` tells which metrics a turn has"
        )


def _where(plan: RunPlan, place: TurnRef) -> str:
    return f"benchmark {plan.benchmark.name}, sample {place.sample}, turn {place.turn + 1}"
