"""What a judge is asked, to read and to print: as it is sent, with images named, and no text that becomes a command."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import weft
from weft.cli.app import app
from weft.errors import UserError
from weft.judge_eval.prompts import JudgePrompt
from weft.report.judge_prompts import render_prompts
from weft_tabletop.make import make

HOSTILE = "\\input{/etc/passwd} %$ ```\n  - indented\n\nlast"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> weft.Run:
    folder = tmp_path_factory.mktemp("prompts")
    data = make("tabletop-weave", folder / "data", samples=2, seed=0)
    return weft.evaluate("weave", data=data, model="copy", judge="tabletop/exact", home=folder / "home")


def ask(run: weft.Run, *words: str) -> str:
    result = CliRunner().invoke(app, ["judge", "prompt", run.id, *words, "--home", str(run.home)])
    if isinstance(result.exception, UserError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def test_prompts_are_those_that_a_judge_is_sent(run: weft.Run):
    sent: list[str] = []

    def judge(messages: Any, want: str, question: Any) -> dict[str, Any]:
        if question.turn_ref.sample == "1" and question.metrics == ("key_point",):
            sent.extend(part for _, parts in messages for part in parts if isinstance(part, str))
        return {"reasoning": "so", "score": 5}

    judge.version = "1"
    weft.judge(run, judge=judge, home=run.home)
    printed = ask(run, "1", "--metrics", "key_point")
    assert sent and all(line in printed for text in sent for line in text.strip("\n").splitlines())
    assert "[image: output]" in printed and "visual consistency" not in printed.splitlines()[0]


def test_a_turn_and_metrics_are_chosen_and_what_there_is_not_is_an_error(run: weft.Run):
    everything = ask(run, "1", "--format", "md")
    first = ask(run, "1", "--format", "md", "--turn", "1")
    assert everything.startswith(first.rstrip("\n")) and first.count("## ") < everything.count("## ")
    with pytest.raises(UserError, match=r"no such question to a judge; there is key_point \(turn 1\)"):
        ask(run, "1", "--metrics", "beauty")
    with pytest.raises(UserError, match="is called 'nobody'; there is 1, 2"):
        ask(run, "nobody")


def test_no_text_becomes_markup():
    prompts = [JudgePrompt(("key_point",), "a_1", 0, "", (("system", HOSTILE), ("user", "x")))]
    latex = render_prompts(prompts, "latex")
    assert latex.isascii() and "\\input" not in latex and r"\textbackslash{}input" in latex
    assert r"\hspace*{1em}- indented\par" in latex and latex.count("{") == latex.count("}")
    assert "````text\n" in render_prompts(prompts, "md")
    assert render_prompts(prompts, "text").count(HOSTILE) == 1
    wrapped = [JudgePrompt(("m",), "s", 0, "", (("user", "a word " * 15 + "\ngoes on\n- a point"),))]
    assert r"word goes on\par" in render_prompts(wrapped, "latex")


def test_prompts_are_written_to_a_file(run: weft.Run, tmp_path: Path):
    ask(run, "1", "--format", "latex", "--out", str(tmp_path / "prompt.tex"))
    assert (tmp_path / "prompt.tex").read_text().startswith("% plain ASCII")
