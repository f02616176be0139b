"""A vision-language model as a judge. A reply that does not fit its schema, or that cannot be read for whatever reason,
is shown to the judge once, with what is wrong; if the second one is no better, or the judge refuses or cannot be
reached, the verdicts are unscored with the reason, and the calls behind them are void, so that the next command asks
again. No path leads from an error to a number, and no reply can end a run."""

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

MAX_UNUSABLE_REPLIES = 20  # replies in a row that cannot be used, after which a judge is none
UNUSABLE = "the judge's reply could not be used, twice: "
RE_ASK = "That reply cannot be used: {problem}. Reply again with one JSON object that fits this schema, and nothing else:\n{schema}"


class CachedModel(Model, Protocol):
    """A model whose answers are kept, and can be declared void."""

    may_leave_undecided: bool  # whether, as a judge, it may leave points undecided

    def void(self, keys: tuple[str, ...], reason: str) -> None: ...


JpegCache = dict[str, asyncio.Future[Image]]  # by the digests of what they were made from


class OfficialScripts(Protocol):
    """A paper's released scripts, as far as they read replies."""

    def reading(self, question: Question, text: str) -> Mapping[str, OfficialReading]: ...


class ReplyReader(Protocol):
    """A benchmark, as far as it reads replies."""

    # Scripts, or None: a class variable of a protocol cannot be narrower where it is implemented
    official: ClassVar[Any]

    def parse_text(self, question: Question, text: str) -> dict[str, Any] | None:
        """What a reply in words says; None where it is to be read as JSON."""
        ...

    def to_scores(self, question: Question, found: dict[str, Any]) -> Sequence[Score]:
        """It may raise `Unusable`, for what a schema cannot say."""
        ...


class VlmJudge:
    def __init__(
        self,
        model: CachedModel,
        blobs: Blobs,
        reader: ReplyReader,
        jpegs: JpegCache | None = None,
        raised: Callable[[TurnRef, Exception], None] | None = None,
        most_useless: int | None = MAX_UNUSABLE_REPLIES,
    ) -> None:
        """`jpegs` are pictures as JPEG that were made already, for whoever else needs them. `raised` is told what a
        reader raised that is not the reply's fault. After `most_useless` questions in a row `JudgeUseless` is raised;
        None: never."""
        self._model = model
        self._blobs = blobs
        self._reader = reader
        self._jpegs = jpegs if jpegs is not None else {}
        self._raised = raised
        self._most_useless = most_useless
        self._useless = 0  # questions in a row whose replies could not be used

    async def judge(self, question: Question, draw: int = 0, repeat: str = "") -> list[Verdict]:
        """A verdict for each metric of the question; `repeat` tells those of several draws apart."""
        keys: tuple[str, ...] = ()
        messages = question.messages
        problem = ""
        place = question.turn_ref
        useless = False
        scripts: OfficialScripts | None = self._reader.official
        # what the paper's scripts make of the first reply that they can read
        readings: Mapping[str, OfficialReading] = {}
        variant = ", ".join(word for word in (question.variant, repeat) if word)
        for _ in range(2):
            reply = await self._ask(messages, question, draw)
            keys += reply.keys
            if reply.outcome in ("failed", "refused"):
                problem = f"the judge {'refused' if reply.outcome == 'refused' else 'call failed'}: {reply.reason}"
                break
            try:
                if not readings and scripts is not None:
                    readings = scripts.reading(question, reply.raw_text)
                marks = parse_scores(self._reader, question, reply.text, partial=self._model.may_leave_undecided)
            # whatever a reader makes of a reply, it costs that reply alone: it is stored, and comes again
            except Exception as error:
                if not isinstance(error, UnusableReply) and self._raised is not None:
                    self._raised(place, error)
                useless = isinstance(error, UnusableReply)
                if isinstance(error, UnusableReply):
                    problem = str(error)
                else:
                    problem = str(wrap_error("it could not be read", error))
                messages = (*messages, *_objection(reply, problem, question))
                problem = f"{UNUSABLE}{problem}"
                continue
            self._useless = 0
            return [
                Verdict(
                    place.sample,
                    place.turn,
                    one.metric,
                    one.value,
                    one.reason,
                    keys=keys,
                    detail=one.detail if one.value is not None else None,
                    variant=variant,
                    score=one.score,
                    reading=readings.get(one.metric),
                    undecided=one.value is None,
                )
                for one in marks
            ]
        self._model.void(keys, problem)
        self._useless += useless and problem.startswith(UNUSABLE)
        if useless and self._most_useless is not None and self._useless >= self._most_useless:
            told = f"answered {self._useless} questions in a row with what cannot be used"
            raise UnusableJudge(f"the judge {self._model.name} {told}; the last: {problem.removeprefix(UNUSABLE)}")
        more: dict[str, Any] = {"keys": keys, "detail": question.detail, "variant": variant}
        return [
            Verdict(place.sample, place.turn, one, None, problem, reading=readings.get(one), **more)
            for one in question.metrics
        ]

    async def _ask(self, messages: tuple[Message, ...], question: Question, draw: int) -> Reply:
        try:
            messages = await prepare_messages(messages, question, self._model.takes, self._blobs, self._jpegs)
        except ImageError as error:
            return Reply("failed", reason=f"what the judge is to see cannot be made: {error}")
        return await self._model.reply(messages, build_request(question, draw))


def max_unusable_replies(*, official: bool) -> int | None:
    """With a paper's own prompts a run goes on, whatever the judge says: so do the paper's scripts."""
    if official:
        return None
    return MAX_UNUSABLE_REPLIES


def parse_scores(reader: ReplyReader, question: Question, text: str, *, partial: bool = False) -> Sequence[Score]:
    """A mark for each metric of the question, from whoever's reply to it. Raises `Unusable` for one that cannot be
    used. Nobody may leave anything open but those who know their limits (`partial`)."""
    found = reader.parse_text(question, text)
    if found is None:
        found = read_reply(text, question.accepted_schema or question.schema, lambda: _shown(question))
    if not partial:
        found.pop(UNDECIDED, None)
    marks = reader.to_scores(question, found)
    sound = all(0 <= mark.value <= 1 if mark.value is not None else partial for mark in marks)
    if sorted(mark.metric for mark in marks) != sorted(question.metrics) or not sound:
        read = ", ".join(f"{mark.metric} {mark.value}" for mark in marks)
        raise ValueError(
            f"a reply about {', '.join(question.metrics)} was read as {read}; each needs a share from 0 to 1"
        )
    return marks


async def prepare_messages(
    messages: tuple[Message, ...], question: Question, takes: Takes, blobs: Blobs, jpegs: JpegCache
) -> tuple[Message, ...]:
    """A question's messages as a judge gets them: as it can take them, and where that is asked for with every picture
    as a JPEG, each of which is made once."""
    messages = await adapt_messages_async(messages, takes, blobs)
    if not question.jpeg:
        return messages
    shown = [part for message in messages for part in message.parts if isinstance(part, Image)]
    numbers = itertools.count()
    made: list[Message] = []
    for part in (
        part for at, part in enumerate(shown) if at not in question.unconverted_images and part.digest not in jpegs
    ):
        jpegs[part.digest] = asyncio.ensure_future(asyncio.to_thread(store_as_jpeg, part, blobs))
    for message in messages:
        changed = [
            isinstance(part, Image) and next(numbers) not in question.unconverted_images for part in message.parts
        ]
        parts = [
            await _as_jpeg(part, jpegs) if to_jpeg else part
            for part, to_jpeg in zip(message.parts, changed, strict=True)
        ]
        made.append(Message(message.role, tuple(parts)))
    return tuple(made)


async def _as_jpeg(part: Part, jpegs: JpegCache) -> Part:
    if isinstance(part, Image):
        return await asyncio.shield(jpegs[part.digest])
    return part


def build_request(question: Question, draw: int = 0) -> Request:
    """What a judge is to send. A schema that replies could not be checked for is an error before anyone is asked."""
    try:
        compile_schema(question.schema)
    except (KeyError, TypeError, ValueError) as error:
        raise wrap_error(
            f"the question about {', '.join(question.metrics)}, sample {question.turn_ref.sample}: its schema", error
        ) from error
    return Request("text", None if question.text_only else question.schema, draw, question.turn_ref, question)


def _shown(question: Question) -> str:
    """What the judge was shown in words."""
    return "\n".join(part.text for message in question.messages for part in message.parts if isinstance(part, Text))


def _objection(reply: Reply, problem: str, question: Question) -> tuple[Message, ...]:
    schema = msgspec.json.encode(question.schema).decode()
    said = Message("assistant", (Text(reply.text or "(nothing)"),))
    return said, Message("user", (Text(RE_ASK.format(problem=problem, schema=schema)),))
