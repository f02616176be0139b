"""A planner alone: the orders in its text are counted, and nothing else is judged, for no image is drawn."""

from collections.abc import Sequence

from weft.benchmarks.base import JudgedTurn
from weft.benchmarks.weaverbench.data import WeaverBenchGold
from weft.benchmarks.weaverbench.facts import DocumentFacts
from weft.benchmarks.weaverbench.rubric import COUNT
from weft.models.compose.imagine import parse_plan
from weft.types import Reply, Verdict

NOTHING_DRAWN = "a planner alone: nothing is drawn, so only its orders are counted"


def is_plan(reply: Reply) -> bool:
    return "plan" in reply.notes


def assess_plan(judged_turn: JudgedTurn, metrics: Sequence[str]) -> list[Verdict]:
    """Return the verdict on the number of orders; the other metrics are left undecided, and are in no mean.

    A planner that does not answer has planned nothing: that is its own failure.
    """
    gold: WeaverBenchGold = judged_turn.turn.gold
    orders = len(parse_plan(judged_turn.reply.text).images)
    verdicts: list[Verdict] = []
    for metric in metrics:
        if metric != COUNT:
            verdicts.append(judged_turn.verdict(metric, None, NOTHING_DRAWN, undecided=True))
            continue
        facts = DocumentFacts(orders, gold.required)
        if judged_turn.reply.outcome != "answered":
            reason = f"{judged_turn.reply.outcome}: {judged_turn.reply.reason}"
            verdicts.append(judged_turn.verdict(COUNT, 0.0, reason, by="failure", detail=facts))
            continue
        reason = f"{orders} image{'s' * (orders != 1)} ordered, {gold.expected_count} expected"
        verdicts.append(judged_turn.verdict(COUNT, float(gold.is_met(orders)), reason, detail=facts))
    return verdicts
