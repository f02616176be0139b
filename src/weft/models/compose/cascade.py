"""Who thinks and who draws are two: a reasoner works out in words what the picture must show, a painter draws it from
those words and the pictures at hand (the comparison of ROVER's paper, FLUX with GPT). Questions go to the reasoner
alone; where words are due besides the picture, it is shown the picture and gives them. What the reasoner wrote is the
reply's thinking."""

from msgspec.structs import replace

from weft.models.compose.base import Composition, join_replies
from weft.models.thinking import split_thinking
from weft.types import Image, Message, Reply, Request, Text, Thought, outcome_of

BRIEF = (
    "Somebody else will draw this picture, from your words and the pictures above alone. Think it through, then write for the painter what "
    "the finished picture must show, what changes against the last picture and what stays exactly as it is. Write nothing else."
)
ANSWER = "This is the picture that was drawn. Now answer the request in words, from this picture."


class Cascade(Composition):
    roles = ("reasoner", "painter")
    version = "2"

    async def reply(self, messages: tuple[Message, ...], want: Request) -> Reply:
        if want.modality == "text":
            return await self.ask("reasoner", messages, want)
        asked = self._brief(messages, want)
        if asked is None:  # nothing to be planned in its language
            return await self.ask("painter", messages, want)
        brief = await self.ask("reasoner", asked, replace(want, modality="text"))
        if brief.outcome != "answered":
            return brief
        reasoned = tuple(part for part in (Thought(brief.thoughts), Thought(brief.text)) if part.text)
        drawn = await self.ask("painter", self._order(messages, brief.text, want), replace(want, modality="image"))
        if want.modality == "image" or drawn.outcome == "failed":
            return join_replies(replace(drawn, parts=(*reasoned, *drawn.parts)), [brief])
        said = Message("assistant", (Text(brief.text),))
        shown = Message("user", (*drawn.images, Text(ANSWER)))
        answer = await self.ask("reasoner", (*messages, said, shown), replace(want, modality="text"))
        if answer.outcome == "failed":
            return join_replies(answer, [brief, drawn])
        parts = (*reasoned, *drawn.images, *answer.parts)
        outcome, reason = outcome_of(parts, want.modality)
        return join_replies(replace(answer, outcome=outcome, parts=parts, reason=reason), [brief, drawn])

    def _brief(self, messages: tuple[Message, ...], want: Request) -> tuple[Message, ...] | None:
        if "reasoner" in self.phrasings:
            return self.phrasings["reasoner"].plan_request(messages, want.modality)
        last = messages[-1]
        return (*messages[:-1], Message(last.role, (*last.parts, Text(BRIEF))))

    def _order(self, messages: tuple[Message, ...], brief: str, want: Request) -> tuple[Message, ...]:
        """What the painter is told: the brief, without what the reasoner thought on the way to it."""
        told = split_thinking(brief)[1] or brief
        if "painter" in self.phrasings:
            return self.phrasings["painter"].with_plan(messages, told, want.modality)
        pictures = [part for message in messages for part in message.parts if isinstance(part, Image)]
        return (Message("user", (*pictures, Text(told))),)
