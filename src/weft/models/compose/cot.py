"""Chain of thought: first a plan in words, then the output by that plan.

The plan becomes the reply's thinking: it is stored, but never part of the history.
"""

from msgspec.structs import replace

from weft.models.compose.base import join_replies
from weft.models.compose.strategy import Strategy
from weft.types import Message, Reply, Request, Thought


class ChainOfThought(Strategy):
    async def generate(self, messages: tuple[Message, ...], request: Request) -> Reply:
        plan_request = self._phrasing.plan_request(messages, request.modality)
        if plan_request is None:
            return await self.ask("model", messages, request)
        plan = await self.ask("model", plan_request, replace(request, modality="text"))
        if plan.outcome == "failed":
            return plan
        if not plan.text:  # it did not plan, but it may still draw
            return join_replies(await self.ask("model", messages, request), [plan])
        drawing_messages = self._phrasing.with_plan(messages, plan.text, request.modality)
        reply = await self.ask("model", drawing_messages, request)
        return join_replies(replace(reply, parts=(Thought(plan.text), *reply.parts)), [plan])
