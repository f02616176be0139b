"""A vision-language model as a judge. A reply that does not fit its schema, or that cannot be read for whatever reason, is shown to the
judge once, with what is wrong; if the second one is no better, or the judge refuses or cannot be reached, the verdicts are unscored with
the reason, and the calls behind them are void, so that the next command asks again. No path leads from an error to a number, and no
reply can end a run."""

import asyncio
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol

import msgspec

from weft.calls.structured_output import Unusable, read_reply, type_of
from weft.errors import JudgeUseless, PictureError, blamed
from weft.models.adapt import fitted, jpeg_of
from weft.models.endpoint import UNDECIDED
from weft.store.blobs import Blobs
from weft.types import Image, Mark, Message, Model, Part, Place, Question, Reading, Reply, Takes, Text, Verdict, Want

MOST_USELESS = 20  # replies in a row that cannot be used, after which a judge is none
UNUSABLE = "the judge's reply could not be used, twice: "
RE_ASK = "That reply cannot be used: {problem}. Reply again with one JSON object that fits this schema, and nothing else:\n{schema}"


class Remembering(Model, Protocol):
    """A model whose answers are kept, and can be declared void."""

    partial: bool  # whether, as a judge, it may leave points undecided

    def void(self, keys: tuple[str, ...], reason: str) -> None: ...


Jpegs = dict[str, asyncio.Future[Image]]  # by the digests of what they were made from


class Scripts(Protocol):
    """A paper's released scripts, as far as they read replies."""

    def reading(self, question: Question, text: str) -> Mapping[str, Reading]: ...


class Reader(Protocol):
    """A benchmark, as far as it reads replies."""

    official: ClassVar[Any]  # Scripts, or None: a class variable of a protocol cannot be narrower where it is implemented

    def parse_text(self, question: Question, text: str) -> dict[str, Any] | None:
        """What a reply in words says; None where it is to be read as JSON."""
        ...

    def to_scores(self, question: Question, found: dict[str, Any]) -> Sequence[Mark]:
        """It may raise `Unusable`, for what a schema cannot say."""
        ...


class VlmJudge:
    def __init__(
        self,
        model: Remembering,
        blobs: Blobs,
        reader: Reader,
        jpegs: Jpegs | None = None,
        raised: Callable[[Place, Exception], None] | None = None,
        most_useless: int | None = MOST_USELESS,
    ) -> None:
        """`jpegs` are pictures as JPEG that were made already, for whoever else needs them. `raised` is told what a reader raised that is
        not the reply's fault. After `most_useless` questions in a row `JudgeUseless` is raised; None: never."""
        self._model, self._blobs, self._reader, self._jpegs = model, blobs, reader, jpegs if jpegs is not None else {}
        self._raised, self._most_useless = raised, most_useless
        self._useless = 0  # questions in a row whose replies could not be used

    async def judge(self, question: Question, draw: int = 0, repeat: str = "") -> list[Verdict]:
        """A verdict for each metric of the question; `repeat` tells those of several draws apart."""
        keys: tuple[str, ...] = ()
        messages, problem, place = question.messages, "", question.place
        useless = False
        scripts: Scripts | None = self._reader.official
        readings: Mapping[str, Reading] = {}  # what the paper's scripts make of the first reply that they can read
        variant = ", ".join(word for word in (question.variant, repeat) if word)
        for _ in range(2):
            reply = await self._ask(messages, question, draw)
            keys += reply.keys
            if reply.outcome in ("failed", "refused"):
                problem = f"the judge {'refused' if reply.outcome == 'refused' else 'call failed'}: {reply.reason}"
                break
            try:
                if not readings and scripts is not None:
                    readings = scripts.reading(question, reply.words)
                marks = read_marks(self._reader, question, reply.text, partial=self._model.partial)
            except Exception as error:  # whatever a reader makes of a reply, it costs that reply alone: it is stored, and comes again
                if not isinstance(error, Unusable) and self._raised is not None:
                    self._raised(place, error)
                useless = isinstance(error, Unusable)
                problem = str(error) if isinstance(error, Unusable) else str(blamed("it could not be read", error))
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
            raise JudgeUseless(f"the judge {self._model.name} {told}; the last: {problem.removeprefix(UNUSABLE)}")
        more: dict[str, Any] = {"keys": keys, "detail": question.detail, "variant": variant}
        return [Verdict(place.sample, place.turn, one, None, problem, reading=readings.get(one), **more) for one in question.metrics]

    async def _ask(self, messages: tuple[Message, ...], question: Question, draw: int) -> Reply:
        try:
            messages = await as_sent(messages, question, self._model.takes, self._blobs, self._jpegs)
        except PictureError as error:
            return Reply("failed", reason=f"what the judge is to see cannot be made: {error}")
        return await self._model.reply(messages, want_of(question, draw))


def most_useless(*, official: bool) -> int | None:
    """With a paper's own prompts a run goes on, whatever the judge says: so do the paper's scripts."""
    return None if official else MOST_USELESS


def read_marks(reader: Reader, question: Question, text: str, *, partial: bool = False) -> Sequence[Mark]:
    """A mark for each metric of the question, from whoever's reply to it. Raises `Unusable` for one that cannot be used. Nobody may leave
    anything open but those who know their limits (`partial`)."""
    found = reader.parse_text(question, text)
    if found is None:
        found = read_reply(text, question.accepts or question.schema, lambda: _shown(question))
    if not partial:
        found.pop(UNDECIDED, None)
    marks = reader.to_scores(question, found)
    sound = all(0 <= mark.value <= 1 if mark.value is not None else partial for mark in marks)
    if sorted(mark.metric for mark in marks) != sorted(question.metrics) or not sound:
        read = ", ".join(f"{mark.metric} {mark.value}" for mark in marks)
        raise ValueError(f"a reply about {', '.join(question.metrics)} was read as {read}; each needs a share from 0 to 1")
    return marks


async def as_sent(messages: tuple[Message, ...], question: Question, takes: Takes, blobs: Blobs, jpegs: Jpegs) -> tuple[Message, ...]:
    """A question's messages as a judge gets them: as it can take them, and where that is asked for with every picture as a JPEG, each of
    which is made once."""
    messages = await fitted(messages, takes, blobs)
    if not question.jpeg:
        return messages
    shown = [part for message in messages for part in message.parts if isinstance(part, Image)]
    numbers = itertools.count()
    made: list[Message] = []
    for part in (part for at, part in enumerate(shown) if at not in question.as_is and part.digest not in jpegs):
        jpegs[part.digest] = asyncio.ensure_future(asyncio.to_thread(jpeg_of, part, blobs))
    for message in messages:
        changed = [isinstance(part, Image) and next(numbers) not in question.as_is for part in message.parts]
        parts = [await _as_jpeg(part, jpegs) if to_jpeg else part for part, to_jpeg in zip(message.parts, changed, strict=True)]
        made.append(Message(message.role, tuple(parts)))
    return tuple(made)


async def _as_jpeg(part: Part, jpegs: Jpegs) -> Part:
    return await asyncio.shield(jpegs[part.digest]) if isinstance(part, Image) else part


def want_of(question: Question, draw: int = 0) -> Want:
    """What a judge is to send. A schema that replies could not be checked for is an error before anyone is asked."""
    try:
        type_of(question.schema)
    except (KeyError, TypeError, ValueError) as error:
        raise blamed(f"the question about {', '.join(question.metrics)}, sample {question.place.sample}: its schema", error) from error
    return Want("text", None if question.plain else question.schema, draw, question.place, question)


def _shown(question: Question) -> str:
    """What the judge was shown in words."""
    return "\n".join(part.text for message in question.messages for part in message.parts if isinstance(part, Text))


def _objection(reply: Reply, problem: str, question: Question) -> tuple[Message, ...]:
    schema = msgspec.json.encode(question.schema).decode()
    said = Message("assistant", (Text(reply.text or "(nothing)"),))
    return said, Message("user", (Text(RE_ASK.format(problem=problem, schema=schema)),))
