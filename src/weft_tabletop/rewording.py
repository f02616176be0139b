"""Tabletop requests in other words: the oracle's answers when tasks are to be reworded, and when rewordings are
checked.

The language has few wordings for a request; lists of objects or cells may also be in any order. Two sentences mean the
same if they ask for the same with the same arguments, whatever the order of such lists."""

import itertools
import random
from collections.abc import Iterator, Mapping
from typing import Any

from weft.types import Question, Text
from weft_tabletop.world.language import TableRequest, fill_wording, parse
from weft_tabletop.world.wordings import WORDINGS

UNORDERED_LISTS = ("things", "cells", "switches")  # arguments whose order means nothing
ORDERED_KINDS = ("steps", "draw steps")  # except in these requests
MAX_ORDERS = 24  # of one list that are tried


def answer_rewording(question: Question) -> dict[str, Any] | None:
    """The right answer to a request for rewordings (`reword`), or to a check of them (`kept`); None for any other
    question."""
    if question.metrics == ("kept",):
        return _check_rewordings(question)
    if question.metrics == ("reword",):
        return _reword(question)
    return None


def _check_rewordings(question: Question) -> dict[str, Any]:
    (task,) = find_texts(question, "task")
    request = parse(task)
    checked: list[dict[str, Any]] = []
    for number, text in enumerate(find_texts(question, "wordings"), start=1):
        lost = [] if is_same_request(request, parse(text)) else ["what it asks for"]
        checked.append({"wording": number, "lost": lost, "added": []})
    return {"wordings": checked}


def _reword(question: Question) -> dict[str, Any]:
    """As many new wordings as there are styles; the task itself where there are not enough."""
    (task,) = find_texts(question, "task")
    used = {task, *find_texts(question, "others")}
    count = len(find_texts(question, "styles"))
    new = list(itertools.islice((text for text in wordings(task) if text not in used), count))
    new += [task] * (count - len(new))
    return {"wordings": [{"style": number, "wording": text} for number, text in enumerate(new, start=1)]}


def wordings(task: str) -> Iterator[str]:
    """All ways to word a request, the most different first: every template, then with its lists in other orders."""
    request = parse(task)
    if request is None:
        return
    rng = random.Random(f"wordings {task}")
    seen: set[str] = set()
    for args in [request.args, *_reorder(request, rng)]:
        for template in WORDINGS[request.kind]:
            text = fill_wording(template, args, request.images)
            if text not in seen:
                seen.add(text)
                yield text


def is_same_request(first: TableRequest | None, second: TableRequest | None) -> bool:
    if first is None or second is None or first.kind != second.kind:
        return False
    return _normalise(first) == _normalise(second)


def find_texts(question: Question, name: str) -> list[str]:
    """The texts in a question's material, by its name."""
    return [part.text for part in question.material.get(name, ()) if isinstance(part, Text)]


def _unordered_args(request: TableRequest) -> list[str]:
    if request.kind in ORDERED_KINDS:
        return []
    return [name for name in UNORDERED_LISTS if name in request.args]


def _reorder(request: TableRequest, rng: random.Random) -> Iterator[Mapping[str, str]]:
    """The arguments with their lists shuffled."""
    names = _unordered_args(request)
    if not names:
        return
    for _ in range(MAX_ORDERS):
        args = dict(request.args)
        for name in names:
            items = args[name].split(", ")
            rng.shuffle(items)
            args[name] = ", ".join(items)
        yield args


def _normalise(request: TableRequest) -> dict[str, Any]:
    """The arguments with their unordered lists sorted."""
    args: dict[str, Any] = dict(request.args)
    for name in _unordered_args(request):
        args[name] = sorted(args[name].split(", "))
    return args
