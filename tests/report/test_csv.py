"""No cell of a CSV that leaves weft is a formula, whichever command writes it."""

import ast
import csv
import io
from pathlib import Path

import pytest

import weft
from weft.report.csv_table import FORMULA_STARTS, format_csv, remove_guard
from weft.report.export import export_run
from weft.workspace import open_annotations

SOURCE = Path(__file__).parents[2] / "src" / "weft"
FORMULAS = ("=cmd|' /C calc'!A0", "@SUM(1)", "+1+1", "-2+3", "\t=1", "\r=1", "\n=1", "\uff1d1+1", '=HYPERLINK("x")')


def cells_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_formula_is_a_text_and_comes_back_as_it_was(formula: str):
    (header, row) = cells_of(format_csv([formula], [[formula]]))
    assert header == row == ["'" + formula] and remove_guard(row[0]) == formula


def test_numbers_stay_numbers_and_come_back_exactly():
    values = [-0.1, 1 / 3, -7, 1e-300, "-0.50", "+3", "1e5", None, ""]
    (_, row) = cells_of(format_csv(["x"] * len(values), [values]))
    assert row == ["-0.1", repr(1 / 3), "-7", "1e-300", "-0.50", "+3", "1e5", "", ""]


def test_an_export_has_no_formula(toy: Path, tmp_path: Path):
    """A judge, and a model, that answer with formulas."""
    judge = tmp_path / "judging.py"
    judge.write_text(
        "import json\n\n"
        "def judge(messages, want):\n"
        f"    return json.dumps({{'score': 5, 'reasoning': {FORMULAS[0]!r}, 'reason': {FORMULAS[0]!r}}})\n\n"
        "judge.version = '1'\n"
    )
    home = tmp_path / "home"
    run = weft.evaluate("weave", data=toy, model="copy", judge=f"{judge}:judge", home=home)
    export_run(run, home, tmp_path / "out")
    open_annotations(home).close()
    texts = {path.name: path.read_text() for path in (tmp_path / "out").glob("*.csv")}
    texts["report"] = weft.api.report([run], format="csv")
    assert "verdicts.csv" in texts and FORMULAS[0] in texts["verdicts.csv"]
    for name, text in texts.items():
        for row in cells_of(text):
            for cell in row:
                assert not cell.startswith(FORMULA_STARTS) or float(cell) <= 0, (name, cell)


def test_there_is_one_writer_of_csv():
    writers = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in ("writer", "DictWriter")
        if isinstance(node.value, ast.Name) and node.value.id == "csv"
    }
    assert writers == {"report/csv_table.py"}
