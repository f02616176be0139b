"""evalscope asks a model that `weft serve` serves, and its results stand on the score card; so does a run whose server
was killed half-way, unscored. evalscope is a tool of its own environment: WEFT_EVALSCOPE names its command."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from waiting import until
from weft.evaluation.imports.score import ImportedScore
from weft.evaluation.imports.store import read_results
from weft_tabletop.make import make

EVALSCOPE = os.environ.get("WEFT_EVALSCOPE") or shutil.which("evalscope")
ITEMS = 30
TASK = "general_vmcq"  # questions with images in MMMU's form, from files of the user's own
SETTINGS = ("temperature", "max_tokens", "top_p")  # that the tool sends, and the model cannot take

pytestmark = pytest.mark.skipif(
    EVALSCOPE is None, reason="evalscope is not installed: WEFT_EVALSCOPE=PATH names its command"
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Questions about tables, the right answer first among four."""
    questions = make("tabletop-mmvet", tmp_path / "questions", samples=2 * ITEMS, seed=0)
    records = json.loads((questions / "mm-vet.json").read_text())
    rows: list[str] = []
    for record in records.values():
        if "<AND>" in record["answer"]:
            continue
        image = str(questions / "images" / record["imagename"])
        options = [record["answer"], "a red star", "7", "purple"]
        row = {"question": f"<image 1> {record['question']}", "options": options, "image_1": image, "answer": "A"}
        rows.append(json.dumps(row))
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "default_val.jsonl").write_text("\n".join(rows[:ITEMS]) + "\n")
    return folder


@contextlib.contextmanager
def served(folder: Path) -> Generator[tuple[str, "subprocess.Popen[str]"]]:
    """The address of a server of tabletop/tiny, and its process, which leads a group of its own."""
    ignored = [word for setting in SETTINGS for word in ("--ignore", setting)]
    words = [sys.executable, "-m", "weft", "serve", "tabletop/tiny", "--port", "0", *ignored]
    words += ["--home", str(folder / "serving")]
    process = subprocess.Popen(
        words, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said += line
            found = re.search(r"(http://[\d.:]+)/v1/chat/completions", line)
            if found:
                yield found[1], process
                return
        raise AssertionError(said)
    finally:
        kill(process)


def kill(process: "subprocess.Popen[str]") -> None:
    """End a process and those that it began, at once."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, 9)
    process.wait()


def ask(url: str, data: Path, folder: Path) -> "subprocess.Popen[str]":
    """Let evalscope ask the server all questions, one at a time."""
    assert EVALSCOPE is not None
    options = json.dumps({TASK: {"local_path": str(data), "subset_list": ["default"]}})
    words = ["eval", "--eval-type", "openai_api", "--api-url", f"{url}/v1", "--api-key", "K", "--model", "tiny"]
    words += ["--datasets", TASK, "--dataset-args", options, "--work-dir", str(folder)]
    log = (folder.parent / "evalscope.log").open("w")
    return subprocess.Popen([EVALSCOPE, *words], stdout=log, stderr=subprocess.STDOUT, text=True, cwd=folder.parent)


def import_run(folder: Path) -> ImportedScore:
    (run,) = folder.iterdir()
    (score,) = read_results(run, "tiny")
    return score


def test_evalscope_asks_a_served_model_and_its_score_is_imported(data: Path, tmp_path: Path):
    with served(tmp_path) as (url, _):
        assert ask(url, data, tmp_path / "out").wait() == 0, (tmp_path / "evalscope.log").read_text()[-2000:]
    score = import_run(tmp_path / "out")
    assert (score.task, score.scored, score.expected) == (TASK, ITEMS, ITEMS)
    assert score.value is not None and score.low is not None and score.low <= score.value and score.version
    (replies,) = (tmp_path / "out").glob("*/predictions/tiny/*.jsonl")
    usage = [json.loads(line)["model_output"]["usage"] for line in replies.read_text().splitlines()]
    assert len(usage) == ITEMS and all(one["input_tokens"] and one["output_tokens"] for one in usage)


def test_a_server_that_is_killed_half_way_leaves_no_score_and_no_guess(data: Path, tmp_path: Path):
    with served(tmp_path) as (url, server):
        tool = ask(url, data, tmp_path / "out")
        until("five replies", lambda: count_replies(tmp_path / "out") >= 5, tool)
        kill(server)
        assert tool.wait() != 0
    score = import_run(tmp_path / "out")
    assert score.value is None and score.scored == 0 and 5 <= score.expected < ITEMS
    assert "before it scored them" in score.describe()


def count_replies(folder: Path) -> int:
    return sum(path.read_text().count("\n") for path in folder.glob("*/predictions/tiny/*.jsonl"))
