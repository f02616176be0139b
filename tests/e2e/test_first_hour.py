"""What a new user met in the first hour: a file that starts a run, a budget that limits nothing, refusals that count
0."""

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from typer.testing import CliRunner

import weft
from server import Provider
from weft.cli.app import app
from weft.errors import UserError

Serve = Callable[..., Provider]
Weft = Callable[..., "CompletedProcess[str]"]


def test_importing_a_models_file_must_not_start_a_run(toy: Path, tmp_path: Path):
    file = tmp_path / "mine.py"
    file.write_text(
        "import weft\n\n\ndef model(messages, want):\n    return 'yes'\n\n\n"
        f"weft.evaluate('weave', data={str(toy)!r}, model=model, judge='constant/5', home={str(tmp_path / 'other')!r})\n"
    )
    words = ["run", "weave", "--data", str(toy), "--model", f"{file}:model", "--judge", "constant/5", "--dry-run"]
    done = CliRunner().invoke(app, [*words, "--home", str(tmp_path / "home")])
    assert isinstance(done.exception, UserError) and "must not start a run: put what calls a model under" in str(
        done.exception
    )
    assert not (tmp_path / "other").exists()


def test_a_budget_says_what_it_does_not_limit_and_that_it_is_too_small(
    toy: Path, tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    url = serve().url
    words = ["run", "weave", "--data", str(toy), "--model", f"openai-chat/model@{url}", "--judge", "constant/5"]
    words += ["--budget", "0.001", "--dry-run", "--home", str(tmp_path / "home")]
    free = CliRunner().invoke(app, words).output
    assert 'so the budget does not limit it; if it is billed, add [prices."model"]' in free
    assert "constant/5 counts" not in free, "a program that is asked here costs nothing"
    (tmp_path / "weft.toml").write_text('[prices."model"]\nin = 1.0\nout = 100.0\n')
    billed = CliRunner().invoke(app, words).output
    assert "that is more than --budget 0.001, at which the run stops" in billed and "does not limit" not in billed


def test_show_lists_what_counts_zero_because_the_model_failed(toy: Path, tmp_path: Path):
    def refuses(messages: object, want: str) -> str:
        return "" if want == "image" else "yes"

    refuses.version = "1"  # pyright: ignore[reportFunctionMemberAccess]
    run = weft.evaluate("weave", data=toy, model=refuses, judge="constant/5", home=tmp_path / "home")
    output = CliRunner().invoke(app, ["show", run.id, "--home", str(tmp_path / "home")]).output
    assert "6 zeroed for model failure: empty" in output and f"weft show {run.id} " in output
    assert "nothing failed" not in output


def test_ids_of_runs_are_for_other_commands(toy: Path, tmp_path: Path):
    home = tmp_path / "home"
    runs = [weft.evaluate("weave", data=toy, model="copy", judge=f"constant/{n}", home=home) for n in (0, 5)]
    output = CliRunner().invoke(app, ["runs", "--format", "ids", "--home", str(home)]).output
    assert output.split() == [run.id for run in runs]


def test_rows_by_arithmetic(toy: Path, tmp_path: Path):
    run = weft.evaluate("weave", data=toy, model="copy", judge="constant/5", home=tmp_path / "home")
    strict = run.report("csv", rows="strict", tables="1")
    official = run.report("csv", rows="official", tables="1")
    assert "(strict)" in strict and "(official)" not in strict
    assert "(official)" in official and "(strict)" not in official
    with pytest.raises(UserError, match="these tables have no published rows"):
        run.report("csv", rows="published", tables="by domain")
