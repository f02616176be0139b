"""What a run would cost, without making a call. Turns whose answers are in the journal are walked with those; others with the dataset's
own replies in their place, so that histories and pictures have about the right size."""

from collections.abc import Mapping

from msgspec import Struct

from weft.engine.call import Caller
from weft.engine.prices import Price, estimate
from weft.engine.run import Plan
from weft.fit import fit
from weft.store.blobs import Blobs
from weft.types import Message, Place, Question, Reply, Usage, Want


class Share(Struct, frozen=True):
    """One side of a plan: calls to be made, calls already answered, tokens and price of those to be made."""

    calls: int
    remembered: int
    tokens_in: int
    tokens_out: int
    cost: float | None


def foresee(plan: Plan, model: Caller, judge: Caller, prices: Mapping[str, Price | None], blobs: Blobs) -> dict[str, Share]:
    counted = {"model": _Count(), "judge": _Count()}
    for sample in plan.dataset.samples:
        dialogue: dict[int, Reply] = {}
        for turn in sample.turns:
            if not plan.asked(turn):
                continue
            want = Want(turn.want, place=Place(sample.id, turn.number, turn.file))
            seen = fit(plan.benchmark.see(sample, turn, dialogue, plan.view), model.takes, blobs)
            known = model.remembers(seen, want) if model.endpoint.memo else None
            counted["model"].add(seen, want, known)
            dialogue[turn.number] = known or Reply("answered", turn.truth)
            for item in plan.benchmark.questions(sample, turn, dialogue, plan.view, plan.rubrics):
                if isinstance(item, Question):
                    wanted = Want("text", item.schema, place=item.place)
                    asked = fit(item.messages, judge.takes, blobs)
                    counted["judge"].add(asked, wanted, judge.remembers(asked, wanted) if judge.endpoint.memo else None)
    return {role: count.share(prices[role]) for role, count in counted.items()}


class _Count:
    def __init__(self) -> None:
        self.calls = self.remembered = 0
        self.usage = Usage()

    def add(self, messages: tuple[Message, ...], want: Want, known: Reply | None) -> None:
        if known is not None:
            self.remembered += 1
            return
        self.calls += 1
        more = estimate(messages, want)
        self.usage = Usage(self.usage.tokens_in + more.tokens_in, self.usage.tokens_out + more.tokens_out)

    def share(self, price: Price | None) -> Share:
        cost = None if price is None else price.of(self.usage)
        return Share(self.calls, self.remembered, self.usage.tokens_in, self.usage.tokens_out, cost)
