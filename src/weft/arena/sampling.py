"""Which battles are drawn: as OpenING draws them, with a seed, and never the same pair twice for an item.

In each group of items the models stand in a ring, in random order; the items take its neighbours in turn, starting at a
random place. Further battles about an item are random pairs of models that are in no battle about it yet; once all are,
random pairs that have not met there.
"""

import itertools
import random
from collections.abc import Mapping, Sequence

from msgspec import Struct


class Pairing(Struct, frozen=True):
    """A battle to be judged: two models and the item."""

    item: str
    first: str
    second: str


def draw_pairings(
    items: Mapping[str, Sequence[str]], groups: Mapping[str, str], battles_per_item: int, seed: int
) -> list[Pairing]:
    """Draw battles in the order of `items`.

    `items` maps an item to the models that have an answer to it; `groups` maps it to its group. Each item gets
    `battles_per_item` battles, or as many as it has pairs; 0 means every pair.
    """
    pairings: list[Pairing] = []
    for group in dict.fromkeys(groups[item] for item in items):
        generator = random.Random(f"{seed} {group}")
        group_items = [item for item in items if groups[item] == group]
        models = sorted(set[str]().union(*(items[item] for item in group_items)))
        generator.shuffle(models)
        ring = list(zip(models, (*models[1:], models[0]), strict=True))
        start = generator.randrange(len(ring))
        for item in group_items:
            neighbours = _find_neighbours((*ring[start:], *ring[:start]), items[item])
            start = (start + 1) % len(ring)
            pairings += _draw_for_item(item, neighbours, sorted(items[item]), battles_per_item, generator)
    position = {item: index for index, item in enumerate(items)}
    return sorted(pairings, key=lambda pairing: position[pairing.item])


def _find_neighbours(ring: Sequence[tuple[str, str]], models: Sequence[str]) -> tuple[str, str] | None:
    """Return the first pair of the ring of which both models have an answer."""
    for pair in ring:
        if set(pair) <= set(models) and pair[0] != pair[1]:
            return pair
    return None


def _draw_for_item(
    item: str,
    neighbours: tuple[str, str] | None,
    models: Sequence[str],
    battles_per_item: int,
    generator: random.Random,
) -> list[Pairing]:
    """Draw the battles about one item, beginning with its neighbours in the ring."""
    pairs = list(itertools.combinations(models, 2))
    count = len(pairs)
    if battles_per_item:
        count = min(battles_per_item, len(pairs))
    pairings: list[Pairing] = []
    if neighbours is not None and count:
        pairings.append(Pairing(item, *neighbours))
    while len(pairings) < count:
        met = {frozenset((pairing.first, pairing.second)) for pairing in pairings}
        remaining = [pair for pair in pairs if frozenset(pair) not in met]
        busy = frozenset[str]().union(*met)
        fresh = [pair for pair in remaining if not busy & set(pair)]
        pair = list(generator.choice(fresh or remaining))
        generator.shuffle(pair)
        pairings.append(Pairing(item, pair[0], pair[1]))
    return pairings
