"""Chain of thought: a plan in words first, then the picture by that plan. The plan is in the journal, never in the history."""

from msgspec.structs import replace

from weft.strategies.base import Strategy, joined
from weft.types import Message, Reply, Want


class ChainOfThought(Strategy):
    async def draw(self, messages: tuple[Message, ...], want: Want) -> Reply:
        asked = self._words.plan(messages)
        if asked is None:
            return await self.ask(messages, want)
        plan = await self.ask(asked, replace(want, kind="text"))
        if plan.outcome == "failed":
            return plan
        if not plan.text:  # it would not plan: it may still draw
            return joined(await self.ask(messages, want), [plan])
        return joined(await self.ask(self._words.with_plan(messages, plan.text), want), [plan])
