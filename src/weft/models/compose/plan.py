"""A planner alone: it writes a document with orders for its images, and nothing is drawn.

    weft run weaverbench --data DATA --model plan:planner=MODEL --judge JUDGE

The planner is asked in the words of `weaver.py`, so that its calls are the same ones. The reply is what it wrote, with
the note `plan`: a benchmark can count its orders, and there is nothing else to judge.
"""

from msgspec.structs import replace

from weft.models.compose.base import Composition
from weft.models.compose.weaver import planner_request
from weft.models.thinking import split_thinking
from weft.types import Message, Reply, Request, Text, Thought

NOTHING_DRAWN = "a planner alone draws no image: give it a visualizer, as in weaver:planner=MODEL,visualizer=MODEL"


class Plan(Composition):
    roles = ("planner",)
    version = "1"

    async def reply(self, messages: tuple[Message, ...], request: Request) -> Reply:
        if request.modality == "text":
            return await self.ask("planner", messages, request)
        if request.modality == "image":
            return Reply("failed", reason=NOTHING_DRAWN)
        planned = await self.ask(
            "planner", planner_request(messages, request.modality), replace(request, modality="text")
        )
        thinking, document = split_thinking(planned.text)
        thoughts = [Thought(text) for text in (planned.thoughts, thinking) if text]
        return replace(planned, parts=(*thoughts, Text(document)), notes=(*planned.notes, "plan"))
