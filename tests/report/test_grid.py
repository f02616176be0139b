"""One number by settings: rows, columns, baselines, seeds, and what does not fit into one table."""

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import weft
from weft import api
from weft.cli.app import app
from weft.errors import UserError
from weft.report import plots
from weft.report.compare import compare
from weft.report.ranking import rank_cells
from weft.report.render import render
from weft.results.settings import list_settings, order_values, read_setting
from weft.types import Table
from weft_tabletop.make import make


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, weft.Run], Path]:
    folder = tmp_path_factory.mktemp("grid")
    data = make("tabletop-weave", folder / "data", samples=8, seed=0)
    job: dict[str, Any] = {"data": data, "judge": "tabletop/exact", "home": folder / "home"}
    runs: dict[str, weft.Run] = {}
    for history in ("full", "none"):
        runs[f"copy {history}"] = weft.evaluate("weave", model="copy", history=history, **job)
        for seed in (0, 1):
            options = {"error": 0.5, "seed": seed}
            name = f"oracle {history} {seed}"
            runs[name] = weft.evaluate("weave", model="tabletop/oracle", model_options=options, history=history, **job)
    for error in (0.2, 0.8):
        options = {"error": error, "seed": 0}
        runs[f"error {error}"] = weft.evaluate(
            "weave", model="tabletop/oracle", model_options=options, history="full", **job
        )
    return runs, folder


def pick(made: tuple[dict[str, weft.Run], Path], *names: str) -> list[weft.Run]:
    return [made[0][name] for name in names]


def test_a_row_is_a_combination_of_settings_with_its_change_from_the_baseline(made: Any):
    runs = pick(made, "oracle full 0", "oracle none 0", "copy full", "copy none")
    table = weft.grid(runs, "model,history").table
    assert [row.name for row in table.rows] == [
        "tabletop/oracle-0.5, none",
        "tabletop/oracle-0.5, full",
        "copy, none",
        "copy, full",
    ], "values of an option stand in the order in which the benchmark declares them"
    assert table.columns == ("headline score", "change", "change %")
    full, none = runs[0], runs[1]
    cells = table.cells("tabletop/oracle-0.5, full")
    assert cells["headline score"].value == pytest.approx(full.gist.value)
    assert (cells["headline score"].low, cells["headline score"].high) == (full.gist.low, full.gist.high)
    compared = compare(full, none).rows[0]
    assert cells["change"].value == pytest.approx(compared.difference.value)
    assert (cells["change"].low, cells["change"].high) == (compared.difference.low, compared.difference.high)
    assert cells["change %"].value == pytest.approx(100 * (compared.first / compared.second - 1))
    assert "change" not in table.cells("copy, none"), "a baseline has no change"


def test_a_baseline_is_a_value_or_a_whole_row(made: Any):
    runs = pick(made, "oracle full 0", "oracle none 0", "copy full", "copy none")
    by_model = weft.grid(runs, "model,history", baseline="copy").table
    assert "change" in by_model.cells("tabletop/oracle-0.5, none") and "change" not in by_model.cells("copy, none")
    one = weft.grid(runs, "model,history", baseline="history=none,model=copy").table
    assert [row.name for row in one.rows if "change" not in row.cells] == ["copy, none"]
    with pytest.raises(UserError, match="history: none, full"):
        weft.grid(runs, "model,history", baseline="partial")


def test_seeds_are_one_row_unless_the_grid_is_by_seed(made: Any):
    runs = pick(made, "oracle full 0", "oracle full 1", "oracle none 0", "oracle none 1")
    table = weft.grid(runs, ["history"]).table
    cell = table.cells("full")["headline score"]
    values = [run.gist.value or 0.0 for run in runs[:2]]
    assert cell.value == pytest.approx(sum(values) / 2) and cell.standard_deviation is not None
    assert table.cells("full")["seeds"].value == 2 and "over seeds" in table.note
    by_seed = weft.grid(runs, "history,seed").table
    assert [row.name for row in by_seed.rows] == ["none, 0", "none, 1", "full, 0", "full, 1"]


def test_an_axis_of_the_benchmark_becomes_columns(made: Any):
    runs = pick(made, "oracle full 0", "copy full")
    grid = weft.grid(runs, "model,class", metric="key_point")
    classes = {runs[0].groups[sample]["class"] for sample in runs[0].groups}
    assert set(grid.table.columns) == {*classes, "all", "change", "change %"}
    run, name = runs[0], sorted(classes)[0]
    values = [
        verdict.value
        for verdict in run.verdicts
        if verdict.metric == "key_point" and run.groups[verdict.sample]["class"] == name and verdict.value is not None
    ]
    cell = grid.table.rows[0].cells[name]
    assert (cell.value is None and not values) or cell.value == pytest.approx(sum(values) / len(values))
    with pytest.raises(UserError, match="both axes"):
        weft.grid(runs, "class,domain")


def test_runs_of_one_row_must_not_differ_in_another_setting(made: Any):
    runs = pick(made, "oracle full 0", "oracle none 0")
    with pytest.raises(UserError, match=r"differ in history \(full, none\): add history to --by"):
        weft.grid(runs, "model")
    with pytest.raises(UserError, match="no setting 'histroy'; did you mean history"):
        weft.grid(runs, "histroy")
    with pytest.raises(UserError, match="no metric 'beauty'"):
        weft.grid(runs, "history", metric="beauty")
    note = weft.grid(pick(made, "oracle full 0", "copy none"), "model").table.note
    assert "rows also differ in history" in note


def test_a_number_is_drawn_as_a_line_and_words_as_bars(made: Any):
    line = weft.grid(pick(made, "error 0.2", "oracle full 0", "error 0.8"), "error").plot
    assert line is not None
    spec = json.dumps(line.chart.to_dict())
    assert '"line"' in spec and "error" in spec
    assert [row.name for row in weft.grid(pick(made, "error 0.8", "error 0.2"), "error").table.rows] == ["0.2", "0.8"]
    bars = weft.grid(pick(made, "oracle full 0", "oracle none 0", "copy full", "copy none"), "model,history").plot
    assert bars is not None
    drawn = plots.render_svg(bars.chart)
    for text in ("tabletop/oracle-0.5", "copy", "none", "full"):
        assert text in drawn
    assert re.search(r"\([+-]?\d+\.\d%\)", drawn), "a bar has its change from the baseline beside it"
    heat = weft.grid(pick(made, "oracle full 0", "copy full"), "model,class").plot
    assert heat is not None and "all" in plots.render_svg(heat.chart)


def test_only_verdicts_behind_the_number_count_as_unpaired(made: Any):
    run, base = pick(made, "oracle full 0", "copy full")
    lost = [verdict for verdict in base.verdicts if verdict.metric == "image_quality"]
    poorer = copy.copy(base)
    poorer.verdicts = [verdict for verdict in base.verdicts if verdict not in lost]
    assert lost and "partner" not in weft.grid([run, poorer], "model", metric="key_point").table.note
    assert f"{len(lost)} verdicts have no partner" in weft.grid([run, poorer], "model", "image_quality").table.note


def test_no_change_from_the_baseline_is_the_best(made: Any):
    table = weft.grid(pick(made, "oracle full 0", "oracle none 0", "copy full", "copy none"), "model,history").table
    assert {column for _, column in rank_cells(table)} == {"headline score"}


def test_a_name_that_ends_in_the_setting_is_no_other_difference(made: Any):
    assert "also differ" not in weft.grid(pick(made, "error 0.2", "error 0.8"), "error").table.note


def test_the_legend_of_a_grid_is_named_after_its_setting(made: Any):
    grid = weft.grid(pick(made, "oracle full 0", "oracle none 0", "copy full", "copy none"), "model,history")
    assert grid.plot is not None and '"title": "history"' in json.dumps(grid.plot.chart.to_dict())


def test_the_command_prints_the_grid_alone_and_the_page_begins_with_it(made: Any, tmp_path: Path):
    runs, folder = made
    ids = [runs[name].id for name in ("copy full", "copy none")]
    common = ["report", *ids, "--by", "history", "--home", str(folder / "home")]
    result = CliRunner().invoke(app, [*common, "--format", "csv"], catch_exceptions=False)
    lines = result.stdout.splitlines()
    assert {line.split(",")[1] for line in lines[1:]} == {
        "none",
        "full",
    } and "WEAVEBench (tabletop): headline" in lines[1]
    page = api.write_report(
        [runs["copy full"], runs["copy none"]], tmp_path / "page", home=folder / "home", by="history"
    )
    text = page.read_text()
    assert text.index("headline score by history") < text.index("Avg by class")
    assert (tmp_path / "page" / "plots" / "grid.png").is_file()
    for more in (["--metric", "accuracy"], ["--over", "seed", "--by", "history"]):
        arguments = ["report", *ids, *more, "--format", "md", "--home", str(folder / "home")]
        assert isinstance(CliRunner().invoke(app, arguments).exception, UserError)


def test_settings_have_the_names_that_users_write(made: Any):
    run = made[0]["oracle full 1"].title_input
    settings = list_settings(run)
    for name, value in {
        "history": "full",
        "strategy": "none",
        "seed": "1",
        "error": "0.5",
        "images": "interleaved",
    }.items():
        assert settings[name] == value
    assert read_setting(run, "--judge-repeats") == "1" and read_setting(run, "temperature") == "not set"
    assert read_setting(run, "model.seed") == "1" and read_setting(run, "judge.images") == "interleaved"
    benchmark = made[0]["oracle full 1"].benchmark
    strategies = ["best-of:10", "best-of:2", "cot", "none"]
    assert order_values(strategies, benchmark, "strategy") == ["none", "best-of:2", "best-of:10", "cot"]
    assert order_values(["1.5", "not set", "0.5"], benchmark, "temperature") == ["not set", "0.5", "1.5"]


def test_tables_in_latex_have_labels_of_their_own(made: Any):
    runs = pick(made, "oracle full 0", "oracle none 0", "copy full", "copy none")

    def labels(text: str) -> list[str]:
        return re.findall(r"\\label{(.*?)}", text)

    by_history = labels(api.report(runs, "latex", by="model,history", metric="key-point"))
    assert by_history == ["tab:weft-weave-key-point-by-model-history"]
    assert labels(api.report(runs, "latex", by=["model", "history"], label="tab:mine")) == ["tab:mine"]
    own = labels(api.report(runs, "latex", tables="1"))
    agreed = [labels(render([Table(title, ("n",), ())], [], "latex")) for title in ("Correlations: RP", "Table of r")]
    assert [own, *agreed] == [["tab:weft-weave-1"], ["tab:weft-correlations-rp-1"], ["tab:weft-table-of-r-1"]]
