"""Which annotator gets which question, in which order. Pure, and the same on every machine: every random choice is a
digest of the seed and the names involved."""

import hashlib
from collections.abc import Mapping, Sequence


def _random_key(*values: object) -> str:
    return hashlib.sha256("\n".join(map(str, values)).encode("utf-8", "replace")).hexdigest()


def draw_items(dialogues: Mapping[str, str], count: int, seed: int) -> list[str]:
    """Draw items at random from as many dialogues as possible: one of each dialogue before a second of any.

    `dialogues` has the dialogue of each item."""
    by_dialogue: dict[str, list[str]] = {}
    for item in sorted(dialogues, key=lambda item: _random_key("item", seed, item)):
        by_dialogue.setdefault(dialogues[item], []).append(item)
    ranked: list[tuple[int, str, str]] = []
    for dialogue, items in by_dialogue.items():
        key = _random_key("dialogue", seed, dialogue)
        ranked += [(rank, key, item) for rank, item in enumerate(items)]
    return [item for _, _, item in sorted(ranked)[:count]]


def deal_dialogues(groups: Mapping[str, str], available: Mapping[str, Sequence[int]], seed: int) -> dict[str, int]:
    """Give each dialogue to one run of those that have questions about it; return the run's index by dialogue.

    In each group of dialogues, and in all, the runs get as many as one another, as far as they are available."""
    dealt: dict[str, int] = {}
    loads: dict[tuple[str, int], int] = {}  # by group and run
    totals: dict[int, int] = {}
    for dialogue in sorted(available, key=lambda name: _random_key("deal", seed, name)):
        group = groups[dialogue]

        def rank(run: int, dialogue: str = dialogue, group: str = group) -> tuple[int, int, str]:
            return loads.get((group, run), 0), totals.get(run, 0), _random_key("run", seed, dialogue, run)

        run = min(available[dialogue], key=rank)
        dealt[dialogue] = run
        loads[group, run] = loads.get((group, run), 0) + 1
        totals[run] = totals.get(run, 0) + 1
    return dealt


def draw_stratified(tasks: Mapping[str, tuple[str, str]], seed: int) -> list[str]:
    """Order items so that the first N are a random sample in which every stratum has its share, whatever N is.

    `tasks` has the dialogue and the stratum of each item. One item of each dialogue comes before a second of any."""
    dialogues = {item: dialogue for item, (dialogue, _) in tasks.items()}
    seen: dict[str, int] = {}  # by dialogue, how many of its items are placed
    strata: dict[tuple[int, str], list[str]] = {}  # by rank within the dialogue, and stratum
    for item in draw_items(dialogues, len(dialogues), seed):
        dialogue, stratum = tasks[item]
        rank = seen.get(dialogue, 0)
        seen[dialogue] = rank + 1
        strata.setdefault((rank, stratum), []).append(item)
    placed: list[tuple[int, float, str, str]] = []
    for (rank, stratum), items in strata.items():
        key = _random_key("stratum", seed, rank, stratum)
        start = int(key[:8], 16) / 16**8  # systematic sampling begins at random
        placed += [(rank, (index + start) / len(items), key, item) for index, item in enumerate(items)]
    return [item for *_, item in sorted(placed)]


def assign_items(items: Sequence[str], annotators: Sequence[str], each: int, seed: int) -> dict[str, list[str]]:
    """Give every item to `each` annotators; return the items of each annotator in an order of their own.

    Nobody gets more than one item more than another, and the pairs of annotators who share an item vary as much as
    possible."""
    load = dict.fromkeys(annotators, 0)
    shared: dict[frozenset[str], int] = {}  # by pair of annotators, how many items both have
    assigned: dict[str, list[str]] = {annotator: [] for annotator in annotators}
    for item in items:
        chosen: list[str] = []
        for _ in range(each):
            chosen.append(_next_annotator(item, annotators, chosen, load, shared, seed))
        for index, annotator in enumerate(chosen):
            load[annotator] += 1
            assigned[annotator].append(item)
            for other in chosen[:index]:
                pair = frozenset((annotator, other))
                shared[pair] = shared.get(pair, 0) + 1
    return {annotator: order_items(own, annotator, seed) for annotator, own in assigned.items()}


def _next_annotator(
    item: str,
    annotators: Sequence[str],
    chosen: Sequence[str],
    load: Mapping[str, int],
    shared: Mapping[frozenset[str], int],
    seed: int,
) -> str:
    """The annotator with the least load; of those, the one who shares the fewest items with those already chosen."""

    def rank(annotator: str) -> tuple[int, int, str]:
        overlap = sum(shared.get(frozenset((annotator, other)), 0) for other in chosen)
        return load[annotator], overlap, _random_key("rater", seed, item, annotator)

    return min((annotator for annotator in annotators if annotator not in chosen), key=rank)


def order_items(items: Sequence[str], annotator: str, seed: int) -> list[str]:
    return sorted(items, key=lambda item: _random_key("order", seed, annotator, item))


def mix_in_checks(items: Sequence[str], checks: Sequence[str], annotator: str, seed: int) -> list[str]:
    """Put attention checks among the items, anywhere but at the beginning."""
    order = order_items([*items, *checks], annotator, seed)
    if items and order[0] in checks:
        first = next(item for item in order if item not in checks)
        order.remove(first)
        order.insert(0, first)
    return order
