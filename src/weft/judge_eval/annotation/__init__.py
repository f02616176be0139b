"""People rate what a judge rated: the same questions, blind to model and judge, in a browser, in Label Studio or in a
table.

`people` is for those who compare what people say, with one another or with judges."""

from collections.abc import Sequence

from weft.store.annotations import Annotation


def people(ratings: Sequence[Annotation]) -> dict[tuple[str, int, str], dict[str, float]]:
    """By sample, turn and metric, the share of full marks that each rater gave. Questions with known answers are none
    of it. Of what one person said twice about the same the later counts; several questions about one metric (two
    orders, parts) count as their mean."""
    said: dict[tuple[str, int, str], dict[str, dict[str, float]]] = {}
    for rating in sorted(ratings, key=lambda one: one.created_at):
        for one in rating.verdicts if not rating.is_attention_check else ():
            if one.value is not None:
                said.setdefault((one.sample, one.turn, one.metric), {}).setdefault(rating.annotator, {})[
                    one.variant
                ] = one.value
    return {place: {rater: sum(some.values()) / len(some) for rater, some in by.items()} for place, by in said.items()}
