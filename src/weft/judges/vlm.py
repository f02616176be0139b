"""A vision-language model as a judge. A reply that does not fit its schema is shown to the judge once, with what is wrong; if the
second one does not fit either, or the judge refuses or cannot be reached, the verdicts are unscored with the reason, and the calls
behind them are void, so that the next command asks again. No path leads from an error to a number."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from weft.errors import PictureError, WeftError
from weft.judges.parse import Unusable, read_reply
from weft.models.fit import fitted
from weft.store.blobs import Blobs
from weft.types import Mark, Message, Model, Question, Reply, Text, Verdict, Want

RE_ASK = "That reply cannot be used: {problem}. Reply again with one JSON object that fits this schema, and nothing else:\n{schema}"


class Remembering(Model, Protocol):
    """A model whose answers are kept, and can be declared void."""

    def void(self, keys: tuple[str, ...], reason: str) -> None: ...


Reader = Callable[[Question, dict[str, Any]], Sequence[Mark]]  # it may raise `Unusable` too, for what a schema cannot say


class VlmJudge:
    def __init__(self, model: Remembering, blobs: Blobs, reader: Reader) -> None:
        self._model, self._blobs, self._reader = model, blobs, reader

    async def judge(self, question: Question, draw: int = 0) -> list[Verdict]:
        """A verdict for each metric of the question."""
        keys: tuple[str, ...] = ()
        messages, problem = question.messages, ""
        for _ in range(2):
            reply = await self._ask(messages, question, draw)
            keys += reply.keys
            if reply.outcome in ("failed", "refused"):
                what = "refused" if reply.outcome == "refused" else "call failed"
                return self._unscored(question, f"the judge {what}: {reply.reason}", keys)
            try:
                marks = self._reader(question, read_reply(reply.text, question.schema))
                return [_verdict(question, mark, keys) for mark in _complete(question, marks)]
            except (KeyError, TypeError, ValueError) as error:
                asked = ", ".join(question.metrics)
                raise WeftError(f"the question {asked!r} is wrong in itself: {type(error).__name__}: {error}") from error
            except Unusable as error:
                problem = str(error)
                messages = (*messages, *_objection(reply, problem, question))
        return self._unscored(question, f"the judge's reply could not be used, twice: {problem}", keys)

    async def _ask(self, messages: tuple[Message, ...], question: Question, draw: int) -> Reply:
        try:
            messages = await fitted(messages, self._model.takes, self._blobs)
        except PictureError as error:
            return Reply("failed", reason=f"what the judge is to see cannot be made: {error}")
        return await self._model.reply(messages, want_of(question, draw))

    def _unscored(self, question: Question, reason: str, keys: tuple[str, ...]) -> list[Verdict]:
        self._model.void(keys, reason)
        place = question.place
        return [
            Verdict(place.sample, place.turn, metric, None, reason, keys=keys, detail=question.detail, variant=question.variant)
            for metric in question.metrics
        ]


def want_of(question: Question, draw: int = 0) -> Want:
    return Want("text", question.schema, draw, question.place, question)


def _verdict(question: Question, mark: Mark, keys: tuple[str, ...]) -> Verdict:
    if not 0 <= mark.value <= 1:
        raise ValueError(f"a mark of {mark.value:g} for {mark.metric}: marks are shares of full marks, from 0 to 1")
    return Verdict(
        question.place.sample,
        question.place.turn,
        mark.metric,
        mark.value,
        mark.reason,
        keys=keys,
        detail=mark.detail,
        variant=question.variant,
        score=mark.score,
    )


def _complete(question: Question, marks: Sequence[Mark]) -> Sequence[Mark]:
    if sorted(mark.metric for mark in marks) != sorted(question.metrics):
        raise ValueError(f"it asks for {', '.join(question.metrics)} and was read as {', '.join(mark.metric for mark in marks)}")
    return marks


def _objection(reply: Reply, problem: str, question: Question) -> tuple[Message, ...]:
    schema = msgspec.json.encode(question.schema).decode()
    said = Message("assistant", (Text(reply.text or "(nothing)"),))
    return said, Message("user", (Text(RE_ASK.format(problem=problem, schema=schema)),))
