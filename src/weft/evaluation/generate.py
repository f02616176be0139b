"""Generating: samples to replies, and each reply on to the judging of it.

Many samples are in flight together; the turns of one are asked in order, and a turn is judged while the next is generated. Replies come
from a model that is asked now (`Live`), or from a run that is in the journal (`Stored`). Everything is journalled as it happens, and
every answer comes from the journal where it is already there: to go on after a crash is to run the same command again. Ending
early (Ctrl-C, budget, an endpoint that is gone) loses nothing but calls in flight.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Protocol

import msgspec
from msgspec.structs import replace

from weft.benchmarks.base import Answered
from weft.benchmarks.outputs import Folder
from weft.calls.caller import EndpointDown, Halt, Halted
from weft.errors import BudgetReached, PictureError, StoreError, WeftError, blamed
from weft.evaluation.judging import Judging
from weft.evaluation.plan import Plan
from weft.models.adapt import fitted
from weft.models.baselines import Reference
from weft.models.compose import apply
from weft.models.compose.base import AGAIN, Composition, joined
from weft.models.registry import Wired
from weft.store.blobs import Blobs
from weft.store.journal import Journal, TurnRecord
from weft.types import Dialogue, Message, Model, Part, Place, Reply, Sample, Turn, Want, check_messages, mentions

MOST_TRIES, APART = 8, 100  # tries of a turn; their draws are so far apart that a strategy's own have room between them
Tried = tuple[tuple[Message, ...], Reply]  # what was shown, and what was said


class Source(Protocol):
    """Where replies come from: what was seen, as JSON, and the reply. `free`: it costs nothing to look at those of turns that are not
    asked, which others may depend on."""

    free: bool

    async def turn(self, sample: Sample, turn: Turn, dialogue: Dialogue) -> tuple[str, Reply]: ...


class Live:
    """Replies of a model that is asked now: one endpoint, or a composition of several, under a strategy or none."""

    def __init__(self, plan: Plan, wired: Wired, blobs: Blobs, parts: Mapping[str, Model]) -> None:
        """`parts` are the Models that play the roles of the wiring."""
        endpoints = wired.endpoints.values()
        model = parts["model"] if wired.composition is None else wired.composition(wired.name, parts, blobs)
        if isinstance(model, Composition):
            model.words = {role: endpoint.words for role, endpoint in wired.endpoints.items() if endpoint.words}
        if plan.strategy != "none":
            model = apply(plan.strategy, model, blobs, next((endpoint.words for endpoint in endpoints if endpoint.words), None))
        self._plan, self._model, self._blobs = plan, model, blobs
        self._references = [endpoint for endpoint in endpoints if isinstance(endpoint, Reference)]
        self._sees = any(endpoint.sees for endpoint in endpoints)  # whether what it is shown can change its reply
        self.free = all(isinstance(endpoint, Folder) for endpoint in endpoints)
        self.raised: Callable[[Place, Exception], None] = lambda place, error: None  # who is told what foreign code raised

    async def turn(self, sample: Sample, turn: Turn, dialogue: Dialogue) -> tuple[str, Reply]:
        await asyncio.sleep(0)  # a model that never waits must not keep the others, or Ctrl-C, from their turn
        benchmark, options = self._plan.benchmark, self._plan.options
        try:
            messages = benchmark.build_messages(sample, turn, dialogue, options)
            check_messages(messages)
            needed = sorted(benchmark.depends_on(sample, turn, options)) if self._sees else ()
        except Exception as error:  # it may be a reply of an earlier turn that it cannot deal with: that costs this turn, and no other
            self.raised(Place(sample.id, turn.number), error)
            why = blamed(f"benchmark {benchmark.name}, sample {sample.id}, turn {turn.number + 1}", error)
            return "[]", Reply("failed", reason=str(why))
        for number in needed:
            if number in dialogue and dialogue[number].outcome == "failed":
                return "[]", Reply("failed", reason=f"waits for turn {number + 1}, which failed: {dialogue[number].reason}")
        want = Want(turn.want, place=Place(sample.id, turn.number, turn.file, benchmark.name))
        for endpoint in self._references:
            endpoint.learn(want.place, turn.reference)
        tried = [await self._asked(messages, want)]
        try:
            await self._ask_again(turn, messages, want, tried)
            counted = tried[0][1]
            if benchmark.follow_up is not None and len(tried) > 1:
                counted = benchmark.follow_up.pick_reply(turn, [reply for _, reply in tried])
        except (BudgetReached, EndpointDown, Halted, StoreError):
            raise
        except Exception as error:  # what it cannot deal with costs this turn, and no other
            self.raised(want.place, error)
            why = blamed(f"benchmark {benchmark.name}, sample {sample.id}, turn {turn.number + 1}", error)
            counted = replace(tried[-1][1], outcome="failed", parts=(), reason=str(why))
            tried[-1] = (tried[-1][0], counted)
        seen, reply = next((one for one in tried if one[1] is counted), tried[-1])
        if len(tried) > 1:
            told, others = AGAIN.format(count=len(tried)), [other for _, other in tried if other is not reply]
            reason = f"{reply.reason}; {told}" if reply.reason else told
            reply = joined(replace(reply, reason=reason, notes=(*reply.notes, "asked again")), others)
        return msgspec.json.encode(seen).decode(), reply

    async def _ask_again(self, turn: Turn, messages: tuple[Message, ...], want: Want, tried: list[Tried]) -> None:
        """As often as the benchmark's protocol asks after what came; each is a call of its own, whatever its words."""
        follow_up = self._plan.benchmark.follow_up
        while follow_up is not None and self._sees and len(tried) < MOST_TRIES:
            more = follow_up.next_messages(turn, messages, tried[-1][1], len(tried))
            if more is None:
                return
            messages = more
            tried.append(await self._asked(messages, replace(want, draw=APART * len(tried))))

    async def _asked(self, messages: tuple[Message, ...], want: Want) -> Tried:
        """What the model is shown, and what it says."""
        try:
            seen = await fitted(messages, self._model.takes.of(want.kind), self._blobs)
        except PictureError as error:
            return (), Reply("failed", reason=f"what the model is to see cannot be made: {error}")
        try:
            return seen, await self._model.reply(seen, want)
        except (BudgetReached, EndpointDown, Halted, StoreError):
            raise
        except Exception as error:  # a composition that cannot deal with what its parts say: that costs this turn, and no other
            self.raised(want.place, error)
            return seen, Reply("failed", reason=str(blamed(f"{self._model.name}, sample {want.place.sample}", error)))


class Stored:
    """Replies of a run in the journal: nobody is asked. A turn that the dataset no longer has as it was has no reply."""

    free = False

    def __init__(self, turns: Sequence[TurnRecord]) -> None:
        self._turns = {(record.sample, record.turn): record for record in turns}

    async def turn(self, sample: Sample, turn: Turn, dialogue: Dialogue) -> tuple[str, Reply]:
        record = self._turns.get((sample.id, turn.number))
        if record is None:
            return "[]", Reply("failed", reason="the stored run has no reply to it")
        if record.about != about_turn(sample, turn):
            return "[]", Reply("failed", reason="the dataset's record has changed since the reply was made")
        return record.seen, record.reply


class Generator:
    """Samples in, turns and verdicts in the journal out. `whole`: all samples have been read."""

    def __init__(self, plan: Plan, run: str, source: Source, judging: Judging, journal: Journal, halt: Halt, width: int) -> None:
        self.halt, self.whole = halt, False
        self._plan, self._run, self._source, self._judging, self._journal = plan, run, source, judging, journal
        self._window = asyncio.Semaphore(width)
        self._active = 0
        self.progress = judging.progress

    async def run(self, samples: AsyncGenerator[tuple[int, Sample]], done: Callable[[], None]) -> None:
        """All samples, each with its place in the dataset, as soon as there is room for it. What ends a run early is not raised: `halt` has
        the reason, once the calls in flight have come back. `done` is told when the last turn has come back."""
        async with asyncio.TaskGroup() as group, contextlib.aclosing(samples):
            try:
                async for position, sample in samples:
                    await self._window.acquire()
                    if self.halt.reason:
                        return
                    self.progress.samples += 1
                    self.progress.turns += self._plan.turns_of(sample)
                    self._active += 1
                    group.create_task(self._sample(position, sample, group, done))
            except Exception as error:  # data that cannot be read any further: what is in flight may still come back
                self.halt.stop(error if isinstance(error, WeftError) else WeftError(f"{type(error).__name__}: {error}"))
                return
            self.whole = True
            if not self._active:
                done()

    async def _sample(self, position: int, sample: Sample, group: asyncio.TaskGroup, done: Callable[[], None]) -> None:
        try:
            dialogue: dict[int, Reply] = {}
            for turn in sample.turns:
                if self.halt.reason or not (self._plan.asks(turn) or self._source.free):
                    continue
                seen, reply = await self._source.turn(sample, turn, dialogue)
                dialogue[turn.number] = reply
                if self._plan.asks(turn):
                    self._keep(position, sample, turn, seen, dialogue, group)
            self.progress.samples_done += not self.halt.reason
        except (BudgetReached, EndpointDown, Halted, StoreError) as error:
            self.halt.stop(error)
        finally:
            self._window.release()
            self._active -= 1
            if self.whole and not self._active:
                done()

    def _keep(self, position: int, sample: Sample, turn: Turn, seen: str, dialogue: Dialogue, group: asyncio.TaskGroup) -> None:
        """A turn that has come back goes to the journal, and on to its judging."""
        reply = dialogue[turn.number]
        self.progress.outcomes[reply.outcome] += 1
        self.progress.turns_done += 1
        record = TurnRecord(sample.id, turn.number, position, dict(sample.groups), turn.want, seen, reply, about_turn(sample, turn))
        self._journal.put_turn(self._run, record)
        place = Place(sample.id, turn.number, turn.file, self._plan.benchmark.name)
        self._judging.take(Answered(sample, turn, reply, dict(dialogue), place, self._plan.options, self._plan.rubrics), group)


def about_turn(sample: Sample, turn: Turn) -> str:
    """What the dataset has of a turn, as JSON, for those who look at a run without its dataset."""
    return msgspec.json.encode({"ask": shown_ask(sample, turn), "reference": turn.reference, "gold": turn.gold}, enc_hook=str).decode()


def shown_ask(sample: Sample, turn: Turn) -> tuple[Part, ...]:
    """A request with the given pictures that it calls by number, for those who look at it later."""
    given = {number: image for number, image in enumerate(sample.pictures, start=1) if sample.maker_of(number) is None}
    called = [number for number in dict.fromkeys(mentions(turn.words)) if number in given]
    return (*turn.ask, *(msgspec.structs.replace(given[number], label=number) for number in called))


def dialogues_of(turns: Sequence[TurnRecord]) -> Mapping[str, dict[int, Reply]]:
    """A stored run's replies by sample and turn."""
    made: dict[str, dict[int, Reply]] = {}
    for record in turns:
        made.setdefault(record.sample, {})[record.turn] = record.reply
    return made
