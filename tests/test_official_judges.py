"""A judge that only a paper's released scripts can use, and its official row: with their prompts nothing that weft wants
of a judge ends a run, neither the question before it nor patience with replies that fit no schema."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import weft
from planviz import records, written
from rover import puzzles, tasks, write_json
from server import Provider, Seen, data_url, drawn, model_answer
from toy import more_records, write_weave
from weft.benchmarks.opening.rubric import CRITERIA
from weft.benchmarks.rover.ig import rubric as ig_rubric
from weft.benchmarks.rover.tg import rubric as tg_rubric
from weft.calls.caller import EndpointDown, RetryPolicy
from weft.errors import UnusableJudge

sys.path.append(str(Path(__file__).parent.parent))  # conformance is no package that is installed

from conformance.generated import imug, opening, planviz, weave
from conformance.generated.imug_prompts import write_stand_in
from conformance.generated.stand_in import constants
from conformance.planviz import key_of

Serve = Callable[..., Provider]
QUICK = RetryPolicy(tries=2, base=0.001, cap=0.002)
JUDGED = 3  # questions without a verdict after which a run would end


@pytest.fixture(autouse=True)
def as_users_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the question before a run, and with less patience than a user's run has: the datasets are small."""
    monkeypatch.setenv("WEFT_PREFLIGHT", "1")
    monkeypatch.setattr("weft.judges.vlm.MAX_UNUSABLE_REPLIES", JUDGED)


def one_file(folder: Path, name: str, text: str) -> Path:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder


def rover_checkout(folder: Path, names: dict[str, str], evaluator: str) -> Path:
    texts = {name: f'{key}: {{{{"{key.split()[0]}_score": X}}}}' for key, name in names.items()}
    return one_file(one_file(folder, "prompts.py", constants(**texts)), "evaluator.py", evaluator)


def opening_data(folder: Path) -> Path:
    records = [
        {
            "total_uid": f"010{at}",
            "conversations": [
                {"input": [{"text": f"Tell {at}.", "image": None}]},
                {"output": [{"text": "So.", "image": None}]},
            ],
        }
        for at in range(5)
    ]
    return one_file(folder, "test_data.jsonl", "".join(json.dumps(record) + "\n" for record in records))


# by benchmark: its data, a stand-in for its checkout, and a reply that only the released scripts can use
def weave_case(folder: Path) -> tuple[Path, Path]:
    return write_weave(folder / "data", more_records(1)), one_file(folder / "repo", "eval/prompts.py", weave.PROMPTS)


def imug_case(folder: Path) -> tuple[Path, Path]:
    return imug.write(folder / "data")[0], write_stand_in(folder / "repo")


def ig_case(folder: Path) -> tuple[Path, Path]:
    evaluator = 'think_output = think_output if think_output else "(none)"\n'
    return write_json(folder / "data", "ROVER-IG", tasks()), rover_checkout(
        folder / "repo", dict(ig_rubric.CONSTANTS), evaluator
    )


def tg_case(folder: Path) -> tuple[Path, Path]:
    names = {**tg_rubric.CONSTANTS, **tg_rubric.OPTIONAL_CONSTANTS}
    evaluator = 'if not model_answer:\n    model_answer = "(none)"\n'
    return write_json(folder / "data", "ROVER-TG", puzzles()), rover_checkout(folder / "repo", names, evaluator)


def planviz_case(folder: Path) -> tuple[Path, Path]:
    return written(folder / "data", records()), one_file(folder / "repo", "template.py", planviz.PROMPTS)


def opening_case(folder: Path) -> tuple[Path, Path]:
    return opening_data(folder / "data"), opening.stand_in(folder)


def rover_reply(seen: Seen) -> str:
    return json.dumps({re.findall(r'"(\w+_score)"', seen.texts[0])[-1]: 6, "reasoning": "x"})


def imug_reply(seen: Seen) -> str:
    results = [{"point_id": 1, "score": 6, "reason": "x"}]
    return json.dumps({"determined_answer": "G"} if "determined_answer" in seen.texts[0] else {"evaluation_results": results})  # fmt: skip


CASES: dict[str, tuple[Callable[[Path], tuple[Path, Path]], Callable[[Seen], str]]] = {
    "weave": (weave_case, lambda seen: '{"score": 11, "reasoning": "x"}'),
    "imug": (imug_case, imug_reply),
    "rover-ig": (ig_case, rover_reply),
    "rover-tg": (tg_case, rover_reply),
    "planviz": (planviz_case, lambda seen: f"{key_of(seen.texts[0])}: 9"),
    "opening": (opening_case, lambda seen: json.dumps({name: {"Score": 7.5} for name in CRITERIA})),
}


def provider_of(reply: Callable[[Seen], str]) -> Callable[[Seen], dict[str, Any]]:
    def answer(seen: Seen) -> dict[str, Any]:
        if seen.is_judge:
            return {"role": "assistant", "content": reply(seen)}
        made = model_answer(seen)
        if made.get("images"):
            made["images"][0]["image_url"]["url"] = data_url(drawn(seen.digest, 64))
            made["content"] = "<think>It is so.</think>"
        return made

    return answer


async def refuse_schemas(seen: Seen, times: int, request: web.Request) -> web.Response | None:
    if seen.is_judge and "response_format" in seen.body:
        return web.json_response({"error": {"message": "response_format is not supported"}}, status=400)
    return None


def evaluate(benchmark: str, data: Path, home: Path, server: Provider, **options: Any) -> weft.Run:
    ends = {"model": f"openai-chat/model@{server.url}", "judge": f"openai-chat/judge@{server.url}"}
    return weft.evaluate(benchmark, data=data, home=home, retry_policy=QUICK, **ends, **options)


@pytest.mark.parametrize("benchmark", CASES)
def test_a_judge_that_only_the_scripts_can_use_has_an_official_row(benchmark: str, tmp_path: Path, serve: Serve):
    case, reply = CASES[benchmark]
    data, checkout = case(tmp_path)
    run = evaluate(benchmark, data, tmp_path / "home", serve(answer=provider_of(reply)), prompts=f"official:{checkout}")
    judged = [one for one in run.verdicts if one.by == "judge" and one.reading is not None]
    assert run.record.state == "finished" and len(judged) > JUDGED
    assert all(one.value is None for one in judged), "strict cannot use them"
    official = run.benchmark.official
    assert official is not None and all(isinstance(official.score(one), float | int) for one in judged)
    rows = [row for table in run.tables() for row in table.run_rows if row.arithmetic == "official"]
    assert any(cell.value is not None for row in rows for cell in row.cells.values()), "and there is a row of them"


@pytest.mark.parametrize("benchmark", sorted({*CASES} - {"opening"}))  # whose released script asks by a schema
def test_a_judge_that_cannot_answer_by_a_schema_is_not_stopped(benchmark: str, tmp_path: Path, serve: Serve):
    case, reply = CASES[benchmark]
    data, checkout = case(tmp_path)
    server = serve(answer=provider_of(reply), fault=refuse_schemas)
    run = evaluate(benchmark, data, tmp_path / "home", server, prompts=f"official:{checkout}")
    assert run.record.state == "finished" and sum(one.reading is not None for one in run.verdicts) > JUDGED
    with pytest.raises(EndpointDown):
        evaluate(benchmark, data, tmp_path / "own", server)


def test_replies_that_the_official_row_counts_do_not_end_a_run_with_our_prompts(tmp_path: Path, serve: Serve):
    data, server = write_weave(tmp_path / "data", more_records(2)), serve(answer=provider_of(CASES["weave"][1]))
    run = evaluate("weave", data, tmp_path / "home", server, preflight=False)
    cells = {row.arithmetic: row.cells["Avg"].value for row in run.table().run_rows}
    assert run.record.state == "finished" and cells == {"strict": None, "official": 1.1}
    useless = serve(answer=provider_of(lambda seen: "I would rather not."))
    with pytest.raises(UnusableJudge):
        evaluate("weave", data, tmp_path / "useless", useless, preflight=False)
