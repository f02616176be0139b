"""Chain of thought: first a plan in words, then the output by that plan.

The plan becomes the reply's thinking: it is stored, but never part of the history.
"""

from msgspec.structs import replace

from weft.models.compose.base import join_replies
from weft.models.compose.strategy import Strategy
from weft.types import Message, Reply, Request, Thought


class ChainOfThought(Strategy):
    async def generate(self, messages: tuple[Message, ...], want: Request) -> Reply:
        plan_request = self._phrasing.plan_request(messages, want.modality)
        if plan_request is None:
            return await self.ask("model", messages, want)
        plan = await self.ask("model", plan_request, replace(want, modality="text"))
        if plan.outcome == "failed":
            return plan
        if not plan.text:  # it did not plan, but it may still draw
            return join_replies(await self.ask("model", messages, want), [plan])
        request = self._phrasing.with_plan(messages, plan.text, want.modality)
        reply = await self.ask("model", request, want)
        return join_replies(replace(reply, parts=(Thought(plan.text), *reply.parts)), [plan])
