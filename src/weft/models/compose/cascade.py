"""Two models: a reasoner works out in words what the image must show, a painter draws it (ROVER's comparison of FLUX
with GPT).

The painter gets those words and the images so far. Text requests go to the reasoner alone. Where text is expected
besides the image, the reasoner sees the image and writes it. The reasoner's brief becomes the reply's thinking.
"""

from msgspec.structs import replace

from weft.models.compose.base import Composition, join_replies
from weft.models.thinking import split_thinking
from weft.types import Image, Message, Part, Reply, Request, Text, Thought, outcome_of

BRIEF_PROMPT = (
    "Somebody else will draw this picture, from your words and the pictures above alone. Think it through, "
    "then write for the painter what "
    "the finished picture must show, what changes against the last picture and what stays exactly as it is. "
    "Write nothing else."
)
ANSWER_PROMPT = "This is the picture that was drawn. Now answer the request in words, from this picture."


class Cascade(Composition):
    roles = ("reasoner", "painter")
    version = "2"

    async def reply(self, messages: tuple[Message, ...], request: Request) -> Reply:
        if request.modality == "text":
            return await self.ask("reasoner", messages, request)
        brief_request = self._brief_request(messages, request)
        if brief_request is None:  # nothing to plan in the reasoner's language
            return await self.ask("painter", messages, request)
        brief = await self.ask("reasoner", brief_request, replace(request, modality="text"))
        if brief.outcome != "answered":
            return brief
        thoughts = [Thought(text) for text in (brief.thoughts, brief.text) if text]
        image_request = self._image_request(messages, brief.text, request)
        drawing = await self.ask("painter", image_request, replace(request, modality="image"))
        if request.modality == "image" or drawing.outcome == "failed":
            return join_replies(replace(drawing, parts=(*thoughts, *drawing.parts)), [brief])
        answer = await self._ask_for_text(messages, brief, drawing, request)
        if answer.outcome == "failed":
            return join_replies(answer, [brief, drawing])
        parts = (*thoughts, *drawing.images, *answer.parts)
        outcome, reason = outcome_of(parts, request.modality)
        return join_replies(replace(answer, outcome=outcome, parts=parts, reason=reason), [brief, drawing])

    async def _ask_for_text(
        self, messages: tuple[Message, ...], brief: Reply, drawing: Reply, request: Request
    ) -> Reply:
        """Ask the reasoner for the text that goes with the image."""
        brief_message = Message("assistant", (Text(brief.text),))
        image_message = Message("user", (*drawing.images, Text(ANSWER_PROMPT)))
        dialogue = (*messages, brief_message, image_message)
        return await self.ask("reasoner", dialogue, replace(request, modality="text"))

    def _brief_request(self, messages: tuple[Message, ...], request: Request) -> tuple[Message, ...] | None:
        if "reasoner" in self.phrasings:
            return self.phrasings["reasoner"].plan_request(messages, request.modality)
        last = messages[-1]
        return (*messages[:-1], Message(last.role, (*last.parts, Text(BRIEF_PROMPT))))

    def _image_request(self, messages: tuple[Message, ...], brief: str, request: Request) -> tuple[Message, ...]:
        """Return what the painter is sent: all images and the brief, without the reasoner's thinking."""
        order = split_thinking(brief)[1] or brief
        if "painter" in self.phrasings:
            return self.phrasings["painter"].with_plan(messages, order, request.modality)
        parts: list[Part] = []
        for message in messages:
            parts += [part for part in message.parts if isinstance(part, Image)]
        return (Message("user", (*parts, Text(order))),)
