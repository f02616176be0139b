"""The exact judge asks for material by name: other words in a rubric change nothing, and what is missing is an
error."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import weft
from weft.benchmarks import Benchmark, Preparation
from weft.benchmarks.imug import Imug
from weft.benchmarks.prompts import Rubrics, build_rubrics
from weft.benchmarks.weave import Weave
from weft.models.endpoint import CallError
from weft.store.blobs import Blobs
from weft.types import Question, Request
from weft_tabletop.exact.endpoint import Exact
from weft_tabletop.make import make


def reworded(prompts: Rubrics) -> Rubrics:
    """Every word is another; the slots stay."""
    import re

    texts = {name: "Qux. " + " zot ".join(re.findall(r"\[\[\w+\]\]", text)) for name, text in prompts.texts.items()}
    return build_rubrics(texts, "weft")


class Reworded(Preparation, frozen=True):
    def rubrics(self, benchmark: Benchmark, prompts: str) -> Rubrics:
        return reworded(super().rubrics(benchmark, prompts))


class OtherWeave(Weave):
    preparation = Reworded()


class OtherImug(Imug):
    preparation = Reworded()


@pytest.mark.parametrize(("data", "benchmark"), [("tabletop-weave", OtherWeave), ("tabletop-imug", OtherImug)])
def test_a_rubric_in_other_words_leaves_the_oracle_at_full_marks(tmp_path: Path, data: str, benchmark: Any):
    folder = make(data, tmp_path / "data", samples=32, seed=1)
    run = weft.evaluate(benchmark, data=folder, model="tabletop/oracle", judge="tabletop/exact", home=tmp_path / "home")
    assert run.verdicts and {verdict.value for verdict in run.verdicts} == {1.0}


def test_what_is_missing_is_an_error_and_never_a_score(tmp_path: Path):
    folder = make("tabletop-weave", tmp_path / "data", samples=16, seed=1)
    asked: list[Question] = []

    class Listening(Weave):
        def questions(self, answered: Any) -> Any:
            found = list(super().questions(answered))
            asked.extend(item for item in found if isinstance(item, Question))
            return found

    weft.evaluate(Listening, data=folder, model="reference", judge="constant/max", home=tmp_path / "home")
    exact = Exact(folder, Blobs(tmp_path / "home" / "blobs"))

    def answer(question: Question, **changed: Any) -> Any:
        return asyncio.run(exact.send((), Request("text", question.schema, question=replace(question, **changed))))

    picture = next(one for one in asked if one.metrics == ("key_point",) and "reference 1" in one.material)
    assert answer(picture).outcome == "answered", "it reads no message at all"
    without = {name: parts for name, parts in picture.material.items() if name != "output"}
    with pytest.raises(CallError, match="has no material 'output'; it has requirements, reference 1"):
        answer(picture, material=without)
    with pytest.raises(CallError, match="shows 0 references; its key points have"):
        answer(picture, material={"output": picture.material["output"]})
    with pytest.raises(CallError, match="does not know beauty of weave"):
        answer(picture, metrics=("beauty",))
    with pytest.raises(CallError, match="does not know key_point of nothing"):
        answer(picture, turn_ref=replace(picture.turn_ref, benchmark="nothing"))
    with pytest.raises(CallError, match="is a judge"):
        asyncio.run(exact.send((), Request("text")))
