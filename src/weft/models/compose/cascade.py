"""Who thinks and who draws are two: a reasoner works out in words what the picture must show, a painter draws it from those words and the
pictures at hand (the comparison of ROVER's paper, FLUX with GPT). Questions go to the reasoner alone."""

from msgspec.structs import replace

from weft.models.compose.base import Composition, joined
from weft.types import Image, Message, Reply, Text, Thought, Want

BRIEF = (
    "Somebody else will draw this picture, from your words and the pictures above alone. Think it through, then write for the painter what "
    "the finished picture must show, what changes against the last picture and what stays exactly as it is. Write nothing else."
)


class Cascade(Composition):
    roles = ("reasoner", "painter")

    async def reply(self, messages: tuple[Message, ...], want: Want) -> Reply:
        if want.kind == "text":
            return await self.ask("reasoner", messages, want)
        last = messages[-1]
        asked = (*messages[:-1], Message(last.role, (*last.parts, Text(BRIEF))))
        brief = await self.ask("reasoner", asked, replace(want, kind="text"))
        if brief.outcome != "answered":
            return brief
        pictures = [part for message in messages for part in message.parts if isinstance(part, Image)]
        drawn = await self.ask("painter", (Message("user", (*pictures, Text(brief.text))),), want)
        reasoned = tuple(part for part in (Thought(brief.thoughts), Thought(brief.text)) if part.text)
        return joined(replace(drawn, parts=(*reasoned, *drawn.parts)), [brief])
