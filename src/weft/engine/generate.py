"""Generating: samples to replies, and each reply on to the judging of it.

Many samples are in flight together; the turns of one are asked in order, and a turn is judged while the next is generated. Replies come
from a model that is asked now (`Live`), or from a run that is in the journal (`Stored`). Everything is journalled as it happens, and
every answer comes from the journal where it is already there: to go on after a crash is to run the same command again. Ending
early (Ctrl-C, budget, an endpoint that is gone) loses nothing but calls in flight.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from weft.benchmarks.base import Answered
from weft.engine.call import EndpointDown, Halt, Halted
from weft.engine.judging import Judging
from weft.engine.plan import Plan
from weft.errors import BudgetReached, PictureError, blaming
from weft.models.fit import fitted
from weft.numbering import maker_of, mentions
from weft.store.blobs import Blobs
from weft.store.journal import Journal, TurnRecord
from weft.types import Dialogue, Message, Model, Part, Place, Reply, Sample, Thought, Turn, Want


class Source(Protocol):
    """Where replies come from: what was seen, as JSON, and the reply."""

    async def turn(self, sample: Sample, turn: Turn, dialogue: Dialogue) -> tuple[str, Reply]: ...


class Live:
    """Replies of a model that is asked now. `sees`: whether what it is shown can change its reply."""

    def __init__(self, plan: Plan, model: Model, blobs: Blobs, *, sees: bool = True) -> None:
        self._plan, self._model, self._blobs, self._sees = plan, model, blobs, sees

    async def turn(self, sample: Sample, turn: Turn, dialogue: Dialogue) -> tuple[str, Reply]:
        await asyncio.sleep(0)  # a model that never waits must not keep the others, or Ctrl-C, from their turn
        benchmark, options = self._plan.benchmark, self._plan.options
        with blaming(f"benchmark {benchmark.name}, sample {sample.id}, turn {turn.number}"):
            needed = sorted(benchmark.needs(sample, turn, options)) if self._sees else ()
            messages = without_thoughts(benchmark.see(sample, turn, dialogue, options))
        for number in needed:
            if number in dialogue and dialogue[number].outcome == "failed":
                return "[]", Reply("failed", reason=f"waits for turn {number}, which failed: {dialogue[number].reason}")
        try:
            seen = await fitted(messages, self._model.takes, self._blobs)
        except PictureError as error:
            return "[]", Reply("failed", reason=f"what the model is to see cannot be made: {error}")
        reply = await self._model.reply(seen, Want(turn.want, place=Place(sample.id, turn.number, turn.file, benchmark.name)))
        return msgspec.json.encode(seen).decode(), reply


class Stored:
    """Replies of a run in the journal: nobody is asked."""

    def __init__(self, turns: Sequence[TurnRecord]) -> None:
        self._turns = {(record.sample, record.turn): record for record in turns}

    async def turn(self, sample: Sample, turn: Turn, dialogue: Dialogue) -> tuple[str, Reply]:
        record = self._turns.get((sample.id, turn.number))
        return (record.seen, record.reply) if record else ("[]", Reply("failed", reason="the stored run has no reply to it"))


def without_thoughts(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """A model's thoughts are of no history; only those that its provider wants back with their state stay, for the caller to decide."""
    if not any(isinstance(part, Thought) for message in messages for part in message.parts):
        return messages
    kept = [
        msgspec.structs.replace(message, parts=tuple(part for part in message.parts if not isinstance(part, Thought) or part.state))
        for message in messages
    ]
    return tuple(message for message in kept if message.parts)


class Generator:
    def __init__(self, plan: Plan, run: str, source: Source, judging: Judging, journal: Journal, halt: Halt, width: int) -> None:
        self.halt = halt
        self._plan, self._run, self._source, self._judging, self._journal = plan, run, source, judging, journal
        self._window = asyncio.Semaphore(width)
        self.progress = judging.progress

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
                if not self._plan.asks(turn) or self.halt.reason:
                    continue
                seen, reply = await self._source.turn(sample, turn, dialogue)
                dialogue[turn.number] = reply
                self.progress.outcomes[reply.outcome] += 1
                self.progress.turns_done += 1
                about = msgspec.json.encode({"ask": shown_ask(sample, turn), "truth": turn.truth, "gold": turn.gold}, enc_hook=str).decode()
                record = TurnRecord(sample.id, turn.number, position, dict(sample.groups), turn.want, seen, reply, about)
                self._journal.put_turn(self._run, record)
                self._judging.take(Answered(sample, turn, dict(dialogue), self._plan.options, self._plan.rubrics), group)
            self.progress.samples_done += not self.halt.reason
        except (BudgetReached, EndpointDown, Halted) as error:
            self.halt.stop(error)
        finally:
            self._window.release()


def shown_ask(sample: Sample, turn: Turn) -> tuple[Part, ...]:
    """A request with the given pictures that it calls by number, for those who look at it later."""
    given = {number: image for number, image in enumerate(sample.pictures, start=1) if maker_of(sample, number) is None}
    called = [number for number in dict.fromkeys(mentions(turn.words)) if number in given]
    return (*turn.ask, *(msgspec.structs.replace(given[number], label=number) for number in called))


def dialogues_of(turns: Sequence[TurnRecord]) -> Mapping[str, dict[int, Reply]]:
    """A stored run's replies by sample and turn."""
    made: dict[str, dict[int, Reply]] = {}
    for record in turns:
        made.setdefault(record.sample, {})[record.turn] = record.reply
    return made
