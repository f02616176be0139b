"""What a run would cost, without making a call: the same code is walked with models that count instead of calling. What
the journal has is taken from there; for the rest the dataset's own replies stand in, so that histories and pictures
have about the right size."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from weft.benchmarks.base import Assessment, Check, JudgedTurn
from weft.calls.caller import Caller
from weft.calls.prices import Price, estimate_usage, output_token_limit
from weft.errors import ImageError
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
    """One role's part of a plan: calls to be made, calls already answered, tokens and price of those to be made."""

    calls: int
    cached: int
    tokens_in: int
    tokens_out: int
    cost: float | None
    images: int = 0


class CountingModel:
    """A Model that asks nobody: what its caller remembers, or what stands in for it."""

    def __init__(self, caller: Caller, references: Mapping[tuple[str, int], tuple[Part, ...]], blobs: Blobs) -> None:
        self.name, self.takes = caller.name, caller.takes
        self._caller = caller
        self._references = references
        self._blobs = blobs
        self.calls = self.cached = self.tokens_in = self.tokens_out = self.images = 0

    async def reply(self, messages: tuple[Message, ...], want: Request) -> Reply:
        if lacks := self._caller.endpoint.gives.unsupported_reason(want.modality):
            return Reply("empty", reason=lacks)
        known = self._caller.find_cached(messages, want)
        if known is not None:
            self.cached += 1
            return known
        self.calls += 1
        more = estimate_usage(messages, want)
        self.tokens_in += more.tokens_in
        self.tokens_out += min(more.tokens_out, output_token_limit(self._caller.endpoint.identity) or more.tokens_out)
        self.images += more.images
        true = Reply("answered", self._references.get((want.turn_ref.sample, want.turn_ref.turn), ()))
        if want.modality == "text":
            fits = true.text
        else:
            fits = true.images
        if true.thoughts:
            thought = (Thought(true.thoughts),)
        else:
            thought = ()
        if fits:
            return true
        return Reply(
            "answered", (*thought, build_stand_in(want.modality, self._blobs)), STAND_IN_REASON, notes=("stand-in",)
        )

    def estimate(self, price: Price | None) -> RoleEstimate:
        if price is None:
            cost = None
        else:
            cost = price.cost_of(Usage(self.tokens_in, self.tokens_out, images=self.images))
        return RoleEstimate(self.calls, self.cached, self.tokens_in, self.tokens_out, cost, self.images)


async def estimate_run(
    plan: RunPlan,
    source_of: BuildReplySource,
    callers: Mapping[str, Caller],
    prices: Mapping[str, Price | None],
    blobs: Blobs,
    before: Mapping[str, CountingModel] | None = None,
    progress: RunProgress | None = None,
) -> dict[str, RoleEstimate]:
    """By role. `source_of` makes the run's source of replies from models under the roles' names. `before` have counted
    already: what the data themselves need. `progress` counts samples and turns."""
    references: dict[tuple[str, int], tuple[Part, ...]] = {}  # of the sample that is looked at
    counting = {
        role: (before or {}).get(role) or CountingModel(caller, references, blobs) for role, caller in callers.items()
    }
    source = source_of(plan, counting)
    jpegs: JpegCache = {}
    progress = progress or RunProgress(plan.expected_samples())
    async for _, sample in ReadAhead(plan.own_samples()):
        references.clear()
        references.update({(sample.id, turn.number): turn.reference for turn in sample.turns})
        progress.samples += 1
        progress.turns += plan.count_turns(sample)
        dialogue: dict[int, Reply] = {}
        for turn in sample.turns:
            if plan.includes(turn):
                _, dialogue[turn.number] = await source.reply_to(sample, turn, dialogue)
                place = TurnRef(sample.id, turn.number, turn.file, plan.benchmark.name)
                answered = JudgedTurn(
                    sample, turn, dialogue[turn.number], dict(dialogue), place, plan.options, plan.rubrics
                )
                for question in await collect_questions(build_items(plan, answered), blobs):
                    try:
                        messages = await prepare_messages(
                            question.messages, question, counting["judge"].takes, blobs, jpegs
                        )
                    except ImageError:  # it will be told in its place; about as much is counted for it
                        messages = question.messages
                    for draw in range(plan.repeats):
                        await counting["judge"].reply(messages, build_request(question, draw))
    return {role: one.estimate(prices[role]) for role, one in counting.items()}


async def collect_questions(items: Sequence[Assessment], blobs: Blobs) -> list[Question]:
    """What a judge would be asked; a check is made, and may lead to questions."""
    found: list[Question] = []
    for item in items:
        if isinstance(item, Check):
            try:
                found += [one for one in await asyncio.to_thread(item.work, blobs) if isinstance(one, Question)]
            except ImageError:
                continue
        elif isinstance(item, Question):
            found.append(item)
    return found
