"""Generating: samples to replies, and each reply on to the judging of it.

Many samples are in flight together; the turns of one are asked in order, and a turn is judged while the next is
generated. Replies come from a model that is asked now (`Live`), or from a run that is in the journal (`Stored`).
Everything is journalled as it happens, and every answer comes from the journal where it is already there: to go on
after a crash is to run the same command again. Ending early (Ctrl-C, budget, an endpoint that is gone) loses nothing
but calls in flight."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Protocol

import msgspec
from msgspec.structs import replace

from weft.benchmarks.base import JudgedTurn
from weft.benchmarks.outputs import OutputFolder
from weft.calls.caller import EndpointDown, Halt, RunHalted
from weft.errors import BudgetReached, ImageError, StoreError, WeftError, wrap_error
from weft.evaluation.judging import TurnJudge
from weft.evaluation.plan import RunPlan
from weft.models.adapt import adapt_messages_async
from weft.models.baselines import ReferenceModel
from weft.models.compose import apply_strategy
from weft.models.compose.base import TRIES_NOTE, Composition, join_replies
from weft.models.registry import ResolvedModel
from weft.store.blobs import Blobs
from weft.store.journal import Journal, TurnRecord
from weft.types import (
    Dialogue,
    Message,
    MessagesError,
    Model,
    Part,
    Reply,
    Request,
    Sample,
    Turn,
    TurnRef,
    check_messages,
    find_mentions,
)

# tries of a turn; their draws are so far apart that a strategy's own have room between them
MOST_TRIES = 8
APART = 100
DIALOGUE_HINT = (
    "`dialogue` maps a turn's number to its Reply: to show an earlier turn, write "
    'Message("user", sample.turns[n].prompt) and Message("assistant", dialogue[n].output)'
)
Tried = tuple[tuple[Message, ...], Reply]  # what was shown, and what was said


class ReplySource(Protocol):
    """Where replies come from: what was seen, as JSON, and the reply. `free`: it costs nothing to look at those of
    turns that are not asked, which others may depend on."""

    free: bool

    async def reply_to(self, sample: Sample, turn: Turn, dialogue: Dialogue) -> tuple[str, Reply]: ...


class LiveReplies:
    """Replies of a model that is asked now: one endpoint, or a composition of several, under a strategy or none."""

    def __init__(self, plan: RunPlan, wired: ResolvedModel, blobs: Blobs, parts: Mapping[str, Model]) -> None:
        """`parts` are the Models that play the roles of the wiring."""
        endpoints = wired.endpoints.values()
        if wired.composition is None:
            model = parts["model"]
        else:
            model = wired.composition(wired.name, parts, blobs)
        if isinstance(model, Composition):
            model.phrasings = {
                role: endpoint.phrasing for role, endpoint in wired.endpoints.items() if endpoint.phrasing
            }
        if plan.strategy != "none":
            model = apply_strategy(
                plan.strategy,
                model,
                blobs,
                next((endpoint.phrasing for endpoint in endpoints if endpoint.phrasing), None),
            )
        self._plan = plan
        self._model = model
        self._blobs = blobs
        self._references = [endpoint for endpoint in endpoints if isinstance(endpoint, ReferenceModel)]
        # whether what it is shown can change its reply
        self._sees = any(endpoint.depends_on_input for endpoint in endpoints)
        self.free = all(isinstance(endpoint, OutputFolder) for endpoint in endpoints)
        # who is told what foreign code raised
        self.on_error: Callable[[TurnRef, Exception], None] = lambda place, error: None

    async def reply_to(self, sample: Sample, turn: Turn, dialogue: Dialogue) -> tuple[str, Reply]:
        await asyncio.sleep(0)  # a model that never waits must not keep the others, or Ctrl-C, from their turn
        benchmark = self._plan.benchmark
        options = self._plan.options
        try:
            messages = benchmark.build_messages(sample, turn, dialogue, options)
            check_messages(messages, f"benchmark {benchmark.name}: build_messages returned")
            if self._sees:
                needed = sorted(benchmark.depends_on(sample, turn, options))
            else:
                needed = ()
        except MessagesError as error:
            raise MessagesError(f"{error}. {DIALOGUE_HINT}") from None
        # it may be a reply of an earlier turn that it cannot deal with: that costs this turn, and no other
        except Exception as error:
            self.on_error(TurnRef(sample.id, turn.number), error)
            why = wrap_error(f"benchmark {benchmark.name}, sample {sample.id}, turn {turn.number + 1}", error)
            return "[]", Reply("failed", reason=str(why))
        for number in needed:
            if number in dialogue and dialogue[number].outcome == "failed":
                return "[]", Reply(
                    "failed", reason=f"waits for turn {number + 1}, which failed: {dialogue[number].reason}"
                )
        want = Request(turn.modality, turn_ref=TurnRef(sample.id, turn.number, turn.file, benchmark.name))
        for endpoint in self._references:
            endpoint.set_reference(want.turn_ref, turn.reference)
        tried = [await self._asked(messages, want)]
        try:
            await self._ask_again(turn, messages, want, tried)
            counted = tried[0][1]
            if benchmark.follow_up is not None and len(tried) > 1:
                counted = benchmark.follow_up.pick_reply(turn, [reply for _, reply in tried])
        except (BudgetReached, EndpointDown, MessagesError, RunHalted, StoreError):
            raise
        except Exception as error:  # what it cannot deal with costs this turn, and no other
            self.on_error(want.turn_ref, error)
            why = wrap_error(f"benchmark {benchmark.name}, sample {sample.id}, turn {turn.number + 1}", error)
            counted = replace(tried[-1][1], outcome="failed", parts=(), reason=str(why))
            tried[-1] = (tried[-1][0], counted)
        seen, reply = next((one for one in tried if one[1] is counted), tried[-1])
        if len(tried) > 1:
            told = TRIES_NOTE.format(count=len(tried))
            others = [other for _, other in tried if other is not reply]
            if reply.reason:
                reason = f"{reply.reason}; {told}"
            else:
                reason = told
            reply = join_replies(replace(reply, reason=reason, notes=(*reply.notes, "asked again")), others)
        return msgspec.json.encode(seen).decode(), reply

    async def _ask_again(self, turn: Turn, messages: tuple[Message, ...], want: Request, tried: list[Tried]) -> None:
        """As often as the benchmark's protocol asks after what came; each is a call of its own, whatever its words."""
        follow_up = self._plan.benchmark.follow_up
        while follow_up is not None and self._sees and len(tried) < MOST_TRIES:
            more = follow_up.next_messages(turn, messages, tried[-1][1], len(tried))
            if more is None:
                return
            check_messages(more, f"benchmark {self._plan.benchmark.name}: next_messages returned")
            messages = more
            tried.append(await self._asked(messages, replace(want, draw=APART * len(tried))))

    async def _asked(self, messages: tuple[Message, ...], want: Request) -> Tried:
        """What the model is shown, and what it says."""
        try:
            seen = await adapt_messages_async(messages, self._model.takes.for_modality(want.modality), self._blobs)
        except ImageError as error:
            return (), Reply("failed", reason=f"what the model is to see cannot be made: {error}")
        try:
            return seen, await self._model.reply(seen, want)
        except (BudgetReached, EndpointDown, RunHalted, StoreError):
            raise
        # a composition that cannot deal with what its parts say: that costs this turn, and no other
        except Exception as error:
            self.on_error(want.turn_ref, error)
            return seen, Reply(
                "failed", reason=str(wrap_error(f"{self._model.name}, sample {want.turn_ref.sample}", error))
            )


class StoredReplies:
    """Replies of a run in the journal: nobody is asked. A turn that the dataset no longer has as it was has no
    reply."""

    free = False

    def __init__(self, turns: Sequence[TurnRecord]) -> None:
        self._turns = {(record.sample, record.turn): record for record in turns}

    async def reply_to(self, sample: Sample, turn: Turn, dialogue: Dialogue) -> tuple[str, Reply]:
        record = self._turns.get((sample.id, turn.number))
        if record is None:
            return "[]", Reply("failed", reason="the stored run has no reply to it")
        if record.dataset_json != encode_turn(sample, turn):
            return "[]", Reply("failed", reason="the dataset's record has changed since the reply was made")
        return record.messages_json, record.reply


class ReplyGenerator:
    """Samples in, turns and verdicts in the journal out. `whole`: all samples have been read."""

    def __init__(
        self, plan: RunPlan, run: str, source: ReplySource, judging: TurnJudge, journal: Journal, halt: Halt, width: int
    ) -> None:
        self.halt = halt
        self.all_read = False
        self._plan = plan
        self._run = run
        self._source = source
        self._judging = judging
        self._journal = journal
        self._window = asyncio.Semaphore(width)
        self._active = 0
        self.progress = judging.progress

    async def run(self, samples: AsyncGenerator[tuple[int, Sample]], done: Callable[[], None]) -> None:
        """All samples, each with its place in the dataset, as soon as there is room for it. What ends a run early is
        not raised: `halt` has the reason, once the calls in flight have come back. `done` is told when the last turn
        has come back."""
        async with asyncio.TaskGroup() as group, contextlib.aclosing(samples):
            try:
                async for position, sample in samples:
                    await self._window.acquire()
                    if self.halt.reason:
                        return
                    self.progress.samples += 1
                    self.progress.turns += self._plan.count_turns(sample)
                    self._active += 1
                    group.create_task(self._sample(position, sample, group, done))
            except Exception as error:  # data that cannot be read any further: what is in flight may still come back
                self.halt.stop(error if isinstance(error, WeftError) else WeftError(f"{type(error).__name__}: {error}"))
                return
            self.all_read = True
            if not self._active:
                done()

    async def _sample(self, position: int, sample: Sample, group: asyncio.TaskGroup, done: Callable[[], None]) -> None:
        try:
            dialogue: dict[int, Reply] = {}
            for turn in sample.turns:
                if self.halt.reason or not (self._plan.includes(turn) or self._source.free):
                    continue
                seen, reply = await self._source.reply_to(sample, turn, dialogue)
                dialogue[turn.number] = reply
                if self._plan.includes(turn):
                    self._keep(position, sample, turn, seen, dialogue, group)
            self.progress.samples_done += not self.halt.reason
        except (BudgetReached, EndpointDown, MessagesError, RunHalted, StoreError) as error:
            self.halt.stop(error)
        finally:
            self._window.release()
            self._active -= 1
            if self.all_read and not self._active:
                done()

    def _keep(
        self, position: int, sample: Sample, turn: Turn, seen: str, dialogue: Dialogue, group: asyncio.TaskGroup
    ) -> None:
        """A turn that has come back goes to the journal, and on to its judging."""
        reply = dialogue[turn.number]
        self.progress.outcomes[reply.outcome] += 1
        self.progress.turns_done += 1
        record = TurnRecord(
            sample.id, turn.number, position, dict(sample.groups), turn.modality, seen, reply, encode_turn(sample, turn)
        )
        self._journal.put_turn(self._run, record)
        place = TurnRef(sample.id, turn.number, turn.file, self._plan.benchmark.name)
        self._judging.judge_turn(
            JudgedTurn(sample, turn, reply, dict(dialogue), place, self._plan.options, self._plan.rubrics), group
        )


def encode_turn(sample: Sample, turn: Turn) -> str:
    """What the dataset has of a turn, as JSON, for those who look at a run without its dataset."""
    return msgspec.json.encode(
        {"ask": prompt_with_images(sample, turn), "reference": turn.reference, "gold": turn.gold}, enc_hook=str
    ).decode()


def prompt_with_images(sample: Sample, turn: Turn) -> tuple[Part, ...]:
    """A request with the given pictures that it calls by number, for those who look at it later."""
    given = {
        number: image for number, image in enumerate(sample.images, start=1) if sample.turn_of_image(number) is None
    }
    called = [number for number in dict.fromkeys(find_mentions(turn.prompt_text)) if number in given]
    return (*turn.prompt, *(msgspec.structs.replace(given[number], label=number) for number in called))


def group_dialogues(turns: Sequence[TurnRecord]) -> Mapping[str, dict[int, Reply]]:
    """A stored run's replies by sample and turn."""
    made: dict[str, dict[int, Reply]] = {}
    for record in turns:
        made.setdefault(record.sample, {})[record.turn] = record.reply
    return made
