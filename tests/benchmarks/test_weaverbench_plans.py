"""WeaverBench without drawing, and with the paper's own words: a planner alone is judged by its orders; the printed
prompt is sent as it stands in the user's file."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
from server import Provider, Seen, drawn
from weaver import evaluate, picture, prompt, values, written
from weft.benchmarks.weaverbench.rubric import NAMES, SCORES
from weft.errors import UserError
from weft_tabletop.make import make

Serve = Callable[..., Provider]
ORDER = "<imagine uses='none'>a red cup</imagine>"


def test_a_planner_alone_is_judged_by_its_orders_and_by_nothing_else(tmp_path: Path, serve: Serve):
    texts = {
        "two": f"First.{ORDER}Then.<img>the cup again</img>",
        "one": ORDER,
        "none": "Only words.",
        "collage": "<imagine>a grid of four cups</imagine>",
        "tag": "<image>a cup</image>",
    }

    def plan(seen: Seen) -> dict[str, Any]:
        return {"role": "assistant", "content": texts[seen.texts[-1]]}

    provider = serve(answer=plan)
    required = {"two": 2, "one": 1, "none": 0, "collage": 4, "tag": None}
    data = written(tmp_path / "data", [prompt(name, name, count) for name, count in required.items()])
    model = f"plan:planner=openai-chat/model@{provider.url}"
    run = evaluate(provider, data, tmp_path / "home", model=model)
    counts = {name: values(run)[name, "count"] for name in required}
    assert counts == {"two": 1.0, "one": 1.0, "none": 1.0, "collage": 0.0, "tag": 0.0}
    assert not any(seen.is_judge for seen in provider.seen), "there is nothing to judge"
    assert {verdict.metric for verdict in run.verdicts if not verdict.undecided} == {"count"}
    assert not run.summary().unscored
    table = next(table for table in run.tables() if "plan accuracy" in table.title)
    cells = table.cells(next(iter(row.label for row in table.rows)))
    assert (cells["document, exact"].value, cells["images a document"].value) == (50.0, 1.0)


def test_a_planner_that_refuses_has_planned_nothing(tmp_path: Path, serve: Serve):
    provider = serve(answer=lambda seen: {"role": "assistant", "content": None, "refusal": "no"})
    data = written(tmp_path / "data", [prompt("a", "x", 2)])
    run = evaluate(provider, data, tmp_path / "home", model=f"plan:planner=openai-chat/model@{provider.url}")
    assert values(run)["a", "count"] == 0.0
    assert {verdict.by for verdict in run.verdicts if verdict.metric == "count"} == {"failure"}


def test_where_an_image_is_asked_for_a_planner_alone_stays_unscored(tmp_path: Path):
    data = make("tabletop-planviz", tmp_path / "data", samples=2, seed=0)
    run = weft.evaluate(
        "planviz", data=data, model="plan:planner=tabletop/oracle", judge="tabletop/exact", home=tmp_path / "home"
    )
    assert run.verdicts and all(verdict.value is None for verdict in run.verdicts)
    assert all("draws no image" in verdict.reason for verdict in run.verdicts)


def test_the_printed_prompt_is_sent_as_it_is_in_the_file(tmp_path: Path, serve: Serve):
    def judge(seen: Seen) -> dict[str, Any]:
        if seen.body["model"] == "model":
            content = [{"type": "text", "text": "Here:"}, picture("a"), picture("b")]
            return {"role": "assistant", "content": content}
        if "response_format" in seen.body:  # the question about collages stays weft's own
            entries = [{"picture": at, "seen": "x", "one_picture": True} for at in range(2)]
            return {"role": "assistant", "content": json.dumps({"pictures": entries})}
        scores = {name: {"Score": 7, "Justification": "so"} for name in NAMES.values()}
        return {"role": "assistant", "content": f"```json\n{json.dumps({'scores': scores})}\n```"}

    provider = serve(answer=judge)
    words = "Score it.\nFour {{categories}}, eight entries.\n"
    (tmp_path / "printed.txt").write_text(words)
    record = prompt("a", "", 2, input=[{"text": "Two cups like"}, {"image": "x.png"}])
    data = written(tmp_path / "data", [record], {"x.png": drawn("x")})
    run = evaluate(provider, data, tmp_path / "home", prompts=f"official:{tmp_path / 'printed.txt'}")
    assert {values(run)["a", metric] for metric in SCORES} == {0.7} and values(run)["a", "count"] == 1.0
    asked = next(seen for seen in provider.seen if seen.body["model"] == "judge" and "response_format" not in seen.body)
    assert asked.texts[0] == words
    text = " ".join(" ".join(asked.texts[1:]).split())
    assert text.startswith("INPUT: Two cups like <IMG_0> </IMG_0> OUTPUT: Here: <IMG_1> </IMG_1>")
    assert len(asked.pictures) == 3 and "official printed.txt" in str(run.record.manifest)


def test_a_folder_is_no_printed_prompt(tmp_path: Path, serve: Serve):
    data = written(tmp_path / "data", [prompt("a", "x")])
    with pytest.raises(UserError, match="give a text file with the printed one"):
        evaluate(serve(), data, tmp_path / "home", prompts=f"official:{tmp_path}")
