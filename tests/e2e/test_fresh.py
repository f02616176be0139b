"""`--fresh` asks anew with every command that asks: a run of its own beside the one before."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

import weft
from weft.cli.app import app
from weft.workspace import open_journal

SUITE = """
[suite.weave]
benchmark = "weave"
data = "toy"
"""


def call(home: Path, *words: str) -> str:
    done = CliRunner().invoke(app, [*words, "--home", str(home)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.output


def run_ids(home: Path) -> list[str]:
    journal = open_journal(home)
    try:
        return [record.id for record in journal.runs()]
    finally:
        journal.close()


@pytest.mark.parametrize(
    "command",
    [
        ("judge", "RUN", "--judge", "constant/3"),
        ("suite", "run", "--models", "copy", "--judge", "constant/3"),
        ("arena", "score", "RUN", "--judge", "constant/3"),
        ("arena", "run", "RUN", "OTHER", "--judge", "constant/max"),
    ],
    ids=" ".join,
)
def test_a_command_that_is_given_fresh_makes_another_run(
    command: tuple[str, ...], toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weft.toml").write_text(SUITE)
    home = tmp_path / "home"
    first, second = (
        weft.evaluate("weave", data=toy, home=home, model=model, judge="constant/7") for model in ("copy", "reference")
    )
    words = [{"RUN": first.id, "OTHER": second.id}.get(word, word) for word in command]
    call(home, *words)
    once = run_ids(home)
    call(home, *words)
    assert run_ids(home) == once, "without it the same run"
    call(home, *words, "--fresh")
    assert len(run_ids(home)) == len(once) + 1 == 4
