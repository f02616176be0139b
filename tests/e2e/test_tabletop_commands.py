"""The embedded default as a stranger uses it. Small numbers: the full ones are in docs/benchmarks/tabletop.md."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forked import run_forked
from waiting import HANGS

WEFT = Path(sys.executable).parent / "weft"
Weft = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def weft(tmp_path: Path) -> Weft:
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


def test_weft_run_without_arguments_does_the_main_job(weft: Weft, tmp_path: Path):
    done = weft("run", COLUMNS="160")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("A small model that ships with weft")
    rows = [line for line in done.stdout.splitlines() if "tabletop/oracle" in line]
    cells = [cell.strip() for row in rows for cell in row.split("│")[2:-1]]
    assert len(rows) >= 5 and len(cells) >= 20 and set(cells) == {"1.000"}
    assert "tabletop/tiny" in (tmp_path / "reports" / "tabletop.md").read_text()
    assert "tabletop/tiny" in (tmp_path / "reports" / "tabletop" / "index.html").read_text()
    again = weft("run", COLUMNS="160")
    assert again.returncode == 0 and again.stdout == done.stdout
    golden = Path(__file__).parent.parent / "golden" / "run.txt"
    shown = done.stdout.replace(str(tmp_path), "FOLDER")
    if os.environ.get("WEFT_GOLDEN") == "write":
        golden.write_text(shown)
    assert shown == golden.read_text()


def test_make_check_and_run_tabletop_data(weft: Weft):
    made = weft("data", "make", "tabletop-weave", "--samples", 16, "--seed", 3, "--out", "tables")
    assert made.returncode == 0 and made.stdout.strip() == "tables"
    assert "16 of 16 records can be used" in weft("data", "check", "weave", "tables").stdout
    for model in ("tabletop/oracle", "copy", "tabletop/tiny"):
        assert weft("run", "weave", "--data", "tables", "--model", model, "--judge", "tabletop/exact").returncode == 0
    full = weft("data", "make", "tabletop-weave", "--out", "tables")
    assert full.returncode == 2 and "not empty" in full.stderr


@pytest.mark.parametrize(("name", "column"), [("exposure-bias", "exactly right"), ("memory", "setting")])
def test_demos_make_a_table_and_plots(weft: Weft, tmp_path: Path, name: str, column: str):
    done = weft("demo", name, "--samples", 4)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "reports"
    assert column in (folder / f"{name}.csv").read_text()
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG") and "<svg" in (
        folder / f"{name}.svg"
    ).read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "--model", "copy"], "needs a benchmark"),
        (["demo", "magic"], "there is no demo 'magic'"),
        (["data", "make", "tabletop-chess", "--out", "x"], "there is no dataset 'tabletop-chess'"),
        (["train", "tiny", "--out", "w", "--parts", "brain"], "the parts are images, talker and single"),
        (
            ["run", "weave", "--data", ".", "--model", "tabletop/huge", "--judge", "constant/1"],
            "there is tabletop/exact",
        ),
        (
            [
                "run",
                "weave",
                "--data",
                ".",
                "--model",
                "tabletop/tiny",
                "--model-opt",
                "weights=nowhere",
                "--judge",
                "constant/1",
            ],
            "no weights",
        ),
        (
            [
                "run",
                "weave",
                "--data",
                ".",
                "--model",
                "tabletop/oracle",
                "--model-opt",
                "error=7",
                "--judge",
                "constant/1",
            ],
            "from 0 to 1",
        ),
    ],
)
def test_mistakes_are_one_clear_line(tmp_path: Path, words: list[str], said: str):
    done = run_forked(*words, cwd=tmp_path)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr


def test_reports_comparisons_and_the_view_from_the_command_line(weft: Weft, tmp_path: Path):
    weft("data", "make", "tabletop-imug", "--samples", "19", "--seed", "0", "--out", "chats")
    for options in ([], ["--model-opt", "error=0.4"]):
        done = weft(
            "run", "imug", "--data", "chats", "--model", "tabletop/oracle", "--judge", "tabletop/exact", *options
        )
        assert done.returncode == 0, done.stderr
    good, bad = (one["id"] for one in json.loads(weft("runs", "--format", "json").stdout))
    page = weft("report", good, bad)
    assert page.returncode == 0 and (tmp_path / page.stdout.strip()).is_file() and good in page.stdout
    assert (tmp_path / weft("report", bad, "--single-file").stdout.strip()).suffix == ".html"
    compared = weft("compare", good, bad)
    assert (
        "headline score" in compared.stdout and "where they differ most" in compared.stdout and compared.returncode == 0
    )
    assert len(json.loads(weft("compare", good, bad, "--format", "json").stdout)["rows"]) == 9
    assert "| BAGEL |" in weft("report", "--published", "imug").stdout
    for words, said in (
        (["compare", good, good], "is named twice"),
        (["compare", good, "nothing"], "no run is called"),
        (["report", good, good], "a run is named twice"),
        (["report", good, "--single-file", "--format", "md"], "--single-file is for html"),
        (["report", good, "--published", "imug"], "--published takes no run"),
        (["report", good, "--format", "pdf"], "unknown format 'pdf'"),
        (["report", good, "--out", "chats"], "not part of a report"),
        (["view", "--home", "nowhere"], "there is no journal at"),
    ):
        done = run_forked(*words, cwd=tmp_path)
        assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr, (words, done.stderr)


def test_the_view_serves_until_it_is_stopped(weft: Weft, tmp_path: Path):
    import signal
    import subprocess
    import sys
    import urllib.error
    import urllib.request

    weft("data", "make", "tabletop-imug", "--samples", "3", "--out", "chats")
    weft("run", "imug", "--data", "chats", "--model", "tabletop/oracle", "--judge", "tabletop/exact")
    words = [sys.executable, "-m", "weft", "view", "--home", str(tmp_path / ".weft")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as served:
        assert served.stdout is not None
        address = served.stdout.readline().strip()
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        assert "imug-oracle-" in opener.open(address, timeout=HANGS).read().decode()
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(address.partition("?")[0], timeout=HANGS)
        served.send_signal(signal.SIGINT)
        assert served.wait(HANGS) == 0
