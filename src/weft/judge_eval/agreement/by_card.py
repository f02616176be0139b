"""What the card of a run's judge says of its main number: the judge's bias on the card, metric by metric, in the main
number's own mix.

Intervals of metrics add up as they are: the same answers stand behind them, so that they err together."""

from weft.judge_eval.agreement.corrected import Bias
from weft.results.cards import find_card
from weft.results.run import Run, headline_terms


def bias_of(run: Run) -> Bias | None:
    """None where its judge has no card, or one that does not have all that it judged."""
    card = find_card(run.home, run.record.manifest)
    if card is None:
        return None
    totals = [0.0, 0.0, 0.0]
    for weight, some in headline_terms(
        run.benchmark, [one for one in run.verdicts if one.value is not None], run.groups
    ):
        for metric in {one.metric for one in some if one.by == "judge"}:
            known = card.for_metric(run.benchmark.name, metric)
            if known is None or known.agreement.bias.value is None:
                return None
            share = weight * sum(one.metric == metric and one.by == "judge" for one in some) / len(some)
            bias = known.agreement.bias
            edges = [bias.value if edge is None else edge for edge in (bias.value, bias.low, bias.high)]
            totals = [total + share * (edge or 0.0) for total, edge in zip(totals, edges, strict=True)]
    return Bias(totals[0], totals[1], totals[2], f"of {card.name}, {card.questions} verdicts")
