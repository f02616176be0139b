"""What the terminal shows: help in panels, examples that fit, tables in the terminal's width."""

import io
from collections.abc import Iterator
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from weft.benchmarks.base import BUILT_IN, load_benchmark
from weft.building.recipe import list_recipes
from weft.cli.app import app
from weft.cli.columns import align_rows
from weft.cli.help import PANELS
from weft.cli.screen import Screen
from weft.cli.tables import print_table
from weft.report.columns import order_for_screen
from weft.types import Cell, Row, Table


def command_paths(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from command_paths(command, (*path, name))
        else:
            yield (*path, name)


PATHS = [
    *command_paths(get_command(app)),
    *(("run", name) for name in BUILT_IN),
    *(("build", name) for name in list_recipes()),
]


def help_text(*path: str, width: int, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    return CliRunner().invoke(app, [*path, "--help"]).output


def test_every_command_is_in_one_panel():
    listed = [name for names in PANELS.values() for name in names]
    root: Any = get_command(app)
    assert sorted(listed) == sorted(root.commands)


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_help_has_an_example_and_no_cut_description(path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch):
    text = help_text(*path, width=80, monkeypatch=monkeypatch)
    assert "Examples:" in text
    usage, *lines = text.splitlines()
    assert usage.startswith("Usage:") and not [line for line in lines if line.endswith("...")]
    assert max(map(len, lines)) <= 100, "examples fit a usual terminal"


def test_the_options_of_a_run_are_grouped(monkeypatch: pytest.MonkeyPatch):
    text = help_text("run", "weave", width=100, monkeypatch=monkeypatch)
    titles = ("\nModel:", "\nJudge:", "\nData and selection:", "\nLimits:", "\nOptions of weave:", "\nOther options:")
    places = [text.index(title) for title in titles]
    assert places == sorted(places)


def print_at(width: int, table: Table, *, terminal: bool = True, **options: Any) -> str:
    file = io.StringIO()
    screen = Screen(file=file, width=width, soft_wrap=True, force_terminal=terminal, color_system=None)
    print_table(screen, table, **options)
    return file.getvalue()


def build_table(rows: int) -> Table:
    columns = ("Science RV", "Science IQ", "Logic RV", "Logic IQ", "Overall")
    cells = {column: Cell(0.5) for column in columns}
    return Table("A table", columns, tuple(Row(f"model number {index}", cells) for index in range(rows)))


@pytest.mark.parametrize("width", [40, 80, 100, 160])
@pytest.mark.parametrize("rows", [0, 1, 3, 12])
def test_a_table_keeps_to_the_width_and_has_the_headline_first(width: int, rows: int):
    text = print_at(width, build_table(rows))
    assert "continued" not in text
    grid = [line for line in text.splitlines() if line[:1] in "┏┃│└"]
    assert max(map(len, grid)) <= width
    assert text.index("Overall") < text.index("RV")


HEADLINES = {"weave": "Avg", "imug": "Avg", "rover-ig": "AVG", "rover-tg": "AVG", "planviz": "Avg"}
HEADLINES |= dict.fromkeys(("weaverbench", "opening", "risebench", "imgedit", "geneval"), "Overall")
HEADLINES |= {"gedit": "Avg", "mmvet": "Total"}


@pytest.mark.parametrize("benchmark", HEADLINES)
def test_the_first_table_of_a_benchmark_begins_with_its_headline_score(benchmark: str):
    table = next(iter(load_benchmark(benchmark).tables([])))
    assert order_for_screen(table)[0] == HEADLINES[benchmark]


def test_columns_that_do_not_fit_are_named():
    text = print_at(40, build_table(12))
    assert "more columns need a wider terminal" in text
    assert all(column in text.replace("\n", " ") for column in ("Logic RV", "Logic IQ"))


def test_into_a_pipe_no_column_is_hidden():
    text = print_at(40, build_table(12), terminal=False)
    assert "more columns" not in text
    assert text.count("0.500") == 5 * 12
    assert max(map(len, text.splitlines())) > 40


def test_a_legend_spells_out_the_columns_that_there_are():
    glossary = {"RV": "reasoning visualisation", "KP": "key points"}
    text = print_at(160, build_table(1), glossary=glossary)
    assert "RV: reasoning visualisation" in text and "key points" not in text
    assert ":" not in print_at(160, build_table(1))


def test_rows_of_a_narrow_terminal_take_two_lines_and_lose_nothing():
    header = ("run", "title", "score")
    rows = [("1a2b", "a long title that needs room", "0.5")]
    assert align_rows(header, rows, 80, label=1) == [
        "run   title                         score",
        "1a2b  a long title that needs room  0.5",
    ]
    assert align_rows(header, rows, 30, label=1) == [
        "run   title",
        "      score",
        "1a2b  a long title that needs room",
        "      0.5",
    ]
