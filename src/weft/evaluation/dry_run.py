"""What a run would cost, without making a call: the same code is walked with models that count instead of calling. What the journal has is
taken from there; for the rest the dataset's own replies stand in, so that histories and pictures have about the right size."""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from weft.benchmarks.base import Answered, Check, Item
from weft.calls.caller import Caller
from weft.calls.prices import Price, estimate, limit_of
from weft.errors import PictureError
from weft.evaluation.generate import Source
from weft.evaluation.judging import Progress, items_of
from weft.evaluation.plan import Plan
from weft.evaluation.selection import Stream
from weft.judges.vlm import Jpegs, as_sent, want_of
from weft.models.baselines import STAND_IN, stand_in
from weft.store.blobs import Blobs
from weft.types import Message, Model, Part, Place, Question, Reply, Thought, Usage, Want

SourceOf = Callable[[Plan, Mapping[str, Model]], Source]


class Share(Struct, frozen=True):
    """One role's part of a plan: calls to be made, calls already answered, tokens and price of those to be made."""

    calls: int
    remembered: int
    tokens_in: int
    tokens_out: int
    cost: float | None
    images: int = 0


class Counting:
    """A Model that asks nobody: what its caller remembers, or what stands in for it."""

    def __init__(self, caller: Caller, references: Mapping[tuple[str, int], tuple[Part, ...]], blobs: Blobs) -> None:
        self.name, self.takes = caller.name, caller.takes
        self._caller, self._references, self._blobs = caller, references, blobs
        self.calls = self.remembered = self.tokens_in = self.tokens_out = self.images = 0

    async def reply(self, messages: tuple[Message, ...], want: Want) -> Reply:
        if lacks := self._caller.endpoint.gives.lacks(want.kind):
            return Reply("empty", reason=lacks)
        known = self._caller.remembers(messages, want)
        if known is not None:
            self.remembered += 1
            return known
        self.calls += 1
        more = estimate(messages, want)
        self.tokens_in += more.tokens_in
        self.tokens_out += min(more.tokens_out, limit_of(self._caller.endpoint.identity) or more.tokens_out)
        self.images += more.images
        true = Reply("answered", self._references.get((want.place.sample, want.place.turn), ()))
        fits = true.text if want.kind == "text" else true.images
        thought = (Thought(true.thoughts),) if true.thoughts else ()
        return true if fits else Reply("answered", (*thought, stand_in(want.kind, self._blobs)), STAND_IN, notes=("stand-in",))

    def share(self, price: Price | None) -> Share:
        cost = None if price is None else price.of(Usage(self.tokens_in, self.tokens_out, images=self.images))
        return Share(self.calls, self.remembered, self.tokens_in, self.tokens_out, cost, self.images)


async def foresee(
    plan: Plan,
    source_of: SourceOf,
    callers: Mapping[str, Caller],
    prices: Mapping[str, Price | None],
    blobs: Blobs,
    before: Mapping[str, Counting] | None = None,
    progress: Progress | None = None,
) -> dict[str, Share]:
    """By role. `source_of` makes the run's source of replies from models under the roles' names. `before` have counted already: what the
    data themselves need. `progress` counts samples and turns."""
    references: dict[tuple[str, int], tuple[Part, ...]] = {}  # of the sample that is looked at
    counting = {role: (before or {}).get(role) or Counting(caller, references, blobs) for role, caller in callers.items()}
    source = source_of(plan, counting)
    jpegs: Jpegs = {}
    progress = progress or Progress(plan.expected())
    async for _, sample in Stream(plan.mine()):
        references.clear()
        references.update({(sample.id, turn.number): turn.reference for turn in sample.turns})
        progress.samples += 1
        progress.turns += plan.turns_of(sample)
        dialogue: dict[int, Reply] = {}
        for turn in sample.turns:
            if plan.asks(turn):
                _, dialogue[turn.number] = await source.turn(sample, turn, dialogue)
                place = Place(sample.id, turn.number, turn.file, plan.benchmark.name)
                answered = Answered(sample, turn, dialogue[turn.number], dict(dialogue), place, plan.options, plan.rubrics)
                for question in await questions_in(items_of(plan, answered), blobs):
                    try:
                        messages = await as_sent(question.messages, question, counting["judge"].takes, blobs, jpegs)
                    except PictureError:  # it will be told in its place; about as much is counted for it
                        messages = question.messages
                    for draw in range(plan.repeats):
                        await counting["judge"].reply(messages, want_of(question, draw))
    return {role: one.share(prices[role]) for role, one in counting.items()}


async def questions_in(items: Sequence[Item], blobs: Blobs) -> list[Question]:
    """What a judge would be asked; a check is made, and may lead to questions."""
    found: list[Question] = []
    for item in items:
        if isinstance(item, Check):
            try:
                found += [one for one in await asyncio.to_thread(item.work, blobs) if isinstance(one, Question)]
            except PictureError:
                continue
        elif isinstance(item, Question):
            found.append(item)
    return found
