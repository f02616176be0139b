"""Daily work from the command line: a config file, runs in a list, a crash looked at, a suite."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import weft as library
from waiting import HANGS
from weft.cli.app import app
from weft_tabletop.make import make

WEFT = Path(sys.executable).parent / "weft"
Weft = Callable[..., subprocess.CompletedProcess[str]]
CONFIG = """
[models.good]
use = "tabletop/oracle"
[models.hot]
use = "tabletop/tiny"
temperature = 2.0
[defaults]
judge = "tabletop/exact"
[defaults.weave]
data = "tables"
history = "dialogue"
[suite.weave]
data = "tables"
[suite.chats]
benchmark = "imug"
data = "chats"
"""
MINE = """
def model(messages, want, mood: str = "good", limit: int = 3, seed: int = 0):
    if mood == "bad":
        return deeper(limit)
    return "I do not know."


def deeper(limit):
    raise ValueError(f"out of patience after {limit}")
"""


@pytest.fixture
def weft(tmp_path: Path) -> Weft:
    make("tabletop-weave", tmp_path / "tables", samples=3, seed=0)
    make("tabletop-imug", tmp_path / "chats", samples=2, seed=0)
    (tmp_path / "weft.toml").write_text(CONFIG)
    (tmp_path / "mine.py").write_text(MINE)

    def call(*words: Any, **env: str) -> subprocess.CompletedProcess[str]:
        told = {**os.environ, "COLUMNS": "200", **env}
        return subprocess.run(
            [WEFT, *map(str, words)], cwd=tmp_path, capture_output=True, text=True, timeout=HANGS, env=told
        )

    return call


def listed(weft: Weft, *words: str) -> list[dict[str, Any]]:
    return json.loads(weft("runs", *words, "--format", "json").stdout)


def test_a_config_file_has_models_and_defaults_and_the_command_line_wins(weft: Weft, tmp_path: Path):
    done = weft("run", "weave", "--model", "good")
    assert done.returncode == 0, done.stderr
    assert weft("run", "weave", "--model", "good", "--history", "none").returncode == 0
    titles = [one["title"] for one in listed(weft)]
    assert titles == ["good [dialogue, seed 0]", "good [no history, seed 0]"], (
        "the name of weft.toml, its default, and what was given instead"
    )
    (tmp_path / "other.toml").write_text('[models.better]\nuse = "tabletop/oracle"\n')
    assert weft("run", "weave", "--config", "other.toml", "--model", "better").returncode == 2, (
        "another file has other defaults"
    )
    full = weft(
        "run",
        "weave",
        "--model",
        "better",
        "--data",
        "tables",
        "--judge",
        "tabletop/exact",
        WEFT_CONFIG="other.toml",
        WEFT_HOME="h2",
    )
    assert full.returncode == 0 and (tmp_path / "h2" / "journal.sqlite").is_file()
    assert weft("runs", "--config", "nowhere.toml").returncode == 2
    for wrong, said in (
        ("[defaults]\nnothing = 1\n", "no command has such an option"),
        ("[defaults.weave]\nfoo = 1\n", "weave has no such option"),
    ):
        (tmp_path / "wrong.toml").write_text(wrong)
        bad = weft("run", "weave", "--config=wrong.toml", "--model", "good")
        assert bad.returncode == 2 and said in bad.stderr and bad.stderr.count("\n") == 1, bad.stderr


def test_init_writes_a_file_that_is_sound_once_its_comments_are_taken_away(weft: Weft, tmp_path: Path):
    assert weft("init").returncode == 2, "there is one already"
    assert weft("init", "new.toml").returncode == 0
    lines = (tmp_path / "new.toml").read_text().splitlines()
    (tmp_path / "new.toml").write_text(
        "\n".join(line.removeprefix("# ") for line in lines[2:]).replace('"/data/weft"', '".weft"')
    )
    done = weft("models", "--no-reach", "--config", "new.toml")
    assert done.returncode == 0 and "mine" in done.stdout, done.stderr


def test_runs_are_listed_filtered_sorted_named_and_removed(weft: Weft):
    for model in ("good", "hot", "mine.py:model"):
        weft("run", "weave", "--model", model)
    assert weft("run", "weave", "--model", "mine.py:model", "--model-opt", "mood=bad").returncode == 1
    text = weft("runs").stdout
    assert (
        "headline score" in text
        and "all failed" in text
        and text.count("finished ") == 3
        and "judged by tabletop/exact" in text
    )
    assert [one["model"] for one in listed(weft, "--sort", "score")][-1] == "tabletop/oracle"
    assert (
        len(listed(weft, "--model", "mine")) == 2
        and len(listed(weft, "--benchmark", "imug")) == 0
        and len(listed(weft, "--find", "hot")) == 1
    )
    first = listed(weft)[0]["id"]
    assert weft("runs", "tag", first[-8:], "ours").returncode == 0 and listed(weft)[0]["tag"] == "ours"
    assert "| **ours** |" in weft("report", "ours", listed(weft)[1]["id"], "-f", "md").stdout
    taken = weft("runs", "tag", "last", "ours")
    assert taken.returncode == 2 and "already" in taken.stderr
    unasked = weft("runs", "rm", "ours")
    assert unasked.returncode == 2 and "--yes" in unasked.stderr and len(listed(weft)) == 4
    assert weft("runs", "rm", "ours", "--yes").returncode == 0 and len(listed(weft)) == 3
    narrow = weft("runs", COLUMNS="60").stdout
    assert "mine.py:model [dialogue, mood bad]" in narrow, "nothing is cut"


def test_what_a_users_code_raised_is_shown_with_its_traceback(weft: Weft):
    done = weft(
        "run", "weave", "--model", "mine.py:model", "--model-opt", "mood=bad", "--model-opt", "limit=7", "--limit", "1"
    )
    assert "weft show" in done.stderr and "Traceback" not in done.stderr
    trouble = weft("show", "last").stdout
    assert "out of patience after 7" in trouble and "weft show weave-" in trouble
    words = trouble.splitlines()[1].split()[1:]
    shown = weft(*words).stdout
    assert (
        "Traceback (most recent call last)" in shown
        and "return deeper(limit)" in shown
        and "ValueError: out of patience after 7" in shown
    )
    assert "/weft/" not in shown.partition("Traceback")[2], "only the user's own frames"
    assert weft("show", "last", "nobody").returncode == 2


def test_a_suite_is_one_card_and_goes_on_where_it_was(weft: Weft, tmp_path: Path):
    done = weft("suite", "run", "--models", "good,hot")
    assert done.returncode == 0, done.stderr
    assert (
        "Score card" in done.stdout
        and ", 1.000]" in done.stdout
        and "100.0" in done.stdout
        and "mean share" not in done.stdout
    )
    again = weft("suite", "run", "--models", "good", "--models", "hot")
    assert again.returncode == 0 and len(listed(weft)) == 4, "the same runs"
    card = json.loads(weft("suite", "report", "--format", "json", "--average").stdout)["tables"][0]
    assert card["columns"] == ["weave", "chats", "mean share"] and [row["name"] for row in card["rows"]] == [
        "good",
        "hot",
    ]
    assert card["rows"][0]["cells"]["mean share"]["value"] == 1.0
    assert weft("suite", "report", "--format", "html").returncode == 0
    page = (tmp_path / "reports" / "suite.html").read_text()
    assert "Score card" in page and "IMUG" in page and "hot" in page
    broken = weft("suite", "run", "--models", "good,openai-chat/x@http://127.0.0.1:9/v1", "--only", "weave")
    assert broken.returncode == 1 and "1.000" in broken.stdout, "a model that is not there costs its own runs alone"


def test_a_run_is_sampled_and_sharded_from_the_command_line_and_merged(weft: Weft):
    for number in (1, 2):
        done = weft("run", "weave", "--model", "hot", "--shard", f"{number}/2", "--home", f"h{number}")
        assert done.returncode == 0, done.stderr
    one = weft("journal", "merge", "h1")
    assert "1 of 2 shards (2/2 is missing)" in one.stdout, one.stdout
    assert "finished" in weft("journal", "merge", "h2").stdout and listed(weft)[0]["state"] == "finished"
    assert weft("run", "weave", "--model", "hot", "--sample", "2", "--seed", "5").returncode == 0
    assert (
        listed(weft)[-1]["expected_turns"] < listed(weft)[0]["expected_turns"]
        and "2 at random (seed 5)" in listed(weft)[-1]["title"]
    )
    assert "nothing is wrong" in weft("journal", "check").stdout
    assert weft("journal", "export", "last", "--out", "out").returncode == 0
    assert weft("journal", "prune").returncode == 0


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name)


def test_every_command_has_an_example_in_its_help():
    from typer.main import get_command

    found = get_command(app)
    for path in commands(found):
        command: Any = found
        for word in path:
            command = command.commands[word]
        told = command.help or ""
        assert "Example" in told and f"weft {path[0]}" in told, " ".join(path)


def test_a_shell_completes_runs_and_options(weft: Weft):
    weft("run", "weave", "--model", "good")
    name = listed(weft)[0]["id"]
    asked = {"_WEFT_COMPLETE": "complete_bash", "COMP_WORDS": "weft show wea", "COMP_CWORD": "2"}
    assert name in weft(**asked).stdout
    assert "--install-completion" in weft("--help").stdout


def test_evaluate_can_be_completed_by_an_editor():
    import inspect

    known = set(inspect.signature(library.evaluate).parameters) - {"on_start", "progress", "own"}
    from weft.evaluation.config import RunConfig

    assert known == set(RunConfig.__struct_fields__), "one list, in both places"
