"""Which battles are fought: as OpenING draws them, with a seed, and without doubling what was drawn.

In each group of items the models stand in a ring, in random order; the items take its neighbours in turn, from a random
place on. Further battles about an item are random pairs of models that have not fought about it yet; once all have,
random pairs that have not met there."""

import itertools
import random
from collections.abc import Mapping, Sequence

from msgspec import Struct


class Pairing(Struct, frozen=True):
    item: str
    first: str
    second: str


def draw_pairings(items: Mapping[str, Sequence[str]], groups: Mapping[str, str], each: int, seed: int) -> list[Pairing]:
    """`items` are known with the models that have an answer to them; `each` battles about an item, as far as there are
    pairs; 0: all."""
    made: list[Pairing] = []
    for group in dict.fromkeys(groups[item] for item in items):
        chance = random.Random(f"{seed} {group}")
        some = [item for item in items if groups[item] == group]
        models = sorted({model for item in some for model in items[item]})
        chance.shuffle(models)
        ring = [(model, models[(at + 1) % len(models)]) for at, model in enumerate(models)]
        place = chance.randrange(len(ring))
        for item in some:
            there = [
                pair for pair in (*ring[place:], *ring[:place]) if set(pair) <= set(items[item]) and pair[0] != pair[1]
            ]
            place = (place + 1) % len(ring)
            made += _about(item, there[:1], sorted(items[item]), each, chance)
    order = {item: at for at, item in enumerate(items)}
    return sorted(made, key=lambda one: order[one.item])


def _about(
    item: str, first: Sequence[tuple[str, str]], models: Sequence[str], each: int, chance: random.Random
) -> list[Pairing]:
    """The battles about one item, beginning with its place in the ring."""
    pairs = list(itertools.combinations(models, 2))
    if each == 0:
        due = len(pairs)
    else:
        due = min(each, len(pairs))
    fought = [Pairing(item, *one) for one in first[:due]]
    while len(fought) < due:
        met = {frozenset((one.first, one.second)) for one in fought}
        seen = {model for one in fought for model in (one.first, one.second)}
        left = [pair for pair in pairs if frozenset(pair) not in met]
        fresh = [pair for pair in left if not seen & set(pair)]
        pair = list(chance.choice(fresh or left))
        chance.shuffle(pair)
        fought.append(Pairing(item, pair[0], pair[1]))
    return fought
