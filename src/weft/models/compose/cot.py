"""Chain of thought: a plan in words first, then what is due, by that plan. The plan is the reply's thinking: kept,
never in the history."""

from msgspec.structs import replace

from weft.models.compose.base import join_replies
from weft.models.compose.strategy import Strategy
from weft.types import Message, Reply, Request, Thought


class ChainOfThought(Strategy):
    async def generate(self, messages: tuple[Message, ...], want: Request) -> Reply:
        asked = self._words.plan_request(messages, want.modality)
        if asked is None:
            return await self.ask("model", messages, want)
        plan = await self.ask("model", asked, replace(want, modality="text"))
        if plan.outcome == "failed":
            return plan
        if not plan.text:  # it would not plan: it may still draw
            return join_replies(await self.ask("model", messages, want), [plan])
        made = await self.ask("model", self._words.with_plan(messages, plan.text, want.modality), want)
        return join_replies(replace(made, parts=(Thought(plan.text), *made.parts)), [plan])
