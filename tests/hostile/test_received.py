"""Homes, names and texts that came from somebody else."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import weft
from toy import toy_records, write_weave
from waiting import HANGS
from weft import api
from weft.errors import UserError
from weft.untrusted import escape_control_characters

ESC = "\x1b[31mred\x1b]0;title\x07"


def run_weft(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "weft", *words], cwd=cwd, capture_output=True, text=True, timeout=HANGS, errors="replace"
    )


@pytest.fixture
def received(toy: Path, tmp_path: Path) -> Path:
    """A home whose runs were made with a Python file that leaves a mark when it is run."""
    home = tmp_path / "received"
    (tmp_path / "evil.py").write_text(
        "from pathlib import Path\nfrom weft.benchmarks.weave import Weave\n"
        f"Path({str(tmp_path / 'ran')!r}).touch()\nclass Evil(Weave):\n    pass\n"
    )
    for judge in ("constant/5", "constant/10"):
        weft.evaluate(f"{tmp_path / 'evil.py'}:Evil", data=toy, model="reference", judge=judge, home=home)
    (tmp_path / "ran").unlink()
    return home


@pytest.mark.parametrize(
    "words",
    [
        ["report", "last"],
        ["report", "-f", "md"],
        ["compare", "last", "weave"],
        ["judge", "last", "--judge", "constant/0"],
        ["runs"],
    ],
)
def test_a_file_that_a_journal_names_is_not_run_unasked(received: Path, tmp_path: Path, words: list[str]):
    done = run_weft(*words, "--home", str(received), cwd=tmp_path)
    assert not (tmp_path / "ran").exists() and "Traceback" not in done.stderr
    if words != ["runs"] and words[0] != "compare":
        assert done.returncode == 2 and f"--benchmark {tmp_path / 'evil.py'}:Evil" in done.stderr
        asked = run_weft(*words, "--home", str(received), "--benchmark", f"{tmp_path / 'evil.py'}:Evil", cwd=tmp_path)
        assert asked.returncode == 0 and (tmp_path / "ran").exists(), asked.stderr


def test_the_viewer_does_not_run_it_either(received: Path, tmp_path: Path):
    from weft.report.view.library import Library

    library = Library(received)
    runs = library.runs()
    assert len(runs) == 2
    with pytest.raises(UserError, match="not loaded automatically, for security"):
        library.contents((runs[0].record.id,))
    assert not (tmp_path / "ran").exists()
    assert Library(received, [f"{tmp_path / 'evil.py'}:Evil"]).contents((runs[0].record.id,)).benchmark.name == "weave"


def test_a_benchmark_that_is_not_the_runs_own_is_refused(received: Path, tmp_path: Path):
    from weft.store.journal import Journal

    with pytest.raises(UserError, match="is a run of weave, not of imug"):
        api.load_run(Journal(received / "journal.sqlite", readonly=True), "last", "imug")


class Named:
    """A model whose name and words steer terminals."""

    version = "1"

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, messages: Any, want: str) -> Any:
        raise RuntimeError(f"it went wrong {ESC}") if want == "text" else ValueError(ESC)


@pytest.mark.parametrize(
    "name", ["bad\x00name", f"m{ESC}", "a\x01b\x08c\x1fd", "line\u2028sep", "bidi\u202egnp.exe", "\x7f\x9b31m"]
)
def test_a_control_character_in_a_name_ends_no_report_and_reaches_no_terminal(toy: Path, tmp_path: Path, name: str):
    run = weft.evaluate("weave", data=toy, model=Named(name), judge="constant/5", home=tmp_path / "home")
    other = weft.evaluate("weave", data=toy, model="reference", judge="constant/5", home=tmp_path / "home")
    page = api.write_report([other, run], tmp_path / "report", home=tmp_path / "home")
    assert page.exists() and (page.parent / "plots").is_dir()
    for words in (
        ["report", run.id, "-f", "md"],
        ["report", run.id, "-f", "latex"],
        ["report", run.id, "-f", "csv"],
        ["runs"],
    ):
        done = run_weft(*words, "--home", str(tmp_path / "home"), cwd=tmp_path)
        assert done.returncode == 0 and escape_control_characters(done.stdout) == done.stdout, done.stderr
    done = run_weft("compare", run.id, other.id, "--home", str(tmp_path / "home"), cwd=tmp_path)
    assert (
        escape_control_characters(done.stdout + done.stderr) == done.stdout + done.stderr
        and "Traceback" not in done.stderr
    )
    from weft.report.view.library import Library

    library = Library(tmp_path / "home")
    assert all("<svg" in api.site.plots.render_svg(plot.chart) for plot in library.plots((other.id, run.id)).values())


def test_texts_of_datasets_and_servers_reach_the_terminal_with_nothing_that_steers_it(tmp_path: Path, serve: Any):
    from aiohttp import web

    records = toy_records()
    records[0]["domain"] = f"evil{ESC}"
    records[1]["idx"] = f"idx{ESC}"
    data = write_weave(tmp_path / "data", records)

    async def fault(seen: Any, times: int, request: web.Request) -> web.StreamResponse | None:
        return web.json_response({"error": {"message": f"no {ESC}\r\nweft: all is well"}}, status=400)

    provider = serve(fault=fault)
    done = run_weft(
        "run", "weave", "--data", str(data), "--model", f"openai-chat/m@{provider.url}", "--judge", "constant/5", cwd=tmp_path
    )  # fmt: skip
    assert done.returncode == 1 and "\\x1b[31mred" in done.stderr, done.stderr
    assert escape_control_characters(done.stdout + done.stderr) == done.stdout + done.stderr
