"""A sweep: every combination of models and settings by one command, resumable, with one table at its end."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import weft
from weft.cli.app import app
from weft.errors import UserError
from weft.evaluation.suite import split_models
from weft.evaluation.sweep import plan_sweep, read_varied
from weft.results.sweeps import find_sweep_runs
from weft.workspace import open_journal
from weft_tabletop.make import make


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return make("tabletop-weave", tmp_path / "data", samples=3, seed=0)


def sweep(data: Path, *more: str) -> Any:
    home = data.parent / "home"
    common = ["sweep", "weave", "--data", str(data), "--judge", "tabletop/exact", "--home", str(home), "--no-preflight"]
    return CliRunner().invoke(app, [*common, *more])


def test_a_sweep_runs_every_combination_and_prints_one_table(data: Path):
    arguments = ["--model", "copy,tabletop/oracle", "--vary", "history=none,full", "--name", "both"]
    result = sweep(data, *arguments)
    assert result.exit_code == 0 and "headline score by model, history" in result.stdout
    home = data.parent / "home"
    ids = find_sweep_runs(open_journal(home), "both")
    assert len(ids) == 4
    listed = CliRunner().invoke(app, ["runs", "--home", str(home)]).stdout
    assert listed.splitlines()[-1] == "sweep both: 4 runs"
    found = CliRunner().invoke(app, ["runs", "--find", "both", "--format", "json", "--home", str(home)]).stdout
    assert [run["sweeps"] for run in json.loads(found)] == [["both"]] * 4
    report = ["report", "both", "--by", "model,history", "--format", "json", "--home", str(home)]
    table = json.loads(CliRunner().invoke(app, report).stdout)["tables"][0]
    assert [row["name"] for row in table["rows"]] == [
        "copy, none",
        "copy, full",
        "tabletop/oracle, none",
        "tabletop/oracle, full",
    ]


def test_models_are_split_at_commas_outside_of_addresses_and_compositions():
    assert split_models(["copy,reference,last.py:model,other.py:model", "tiny"]) == [
        "copy",
        "reference",
        "last.py:model",
        "other.py:model",
        "tiny",
    ]
    whole = ["cascade:reasoner=a.py:x,painter=b.py:y", "openai-chat/m@http://127.0.0.1:1/v1,http://127.0.0.1:2/v1"]
    assert split_models([",".join(["copy", *whole])]) == ["copy", *whole]


def test_a_wider_sweep_takes_the_runs_that_are_there(data: Path):
    assert sweep(data, "--model", "copy", "--vary", "history=none", "--name", "one").exit_code == 0
    home = data.parent / "home"
    again = sweep(data, "--model", "copy", "--vary", "history=none,full", "--name", "two", "--budget", "0")
    assert again.exit_code == 0
    first = find_sweep_runs(open_journal(home), "one")
    both = find_sweep_runs(open_journal(home), "two")
    assert len(first) == 1 and len(both) == 2 and first[0] in both, "a run may be of two sweeps"


def test_a_model_that_cannot_be_reached_does_not_stop_the_others(data: Path):
    unreachable = "openai-chat/x@http://127.0.0.1:9/v1"
    arguments = ["--model", unreachable, "--model", "copy", "--vary", "history=none,full", "--name", "some"]
    result = sweep(data, *arguments)
    assert result.exit_code == 1 and "cannot reach" in result.output
    assert len(find_sweep_runs(open_journal(data.parent / "home"), "some")) == 2


def test_seeds_of_a_sweep_are_one_row_and_a_dry_run_makes_nothing(data: Path):
    arguments = ["--model", "tabletop/oracle", "--vary", "error=0.2,0.6", "--vary", "seed=0,1"]
    dry = sweep(data, *arguments, "--dry-run")
    assert dry.exit_code == 0 and "4 runs" in dry.output
    result = sweep(data, *arguments)
    assert result.exit_code == 0 and "headline score by error" in result.stdout and "seeds" in result.stdout


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--vary", "history"], "NAME=VALUE,VALUE"),
        (["--vary", "history=none,nope"], "has no history 'nope'"),
        (["--vary", "hisotry=none,full"], "unknown option 'hisotry'"),
        (["--vary", "history=none,none"], "given twice"),
        (["--model", "tabletop/oracle"], "given twice"),
        (["--vary", "judge_repeats=one"], "whole numbers"),
        (["--vary", "model=a,b"], "--model NAME,NAME"),
        (["--vary", "history=none,full", "--name", "a b"], "--name"),
        (["--vary", "history=none,full", "--metric", "beauty"], "no metric"),
    ],
)
def test_a_mistake_in_a_sweep_is_told_before_any_call(data: Path, more: list[str], message: str):
    result = sweep(data, "--model", "tabletop/oracle", *more)
    assert isinstance(result.exception, UserError) and message in str(result.exception)
    assert not (data.parent / "home" / "journal.sqlite").exists()


def test_a_sweep_of_which_no_run_can_begin_is_a_mistake_and_the_hint_names_runs_where_the_name_has_others(data: Path):
    nowhere = sweep(data.parent / "nowhere", "--judge", "constant/5", "--model", "copy", "--vary", "history=none,full")
    assert nowhere.exit_code == 2 and "nowhere" in nowhere.stderr
    assert sweep(data, "--model", "copy", "--vary", "history=none", "--name", "mixed").exit_code == 0
    result = sweep(data, "--model", "copy", "--vary", "past=own,reference", "--name", "mixed")
    hint = result.stdout.strip().splitlines()[-1]
    assert "weft report mixed" not in hint and "--by past" in hint
    ids = hint.partition("weft report ")[2].partition(" --by")[0].split()
    assert len(ids) == 2 and all(name.startswith("weave-copy-") for name in ids)


def test_settings_go_where_they_belong():
    varied = read_varied(["history=none,full", "strategy=cot", "judge.max_tokens=10", "steps=28"])
    cells = plan_sweep({"benchmark": "weave", "data": "d", "judge": "j"}, ["m"], varied)
    assert len(cells) == 2
    config = cells[1].config
    assert config.options == {"history": "full"} and config.strategy == "cot"
    assert config.judge_options == {"max_tokens": "10"} and config.model_options == {"steps": "28"}


def test_a_sweep_from_python(data: Path):
    made = weft.sweep(
        "weave",
        data=data,
        model=["copy", "openai-chat/x@http://127.0.0.1:9/v1"],
        judge="tabletop/exact",
        vary={"history": ["none", "full"]},
        home=data.parent / "home",
        preflight=False,
    )
    assert len(made.runs) == 2 and len(made.failures) == 2 and made.by == ("model", "history")
    assert [row.name for row in made.grid(baseline="none").table.rows] == ["copy, none", "copy, full"]
    assert made.name.startswith("weave-model-history-")


def test_the_runs_of_a_sweep_are_judged_again_by_one_command(data: Path):
    home = str(data.parent / "home")
    assert sweep(data, "--model", "copy,tabletop/oracle", "--name", "both").exit_code == 0

    def judge(*words: str) -> Any:
        return CliRunner().invoke(app, ["judge", *words, "--judge", "tabletop/erring", "--home", home])

    planned = judge("both", "--sample", "2", "--dry-run")
    assert planned.exit_code == 0 and planned.stdout.count("2 samples") == 2
    assert len(open_journal(data.parent / "home").runs()) == 2, "a dry run adds none"
    result = judge("both", "last", "--sample", "2")
    assert result.exit_code == 0, result.output
    first = find_sweep_runs(open_journal(data.parent / "home"), "both")
    made = [run.id for run in open_journal(data.parent / "home").runs() if run.id not in first]
    assert len(made) == 2, "last is the sweep's last run, named twice"
    assert f"weft agree {' '.join(first)} --with {','.join(made)} " in result.stdout
    refused = judge("both", "nobody")
    assert isinstance(refused.exception, UserError) and "no run is called 'nobody'" in str(refused.exception)
    assert len(open_journal(data.parent / "home").runs()) == 4, "nothing is judged where a name is wrong"
