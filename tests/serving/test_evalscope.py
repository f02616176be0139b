"""evalscope asks a model that `weft serve` serves, and its results stand on the score card; so does a run whose server
was killed half-way, unscored.

evalscope is a tool of its own environment: `WEFT_EVALSCOPE` names its command, and without it a recorded run stands in:
what the tool asked once is asked again, and what it wrote is imported. `WEFT_RECORD=1` records anew.
"""

import asyncio
import csv
import io
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from typer.testing import CliRunner

from evalscope_tool import (
    EVALSCOPE,
    IS_RECORDING,
    PATH,
    SETTINGS,
    TASK,
    ask,
    count_replies,
    keep,
    kill,
    listening,
    read_record,
    served,
    unpack,
    write_questions,
)
from waiting import until
from weft.cli.app import app
from weft.evaluation.imports.score import ImportedScore
from weft.evaluation.imports.store import read_results
from weft.serving.app import ServingApp
from weft.serving.local_pool import LocalPool
from weft.serving.replica import ReplicaSpec

ITEMS = 12
MANY_ITEMS = 30  # of which some are left when the server is killed
needs_evalscope = pytest.mark.skipif(
    EVALSCOPE is None, reason="evalscope is not installed: WEFT_EVALSCOPE=PATH names its command"
)


def import_run(run: Path) -> ImportedScore:
    (score,) = read_results(run, "tiny")
    return score


def check_whole(run: Path) -> None:
    """All questions of a run have a score, with an interval, and the tool's own number."""
    score = import_run(run)
    assert (score.task, score.scored, score.expected) == (TASK, ITEMS, ITEMS)
    assert score.value is not None and score.low is not None and score.low <= score.value and score.version
    assert score.printed == pytest.approx(score.value / 100, abs=1e-4)
    (replies,) = run.glob("predictions/tiny/*.jsonl")
    usage = [json.loads(line)["model_output"]["usage"] for line in replies.read_text().splitlines()]
    assert len(usage) == ITEMS and all(one["input_tokens"] and one["output_tokens"] for one in usage)


def check_killed(run: Path) -> None:
    """A run whose server was killed has no score and no guess."""
    score = import_run(run)
    assert score.value is None and score.scored == 0 and 5 <= score.expected < MANY_ITEMS
    assert "before it scored them" in score.describe()


@needs_evalscope
def test_evalscope_asks_a_served_model_and_its_score_is_imported(tmp_path: Path):
    data = write_questions(tmp_path, ITEMS)
    with served(tmp_path) as (url, _), listening(url) as (address, exchanges):
        assert ask(address, data, tmp_path / "out").wait() == 0, (tmp_path / "evalscope.log").read_text()[-2000:]
    (run,) = (tmp_path / "out").iterdir()
    check_whole(run)
    assert len(exchanges) == ITEMS
    if IS_RECORDING:
        keep("whole", tmp_path, run, exchanges)


@needs_evalscope
def test_a_server_that_is_killed_half_way_leaves_no_score_and_no_guess(tmp_path: Path):
    data = write_questions(tmp_path, MANY_ITEMS)
    with served(tmp_path) as (url, server):
        tool = ask(url, data, tmp_path / "out")
        until("five replies", lambda: count_replies(tmp_path / "out") >= 5, tool)
        kill(server)
        assert tool.wait() != 0
    (run,) = (tmp_path / "out").iterdir()
    check_killed(run)
    if IS_RECORDING:
        keep("killed", tmp_path, run)


def test_what_evalscope_asked_is_answered_as_it_was(tmp_path: Path):
    exchanges = read_record("whole")["exchanges"]
    assert len(exchanges) == ITEMS
    assert all("temperature" in exchange["request"] for exchange in exchanges), "a setting that the model cannot take"
    replies = asyncio.run(ask_again([exchange["request"] for exchange in exchanges], tmp_path))
    for exchange, reply in zip(exchanges, replies, strict=True):
        assert pick(reply) == pick(exchange["reply"])


async def ask_again(requests: list[Any], folder: Path) -> list[Any]:
    """What a server of tabletop/tiny replies now."""
    pool = LocalPool(ReplicaSpec("tabletop/tiny", {}, "tiny", str(folder / "home"), ignored_settings=SETTINGS))
    await pool.load()
    runner, address = await ServingApp(pool, "tiny", "").start(0)
    replies: list[Any] = []
    try:
        async with aiohttp.ClientSession() as session:
            for request in requests:
                async with session.post(address + PATH, json=request) as came:
                    replies.append(await came.json())
    finally:
        await runner.cleanup()
        await pool.close()
    return replies


def pick(reply: Any) -> Any:
    """What a client reads in a reply."""
    return [reply["choices"][0]["message"]["content"], reply["choices"][0]["finish_reason"], reply["usage"]]


def test_what_evalscope_wrote_stands_on_the_card_and_a_killed_run_has_no_score(tmp_path: Path):
    whole, killed = unpack("whole", tmp_path), unpack("killed", tmp_path)
    check_whole(whole)
    check_killed(killed)
    for run, model in ((whole, "tiny"), (killed, "cut")):
        found = CliRunner().invoke(app, ["suite", "import", str(run), "--model", model, "--home", str(tmp_path)])
        assert found.exit_code == 0, found.output
    said = CliRunner().invoke(app, ["suite", "report", "--format", "csv", "--home", str(tmp_path)])
    assert said.exit_code == 0, said.output
    rows = {row["row"]: row for row in csv.DictReader(io.StringIO(said.output))}
    assert {row["column"] for row in rows.values()} == {f"{TASK} (evalscope)"}
    assert rows["tiny"]["value"] == f"{import_run(whole).value:.1f}" and rows["tiny"]["scored"] == str(ITEMS)
    assert rows["cut"]["value"] == "" and rows["cut"]["scored"] == "0"
