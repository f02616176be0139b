"""Agreement over the runs of several models: a row each and one for all, a second judge beside people, and bar
charts."""

import json
import os
import statistics
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import weft
from test_agreeing import WEFT, Judge, forget, judged, named, rate, write
from toy import more_records, write_weave
from waiting import HANGS
from weft.errors import UserError
from weft.judge_eval.agreement.second_judge import find_second_judge
from weft.report.agreement_charts import build_agreement_charts
from weft.stats.agreement import pearson
from weft.types import Cell, Row, Table, Verdict


class Repeating:
    """A model that repeats a picture: each number another one, so that the replies of two differ."""

    version = "1"

    def __init__(self, number: int) -> None:
        self.name = f"model{number}"
        self.number = number

    def __call__(self, messages: Any, want: str) -> Any:
        pictures = [part for _, parts in messages for part in parts if not isinstance(part, str)]
        if want == "image" and pictures:
            return pictures[-1]
        return f"answer {self.number}"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def runs(home: Path) -> list[weft.Run]:
    data = write_weave(home / "data", more_records(2))
    made: list[weft.Run] = []
    for number in range(3):
        judge = Judge("first")
        made.append(weft.evaluate("weave", data=data, model=Repeating(number), judge=judge, home=home / ".weft"))
    return made


@pytest.fixture(scope="module")
def second(home: Path, runs: list[weft.Run]) -> list[weft.Run]:
    return [weft.judge(run, judge=Judge("second", salt=3), home=home / ".weft") for run in runs]


def lower(amount: float) -> Callable[[Verdict], float]:
    return lambda verdict: max(0.0, round((verdict.value or 0.0) - amount, 6))


@pytest.fixture
def rated(home: Path, runs: list[weft.Run]):
    """Two people rate every second verdict of the first two runs; the third run has nobody's."""
    path = home / ".weft" / "journal.sqlite"
    for run, amount in zip(runs[:2], (0.1, 0.2), strict=True):
        rate(run, path, judged(run)[::2], {"ann": lower(amount), "ben": lower(0.1)})
    yield
    for run in runs:
        forget(run, path)


def titles(tables: Sequence[Table]) -> list[str]:
    return [table.title for table in tables]


def test_each_model_has_a_row_and_all_have_one(runs: list[weft.Run], home: Path, rated: None):
    found = weft.agree(runs[:2], home=home / ".weft")
    table = found.tables[0]
    assert table.title == "Agreement between first and people, by model"
    assert [row.label for row in table.rows] == ["model0", "model1", "all models"]
    alone = [run.agree(home=home / ".weft").tables[0].cells("all metrics") for run in runs[:2]]
    for label, cells in zip(("model0", "model1"), alone, strict=True):
        shown = table.cells(label)
        assert {name: (one.value, one.low) for name, one in shown.items()} == {
            name: (one.value, one.low) for name, one in cells.items()
        }
    pooled = table.cells("all models")
    counts = [one["n"].value or 0 for one in alone]
    assert pooled["n"].value == sum(counts)
    assert pooled["dialogues"].value == alone[0]["dialogues"].value, "a dialogue of two models is one"
    means = [one["judge"].value or 0 for one in alone]
    mean = sum(value * count for value, count in zip(means, counts, strict=True)) / sum(counts)
    assert pooled["judge"].value == pytest.approx(mean)
    people = named(found.tables, "Agreement among annotators").cells("all metrics")
    assert people["questions"].value == sum(counts) and people["annotations"].value == 2 * sum(counts)


def test_the_papers_table_has_all_models_their_mean_and_the_published_rows_once(
    runs: list[weft.Run], home: Path, rated: None
):
    table = named(weft.agree(runs[:2], home=home / ".weft").tables, "Figure 6d")
    assert [row.label for row in table.run_rows] == ["model0", "model1", "all models", "mean of the models"]
    assert len(table.published_rows) == 1
    values = [table.cells(label)["KP"].value for label in ("model0", "model1")]
    mean = table.cells("mean of the models").get("KP", Cell(None)).value
    known = [value for value in values if value is not None]
    assert mean == (pytest.approx(statistics.fmean(known)) if len(known) == 2 else None)


def test_a_run_that_nobody_annotated_is_left_out_and_named(runs: list[weft.Run], home: Path, rated: None):
    found = weft.agree(runs, home=home / ".weft")
    assert [row.label for row in found.tables[0].rows] == ["model0", "model1", "all models"]
    assert "model2 is not compared with people: nobody annotated it" in found.notes


def test_a_second_judge_stands_beside_people_on_the_same_verdicts(
    runs: list[weft.Run], second: list[weft.Run], home: Path, rated: None
):
    found = weft.agree(runs[:2], "second", home=home / ".weft")
    pairs = ("first and people", "second and people", "first and second")
    assert titles(found.tables)[:3] == [f"Agreement between {pair}, by model" for pair in pairs]
    counts = {table.cells("all models")["n"].value for table in found.tables[:3]}
    assert len(counts) == 1
    by_key = {(one.sample, one.turn, one.metric): one.value for one in judged(second[0])}
    mine = [(one.value or 0, by_key[one.sample, one.turn, one.metric] or 0) for one in judged(runs[0])[::2]]
    expected = pearson(*zip(*mine, strict=True))
    assert found.tables[2].cells("model0")["Pearson"].value == pytest.approx(expected, abs=1e-4)
    labels = [row.label for row in named(found.tables, "Figure 6d").run_rows]
    assert "model1: second and people" in labels and "all models: first and second" in labels
    (chart,) = build_agreement_charts(found.charted)
    assert all(pair in chart.description for pair in pairs), "one bar for each comparison, all models together"
    by_runs = weft.agree(runs[:2], ",".join(run.id for run in reversed(second[:2])), home=home / ".weft")
    assert by_runs.tables == found.tables, "its runs name the judge, too, in any order"


def test_a_second_judge_of_the_same_name_has_rows_and_bars_of_its_own(runs: list[weft.Run], home: Path, rated: None):
    again = Judge("first", salt=5)
    again.version = "2"
    others = [weft.judge(run, judge=again, home=home / ".weft") for run in runs[:2]]
    found = weft.agree(runs[:2], ",".join(run.id for run in others), home=home / ".weft")
    assert len(set(titles(found.tables))) == len(found.tables)
    assert found.tables[2].title == "Agreement between first and first (second), by model"
    (table,) = found.charted
    assert [row.label for row in table.run_rows] == [
        "first and people",
        "first (second) and people",
        "first and first (second)",
    ]
    assert any("first (second)" in note for note in found.notes)


def test_without_people_two_judges_are_compared_over_all_models(
    runs: list[weft.Run], second: list[weft.Run], home: Path
):
    found = weft.agree(runs, "second", home=home / ".weft")
    assert found.tables[0].title == "Agreement between first and second, by model"
    assert found.tables[0].cells("all models")["n"].value == sum(len(judged(run)) for run in runs)


def test_one_run_and_the_name_of_a_second_judge(runs: list[weft.Run], second: list[weft.Run], home: Path, rated: None):
    found = weft.agree(runs[0].id, "second", home=home / ".weft")
    assert [len(table.rows) for table in found.tables[:3]] == [1, 1, 1]


def test_runs_that_cannot_be_pooled_are_refused(runs: list[weft.Run], second: list[weft.Run], home: Path):
    with pytest.raises(UserError, match="nobody has annotated .*`weft rate weave-.* weave-"):
        weft.agree(runs, home=home / ".weft")
    with pytest.raises(UserError, match="different judges: first, second"):
        weft.agree([runs[0], second[1]], home=home / ".weft")
    with pytest.raises(UserError, match="a run is named twice"):
        weft.agree([runs[0], runs[0]], home=home / ".weft")
    with pytest.raises(UserError, match=r"--with third: no run is called 'third'.*also judged by second"):
        weft.agree(runs, "third", home=home / ".weft")
    with pytest.raises(UserError, match=f"{runs[1].id}: no run of another judge was named for it"):
        weft.agree(runs[:2], second[0], home=home / ".weft")


def test_a_file_about_several_runs_names_them(runs: list[weft.Run], home: Path, tmp_path: Path):
    head = "run,sample,turn,metric,annotator,value"
    rows = [(run.id, one.sample, one.turn + 1, one.metric, "ann", 0.5) for run in runs for one in judged(run)[:8]]
    found = weft.agree(runs, write(tmp_path / "all.csv", rows, head), home=home / ".weft")
    assert found.tables[0].cells("all models")["n"].value == 24
    with pytest.raises(UserError, match=r"line 2: run 'x' is none of"):
        weft.agree(runs, write(tmp_path / "x.csv", [("x", *rows[0][1:])], head), home=home / ".weft")
    with pytest.raises(UserError, match="line 1: there is no column run"):
        weft.agree(runs, write(tmp_path / "no.csv", [rows[0][1:]]), home=home / ".weft")


def test_a_chart_has_a_bar_for_each_row_and_an_axis_that_shows_negative_numbers():
    cells = {"KP r": Cell(-0.4, 9, 9, -0.7, 0.1), "KP MAE": Cell(0.3, 9, 9), "VC r": Cell(None)}
    cells |= {"KP judge": Cell(0.7, 9, 9), "KP people": Cell(0.6, 9, 9)}
    columns = ("KP r", "KP MAE", "VC r", "KP judge", "KP people")
    table = Table("Made up", columns, (Row("mine", cells), Row("not printed", {}, kind="published")))
    charts = {plot.name: plot for plot in build_agreement_charts([table])}
    assert list(charts) == ["agreement-r", "agreement-mae", "agreement-means"]
    assert charts["agreement-r"].description == "Made up: Pearson r. KP, mine: -0.400"
    assert '"domain": [-0.7, 1.0]' in json.dumps(charts["agreement-r"].chart.to_dict())
    assert "KP, mine: judge: 0.700; KP, mine: people: 0.600" in charts["agreement-means"].description
    assert build_agreement_charts([Table("Empty", columns, (Row("none", {}),))]) == []


def test_the_command(runs: list[weft.Run], second: list[weft.Run], home: Path, rated: None, tmp_path: Path):
    def call(*words: object) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "COLUMNS": "250"}
        return subprocess.run(
            [WEFT, "agree", *map(str, words)], cwd=home, capture_output=True, text=True, timeout=HANGS, env=env
        )

    names = [run.id for run in runs[:2]]
    assert "all models" in call(*names).stdout
    done = call(*names, "--with", "second", "--charts", tmp_path / "figures", "--by", "none")
    assert done.returncode == 0 and "agreement-r.pdf" in done.stdout
    assert (tmp_path / "figures" / "agreement-r.pdf").read_bytes().startswith(b"%PDF")
    latex = call(*names, "--format", "latex", "--tables", "Figure 6d", "--label", "tab:agree").stdout
    assert latex.count("\\begin{tab") == 2 and "\\label{tab:agree}" in latex and "mean of the models" in latex
    made = json.loads(call(*names, "--format", "json").stdout)
    assert "charted" not in made and made["run"] == ", ".join(names)
    refused = call(*names, "--format", "md", "--label", "x")
    assert refused.returncode == 2 and "--label is for latex" in refused.stderr


def test_a_second_judge_of_a_sample_judges_the_same_samples_of_every_run(runs: list[weft.Run], home: Path):
    asked: list[str] = []

    class Counting(Judge):
        def __call__(self, messages: Any, want: str, question: Any) -> dict[str, Any]:
            asked.append(question.turn_ref.sample)
            return super().__call__(messages, want, question)

    judge = Counting("third", salt=5)
    made = [weft.judge(run, judge=judge, sample=4, home=home / ".weft") for run in runs[:2]]
    drawn = [{turn.sample for turn in run.turns} for run in made]
    assert drawn[0] == drawn[1] and len(drawn[0]) == 4 and set(asked) <= drawn[0]
    assert weft.judge(runs[0], judge=judge, sample=4, home=home / ".weft").id == made[0].id
    part = weft.judge(made[0], judge=Judge("fourth", salt=6), sample=2, home=home / ".weft")
    assert {turn.sample for turn in part.turns} < drawn[0], "fewer are a part of more"
    whole = weft.judge(runs[0], judge=judge, sample=1000, home=home / ".weft")
    assert whole.record.manifest.sample is None and len(whole.turns) == len(runs[0].turns)
    found = weft.agree(made[0].id, runs[0], home=home / ".weft")
    assert 0 < (found.tables[0].rows[0].cells["n"].value or 0) < len(judged(runs[0]))
    pooled = weft.agree(runs[:2], ",".join(run.id for run in made), home=home / ".weft")
    assert pooled.tables[0].cells("all models")["dialogues"].value == len(
        {verdict.sample for run in made for verdict in judged(run)}
    )


def test_a_second_judge_has_one_setting_over_all_models_and_a_note_where_it_has_not(
    runs: list[weft.Run], home: Path, rated: None
):
    folder = home / ".weft"
    judge = Judge("fifth", salt=7)
    sampled = [weft.judge(run, judge=judge, sample=4, home=folder) for run in runs[:2]]
    repeated = weft.judge(runs[0], judge=judge, judge_repeats=2, home=folder)
    assert [run.id for run in find_second_judge(runs[:2], "fifth", folder)] == [run.id for run in sampled]
    assert find_second_judge(runs[:1], "fifth", folder)[0].id == repeated.id, "the most replies of one run"
    assert not any("did not judge all runs" in note for note in weft.agree(runs[:2], "fifth", home=folder).notes)
    mixed = weft.agree(runs[:2], f"{repeated.id},{sampled[1].id}", home=folder)
    assert "fifth did not judge all runs with the same judge_repeats (2, 1)" in mixed.notes


def test_means_of_two_judges_and_people_are_drawn_once():
    columns = ("KP judge", "KP people")
    rows = (
        Row("a and people", {"KP judge": Cell(0.7, 9, 9), "KP people": Cell(0.6, 9, 9)}, judge="a"),
        Row("b and people", {"KP judge": Cell(0.8, 9, 9), "KP people": Cell(0.6, 9, 9)}, judge="b"),
        Row("a and b", {"KP judge": Cell(0.7, 9, 9)}, judge="a"),
        Row("A model", {"KP judge": Cell(0.5), "KP people": Cell(0.4)}, kind="published", judge="c"),
    )
    (chart,) = build_agreement_charts([Table("Made up", columns, rows)])
    assert chart.description.endswith(
        "KP, a: 0.700; KP, people: 0.600; KP, b: 0.800; KP, A model: judge: 0.500; KP, A model: people: 0.400"
    )


def test_a_seed_that_draws_others_than_the_run_has_is_refused(runs: list[weft.Run], home: Path):
    made = weft.judge(runs[0], judge=Judge("third", salt=5), sample=4, seed=1, home=home / ".weft")
    with pytest.raises(UserError, match="is a random sample itself, with seed 1: leave out --seed"):
        weft.judge(made, judge=Judge("fourth", salt=6), sample=2, seed=0, home=home / ".weft")
    with pytest.raises(UserError, match="--seed says which samples --sample draws"):
        weft.judge(runs[0], judge=Judge("fourth", salt=6), seed=3, home=home / ".weft")


def test_the_bars_of_a_chart_have_the_order_of_the_rows():
    rows = (Row("without RP", {"RV r": Cell(0.5, 9, 9)}), Row("with RP", {"RP r": Cell(0.6, 9, 9)}))
    (chart,) = build_agreement_charts([Table("Made up", ("RP r", "RV r"), rows)])
    assert '"domain": ["without RP", "with RP"]' in json.dumps(chart.chart.to_dict())
