"""Several runs by groups: one table and one heat map for all of them, not one for each."""

from pathlib import Path
from typing import Any

import pytest

import weft
from weft import api
from weft.report import plots
from weft.report.charts import build_plots
from weft.report.heat_map import heat_map
from weft.results.run import build_tables, name_runs
from weft.types import Table
from weft_tabletop.make import make


def evaluate(folder: Path, kind: str, benchmark: str, *models: str, **more: Any) -> list[weft.Run]:
    data = folder / "data"
    if not data.exists():
        make(kind, data, samples=12, seed=0)
    job: dict[str, Any] = {"data": data, "judge": "tabletop/exact", "home": folder / "home", **more}
    return [weft.evaluate(benchmark, model=model, **job) for model in models]


def tables_of(runs: list[weft.Run]) -> dict[str, Table]:
    return {table.title: table for table in build_tables(name_runs(runs))}


@pytest.mark.parametrize(
    ("kind", "benchmark", "title", "column"),
    [
        ("tabletop-weave", "weave", "by domain", "Avg"),
        ("tabletop-imug", "imug", "by domain", "Gen."),
        ("tabletop-rover", "rover-ig", "by type", "RV"),
        ("tabletop-planviz", "planviz", "by sub-task and task", "Avg"),
    ],
)
def test_models_by_groups_are_one_table_with_the_numbers_of_each_run(
    tmp_path: Path, kind: str, benchmark: str, title: str, column: str
):
    runs = evaluate(tmp_path, kind, benchmark, "copy", "tabletop/oracle")
    tables = tables_of(runs)
    together = next(table for name, table in tables.items() if name.endswith(f": {column} {title}"))
    assert together.kind == "groups"
    compared = 0
    for run in runs:
        alone = next(table for table in run.tables() if table.title.startswith(f"{run.name}: {title}"))
        row = next(row for row in together.rows if row.run == run.id and row.arithmetic != "official")
        for part in alone.rows:
            assert row.cells[part.name] == part.cells.get(column, row.cells[part.name])
            compared += 1
    assert compared > 3
    assert not [name for name in tables if name.startswith(tuple(run.name for run in runs)) and title in name]


def test_seeds_of_a_table_by_groups_are_averaged(tmp_path: Path):
    runs = evaluate(tmp_path, "tabletop-weave", "weave", "copy")
    for seed in (0, 1):
        options = {"error": 0.5, "seed": seed}
        runs += evaluate(tmp_path, "tabletop-weave", "weave", "tabletop/oracle", model_options=options)
    text = api.report(runs, "csv", over="seed", tables="Avg by domain")
    deviations = [line.rsplit(",", 1)[1] for line in text.splitlines()[1:] if "2 seeds" in line]
    assert any(deviations), "a group that every seed has shows the deviation over seeds"


def test_several_runs_have_a_heat_map_of_each_axis_and_a_radar_chart_of_few_groups(tmp_path: Path):
    runs = evaluate(tmp_path, "tabletop-imug", "imug", "copy", "tabletop/oracle")
    built = {plot.name: plot for plot in build_plots(name_runs(runs))}
    for name in ("by-class-map", "by-class-map-text", "by-class-map-image", "by-class", "by-domain-map"):
        assert name in built, name
    assert "by-domain" not in built, "nineteen spokes cannot be told apart"
    assert "image turns" in built["by-class-map-image"].title
    row = tables_of(runs)
    gen = next(table for title, table in row.items() if title.endswith("Gen. by domain"))
    value = gen.rows[0].cells["overall"] if "overall" in gen.columns else next(iter(gen.rows[0].cells.values()))
    assert value.format(1) in built["by-domain-map-image"].description


def test_a_wide_heat_map_is_turned_and_an_empty_cell_stays_empty():
    columns = [f"group {at}" for at in range(12)]
    values = {("one", name): 0.5 for name in columns[1:]} | {("two", name): 0.25 for name in columns}
    chart = heat_map(values, ["one", "two"], columns, title="Wide", domain=(0.0, 1.0), digits=2)
    drawn = plots.render_svg(chart)
    assert drawn.count(">0.50<") == 11 and drawn.count(">0.25<") == 12
    assert chart.to_dict()["width"] < chart.to_dict()["height"]
