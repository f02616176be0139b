"""Judge's replies of every kind to real questions of every benchmark: a share of full marks that stands in the reply,
or unscored."""

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fuzz import Broken
from fuzz.data import all_of
from fuzz.spoil import spoil_text
from weft import api
from weft.benchmarks.base import Benchmark
from weft.calls.structured_output import UnusableReply, fit_schema
from weft.judges.vlm import VlmJudge
from weft.models.baselines import ConstantJudge
from weft.store.blobs import Blobs
from weft.types import Question, Reply, Takes, Text, Verdict

LONGEST = 2.0  # seconds for one reply


class Says:
    name, takes, may_leave_undecided = "says", Takes(), False

    def __init__(self, text: str) -> None:
        self.text = text

    async def reply(self, messages: Any, want: Any) -> Reply:
        return Reply("answered", (Text(self.text),), keys=("k",))

    def void(self, keys: tuple[str, ...], reason: str) -> None:
        return


def attack(chance: random.Random, count: int, folder: Path) -> Counter[str]:
    done: Counter[str] = Counter()
    found = all_of(folder / "replies", 10, chance.randrange(10**6))
    for name, (benchmark, data) in found.items():
        questions = _questions(name, data, folder)
        for _ in range(count // len(found)):
            question = chance.choice(questions)
            good = ConstantJudge(chance.choice([None, 0, 1, 2, 3, 5]))._fill(question.schema)
            text = spoil_text(good, chance)
            began = time.process_time()
            judge = VlmJudge(Says(text), Blobs(folder / "replies" / "b"), benchmark)
            try:
                verdicts = asyncio.run(judge.judge(question))
            except Exception as error:
                raise Broken(f"{name}: {type(error).__name__}: {error} on {text[:300]!r}") from error
            if time.process_time() - began > LONGEST:
                raise Broken(f"{name}: {time.process_time() - began:.1f} s for {text[:100]!r}")
            _check(benchmark, question, text, verdicts)
            done[f"{name}: {'scored' if verdicts[0].value is not None else 'unusable'}"] += 1
    return done


def _questions(name: str, data: Path, folder: Path) -> list[Question]:
    kept: list[Question] = []

    def judge(messages: Any, want: str, question: Question) -> Any:
        kept.append(question)
        return ConstantJudge(None)._fill(question.schema)

    judge.version = "1"  # type: ignore[attr-defined]
    api.validate(name, data, judge, home=folder / "replies" / f"{name}-home")
    return kept


def _check(benchmark: Benchmark, question: Question, text: str, verdicts: list[Verdict]) -> None:
    if sorted(one.metric for one in verdicts) != sorted(question.metrics):
        raise Broken(f"a verdict is missing for {text[:300]!r}")
    for verdict in verdicts:
        if verdict.value is None:
            if not verdict.reason:
                raise Broken("unscored without a reason")
        elif not 0 <= verdict.value <= 1 or verdict.value not in set(
            _possible(benchmark, question, verdict.metric, text)
        ):
            raise Broken(f"{verdict.metric} {verdict.value} is made up from {text[:300]!r}")


def _possible(benchmark: Benchmark, question: Question, metric: str, text: str) -> Iterator[float]:
    """Every value that some object in the text comes to."""
    decoder = json.JSONDecoder()
    at = text.find("{")
    while at != -1:
        try:
            found, end = decoder.raw_decode(text, at)
            parsed = benchmark.parse_text(question, text[at:end])
            if parsed is None:
                parsed = fit_schema(found, question.accepted_schema or question.schema)
            marks = benchmark.to_scores(question, parsed)
            yield from (mark.value for mark in marks if mark.metric == metric)
        except (ValueError, RecursionError, UnusableReply, KeyError, TypeError):
            pass
        at = text.find("{", at + 1)
