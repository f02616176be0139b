"""Words of reports and commands: a verdict without a value is unscored, warnings come first, counts say of what."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from typer.testing import CliRunner

import weft
from server import Provider
from toy import toy_records, write_weave
from weft import api
from weft.cli.app import app
from weft.report.caveats import ARITHMETIC_NOTE
from weft.report.render import render

Serve = Callable[..., Provider]


def call(*words: object) -> str:
    done = CliRunner().invoke(app, [*map(str, words)], env={"COLUMNS": "200"})
    assert not done.exit_code, done.output
    return done.output


def test_no_text_of_the_program_has_a_second_word_for_unscored():
    sources = [path for path in Path(weft.__file__).parent.rglob("*") if path.suffix in (".py", ".js")]
    wrong = [str(path) for path in sources if re.search(r"(?<!if )\bnot scored\b(?!:)", path.read_text())]
    assert sources and not wrong


def test_a_comparison_over_different_data_warns_above_its_numbers(toy: Path, tmp_path: Path):
    ends: dict[str, Any] = {"judge": "constant/5", "home": tmp_path / "home"}
    whole = weft.evaluate("weave", data=toy, model="copy", **ends)
    records = toy_records()
    records[0]["chats"][0]["content"] = "Paint the door of Image #1 blue."
    other = weft.evaluate("weave", data=write_weave(tmp_path / "other", records), model="copy", **ends)
    lines = call("compare", whole.id, other.id, "--home", tmp_path / "home").splitlines()
    (warning,) = [number for number, line in enumerate(lines) if "the runs have different datasets" in line]
    assert lines[warning].startswith("warning: ")
    assert warning < next(number for number, line in enumerate(lines) if line.startswith("headline score"))


def test_markdown_spells_out_its_columns_and_its_rows(toy: Path, tmp_path: Path):
    run = weft.evaluate("weave", data=toy, model="copy", judge="constant/5", home=tmp_path / "home")
    text = api.report([run], "md")
    assert "\n- KP: Key Point: the image meets the listed requirements\n" in text
    table = run.table()
    row = replace(table.run_rows[0], arithmetic="official")
    assert ARITHMETIC_NOTE in render([replace(table, rows=(row,))], [], "md", benchmark=run.benchmark)


def test_a_run_says_for_model_and_judge_how_many_calls_were_made_and_cached(toy: Path, tmp_path: Path, serve: Serve):
    url = serve().url
    words = ["run", "weave", "--data", toy, "--home", tmp_path / "home", "--model", f"openai-chat/model@{url}"]
    words += ["--judge", f"openai-chat/judge@{url}"]
    first, second = call(*words), call(*words)
    assert "model 10 calls made, 0 calls cached; judge 22 calls made, 0 calls cached" in first
    assert "model 0 calls made, 10 calls cached; judge 0 calls made, 22 calls cached" in second
