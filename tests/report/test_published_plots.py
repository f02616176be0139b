"""Published rows: all tables of a paper as text, and plots of them with our rows."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from weft import api
from weft.benchmarks import load_benchmark
from weft.benchmarks.rows import read_published
from weft.cli.app import app
from weft.errors import UserError
from weft.report.plots import render_svg
from weft.report.published import build_published_tables
from weft.report.published_plots import build_published_plots
from weft.types import Cell, Row, Table

NUMBERED = re.compile(r"Tables? (\d+)")
# Tables of published.json that are no results: they count samples or images of the dataset.
COUNTS = {("weaverbench", "table1"), ("rover", "table5")}


def ours(table: Table, name: str, value: float, arithmetic: str = "") -> Row:
    cells = {column: Cell(value, 9, 9, value * 0.9, value * 1.1) for column in table.columns}
    return Row(name, cells, run="weave-copy-1", arithmetic=arithmetic)  # pyright: ignore[reportArgumentType]


def with_ours(table: Table, *rows: Row) -> Table:
    return Table(table.title, table.columns, (*rows, *table.rows), table.note, table.digits, table.kind)


@pytest.mark.parametrize(
    ("package", "names"),
    [
        ("weave", ("weave",)),
        ("imug", ("imug",)),
        ("planviz", ("planviz",)),
        ("rover", ("rover-ig", "rover-tg")),
        ("weaverbench", ("weaverbench",)),
        ("opening", ("opening", "arena")),
    ],
)
def test_every_table_of_results_is_printed(package: str, names: tuple[str, ...]):
    printed: set[str] = set()
    for name in names:
        for table in build_published_tables(load_benchmark(name)):
            printed |= {f"table{number}" for number in NUMBERED.findall(table.title)}
            assert table.rows and all(row.kind == "published" for row in table.rows)
    shipped = {key for key in read_published(f"weft.benchmarks.{package}") if key.startswith("table")}
    assert {key for key in shipped if (package, key) not in COUNTS} <= printed


def test_the_command_prints_the_tables_of_planviz():
    shown = CliRunner().invoke(app, ["report", "--published", "planviz"])
    assert shown.exit_code == 0
    for title in ("editing (paper, Table 3)", "generation (paper, Table 4)", "(paper, Table 5)", "PlanViz, Table 2"):
        assert title in shown.output


def test_our_rows_are_drawn_with_the_published_ones():
    table = build_published_tables(load_benchmark("imug"))[0]
    row = ours(table, "mine", 50.0, "strict")
    drawn = {
        plot.name: plot
        for plot in build_published_plots([with_ours(table, row, ours(table, "mine", 40.0, "official"))])
    }
    assert set(drawn) == {"published-1-overall", "published-1-map"}
    for plot in drawn.values():
        svg = render_svg(plot.chart)
        assert "mine (ours)" in svg and "Nano Banana" in svg and "official" not in svg
    assert "mine (ours): 50.0" in drawn["published-1-overall"].description


def test_a_table_by_turn_has_lines_in_which_neither_side_is_crowded_out():
    table = build_published_tables(load_benchmark("imug"))[1]
    mine = [ours(table, f"run {number}, image", 40.0 + number) for number in range(8)]
    plots = {plot.name: plot for plot in build_published_plots([with_ours(table, *mine)])}
    title = plots["published-1-image"].title
    assert "8 of 16" in title
    shown = render_svg(plots["published-1-image"].chart)
    assert all(name in shown for name in ("run 0, image (ours)", "run 3, image (ours)", "Nano Banana", "GPT-5"))


def test_data_that_are_not_the_papers_have_nothing_to_draw(tmp_path: Path):
    with pytest.raises(UserError, match="their data are not the paper's"):
        build_published_plots([Table("ours alone", ("a",), (Row("run", {"a": Cell(1.0)}),))])


def test_text_has_no_plots():
    shown = CliRunner().invoke(app, ["report", "last", "--with-published", "--format", "md"])
    assert isinstance(shown.exception, UserError) and "draws plots of a run's html report" in str(shown.exception)


def test_the_page_has_the_plots(toy: Path, tmp_path: Path):
    import weft

    run = weft.evaluate("weave", data=toy, model="copy", judge="constant/5", home=tmp_path / "home")
    page = api.write_report([run], tmp_path / "report", home=tmp_path / "home", with_published=True)
    assert (page.parent / "plots" / "published-1-overall.pdf").is_file() and "published-1-map.svg" in page.read_text()
