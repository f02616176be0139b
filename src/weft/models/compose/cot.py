"""Chain of thought: a plan in words first, then what is due, by that plan. The plan is the reply's thinking: kept, never in the history."""

from msgspec.structs import replace

from weft.models.compose.base import joined
from weft.models.compose.strategy import Strategy
from weft.types import Message, Reply, Thought, Want


class ChainOfThought(Strategy):
    async def make(self, messages: tuple[Message, ...], want: Want) -> Reply:
        asked = self._words.plan(messages, want.kind)
        if asked is None:
            return await self.ask("model", messages, want)
        plan = await self.ask("model", asked, replace(want, kind="text"))
        if plan.outcome == "failed":
            return plan
        if not plan.text:  # it would not plan: it may still draw
            return joined(await self.ask("model", messages, want), [plan])
        made = await self.ask("model", self._words.with_plan(messages, plan.text, want.kind), want)
        return joined(replace(made, parts=(Thought(plan.text), *made.parts)), [plan])
