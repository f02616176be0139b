"""The installed command as a stranger uses it."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import waiting
from fakes import Anthropic, Fake, Gemini, Images, OpenAI
from fakes.base import Asked
from forked import run_forked
from server import Provider, Seen, drawn
from toy import more_records, toy_records, write_weave
from waiting import HANGS

WEFT = Path(sys.executable).parent / "weft"
Serve = Callable[..., Provider]


@pytest.fixture
def weft(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    def call(*words: Any, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [WEFT, *map(str, words)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=HANGS,
            env={**os.environ, **environment},
        )

    return call


Weft = Callable[..., subprocess.CompletedProcess[str]]


def endpoints(provider: Provider) -> list[str]:
    return ["--model", f"openai-chat/model@{provider.url}", "--judge", f"openai-chat/judge@{provider.url}"]


def test_run_report_runs_and_run_again(weft: Weft, toy: Path, serve: Serve):
    provider = serve()
    first = weft("run", "weave", "--data", toy, *endpoints(provider), "--concurrency", 4)
    assert first.returncode == 0, first.stderr
    assert "model [partial]" in first.stdout and "report: weft report weave-model-" in first.stderr
    reports = {format: weft("report", "last", "--format", format).stdout for format in ("md", "latex", "csv", "json")}
    assert "## WEAVEBench: Avg by class" in reports["md"] and r"\toprule" in reports["latex"]
    rows = list(csv.DictReader(io.StringIO(reports["csv"])))
    ours = [row for row in rows if row["published"] == "0"]
    assert len(rows) - len(ours) > 400 and {row["row"] for row in ours} >= {"openai-chat/model [partial]", "overall"}
    assert json.loads(reports["json"])["runs"][0]["scored"] == 22
    calls = provider.count
    second = weft("run", "weave", "--data", toy, *endpoints(provider), "--concurrency", 32)
    assert second.returncode == 0 and provider.count == calls and second.stdout == first.stdout
    assert weft("runs").stdout.count("finished") == 1


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--history", "none"], {"history": "none"}),
        (["--history", "full", "--placement", "inline"], {"history": "full", "placement": "inline"}),
        (["--history", "dialogue", "--past", "reference"], {"history": "dialogue", "past": "reference"}),
        (["--official"], {"official": True}),
        (["--turns", "text"], {"turns": "text", "past": "reference"}),
    ],
)
def test_every_option_of_the_history_reaches_the_run(
    weft: Weft, toy: Path, serve: Serve, words: list[str], expected: dict[str, Any]
):
    provider = serve()
    done = weft("run", "weave", "--data", toy, *endpoints(provider), *words)
    assert done.returncode == 0, done.stderr
    view = json.loads(weft("report", "last", "--format", "json").stdout)["runs"][0]["manifest"]["options"]
    assert {name: view[name] for name in expected} == expected


def test_outputs_made_elsewhere_are_scored_under_their_official_names(
    weft: Weft, toy: Path, tmp_path: Path, serve: Serve
):
    outputs = tmp_path / "outputs" / "imgs"
    outputs.mkdir(parents=True)
    for record in toy_records():
        for turn, (_, reply) in enumerate(zip(record["chats"][::2], record["chats"][1::2], strict=True)):
            first = Path(record["images"][0]).stem
            if reply["type"] == "text":
                (outputs / f"{first}_{turn}.txt").write_text("an answer")
            else:
                (outputs / Path(record["images"][int(reply["content"][-1]) - 1]).name).write_bytes(
                    drawn(f"{first}{turn}")
                )
    (outputs / "mix_5.png").unlink()
    (outputs / "toy_3.png").write_bytes(b"half a pict")
    provider = serve()
    done = weft(
        "score",
        tmp_path / "outputs",
        "--benchmark",
        "weave",
        "--data",
        toy,
        "--judge",
        f"openai-chat/judge@{provider.url}",
    )
    assert done.returncode == 1, "something is unscored"
    facts = json.loads(weft("report", "last", "--format", "json").stdout)["runs"][0]
    assert facts["outcomes"] == {"answered": 8, "empty": 1, "failed": 1}, (
        "outputs that are there are scored, whatever is missing before them"
    )
    assert "empty: no file mix_5.png in the outputs" in str(facts["zeroed"]) and "toy_3.png is not a PNG" in str(
        facts["unscored"]
    )


def test_data_check_lists_every_problem(weft: Weft, toy: Path, tmp_path: Path):
    good = weft("data", "check", "weave", toy)
    assert good.returncode == 0 and "4 of 4 records can be used" in good.stdout and "all complete" in good.stdout
    records = toy_records()
    records[0]["chats"][1]["key_point"] = {"GT #9": "As in <image>."}
    records[2]["domain"] = "cooking"
    bad = weft("data", "check", "weave", write_weave(tmp_path / "bad", records))
    assert bad.returncode == 2
    assert (
        'error: test.json: record 0 (idx 7): chats[1].key_point: "GT #9" names an image that the record does not have '
        "(it has 3)" in bad.stdout
    )
    assert (
        "error: test.json: record 2 (idx 12): domain: 'cooking'" in bad.stdout
        and "2 of 4 records can be used" in bad.stdout
    )


def test_a_run_over_a_dataset_with_bad_records_says_how_many_are_left_out(weft: Weft, tmp_path: Path):
    records = toy_records()
    records[1]["images"][0] = "../../../etc/passwd"
    done = weft(
        "run", "weave", "--data", write_weave(tmp_path / "bad", records), "--model", "copy", "--judge", "constant/5"
    )
    assert (
        done.returncode == 0
        and "1 of 4 records are left out" in done.stderr
        and "leads out of the dataset" in done.stderr
    )
    assert "left out of the dataset: test.json: record 1" in weft("report", "last", "--format", "md").stdout


RUN = ["run", "weave", "--data", "{toy}", "--model", "copy", "--judge", "constant/1"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "nosuch", *RUN[2:]], "unknown benchmark 'nosuch'"),
        (["run", "wave", *RUN[2:]], "did you mean weave?"),
        ([*RUN[:2], *RUN[4:]], "give --data"),
        (RUN[:6], "give --judge"),
        ([*RUN, "--data", "nowhere"], "nowhere: there is no such folder or file"),
        ([*RUN, "--model", "who/knows"], "unknown model 'who/knows'"),
        ([*RUN, "--model", "openai-chat/m@http://127.0.0.1:9/v1"], "cannot reach http://127.0.0.1:9/v1"),
        ([*RUN, "--official", "--past", "reference"], "official inputs have no reference history"),
        ([*RUN, "--home", "{toy}/test/test.json"], "is a file"),
        (["data", "make", "tabletop-weave", "--out", "{toy}/test/test.json/x"], "File exists"),
        ([*RUN, "--model", "openai-chat/m@http://[bad"], "not an http(s) address"),
        (["run", "--limit", "3"], "--limit needs a benchmark"),
        ([*RUN, "--history", "most"], "there is none, partial, full, dialogue"),
        ([*RUN, "--where", "domain"], "write NAME=VALUE"),
        ([*RUN, "--where", "domain=maze"], "no sample is left"),
        ([*RUN, "--model-opt", "size=3"], "unknown option 'size'"),
        ([*RUN, "--prompts", "official:nowhere"], "there is no eval/prompts.py"),
        (["report", "last"], "there is no journal at"),
        (
            ["score", "nowhere", "--benchmark", "weave", "--data", "{toy}", "--judge", "constant/1"],
            "there is no folder nowhere",
        ),
    ],
)
def test_a_users_mistake_is_one_clear_line_and_exit_code_2(toy: Path, tmp_path: Path, words: list[str], said: str):
    done = run_forked(*(word.replace("{toy}", str(toy)) for word in words), cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr
    assert len([line for line in done.stderr.splitlines() if line.startswith("weft: ")]) == 1


def test_a_model_that_sends_text_where_a_picture_was_due_is_counted_and_named(weft: Weft, toy: Path, serve: Serve):
    provider = serve(
        answer=lambda seen: {
            "role": "assistant",
            "content": '{"reasoning": "", "score": 5}' if seen.is_judge else "<b>see</b>",
        }
    )
    done = weft("run", "weave", "--data", toy, *endpoints(provider))
    assert done.returncode == 0 and "6 empty" in done.stderr and "text where an image was expected" in done.stderr
    assert "<b>" not in weft("report", "last", "--format", "md").stdout, "a model's words do not become markup"


def test_no_key_is_ever_written_anywhere(weft: Weft, toy: Path, tmp_path: Path, serve: Serve):
    secret = "sk-secret-0123456789"

    async def echo(seen: Seen, times: int, request: web.Request) -> web.StreamResponse | None:
        header = request.headers.get("Authorization", "")
        if times == 1 and int(seen.digest[:2], 16) % 2:
            return web.json_response({"error": {"message": f"bad gateway, you sent {header}"}}, status=502)
        if not seen.is_judge:
            return None
        return Provider.completion(
            seen, {"role": "assistant", "content": json.dumps({"reasoning": f"{header}", "score": 5})}
        )

    done = weft("run", "weave", "--data", toy, *endpoints(serve(fault=echo)), WEFT_API_KEY=secret)
    assert done.returncode == 0, done.stderr
    texts = [
        done.stdout,
        done.stderr,
        weft("report", "last", "--format", "json").stdout,
        weft("doctor", WEFT_API_KEY=secret).stdout,
    ]
    assert all(secret not in text for text in texts)
    files = [path for path in (tmp_path / ".weft").rglob("*") if path.is_file()]
    assert files and all(secret.encode() not in path.read_bytes() for path in files)


def test_a_dry_run_says_calls_tokens_and_price_and_calls_nothing(weft: Weft, toy: Path, tmp_path: Path, serve: Serve):
    provider = serve()
    (tmp_path / "weft.toml").write_text('[prices."model"]\nin = 1.0\nout = 10.0\n')
    done = weft("run", "weave", "--data", toy, *endpoints(provider), "--dry-run")
    assert done.returncode == 0 and provider.count == 0
    assert (
        "model: 10 calls to make (0 cached)" in done.stdout
        and "judge: 22 calls" in done.stdout
        and "about $0.0" in done.stdout
    )
    weft("run", "weave", "--data", toy, *endpoints(provider))
    assert (
        "model: 0 calls to make (10 cached)"
        in weft("run", "weave", "--data", toy, *endpoints(provider), "--dry-run").stdout
    )


def test_models_and_doctor_tell_what_is_there(weft: Weft, tmp_path: Path, serve: Serve):
    provider = serve()
    (tmp_path / "weft.toml").write_text(
        f'[models.mine]\nuse = "openai-chat/m@{provider.url}"\n[models.far]\nuse = '
        '"openai-chat/m@http://127.0.0.1:9/v1"\n'
    )
    assert "mine" in weft("models").stdout and "openai-chat" in weft("models").stdout
    done = weft("doctor")
    assert (
        done.returncode == 1
        and " reachable" in done.stdout
        and "NOT reachable" in done.stdout
        and "OPENAI_API_KEY" in done.stdout
    )


def test_a_key_in_weft_toml_is_refused(weft: Weft, toy: Path, tmp_path: Path):
    (tmp_path / "weft.toml").write_text('[models.mine]\nuse = "copy"\napi_key = "sk-1"\n')
    done = weft("run", "weave", "--data", toy, "--model", "mine", "--judge", "constant/1")
    assert done.returncode == 2 and "keys come from the environment" in done.stderr and "sk-1" not in done.stderr


def test_help_has_examples(weft: Weft):
    for words in (["run"], ["score"], ["report"], ["data", "check"]):
        assert "weft " in weft(*words, "--help").stdout.split("Example")[1]


# a run that dies


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[str]:
    server = Path(__file__).parents[1] / "server.py"
    process = subprocess.Popen([sys.executable, server, "--latency", "0.12"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    yield process.stdout.readline().strip()
    process.kill()


def told(url: str, path: str = "/count") -> Any:
    import urllib.request

    with urllib.request.urlopen(url.removesuffix("/v1") + path) as reply:
        return json.load(reply)


def allow(url: str, calls: int) -> None:
    """So many more are answered: no command gets any further, however long it is left alone."""
    told(url, f"/allow/{calls}")


def journalled(home: Path) -> int:
    import sqlite3

    if not (home / "journal.sqlite").exists():
        return 0
    db = sqlite3.connect(home / "journal.sqlite")
    try:
        return db.execute("SELECT COUNT(*) FROM calls").fetchone()[0]
    except sqlite3.OperationalError:
        return 0
    finally:
        db.close()


def command(url: str, data: Path, home: Path) -> list[str]:
    models = ["--model", f"openai-chat/model@{url}", "--judge", f"openai-chat/judge@{url}"]
    return [str(WEFT), "run", "weave", "--data", str(data), *models, "--concurrency", "4", "--home", str(home)]


def until(home: Path, more_than: int, process: subprocess.Popen[Any]) -> int:
    """How many calls are in the journal, once they are more than before; however long a busy machine takes to come that
    far."""
    return waiting.until(
        f"more than {more_than} calls in the journal",
        lambda: (found := journalled(home)) > more_than and found,
        process,
    )


def test_killed_twenty_times_the_table_is_the_same_and_only_calls_in_flight_are_made_twice(tmp_path: Path, slow: str):
    import random

    data = write_weave(tmp_path / "more", more_records(14))
    chance = random.Random(20)
    home = tmp_path / "killed"
    kept, progress = 0, []
    for _ in range(20):
        allow(slow, chance.randint(8, 20))
        process = subprocess.Popen(
            command(slow, data, home), cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until(home, kept, process)
        time.sleep(chance.uniform(0, 0.2))
        assert process.poll() is None, "it was still at work"
        process.kill()
        process.wait()
        had = settled(slow)
        progress.append(journalled(home) - kept)
        kept += progress[-1]
    assert all(progress), "every one of them got further before it was killed"
    lost = had - kept
    assert 0 <= lost <= 20 * 16, (
        "at each kill four calls to the model and four to the judge, and as many answers on their way to the disk"
    )
    allow(slow, 10**9)
    done = subprocess.run(command(slow, data, home), cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    times = told(slow)["times"]
    assert sum(times.values()) - len(times) <= lost, "nothing was called twice but what was in flight at a kill"
    whole = subprocess.run(command(slow, data, tmp_path / "whole"), cwd=tmp_path, capture_output=True, text=True)
    assert whole.returncode == 0 and whole.stdout == done.stdout
    reports = [
        subprocess.run(
            [WEFT, "report", "last", "--format", "csv", "--home", tmp_path / name], capture_output=True
        ).stdout
        for name in ("killed", "whole")
    ]
    assert reports[0] == reports[1] and len(reports[0]) > 1000


def settled(url: str) -> int:
    """How many calls the server has had, once it knows that whoever made them is gone."""

    def look() -> Any:
        now = told(url)
        return now if (now["connections"], now["in_flight"]) == (0, 0) else None

    return waiting.until("a server with nobody there and nothing in flight", look)["count"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_cleanly_and_says_how_to_go_on(tmp_path: Path, slow: str, number: int):
    data = write_weave(tmp_path / "more", more_records(12))
    allow(slow, 40)
    process = subprocess.Popen(
        command(slow, data, tmp_path / "home"), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    until(tmp_path / "home", 4, process)
    process.send_signal(number)
    out, err = process.communicate(timeout=HANGS)
    assert process.returncode == 130 and journalled(tmp_path / "home") < 12 * 32, "it ended before it was done"
    assert "run the same command again to go on" in err and "Traceback" not in err and "UNFINISHED" not in out
    assert "unfinished" in out, "a table of half a run says so"


def test_ctrl_c_does_not_wait_for_a_plain_model_that_takes_hours(tmp_path: Path, toy: Path):
    began = tmp_path / "began"
    (tmp_path / "slow.py").write_text(
        f"import pathlib, time\ndef model(messages, want):\n    pathlib.Path({str(began)!r}).touch()\n    "
        "time.sleep(10000)\n"
    )
    words = [WEFT, "run", "weave", "--data", toy, "--model", "slow.py:model", "--judge", "constant/1"]
    process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    waiting.until("a call of the model", began.exists, process)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=HANGS)  # the model takes hours
    assert process.returncode == 130


def test_the_same_run_twice_at_once_is_refused(tmp_path: Path, slow: str):
    data = write_weave(tmp_path / "more", more_records(12))
    allow(slow, 10)
    process = subprocess.Popen(
        command(slow, data, tmp_path / "home"), cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    until(tmp_path / "home", 0, process)
    second = subprocess.run(command(slow, data, tmp_path / "home"), cwd=tmp_path, capture_output=True, text=True)
    assert process.poll() is None
    process.kill()
    process.wait()
    assert second.returncode == 2 and "already going on in another process" in second.stderr


def test_models_tells_the_matrix_and_try_what_works(weft: Weft, tmp_path: Path, stand: Callable[[Fake], Fake]):
    told = weft("models", "--no-reach").stdout
    assert "provider" in told.splitlines()[0] and all(
        name in told for name in ("gemini", "GEMINI_API_KEY", "openai-responses", "options")
    )
    assert (
        weft("models", "--format", "xml").returncode == 2
        and "| gemini | inline |" in weft("models", "--format", "md", "--no-reach").stdout
    )
    done = weft("models", "try", stand(Gemini()).name)
    assert done.returncode == 0 and done.stdout.count("works") == 5 and "its own image, a turn later" in done.stdout
    assert len(list((tmp_path / ".weft" / "tries").rglob("*.png"))) == 3
    words = weft("models", "try", stand(Anthropic()).name)
    assert words.returncode == 0 and words.stdout.count("not asked") == 3
    broken = weft("models", "try", stand(Gemini("denied")).name)
    assert (
        broken.returncode == 1
        and "FAILS" in broken.stdout
        and "answered 403" in broken.stdout
        and "Traceback" not in broken.stderr
    )
    gone = weft("models", "try", "openai-chat/m@http://127.0.0.1:9/v1")
    assert gone.returncode == 1 and "cannot reach" in gone.stdout
    assert "planviz/bagel" in weft("models", "presets", "planviz").stdout
    for words in (["try", "reference"], ["try", "nobody/x"], ["presets", "nobody"]):
        wrong = weft("models", *words)
        assert wrong.returncode == 2 and wrong.stderr.startswith("weft: ") and "Traceback" not in wrong.stderr


def test_try_holds_an_object_to_its_schema(weft: Weft, stand: Callable[[Fake], Fake], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Asked, "words", '{"colour": 3}')
    tried = weft("models", "try", stand(Anthropic()).name)
    assert tried.returncode == 1 and tried.stdout.count("FAILS") == 1 and "Expected `str`, got `int`" in tried.stdout


def test_what_a_model_cannot_send_is_said_and_not_asked(weft: Weft, toy: Path, stand: Callable[[Fake], Fake]):
    painter, writer = stand(Images()), stand(Anthropic())
    dry = weft("run", "weave", "--data", toy, "--model", painter.name, "--judge", "constant/1", "--dry-run")
    assert "model: 6 calls to make" in dry.stdout and not painter.seen
    done = weft("run", "weave", "--data", toy, "--model", painter.name, "--judge", "constant/1")
    assert (
        "4 of 10 turns want text, and it generates images, not text: those are not asked" in done.stderr
        and len(painter.seen) == 6
    )
    none = weft("run", "weave", "--data", toy, "--model", writer.name, "--judge", "constant/1", "--turns", "image")
    assert (
        none.returncode == 2
        and "can answer none of the 6 turns: it generates text, not images" in none.stderr
        and not writer.seen
    )
    judge = weft("run", "weave", "--data", toy, "--model", "copy", "--judge", painter.name)
    assert judge.returncode == 2 and "cannot judge: it generates images, not text" in judge.stderr


def test_a_quota_that_ends_a_run_says_what_is_left(weft: Weft, toy: Path, stand: Callable[[Fake], Fake]):
    done = weft("run", "weave", "--data", toy, "--model", "copy", "--judge", stand(OpenAI("quota")).name)
    assert (
        done.returncode == 2
        and "nothing left" in done.stderr
        and "left to do: " in done.stderr
        and "Traceback" not in done.stderr
    )
