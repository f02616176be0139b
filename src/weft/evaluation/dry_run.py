"""Estimates what a run would cost, without a call: the same code runs with models that count instead of calling. Cached
answers are used; for the rest the dataset's references stand in, so that histories and images have about the right
size."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from weft.benchmarks.base import Assessment, Check, JudgedTurn
from weft.calls.caller import Caller
from weft.calls.prices import Price, estimate_usage, output_token_limit
from weft.errors import ImageError, StoreError
from weft.evaluation.generate import ReplySource
from weft.evaluation.judging import RunProgress, build_items
from weft.evaluation.plan import RunPlan
from weft.evaluation.selection import ReadAhead
from weft.judges.vlm import JpegCache, build_request, prepare_messages
from weft.models.baselines import STAND_IN_REASON, build_stand_in
from weft.store.blobs import Blobs
from weft.types import Message, Model, Part, Question, Reply, Request, Thought, TurnRef, Usage

BuildReplySource = Callable[[RunPlan, Mapping[str, Model]], ReplySource]


class RoleEstimate(Struct, frozen=True):
    """What one role would do in a run."""

    calls: int  # to be made
    cached: int  # answered from the cache
    tokens_in: int  # of the calls to be made
    tokens_out: int
    cost: float | None  # in USD; None where the price is unknown
    images: int = 0


class CountingModel:
    """A Model that makes no calls: it returns the cached answer, else the reference, else a stand-in."""

    def __init__(self, caller: Caller, references: Mapping[tuple[str, int], tuple[Part, ...]], blobs: Blobs) -> None:
        """`references` are the reference answers by sample and turn."""
        self.name = caller.name
        self.takes = caller.takes
        self.calls = 0
        self.cached = 0
        self.tokens_in = 0
        self.tokens_out = 0
        self.images = 0
        self._caller = caller
        self._references = references
        self._blobs = blobs

    async def reply(self, messages: tuple[Message, ...], request: Request) -> Reply:
        reason = self._caller.endpoint.gives.unsupported_reason(request.modality)
        if reason:
            return Reply("empty", reason=reason)
        cached = self._caller.find_cached(messages, request)
        if cached is not None:
            self.cached += 1
            return cached
        self.calls += 1
        usage = estimate_usage(messages, request)
        limit = output_token_limit(self._caller.endpoint.identity) or usage.tokens_out
        self.tokens_in += usage.tokens_in
        self.tokens_out += min(usage.tokens_out, limit)
        self.images += usage.images
        return self._stand_in(request)

    def _stand_in(self, request: Request) -> Reply:
        """Return the reference if it has the requested modality, else a stand-in."""
        turn_ref = request.turn_ref
        reference = Reply("answered", self._references.get((turn_ref.sample, turn_ref.turn), ()))
        if request.modality == "text" and reference.text:
            return reference
        if request.modality != "text" and reference.images:
            return reference
        parts: list[Part] = []
        if reference.thoughts:
            parts.append(Thought(reference.thoughts))
        parts.append(build_stand_in(request.modality, self._blobs))
        return Reply("answered", tuple(parts), STAND_IN_REASON, notes=("stand-in",))

    def estimate(self, price: Price | None) -> RoleEstimate:
        """Return what was counted, with its cost."""
        cost = None
        if price is not None:
            cost = price.cost_of(Usage(self.tokens_in, self.tokens_out, images=self.images))
        return RoleEstimate(self.calls, self.cached, self.tokens_in, self.tokens_out, cost, self.images)


async def estimate_run(
    plan: RunPlan,
    build_source: BuildReplySource,
    callers: Mapping[str, Caller],
    prices: Mapping[str, Price | None],
    blobs: Blobs,
    counting_models: Mapping[str, CountingModel] | None = None,
    progress: RunProgress | None = None,
) -> dict[str, RoleEstimate]:
    """Return what each role would do.

    `build_source` makes the run's source of replies from models by role. `counting_models` have counted before, while
    the dataset was prepared. `progress` counts samples and turns.
    """
    references: dict[tuple[str, int], tuple[Part, ...]] = {}  # of the current sample
    models = dict(counting_models or {})
    for role, caller in callers.items():
        if role not in models:
            models[role] = CountingModel(caller, references, blobs)
    source = build_source(plan, models)
    jpegs: JpegCache = {}
    progress = progress or RunProgress(plan.expected_samples())
    async for _, sample in ReadAhead(plan.own_samples()):
        references.clear()
        references.update({(sample.id, turn.number): turn.reference for turn in sample.turns})
        progress.samples += 1
        progress.turns += plan.count_turns(sample)
        dialogue: dict[int, Reply] = {}
        for turn in sample.turns:
            if not plan.includes(turn):
                continue
            _, reply = await source.reply_to(sample, turn, dialogue)
            dialogue[turn.number] = reply
            turn_ref = TurnRef(sample.id, turn.number, turn.file, plan.benchmark.name)
            judged_turn = JudgedTurn(sample, turn, reply, dict(dialogue), turn_ref, plan.options, plan.rubrics)
            await _count_judge_calls(plan, judged_turn, models["judge"], blobs, jpegs)
    return {role: models[role].estimate(prices[role]) for role in callers}


async def _count_judge_calls(
    plan: RunPlan, judged_turn: JudgedTurn, judge: CountingModel, blobs: Blobs, jpegs: JpegCache
) -> None:
    """Count the judge's calls about one turn."""
    for question in await collect_questions(build_items(plan, judged_turn), blobs):
        try:
            messages = await prepare_messages(question.messages, question, judge.takes, blobs, jpegs)
        except ImageError:  # the run will report it; here about as much is counted
            messages = question.messages
        for draw in range(plan.repeats):
            await judge.reply(messages, build_request(question, draw))


async def collect_questions(items: Sequence[Assessment], blobs: Blobs) -> list[Question]:
    """Return the questions for a judge. Checks are run, since they may lead to questions.

    A check of the benchmark's own that raises leads to none: in a run, too, it costs its verdicts alone.
    """
    questions: list[Question] = []
    for item in items:
        if isinstance(item, Check):
            try:
                results = list(await asyncio.to_thread(item.work, blobs))
            except StoreError:
                raise
            except Exception:
                continue
            questions += [result for result in results if isinstance(result, Question)]
        elif isinstance(item, Question):
            questions.append(item)
    return questions
