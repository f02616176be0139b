"""Tabletop requests in other words, and whether two say the same: what the oracle answers when tasks are to be said
otherwise.

The language has few wordings for a request; besides, a list of things or cells may stand in any order. Two sentences
say the same if they ask for the same with the same arguments, whatever the order of such lists."""

import itertools
import random
from collections.abc import Iterator, Mapping
from typing import Any

from weft.types import Question, Text
from weft_tabletop.world.language import WORDINGS, TableRequest, parse, wording

LISTS = ("things", "cells", "switches")  # arguments whose order says nothing
ORDERED = ("steps", "draw steps")  # but here it does
MOST = 24  # orders of one list that are tried


def answer_rewording(question: Question) -> dict[str, Any] | None:
    """What is right to say to a request for wordings (`reword`), or to one that has them looked at (`kept`); None to
    anything else."""
    if question.metrics not in (("reword",), ("kept",)):
        return None
    (task,) = find_texts(question, "task")
    asked = parse(task)
    if question.metrics == ("kept",):
        alike = [is_same_request(asked, parse(one)) for one in find_texts(question, "wordings")]
        wrong = [[] if one else ["what it asks for"] for one in alike]
        return {"wordings": [{"wording": at, "lost": lost, "added": []} for at, lost in enumerate(wrong, start=1)]}
    taken = {task, *find_texts(question, "others")}
    fresh = (one for one in wordings(task) if one not in taken)
    made = list(itertools.islice(fresh, len(find_texts(question, "styles"))))
    due = len(find_texts(question, "styles"))
    return {
        "wordings": [
            {"style": at, "wording": one} for at, one in enumerate([*made, *[task] * (due - len(made))], start=1)
        ]
    }


def wordings(task: str) -> Iterator[str]:
    """All ways to say a request, the most unlike first: every wording, then with its lists in other orders."""
    asked = parse(task)
    if asked is None:
        return
    rng = random.Random(f"wordings {task}")
    orders = [asked.args, *_orders(asked, rng)]
    seen: set[str] = set()
    for args in orders:
        for template in WORDINGS[asked.kind]:
            text = wording(template, args, asked.images)
            if text not in seen:
                seen.add(text)
                yield text


def is_same_request(first: TableRequest | None, second: TableRequest | None) -> bool:
    return first is not None and second is not None and first.kind == second.kind and _plain(first) == _plain(second)


def find_texts(question: Question, name: str) -> list[str]:
    return [part.text for part in question.material.get(name, ()) if isinstance(part, Text)]


def _orders(asked: TableRequest, rng: random.Random) -> Iterator[Mapping[str, str]]:
    names = [name for name in LISTS if name in asked.args and asked.kind not in ORDERED]
    for _ in range(MOST if names else 0):
        args = dict(asked.args)
        for name in names:
            items = args[name].split(", ")
            rng.shuffle(items)
            args[name] = ", ".join(items)
        yield args


def _plain(asked: TableRequest) -> dict[str, Any]:
    if asked.kind not in ORDERED:
        names = LISTS
    else:
        names = ()
    return {name: sorted(value.split(", ")) if name in names else value for name, value in asked.args.items()}
