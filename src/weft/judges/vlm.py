"""A vision-language model as a judge.

A reply that does not fit its schema, or cannot be read for any reason, is shown to the judge once, with the problem,
unless that would be of no use. If the second reply is no better, or the judge refuses or cannot be reached, the
verdicts are unscored, with the reason, and their calls are void: another run asks again, and so does the next round,
begun after the run has finished. No error becomes a number, and no reply can end a run.
"""

import asyncio
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

import msgspec

from weft.calls.structured_output import UnusableReply, compile_schema, read_reply
from weft.errors import ImageError, UnusableJudge, wrap_error
from weft.models.adapt import adapt_messages_async, store_as_jpeg
from weft.models.endpoint import UNDECIDED
from weft.store.blobs import Blobs
from weft.types import (
    Image,
    Message,
    Model,
    OfficialReading,
    Part,
    Question,
    Reply,
    Request,
    Score,
    Takes,
    Text,
    TurnRef,
    Verdict,
)

MAX_SCORES = 10_000  # of one reply: a benchmark's generator may never end
MAX_UNUSABLE_REPLIES = 20  # consecutive questions with unusable replies, after which the run stops
UNUSABLE = "the judge's reply could not be used, twice: "
UNUSABLE_ONCE = "the judge's reply could not be used: "
RE_ASK = (
    "That reply cannot be used: {problem}. Reply again with one JSON object that fits this schema, and nothing else:\n"
    "{schema}"
)
JpegCache = dict[str, asyncio.Future[Image]]  # images as JPEG, by the digest of the original


class CachedModel(Model, Protocol):
    """A model whose answers are cached, and can be declared void."""

    may_leave_undecided: bool  # whether, as a judge, it may leave points undecided

    def void(self, keys: tuple[str, ...], reason: str) -> None: ...


class OfficialScripts(Protocol):
    """A paper's released scripts, as far as they read replies."""

    def reading(self, question: Question, text: str) -> Mapping[str, OfficialReading]: ...


class ReplyReader(Protocol):
    """A benchmark, as far as it reads replies."""

    # OfficialScripts or None; Any, since a benchmark may not narrow a protocol's class variable
    official: ClassVar[Any]

    def parse_text(self, question: Question, text: str) -> dict[str, Any] | None:
        """Parse a reply in plain text; None where it is to be read as JSON."""
        ...

    def to_scores(self, question: Question, reply: dict[str, Any], /) -> Sequence[Score]:
        """Score a parsed reply. Raises UnusableReply for what a schema cannot express."""
        ...


class VlmJudge:
    def __init__(
        self,
        model: CachedModel,
        blobs: Blobs,
        reader: ReplyReader,
        jpegs: JpegCache | None = None,
        on_reader_error: Callable[[TurnRef, Exception], None] | None = None,
        max_unusable: int | None = MAX_UNUSABLE_REPLIES,
    ) -> None:
        """`jpegs` is a cache that others may share. `on_reader_error` is called with errors of the reader's own code.

        After `max_unusable` consecutive questions with unusable replies `UnusableJudge` is raised; None: never.
        """
        if jpegs is None:
            jpegs = {}
        self._model = model
        self._blobs = blobs
        self._reader = reader
        self._jpegs = jpegs
        self._on_reader_error = on_reader_error
        self._max_unusable = max_unusable
        self._unusable_in_a_row = 0  # questions

    async def judge(self, question: Question, draw: int = 0, repeat: str = "") -> list[Verdict]:
        """Return a verdict for each metric of the question; `repeat` tells those of several draws apart."""
        variant = ", ".join(word for word in (question.variant, repeat) if word)
        scripts: OfficialScripts | None = self._reader.official
        readings: Mapping[str, OfficialReading] = {}  # what the released scripts read, from the first reply they can
        keys: tuple[str, ...] = ()
        messages = question.messages
        problem = ""
        was_unusable = False
        for _ in range(2):
            reply = await self._ask(messages, question, draw)
            keys += reply.keys
            if reply.outcome == "refused":
                problem = f"the judge refused: {reply.reason}"
                readings = readings or self._read_refusal(question, reply)
                break
            if reply.outcome == "failed":
                problem = f"the judge call failed: {reply.reason}"
                break
            try:
                if not readings and scripts is not None:
                    readings = scripts.reading(question, reply.raw_text)
                scores = parse_scores(self._reader, question, reply.text, partial=self._model.may_leave_undecided)
            except UnusableReply as error:
                was_unusable = True
                reply_problem = str(error)
                if not error.ask_again:
                    problem = f"{UNUSABLE_ONCE}{reply_problem}"
                    break
            except Exception as error:  # an error in a benchmark's code costs this reply alone, and not the run
                was_unusable = False
                reply_problem = str(wrap_error("it could not be read", error))
                if self._on_reader_error is not None:
                    self._on_reader_error(question.turn_ref, error)
            else:
                self._unusable_in_a_row = 0
                return [_build_verdict(question, score, variant, keys, readings) for score in scores]
            messages = (*messages, *_build_objection(reply, reply_problem, question))
            problem = f"{UNUSABLE}{reply_problem}"
        self._model.void(keys, problem)
        if any(reading.score is not None or reading.text for reading in readings.values()):
            self._unusable_in_a_row = 0  # the official row counts it: such a judge is not to be stopped
        elif was_unusable:
            self._count_unusable(problem)
        return _build_unscored(question, problem, variant, keys, readings)

    def _read_refusal(self, question: Question, reply: Reply) -> Mapping[str, OfficialReading]:
        """Return what the released scripts read from the text of a refusal: they see the text alone."""
        scripts: OfficialScripts | None = self._reader.official
        if scripts is None or not reply.raw_text:
            return {}
        try:
            return scripts.reading(question, reply.raw_text)
        except Exception as error:
            if self._on_reader_error is not None:
                self._on_reader_error(question.turn_ref, error)
            return {}

    def _count_unusable(self, problem: str) -> None:
        """Count a question without a usable reply. Raises UnusableJudge where there were too many in a row."""
        if problem.startswith((UNUSABLE, UNUSABLE_ONCE)):
            self._unusable_in_a_row += 1
        if self._max_unusable is not None and self._unusable_in_a_row >= self._max_unusable:
            raise UnusableJudge(
                f"the judge {self._model.name} gave unusable replies to {self._unusable_in_a_row} questions in a row; "
                f"the last: {problem.removeprefix(UNUSABLE).removeprefix(UNUSABLE_ONCE)}"
            )

    async def _ask(self, messages: tuple[Message, ...], question: Question, draw: int) -> Reply:
        try:
            messages = await prepare_messages(messages, question, self._model.takes, self._blobs, self._jpegs)
        except ImageError as error:
            return Reply("failed", reason=f"the judge's input could not be prepared: {error}")
        return await self._model.reply(messages, build_request(question, draw))


def _build_verdict(
    question: Question,
    score: Score,
    variant: str,
    keys: tuple[str, ...],
    readings: Mapping[str, OfficialReading],
) -> Verdict:
    detail = score.detail
    if score.value is None:
        detail = None
    return Verdict(
        question.turn_ref.sample,
        question.turn_ref.turn,
        score.metric,
        score.value,
        score.reason,
        keys=keys,
        detail=detail,
        variant=variant,
        score=score.score,
        reading=readings.get(score.metric),
        undecided=score.value is None,
    )


def _build_unscored(
    question: Question, problem: str, variant: str, keys: tuple[str, ...], readings: Mapping[str, OfficialReading]
) -> list[Verdict]:
    verdicts: list[Verdict] = []
    for metric in question.metrics:
        verdict = Verdict(
            question.turn_ref.sample,
            question.turn_ref.turn,
            metric,
            None,
            problem,
            keys=keys,
            detail=question.detail,
            variant=variant,
            reading=readings.get(metric),
        )
        verdicts.append(verdict)
    return verdicts


def max_unusable_replies(*, official: bool) -> int | None:
    """Return the limit of consecutive unusable replies; none with official prompts: the released scripts have none."""
    if official:
        return None
    return MAX_UNUSABLE_REPLIES


def parse_scores(reader: ReplyReader, question: Question, text: str, *, partial: bool = False) -> Sequence[Score]:
    """Return a score for each metric of the question, from the text of a judge's or a person's reply.

    Only with `partial` may a metric stay undecided. Raises UnusableReply for a reply that cannot be used, ValueError
    where the benchmark's reader does not give each metric a value from 0 to 1.
    """
    parsed = reader.parse_text(question, text)
    if parsed is None:
        parsed = read_reply(text, question.accepted_schema or question.schema, lambda: _join_question_texts(question))
    if not partial:
        parsed.pop(UNDECIDED, None)
    scores = list(itertools.islice(reader.to_scores(question, parsed), MAX_SCORES))
    if len(scores) == MAX_SCORES:
        raise ValueError(f"{MAX_SCORES:,} or more scores from one reply: do they ever end?")
    metrics = [score.metric for score in scores]
    if sorted(metrics) != sorted(question.metrics) or not all(_is_valid(score, partial) for score in scores):
        read = ", ".join(f"{score.metric} {score.value}" for score in scores)
        raise ValueError(
            f"a reply about {', '.join(question.metrics)} was read as {read}; each needs a share from 0 to 1"
        )
    return scores


def _is_valid(score: Score, partial: bool) -> bool:
    if score.value is None:
        return partial
    return 0 <= score.value <= 1


async def prepare_messages(
    messages: tuple[Message, ...], question: Question, takes: Takes, blobs: Blobs, jpegs: JpegCache
) -> tuple[Message, ...]:
    """Return a question's messages in a form that the judge accepts.

    Where the question asks for JPEG, all its images are converted, but for those it exempts; each is converted once.
    """
    messages = await adapt_messages_async(messages, takes, blobs)
    if not question.jpeg:
        return messages
    _start_conversions(messages, question, blobs, jpegs)
    image_index = itertools.count()
    prepared: list[Message] = []
    for message in messages:
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, Image) and next(image_index) not in question.unconverted_images:
                parts.append(await asyncio.shield(jpegs[part.digest]))
            else:
                parts.append(part)
        prepared.append(Message(message.role, tuple(parts)))
    return tuple(prepared)


def _start_conversions(messages: tuple[Message, ...], question: Question, blobs: Blobs, jpegs: JpegCache) -> None:
    """Start converting all images that are not in the cache, so that they are converted side by side."""
    index = 0
    for message in messages:
        for part in message.parts:
            if not isinstance(part, Image):
                continue
            if index not in question.unconverted_images and part.digest not in jpegs:
                jpegs[part.digest] = asyncio.ensure_future(asyncio.to_thread(store_as_jpeg, part, blobs))
            index += 1


def build_request(question: Question, draw: int = 0) -> Request:
    """Build the request for a judge. Raises an error for a schema that replies could not be checked against."""
    try:
        compile_schema(question.schema)
    except (KeyError, TypeError, ValueError) as error:
        raise wrap_error(
            f"the question about {', '.join(question.metrics)}, sample {question.turn_ref.sample}: its schema", error
        ) from error
    schema = question.schema
    if question.text_only:
        schema = None
    return Request("text", schema, draw, question.turn_ref, question)


def _join_question_texts(question: Question) -> str:
    texts: list[str] = []
    for message in question.messages:
        texts += [part.text for part in message.parts if isinstance(part, Text)]
    return "\n".join(texts)


def _build_objection(reply: Reply, problem: str, question: Question) -> tuple[Message, ...]:
    """Build the messages that show an unusable reply to the judge, with the problem."""
    schema = msgspec.json.encode(question.schema).decode()
    shown_reply = Message("assistant", (Text(reply.text or "(nothing)"),))
    return shown_reply, Message("user", (Text(RE_ASK.format(problem=problem, schema=schema)),))
