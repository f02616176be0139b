"""Who rates what: pure, and the same on every machine. Chance is a digest, so that nothing but the names decides."""

import hashlib
from collections.abc import Mapping, Sequence


def _chance(*words: object) -> str:
    return hashlib.sha256("\n".join(map(str, words)).encode("utf-8", "replace")).hexdigest()


def drawn(items: Mapping[str, str], count: int, seed: int) -> list[str]:
    """So many items at random, from as many dialogues as can be: one of each before a second of any. `items` are by
    their dialogue."""
    by_dialogue: dict[str, list[str]] = {}
    for item in sorted(items, key=lambda item: _chance("item", seed, item)):
        by_dialogue.setdefault(items[item], []).append(item)
    placed = [
        (at, _chance("dialogue", seed, name), item)
        for name, some in by_dialogue.items()
        for at, item in enumerate(some)
    ]
    return [item for _, _, item in sorted(placed)[:count]]


def assigned(items: Sequence[str], raters: Sequence[str], each: int, seed: int) -> dict[str, list[str]]:
    """Every item to `each` raters; nobody has more than one more than another, and those who rate the same change as
    much as can be. Each has an order of their own."""
    load = dict.fromkeys(raters, 0)
    together: dict[frozenset[str], int] = {}
    made: dict[str, list[str]] = {rater: [] for rater in raters}
    for item in items:
        chosen: list[str] = []
        for _ in range(each):
            left = [rater for rater in raters if rater not in chosen]
            met = {rater: sum(together.get(frozenset((rater, other)), 0) for other in chosen) for rater in left}
            chosen.append(min(left, key=lambda rater: (load[rater], met[rater], _chance("rater", seed, item, rater))))
        for at, rater in enumerate(chosen):
            load[rater] += 1
            made[rater].append(item)
            for other in chosen[:at]:
                pair = frozenset((rater, other))
                together[pair] = together.get(pair, 0) + 1
    return {rater: ordered(some, rater, seed) for rater, some in made.items()}


def ordered(items: Sequence[str], rater: str, seed: int) -> list[str]:
    return sorted(items, key=lambda item: _chance("order", seed, rater, item))


def mixed(items: Sequence[str], known: Sequence[str], rater: str, seed: int) -> list[str]:
    """Items with those of known answers among them, anywhere but at the beginning."""
    whole = ordered([*items, *known], rater, seed)
    if items and whole[0] in known:
        first = next(item for item in whole if item not in known)
        whole = [first, *(item for item in whole if item != first)]
    return whole
