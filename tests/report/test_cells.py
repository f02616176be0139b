"""Every number leads to what it was computed from: on the pages and in `weft show --cell`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

import weft
from server import Provider
from test_cell_verdicts import runs_of
from test_golden import DATA
from weft import api
from weft.cli.app import app
from weft.errors import UserError
from weft.report.cells import COMPARED, DIFFERENCE, FIRST, SECOND, CellIndex, find_cell, list_cells
from weft.report.compare import compare
from weft.report.listing import sample_order
from weft.results.run import Run, build_tables, name_runs
from weft.types import Cell, Row, Table, Verdict

Serve = Callable[..., Provider]


def show(*words: object) -> str:
    done = CliRunner().invoke(app, ["show", *map(str, words)], env={"COLUMNS": "200"})
    if isinstance(done.exception, UserError):
        raise done.exception
    assert not done.exit_code, done.output
    return done.output


@pytest.mark.parametrize("benchmark", [*DATA, "opening"])
def test_every_cell_with_verdicts_leads_to_their_dialogues(benchmark: str, tmp_path: Path):
    runs: dict[str, Run] = name_runs(list(runs_of(benchmark, tmp_path)))
    tables = list(build_tables(runs))
    samples = sample_order(runs)
    index = CellIndex(runs, tables, samples)
    data = index.build_data()
    found = 0
    for named in list_cells(tables):
        key = index.find_key(named.number, named.row, named.column)
        assert key is not None, named.name
        numbers = data["sets"][data["cells"][key]["s"]]
        shown: list[str] = samples if numbers is None else [samples[at] for at in numbers]
        assert set(shown) == {verdict.sample for verdict in named.cell.verdicts}, named.name
        number: int = data["cells"][key]["r"]
        run = list(runs.values())[number]
        assert run.id == named.row.run or not named.row.run
        found += 1
    assert found > len(runs)


@pytest.fixture
def judged(toy: Path, tmp_path: Path, serve: Serve) -> weft.Run:
    url = serve().url
    home = tmp_path / "home"
    return weft.evaluate("weave", data=toy, model="copy", judge=f"openai-chat/judge@{url}", home=home)


def test_show_lists_the_verdicts_behind_a_cell_with_the_judges_raw_output(judged: weft.Run, tmp_path: Path):
    output = show(judged.id, "--cell", "avg by class/avg", "--limit", "2", "--home", tmp_path / "home")
    cell = judged.table().run_rows[0].cells["Avg"]
    assert f"{len(cell.verdicts)} verdicts in" in output and f"and {len(cell.verdicts) - 2} more" in output
    assert "weft show " in output and cell.format(3) in output
    everything = show(judged.id, "--cell", "1/Avg", "--limit", len(cell.verdicts), "--home", tmp_path / "home")
    assert "more verdicts" not in everything
    assert everything.count("raw output:") == sum(len(verdict.keys) for verdict in cell.verdicts) > 4


def test_show_says_which_cells_there_are(judged: weft.Run, tmp_path: Path):
    with pytest.raises(UserError, match=r"no cell is called 'Nothing'. There is:(.|\n)*1/Avg "):
        show(judged.id, "--cell", "Nothing", "--home", tmp_path / "home")
    with pytest.raises(UserError, match="leave the sample and --turn out"):
        show(judged.id, "toy", "--cell", "Avg", "--home", tmp_path / "home")


def test_the_numbers_of_a_comparison_lead_to_their_dialogues(toy: Path, tmp_path: Path, serve: Serve):
    job: dict[str, Any] = {"data": toy, "judge": f"openai-chat/judge@{serve().url}", "home": tmp_path / "home"}
    first = weft.evaluate("weave", model="copy", **job)
    second = weft.evaluate("weave", model="reference", **job)
    runs = name_runs([first, second])
    comparison = compare(first, second)
    samples = sample_order(runs)
    index = CellIndex(runs, [], samples, [comparison])
    entries = index.build_data()["cells"]
    headline = comparison.rows[0]
    found = {column: entries[index.find_key(COMPARED, headline, column)] for column in (FIRST, SECOND, DIFFERENCE)}
    assert [entry["r"] for entry in found.values()] == [0, 1, 1]
    assert found[DIFFERENCE]["o"] == "gap" and "headline score / difference: " in found[DIFFERENCE]["n"]
    for row in comparison.rows:
        assert len(row.first_verdicts) == len(row.second_verdicts) == row.difference.pairs
        mean = sum(verdict.value or 0 for verdict in row.first_verdicts) / len(row.first_verdicts)
        assert row.name == "headline score" or row.first == pytest.approx(mean)
    page = api.write_report([first, second], tmp_path / "page", home=tmp_path / "home").read_text()
    compared = page.partition("Compared: ")[2]
    assert compared.count('class="behind"') >= 3 * len(comparison.rows)
    assert b"verdicts" not in msgspec.json.encode(comparison.without_verdicts())


def test_words_name_the_first_table_and_strict_rows_first():
    def row(name: str, value: float, **fields: Any) -> Row:
        verdict = Verdict(f"sample of {name} {value}", 0, "m", value)
        return Row(name, {"Avg": Cell(value, 1, 1, verdicts=(verdict,)), "A/B": Cell(None)}, **fields)

    tables = [
        Table("by group", ("Avg", "A/B"), (row("x", 0.1, kind="part"), row("y", 0.2, kind="part")), kind="breakdown"),
        Table("all of it", ("Avg", "A/B"), (row("r", 0.4, arithmetic="official"), row("r", 0.3, arithmetic="strict"))),
    ]
    assert find_cell(tables, "avg").cell.value == 0.3
    assert find_cell(tables, "official/Avg").cell.value == 0.4
    assert find_cell(tables, "1/Y/Avg").cell.value == find_cell(tables, "avg/by group/y").cell.value == 0.2
    with pytest.raises(UserError, match="more than one cell is called 'by group/Avg'"):
        find_cell(tables, "by group/Avg")
    with pytest.raises(UserError, match="no cell is called 'A/B'"):  # it has no verdicts
        find_cell(tables, "A/B")
