"""Generates replies: samples in, replies out, each passed on to be judged.

Many samples are in flight together; the turns of one are asked in order, and a turn is judged while the next is
generated. Replies come from a model that is called now (`LiveReplies`), or from a run in the journal (`StoredReplies`).
Everything is journalled as it happens, and cached answers are never asked for again: to continue after a crash, run the
same command again. Ending early (Ctrl-C, the budget, an endpoint that is gone) loses nothing but calls in flight.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Protocol

import msgspec
from msgspec.structs import replace

from weft.benchmarks.base import JudgedTurn
from weft.benchmarks.outputs import StoredOutputs
from weft.calls.caller import EndpointDown, Halt, RunHalted
from weft.errors import BudgetReached, ImageError, MessagesError, StoreError, WeftError, wrap_error
from weft.evaluation.judging import TurnJudge
from weft.evaluation.plan import RunPlan
from weft.models.adapt import adapt_messages_async
from weft.models.baselines import ReferenceModel
from weft.models.compose import apply_strategy
from weft.models.compose.base import TRIES_NOTE, Composition, join_replies
from weft.models.message_checks import check_messages
from weft.models.registry import ResolvedModel
from weft.models.row_crops import crop_reply
from weft.store.blobs import Blobs
from weft.store.journal import Journal, TurnRecord
from weft.types import (
    Dialogue,
    Message,
    Model,
    Part,
    Reply,
    Request,
    Sample,
    Turn,
    TurnRef,
    find_mentions,
)

MAX_TRIES = 8  # of a turn
DIALOGUE_HINT = (
    "`dialogue` maps a turn's number to its Reply: to show an earlier turn, write "
    'Message("user", sample.turns[n].prompt) and Message("assistant", dialogue[n].output)'
)
WAITS = "waits for turn "  # the beginning of a reason
DRAWS_PER_TRY = 100  # a strategy may use draw numbers of its own within each try
DRAWS_PER_TURN = 10_000  # above all draw numbers of a turn's tries: seeds of two turns never meet
RUN_ENDING = (BudgetReached, EndpointDown, MessagesError, RunHalted, StoreError)  # errors that end a run
Attempt = tuple[tuple[Message, ...], Reply]  # the messages as they were sent, and the reply


class ReplySource(Protocol):
    """Where the replies of a run come from."""

    reads_unasked_turns: bool  # at no cost: turns that are not asked, on which others may depend

    async def reply_to(self, sample: Sample, turn: Turn, dialogue: Dialogue) -> tuple[str, Reply]:
        """Return the messages that the model was sent, as JSON, and its reply."""
        ...


class LiveReplies:
    """Replies of a model that is called now: one endpoint, or a composition of several, with or without a strategy."""

    def __init__(self, plan: RunPlan, resolved: ResolvedModel, blobs: Blobs, models: Mapping[str, Model]) -> None:
        """`models` are the Models by role that the resolved model is composed of."""
        endpoints = resolved.endpoints.values()
        if resolved.composition is None:
            model = models["model"]
        else:
            model = resolved.composition(resolved.name, models, blobs)
        if isinstance(model, Composition):
            model.phrasings = {
                role: endpoint.phrasing for role, endpoint in resolved.endpoints.items() if endpoint.phrasing
            }
        if plan.strategy != "none":
            phrasing = next((endpoint.phrasing for endpoint in endpoints if endpoint.phrasing), None)
            model = apply_strategy(plan.strategy, model, blobs, phrasing)
        self.reads_unasked_turns = all(isinstance(endpoint, StoredOutputs) for endpoint in endpoints)
        self.on_error: Callable[[TurnRef, Exception], None] = lambda turn_ref, error: None  # gets foreign code's errors
        self._plan = plan
        self._model = model
        self._crops_rows = bool(plan.selection.get("crop_rows"))
        self._blobs = blobs
        self._reference_models = [endpoint for endpoint in endpoints if isinstance(endpoint, ReferenceModel)]
        self._depends_on_input = any(endpoint.depends_on_input for endpoint in endpoints)

    async def reply_to(self, sample: Sample, turn: Turn, dialogue: Dialogue) -> tuple[str, Reply]:
        """Call the model. An error in foreign code gives a `failed` reply: it costs this turn, and no other."""
        await asyncio.sleep(0)  # a model that never awaits must not block other turns, or Ctrl-C
        benchmark = self._plan.benchmark
        turn_ref = TurnRef(sample.id, turn.number, turn.file, benchmark.name)
        try:
            messages = benchmark.build_messages(sample, turn, dialogue, self._plan.options)
            check_messages(messages, f"benchmark {benchmark.name}: build_messages returned", DIALOGUE_HINT)
            required: Sequence[int] = ()
            if self._depends_on_input:
                required = sorted(benchmark.depends_on(sample, turn, self._plan.options))
        except MessagesError:
            raise
        except Exception as error:
            return "[]", self._fail(turn_ref, error)
        for number in required:
            if number in dialogue and dialogue[number].outcome == "failed":
                reason = dialogue[number].reason
                if not reason.startswith(WAITS):  # the first turn that failed is named
                    reason = f"{WAITS}{number + 1}, which failed: {reason}"
                return "[]", Reply("failed", reason=reason)
        for endpoint in self._reference_models:
            endpoint.set_reference(turn_ref, turn.reference)
        request = Request(turn.modality, draw=DRAWS_PER_TURN * turn.draw, turn_ref=turn_ref)
        attempts = [await self._call_model(messages, request)]
        try:
            await self._follow_up(turn, messages, request, attempts)
            chosen = attempts[0][1]
            if benchmark.follow_up is not None and len(attempts) > 1:
                chosen = benchmark.follow_up.pick_reply(turn, [reply for _, reply in attempts])
        except RUN_ENDING:
            raise
        except Exception as error:
            sent_messages, reply = attempts[-1]
            chosen = replace(reply, outcome="failed", parts=(), reason=self._fail(turn_ref, error).reason)
            attempts[-1] = (sent_messages, chosen)
        sent_messages, reply = next((attempt for attempt in attempts if attempt[1] is chosen), attempts[-1])
        if len(attempts) > 1:
            reply = _join_attempts(reply, attempts)
        return msgspec.json.encode(sent_messages).decode(), reply

    def _fail(self, turn_ref: TurnRef, error: Exception) -> Reply:
        """Report an error of the benchmark's code, and return a `failed` reply."""
        self.on_error(turn_ref, error)
        source = f"benchmark {turn_ref.benchmark}, sample {turn_ref.sample}, turn {turn_ref.turn + 1}"
        return Reply("failed", reason=str(wrap_error(source, error)))

    async def _follow_up(
        self, turn: Turn, messages: tuple[Message, ...], request: Request, attempts: list[Attempt]
    ) -> None:
        """Call again as often as the benchmark's protocol asks for. Equal messages are separate calls."""
        follow_up = self._plan.benchmark.follow_up
        while follow_up is not None and self._depends_on_input and len(attempts) < MAX_TRIES:
            next_messages = follow_up.next_messages(turn, messages, attempts[-1][1], len(attempts))
            if next_messages is None:
                return
            check_messages(next_messages, f"benchmark {self._plan.benchmark.name}: next_messages returned")
            messages = next_messages
            next_request = replace(request, draw=request.draw + DRAWS_PER_TRY * len(attempts))
            attempts.append(await self._call_model(messages, next_request))

    async def _call_model(self, messages: tuple[Message, ...], request: Request) -> Attempt:
        """Adapt the messages to what the model accepts, and call it."""
        takes = self._model.takes.for_modality(request.modality)
        try:
            adapted = await adapt_messages_async(messages, takes, self._blobs)
        except ImageError as error:
            return (), Reply("failed", reason=f"the model's input cannot be built: {error}")
        try:
            reply = await self._model.reply(adapted, request)
            if self._crops_rows:
                reply = await crop_reply(reply, messages, self._blobs)
            return adapted, reply
        except RUN_ENDING:
            raise
        except Exception as error:  # a composition that cannot handle a reply of its parts
            self.on_error(request.turn_ref, error)
            reason = wrap_error(f"{self._model.name}, sample {request.turn_ref.sample}", error)
            return adapted, Reply("failed", reason=str(reason))


def _join_attempts(reply: Reply, attempts: Sequence[Attempt]) -> Reply:
    """Return the chosen reply with the usage and keys of all attempts, and a note on how many there were."""
    note = TRIES_NOTE.format(count=len(attempts))
    reason = note
    if reply.reason:
        reason = f"{reply.reason}; {note}"
    others = [other for _, other in attempts if other is not reply]
    return join_replies(replace(reply, reason=reason, notes=(*reply.notes, "asked again")), others)


class StoredReplies:
    """Replies of a run in the journal: no model is called. A turn whose record in the dataset has changed has none."""

    reads_unasked_turns = False

    def __init__(self, turns: Sequence[TurnRecord]) -> None:
        self._turns = {(record.sample, record.turn): record for record in turns}

    async def reply_to(self, sample: Sample, turn: Turn, dialogue: Dialogue) -> tuple[str, Reply]:
        """Return the stored messages and the stored reply."""
        record = self._turns.get((sample.id, turn.number))
        if record is None:
            return "[]", Reply("failed", reason="the stored run has no reply to it")
        if record.dataset_json != encode_turn(sample, turn):
            return "[]", Reply("failed", reason="the dataset's record has changed since the reply was made")
        return record.messages_json, record.reply


class ReplyGenerator:
    """Generates the replies to samples, stores them in the journal, and passes each on to be judged."""

    def __init__(
        self, plan: RunPlan, run: str, source: ReplySource, judge: TurnJudge, journal: Journal, halt: Halt, width: int
    ) -> None:
        """`width` is how many samples are worked on at a time."""
        self.halt = halt
        self.all_read = False  # all samples have been read
        self.progress = judge.progress
        self._plan = plan
        self._run = run
        self._source = source
        self._judge = judge
        self._journal = journal
        self._window = asyncio.Semaphore(width)
        self._active = 0

    async def run(self, samples: AsyncGenerator[tuple[int, Sample]], on_done: Callable[[], None]) -> None:
        """Work on all samples, each with its position in the dataset, as soon as there is room for it.

        What ends a run early is not raised: `halt` has the reason, once the calls in flight have returned. `on_done` is
        called when the last turn has returned.
        """
        async with asyncio.TaskGroup() as group, contextlib.aclosing(samples):
            try:
                async for position, sample in samples:
                    await self._window.acquire()
                    if self.halt.reason:
                        return
                    self.progress.samples += 1
                    self.progress.turns += self._plan.count_turns(sample)
                    self._active += 1
                    group.create_task(self._run_sample(position, sample, group, on_done))
            except WeftError as error:
                self.halt.stop(error)
                return
            except Exception as error:  # the data cannot be read any further: what is in flight may still return
                self.halt.stop(WeftError(f"{type(error).__name__}: {error}"))
                return
            self.all_read = True
            if not self._active:
                on_done()

    async def _run_sample(
        self, position: int, sample: Sample, group: asyncio.TaskGroup, on_done: Callable[[], None]
    ) -> None:
        try:
            dialogue: dict[int, Reply] = {}
            for turn in sample.turns:
                is_asked = self._plan.includes(turn)
                if self.halt.reason or not (is_asked or self._source.reads_unasked_turns):
                    continue
                messages_json, reply = await self._source.reply_to(sample, turn, dialogue)
                dialogue[turn.number] = reply
                if is_asked:
                    self._store(position, sample, turn, messages_json, dialogue, group)
            if not self.halt.reason:
                self.progress.samples_done += 1
        except RUN_ENDING as error:
            self.halt.stop(error)
        finally:
            self._window.release()
            self._active -= 1
            if self.all_read and not self._active:
                on_done()

    def _store(
        self,
        position: int,
        sample: Sample,
        turn: Turn,
        messages_json: str,
        dialogue: Dialogue,
        group: asyncio.TaskGroup,
    ) -> None:
        """Store a turn that has returned, and pass it on to be judged."""
        reply = dialogue[turn.number]
        self.progress.outcomes[reply.outcome] += 1
        self.progress.turns_done += 1
        record = TurnRecord(
            sample=sample.id,
            turn=turn.number,
            position=position,
            groups=dict(sample.groups),
            modality=turn.modality,
            messages_json=messages_json,
            reply=reply,
            dataset_json=encode_turn(sample, turn),
        )
        self._journal.put_turn(self._run, record)
        turn_ref = TurnRef(sample.id, turn.number, turn.file, self._plan.benchmark.name)
        judged_turn = JudgedTurn(sample, turn, reply, dict(dialogue), turn_ref, self._plan.options, self._plan.rubrics)
        self._judge.judge_turn(judged_turn, group)


def encode_turn(sample: Sample, turn: Turn) -> str:
    """Return prompt, reference and gold of a turn as JSON, for reports without the dataset."""
    content = {"prompt": prompt_with_images(sample, turn), "reference": turn.reference, "gold": turn.gold}
    return msgspec.json.encode(content, enc_hook=str).decode()


def prompt_with_images(sample: Sample, turn: Turn) -> tuple[Part, ...]:
    """Return the prompt, followed by the input images that its text mentions by number."""
    parts = list(turn.prompt)
    for number in dict.fromkeys(find_mentions(turn.prompt_text)):
        is_input = 1 <= number <= len(sample.images) and sample.turn_of_image(number) is None
        if is_input:
            parts.append(replace(sample.images[number - 1], label=number))
    return tuple(parts)


def group_dialogues(turns: Sequence[TurnRecord]) -> Mapping[str, dict[int, Reply]]:
    """Return a stored run's replies by sample and turn."""
    dialogues: dict[str, dict[int, Reply]] = {}
    for record in turns:
        dialogues.setdefault(record.sample, {})[record.turn] = record.reply
    return dialogues
