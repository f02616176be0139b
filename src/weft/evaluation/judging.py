"""Judges replies, from a live turn or a stored run: replies in, verdicts out.

Questions go to the judge, each as often as repeats are configured; checks of pixels run in a thread and may lead to
questions; rules give their verdicts at once. A reply that failed through no fault of the model stays unscored.
"""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from weft.benchmarks.base import Assessment, Check, JudgedTurn
from weft.calls.caller import EndpointDown, Halt, RunHalted
from weft.errors import BudgetReached, ImageError, StoreError, UnusableJudge, format_trace, wrap_error
from weft.evaluation.plan import RunPlan
from weft.judges.vlm import VlmJudge
from weft.models.message_checks import check_messages
from weft.secrets import scrub
from weft.store.blobs import Blobs
from weft.store.journal import Journal
from weft.types import Question, TurnRef, Verdict

MAX_ITEMS = 10_000  # questions and verdicts about one turn
MAX_CHECKS = 4  # in threads at the same time
OnError = Callable[[TurnRef, Exception], None]


class RunProgress:
    """How far a run is, for displays."""

    def __init__(self, expected_samples: int) -> None:
        """`expected_samples` is about how many samples there are; they may not all have been read."""
        self.expected_samples = expected_samples
        self.samples = 0  # read so far
        self.turns = 0  # read so far
        self.turns_done = 0
        self.samples_done = 0
        self.verdicts_expected = 0  # of the turns done so far
        self.verdicts_done = 0
        self.outcomes: Counter[str] = Counter()
        self.unscored: Counter[str] = Counter()  # verdicts, by reason
        self.started = time.monotonic()


class TurnJudge:
    """Judges the turns of a run, and stores the verdicts in the journal."""

    def __init__(self, plan: RunPlan, run: str, judge: VlmJudge, blobs: Blobs, journal: Journal, halt: Halt) -> None:
        self.progress = RunProgress(plan.expected_samples())
        self._plan = plan
        self._run = run
        self._judge = judge
        self._blobs = blobs
        self._journal = journal
        self._halt = halt
        self._check_slots = asyncio.Semaphore(MAX_CHECKS)

    def judge_turn(self, judged_turn: JudgedTurn, group: asyncio.TaskGroup) -> None:
        """Judge a reply: rules at once, questions and checks in tasks of `group`."""
        items = build_items(self._plan, judged_turn, self._store_trace)
        for item in items:
            self.progress.verdicts_expected += self._count_verdicts(item)
        self._store(item for item in items if isinstance(item, Verdict))
        for item in items:
            if not isinstance(item, Verdict):
                group.create_task(self._process(item, judged_turn))

    def _count_verdicts(self, item: Assessment) -> int:
        """Return how many verdicts an item leads to, as far as it is known in advance."""
        if isinstance(item, Verdict):
            return 1
        if isinstance(item, Question):
            return len(item.metrics) * self._plan.repeats
        return len(item.metrics)

    def _store_trace(self, turn_ref: TurnRef, error: Exception) -> None:
        self._journal.put_trace(self._run, turn_ref.sample, turn_ref.turn, scrub(format_trace(error)))

    def _store(self, verdicts: Iterable[Verdict]) -> None:
        for verdict in verdicts:
            self.progress.verdicts_done += 1
            if verdict.value is None and not verdict.undecided:
                self.progress.unscored[verdict.reason] += 1
            self._journal.put_verdict(self._run, verdict)

    async def _process(self, item: Question | Check, judged_turn: JudgedTurn) -> None:
        """Ask a question or run a check. What makes further judging pointless ends the run."""
        try:
            if isinstance(item, Question):
                await self._ask(item)
            else:
                await self._run_check(item, judged_turn)
        except (BudgetReached, EndpointDown, RunHalted, UnusableJudge, StoreError) as error:
            self._halt.stop(error)

    async def _ask(self, question: Question) -> None:
        """Ask the judge as often as configured. The first draw is the same call as without repeats."""
        if self._plan.repeats == 1:
            self._store(await self._judge.judge(question))
            return
        calls = [self._judge.judge(question, draw, f"repeat {draw + 1}") for draw in range(self._plan.repeats)]
        results = await asyncio.gather(*calls, return_exceptions=True)  # all return: each may have been paid for
        for result in results:
            if not isinstance(result, BaseException):
                self._store(result)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _run_check(self, check: Check, judged_turn: JudgedTurn) -> None:
        """Run a check in a thread, store its verdicts, and ask the questions that it leads to."""
        items: Sequence[Assessment]
        try:
            async with self._check_slots:
                items = list(await asyncio.to_thread(check.work, self._blobs))
            check_items(items, check.turn_ref, check.metrics)
        except StoreError:
            raise
        except ImageError as error:
            reason = f"its image {error}"
            items = [judged_turn.verdict(metric, None, reason, detail=check.detail) for metric in check.metrics]
        except Exception as error:
            self._store_trace(judged_turn.turn_ref, error)
            items = _leave_unscored(self._plan, judged_turn, check.metrics, error)
        questions = [item for item in items if isinstance(item, Question)]
        verdicts = [item for item in items if isinstance(item, Verdict)]
        expected = sum(map(self._count_verdicts, (*questions, *verdicts)))
        self.progress.verdicts_expected += expected - len(check.metrics)
        self._store(verdicts)
        for question in questions:
            await self._ask(question)


def build_items(plan: RunPlan, judged_turn: JudgedTurn, on_error: OnError | None = None) -> Sequence[Assessment]:
    """Return a benchmark's questions, checks and verdicts about a reply.

    An error in the benchmark's code leaves this reply unscored, and no other: the reply is stored, and would raise it
    again with every run. `on_error` gets the error.
    """
    benchmark = plan.benchmark
    try:
        named: Any = benchmark.metrics_for(judged_turn.turn)
        metrics: tuple[Any, ...] = tuple(itertools.islice(named, MAX_ITEMS))
        is_list = not isinstance(named, str) and len(metrics) < MAX_ITEMS
        if not is_list or not all(isinstance(metric, str) for metric in metrics):
            raise TypeError(f"`metrics_for` must return names of metrics, fewer than {MAX_ITEMS:,}")
    except Exception as error:
        raise wrap_error(_describe(plan, judged_turn.turn_ref), error) from error
    try:
        if judged_turn.reply.outcome == "failed":
            produced = benchmark.on_failed(judged_turn)
        elif judged_turn.reply.outcome == "answered":
            produced = benchmark.questions(judged_turn)
        else:
            produced = benchmark.on_no_answer(judged_turn)
        items = list(itertools.islice(produced, MAX_ITEMS))
        if len(items) == MAX_ITEMS:
            raise ValueError(f"{MAX_ITEMS:,} or more questions and verdicts about one turn: does it ever end?")
        check_items(items, judged_turn.turn_ref, metrics)
    except Exception as error:
        if on_error is not None:
            on_error(judged_turn.turn_ref, error)
        return _leave_unscored(plan, judged_turn, metrics, error)
    return items


def _leave_unscored(plan: RunPlan, judged_turn: JudgedTurn, metrics: Sequence[str], error: Exception) -> list[Verdict]:
    reason = str(wrap_error(_describe(plan, judged_turn.turn_ref), error))
    return [judged_turn.verdict(metric, None, reason) for metric in metrics]


def check_items(items: Sequence[Assessment], turn_ref: TurnRef, expected_metrics: Sequence[str]) -> None:
    """Check what a benchmark returned about a turn.

    Raises ValueError if an item is for another turn or metric, a value is not in [0, 1], or a metric is missing or
    occurs twice; TypeError if a message holds anything but parts.
    """
    variants: set[tuple[str, str]] = set()
    for item in items:
        variant = ""
        if isinstance(item, Verdict):
            turn = (item.sample, item.turn)
            metrics: tuple[str, ...] = (item.metric,)
            variant = item.variant
            if item.value is not None and not 0 <= item.value <= 1:
                raise ValueError(
                    f"a verdict of {item.value:g} for {item.metric}: values are shares of full marks, from 0 to 1"
                )
        else:
            turn = (item.turn_ref.sample, item.turn_ref.turn)
            metrics = item.metrics
        if isinstance(item, Question):
            check_messages(item.messages, "a question's messages hold")
            variant = item.variant
        if turn != (turn_ref.sample, turn_ref.turn) or not metrics or not set(metrics) <= set(expected_metrics):
            raise ValueError(
                f"a {type(item).__name__} for {turn[0]}, turn {turn[1] + 1}, {', '.join(metrics)}: "
                f"not this turn, or none of its metrics ({', '.join(expected_metrics)})"
            )
        for metric in metrics:
            if (metric, variant) in variants:
                raise ValueError(f"{metric} is asked for twice; tell the two apart by their `variant`")
        variants |= {(metric, variant) for metric in metrics}
    present = {metric for metric, _ in variants}
    missing = [metric for metric in expected_metrics if metric not in present]
    if missing:
        raise ValueError(
            f"nothing is asked or said about {', '.join(missing)}; `metrics_for` tells which metrics a turn has"
        )


def _describe(plan: RunPlan, turn_ref: TurnRef) -> str:
    return f"benchmark {plan.benchmark.name}, sample {turn_ref.sample}, turn {turn_ref.turn + 1}"
