"""Runs that differ in their seed alone, as one row."""

import math
import statistics
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

import weft
from weft import api
from weft.cli.app import app
from weft.errors import UserError
from weft.report.seeds import build_seed_tables, group_by_seed, mean_over_seeds
from weft.types import Cell
from weft_tabletop.make import make


def runs(folder: Path, kind: str, benchmark: str, **more: Any) -> list[weft.Run]:
    data = folder / kind
    if not data.exists():
        make(kind, data, samples=6, seed=0)
    job: dict[str, Any] = {
        "data": data,
        "model": "tabletop/oracle",
        "judge": "tabletop/exact",
        "home": folder / "home",
        **more,
    }
    return [weft.evaluate(benchmark, model_options={"error": 0.5, "seed": seed}, **job) for seed in (0, 1, 2)]


def test_a_row_over_seeds_is_the_mean_of_its_runs_with_their_deviation(tmp_path: Path):
    some = runs(tmp_path, "tabletop-weave", "weave")
    values = [run.table().run_rows[0].cells["Avg"].value or 0.0 for run in some]
    assert len(set(values)) > 1, "seeds matter here"
    table = build_seed_tables(group_by_seed(some))[0]
    row, cell = table.run_rows[0], table.run_rows[0].cells["Avg"]
    assert len(table.run_rows) == 1 and row.name == "tabletop/oracle-0.5 [partial], 3 seeds"
    assert cell.value == pytest.approx(statistics.fmean(values)) and cell.standard_deviation == pytest.approx(
        statistics.stdev(values)
    )
    assert cell.low is not None and cell.high is not None and cell.low < cell.value < cell.high
    text = api.report(some, "md", over="seed", tables="1")
    assert f"{cell.value:.3f} ± {cell.standard_deviation:.3f} [{cell.low:.3f}, {cell.high:.3f}]" in text
    assert "\\textpm" in api.report(some, "latex", over="seed", tables="1") or "\\pm" in api.report(
        some, "latex", over="seed", tables="1"
    )
    assert api.report(some, "csv", over="seed").splitlines()[0].endswith(",standard_deviation")
    page = api.write_report(some, tmp_path / "page", home=tmp_path / "home", over="seed").read_text()
    assert "3 seeds" in page and "±" in page


@pytest.mark.parametrize(
    ("kind", "benchmark"),
    [
        ("tabletop-imug", "imug"),
        ("tabletop-rover", "rover-ig"),
        ("tabletop-planviz", "planviz"),
        ("tabletop-weaver", "weaverbench"),
    ],
)
def test_every_benchmark_can_be_taken_over_seeds(tmp_path: Path, kind: str, benchmark: str):
    some = runs(tmp_path, kind, benchmark)
    found = 0
    name = next(iter(group_by_seed(some)))
    single = [{table.title: table for table in run.benchmark.tables([run.results(name)])} for run in some]
    for table in build_seed_tables(group_by_seed(some)):
        if any(table.title not in tables for tables in single):
            continue
        for row in table.run_rows:
            rows = [
                next((one for one in tables[table.title].run_rows if one.label == row.label), None) for tables in single
            ]
            for column, cell in row.cells.items():
                cells = [one.cells[column] for one in rows if one is not None and column in one.cells]
                values = [one.value for one in cells if one.value is not None]
                if len(values) == 3 and cell.standard_deviation is not None:
                    assert cell.value == pytest.approx(statistics.fmean(values)), (table.title, row.label, column)
                    found += 1
    assert found > 3


def test_the_interval_is_of_seeds_and_of_dialogues():
    whole = Cell(0.5, 10, 10, 0.4, 0.6)
    made = mean_over_seeds(whole, [Cell(0.4), Cell(0.5), Cell(0.6)], 1.0)
    half = math.hypot(0.1, 4.3026527 * 0.1 / math.sqrt(3))
    assert (
        made.low == pytest.approx(0.5 - half)
        and made.high == pytest.approx(0.5 + half)
        and made.standard_deviation == pytest.approx(0.1)
    )
    alike = mean_over_seeds(whole, [Cell(0.5), Cell(0.5), Cell(0.5)], 1.0)
    assert (alike.low, alike.high, alike.standard_deviation) == (0.4, 0.6, 0.0), (
        "where seeds do not matter, only dialogues do"
    )
    wide = mean_over_seeds(whole, [Cell(0.1), Cell(0.9)], 1.0)
    assert (wide.low, wide.high) == (0.0, 1.0), "two seeds say little, and nothing beyond full marks"
    assert mean_over_seeds(whole, [Cell(0.5), None], 1.0) == whole


def test_runs_that_do_not_differ_in_their_seed_alone_are_told(tmp_path: Path):
    first, second, _ = runs(tmp_path, "tabletop-weave", "weave")
    other = runs(tmp_path, "tabletop-weave", "weave", history="none")[0]
    with pytest.raises(UserError, match="no two of these runs differ only in their seed"):
        api.report([first, other], "md", over="seed")
    both = api.report([first, second, other], "md", over="seed", tables="1")
    assert "2 seeds" in both and "[no history]" in both.replace("\\", "")
    with pytest.raises(UserError, match="seed"):
        api.report([first], "md", over="model")


def test_runs_named_for_their_group_bring_the_runs_that_differ_only_in_their_seed(tmp_path: Path):
    first = runs(tmp_path, "tabletop-weave", "weave")
    others = runs(tmp_path, "tabletop-weave", "weave", history="none")
    out = tmp_path / "table.tex"
    arguments = ["report", first[1].id, others[0].id, "--over", "seed", "--format", "latex", "--tables", "1"]
    result = CliRunner().invoke(app, [*arguments, "--out", str(out), "--home", str(tmp_path / "home")])
    assert result.exit_code == 0, result.output
    text = out.read_text()
    assert (
        text.count(", 3 seeds &") == 2 and "{[}no history{]}, 3 seeds &" in text and "{[}partial{]}, 3 seeds &" in text
    )
    assert r"$\pm$" in text and "standard deviation over seeds" in text
    two = CliRunner().invoke(app, [*arguments[:2], first[0].id, *arguments[3:], "--home", str(tmp_path / "home")])
    assert ", 2 seeds &" in two.output, "of a group of which several are named, those are meant"


@pytest.mark.parametrize(
    ("tags", "shown"),
    [
        (["ours-s0", "ours-s1", "ours-s2"], "ours"),
        (["ours-10", "ours-11", "ours-12"], "ours"),
        (["ours v2 seed 1", "ours v2 seed 2"], "ours v2"),
        (["first", "again"], "first, again"),
        (["ours", "", ""], "ours"),
        (["", ""], "tabletop/oracle-0.5 [partial]"),
    ],
)
def test_a_row_of_several_seeds_keeps_the_tag_of_its_runs(tmp_path: Path, tags: list[str], shown: str):
    some = runs(tmp_path, "tabletop-weave", "weave")[: len(tags)]
    for run, tag in zip(some, tags, strict=True):
        run.record = replace(run.record, names={"tag": tag} if tag else {})
    assert list(group_by_seed(some)) == [f"{shown}, {len(tags)} seeds"]
