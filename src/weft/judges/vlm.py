"""A vision-language model as a judge. A reply that does not fit its schema, or that cannot be read for whatever reason, is shown to the
judge once, with what is wrong; if the second one is no better, or the judge refuses or cannot be reached, the verdicts are unscored with
the reason, and the calls behind them are void, so that the next command asks again. No path leads from an error to a number, and no
reply can end a run."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from weft.errors import PictureError, blamed
from weft.judges.parse import Unusable, read_reply, type_of
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

    async def judge(self, question: Question, draw: int = 0, repeat: str = "") -> list[Verdict]:
        """A verdict for each metric of the question; `repeat` tells those of several draws apart."""
        keys: tuple[str, ...] = ()
        messages, problem, place = question.messages, "", question.place
        variant = ", ".join(word for word in (question.variant, repeat) if word)
        for _ in range(2):
            reply = await self._ask(messages, question, draw)
            keys += reply.keys
            if reply.outcome in ("failed", "refused"):
                problem = f"the judge {'refused' if reply.outcome == 'refused' else 'call failed'}: {reply.reason}"
                break
            try:
                marks = self._read(reply, question)
            except Exception as error:  # whatever a reader makes of a reply, it costs that reply alone: it is stored, and comes again
                problem = str(error) if isinstance(error, Unusable) else str(blamed("it could not be read", error))
                messages = (*messages, *_objection(reply, problem, question))
                problem = f"the judge's reply could not be used, twice: {problem}"
                continue
            return [
                Verdict(place.sample, place.turn, one.metric, one.value, one.reason, "judge", keys, one.detail, variant, one.score)
                for one in marks
            ]
        self._model.void(keys, problem)
        return [Verdict(place.sample, place.turn, one, None, problem, "judge", keys, question.detail, variant) for one in question.metrics]

    def _read(self, reply: Reply, question: Question) -> Sequence[Mark]:
        marks = self._reader(question, read_reply(reply.text, question.schema, lambda: _shown(question)))
        if sorted(mark.metric for mark in marks) != sorted(question.metrics) or not all(0 <= mark.value <= 1 for mark in marks):
            read = ", ".join(f"{mark.metric} {mark.value:g}" for mark in marks)
            raise ValueError(f"a reply about {', '.join(question.metrics)} was read as {read}; each needs a share from 0 to 1")
        return marks

    async def _ask(self, messages: tuple[Message, ...], question: Question, draw: int) -> Reply:
        try:
            messages = await fitted(messages, self._model.takes, self._blobs)
        except PictureError as error:
            return Reply("failed", reason=f"what the judge is to see cannot be made: {error}")
        return await self._model.reply(messages, want_of(question, draw))


def want_of(question: Question, draw: int = 0) -> Want:
    """What a judge is to send. A schema that replies could not be checked for is an error before anyone is asked."""
    try:
        type_of(question.schema)
    except (KeyError, TypeError, ValueError) as error:
        raise blamed(f"the question about {', '.join(question.metrics)}, sample {question.place.sample}: its schema", error) from error
    return Want("text", question.schema, draw, question.place, question)


def _shown(question: Question) -> str:
    """What the judge was shown in words."""
    return "\n".join(part.text for message in question.messages for part in message.parts if isinstance(part, Text))


def _objection(reply: Reply, problem: str, question: Question) -> tuple[Message, ...]:
    schema = msgspec.json.encode(question.schema).decode()
    said = Message("assistant", (Text(reply.text or "(nothing)"),))
    return said, Message("user", (Text(RE_ASK.format(problem=problem, schema=schema)),))
