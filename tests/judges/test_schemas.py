"""What a judge's schema allows, strict can use: a judge that keeps to it is never told that its reply is unusable.

Two things no schema that providers share can say: that every number of a list comes once, and that a box ends after it
begins. So entries are numbered here, and corners are in order.
"""

import functools
import json
import random
from pathlib import Path
from typing import Any

import pytest

import weft
from test_golden import DATA, Judge, Painter, numbered, written
from weft.benchmarks.base import load_benchmark
from weft.judges.vlm import parse_scores
from weft.types import Question

REPLIES = 40  # of each question


class Listener(Judge):
    """Keeps the questions that it is asked."""

    def __init__(self) -> None:
        self.questions: list[Question] = []

    def __call__(self, messages: Any, want: str, question: Any) -> Any:
        self.questions.append(question)
        return super().__call__(messages, want, question)


@functools.cache
def questions(benchmark: str, folder: Path) -> list[Question]:
    judge = Listener()
    for number, model in enumerate((Painter(), "copy" if benchmark == "opening" else "tabletop/oracle")):
        options: dict[str, Any] = {"mode": "both"} if benchmark == "rover-tg" else {}
        data = written(benchmark, folder / f"data-{number}", 6)
        weft.evaluate(benchmark, data=data, model=model, judge=judge, home=folder / "home", **options)
    by_schema = {(question.metrics, json.dumps(question.schema)): question for question in judge.questions}
    return list(by_schema.values())


def any_value(schema: dict[str, Any], chance: random.Random) -> Any:
    """A value that the schema allows, often one at its limits."""
    if "enum" in schema:
        return chance.choice(schema["enum"])
    kind = schema["type"]
    if kind == "object":
        optional = set(schema["properties"]) - set(schema.get("required", schema["properties"]))
        names = [name for name in schema["properties"] if name not in optional or chance.random() < 0.5]
        made = {name: any_value(schema["properties"][name], chance) for name in names}
        if "box" in made:
            left, top, right, bottom = made["box"]
            made["box"] = [min(left, right), min(top, bottom), max(left, right), max(top, bottom)]
        return made
    if kind == "array":
        count = chance.randint(schema.get("minItems", 0), schema.get("maxItems", schema.get("minItems", 0) + 2))
        entries = [any_value(schema["items"], chance) for _ in range(count)]
        return [numbered(schema["items"], entry, number) for number, entry in enumerate(entries)]
    if kind in ("integer", "number"):
        low, high = schema.get("minimum", -1000), schema.get("maximum", 1000)
        inner = chance.randint(low, high) if kind == "integer" else chance.uniform(low, high)
        return chance.choice((low, high, inner))
    if kind == "boolean":
        return chance.random() < 0.5
    return chance.choice(("", "because", "{", "</think>", '"quoted" \n 5/5', "B"))


@pytest.mark.parametrize("benchmark", [*DATA, "opening"])
def test_every_reply_that_fits_the_schema_can_be_used(benchmark: str, tmp_path: Path):
    reader = load_benchmark(benchmark)
    asked = questions(benchmark, tmp_path)
    assert asked
    for question in asked:
        for seed in range(REPLIES):
            reply = any_value(question.schema, random.Random(seed))
            scores = parse_scores(reader, question, json.dumps(reply))
            assert sorted(score.metric for score in scores) == sorted(question.metrics), (question.schema, reply)
