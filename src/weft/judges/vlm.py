"""A vision-language model as a judge. A reply that does not fit its schema is shown to the judge once, with what is wrong; if the
second one does not fit either, or the judge refuses or cannot be reached, the verdict is unscored with the reason, and the calls
behind it are void, so that the next command asks again. No path leads from an error to a number."""

from collections.abc import Callable
from typing import Any, Protocol

from weft.errors import PictureError, WeftError
from weft.fit import fitted
from weft.judges.parse import Unusable, read
from weft.store.blobs import Blobs
from weft.types import Message, Model, Question, Reply, Text, Verdict, Want

RE_ASK = "That reply cannot be used: {problem}. Reply again with one JSON object that fits this schema, and nothing else:\n{schema}"


class Remembering(Model, Protocol):
    """A model whose answers are kept, and can be declared void."""

    def void(self, keys: tuple[str, ...], reason: str) -> None: ...


Reader = Callable[[Question, dict[str, Any]], tuple[float, str, Any]]


def plain(question: Question, found: dict[str, Any]) -> tuple[float, str, Any]:
    """Value, reason and detail of a verdict, where the reply holds the first two under the question's keys."""
    return float(found[question.value]), str(found.get(question.reason, "")), None


class VlmJudge:
    """`reader` makes a number of a reply that fits its schema; it may raise `Unusable` too, for what a schema cannot say."""

    def __init__(self, model: Remembering, blobs: Blobs, reader: Reader = plain) -> None:
        self._model, self._blobs, self._read = model, blobs, reader
        self.name = model.name

    async def judge(self, question: Question) -> Verdict:
        keys: tuple[str, ...] = ()
        messages, problem = question.messages, ""
        for _ in range(2):
            reply = await self._ask(messages, question)
            keys += reply.keys
            if reply.outcome in ("failed", "refused"):
                return self._unscored(
                    question, f"the judge {'refused' if reply.outcome == 'refused' else 'call failed'}: {reply.reason}", keys
                )
            try:
                value, reason, detail = self._read(question, read(reply.text, question.schema))
            except (KeyError, TypeError, ValueError) as error:
                raise WeftError(f"the question {question.metric!r} is wrong in itself: {type(error).__name__}: {error}") from error
            except Unusable as error:
                problem = str(error)
                messages = (*messages, *_objection(reply, problem, question))
                continue
            return Verdict(
                question.place.sample,
                question.place.turn,
                question.metric,
                value,
                reason,
                keys=keys,
                detail=detail,
            )
        return self._unscored(question, f"the judge's reply could not be used, twice: {problem}", keys)

    async def _ask(self, messages: tuple[Message, ...], question: Question) -> Reply:
        try:
            messages = await fitted(messages, self._model.takes, self._blobs)
        except PictureError as error:
            return Reply("failed", reason=f"what the judge is to see cannot be made: {error}")
        return await self._model.reply(messages, Want("text", question.schema, place=question.place))

    def _unscored(self, question: Question, reason: str, keys: tuple[str, ...]) -> Verdict:
        self._model.void(keys, reason)
        return Verdict(question.place.sample, question.place.turn, question.metric, None, reason, keys=keys, detail=question.detail)


def _objection(reply: Reply, problem: str, question: Question) -> tuple[Message, ...]:
    import msgspec

    schema = msgspec.json.encode(question.schema).decode()
    said = Message("assistant", (Text(reply.text or "(nothing)"),))
    return said, Message("user", (Text(RE_ASK.format(problem=problem, schema=schema)),))
