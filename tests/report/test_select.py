"""What is shown of the tables, in every text format."""

import csv
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import UserError
from weft.report.render import render
from weft.report.select import Choices, parse_choices, select_tables
from weft.types import Cell, Row, Table


def table(title: str, columns: tuple[str, ...], *labels: str) -> Table:
    def row(label: str) -> Row:
        cells = {column: Cell(len(label) / 100 + place / 10) for place, column in enumerate(columns)}
        return Row(label.strip("*"), cells, kind="published" if label.endswith("*") else "run")

    return Table(title, columns, tuple(map(row, labels)))


TABLES = [
    table("By class", ("KP", "VC", "Avg"), "mine", "cascade:reasoner=a,painter=b", "Bagel 14B*", "GPT-4o*"),
    table("By domain", ("Avg", "Fruit, and more"), "fruit", "toys"),
    table("By class, again", ("Other",), "mine"),
]


def shape(**given: Any) -> dict[int, tuple[tuple[str, ...], list[str]]]:
    found = select_tables(TABLES, parse_choices(given, "md"))
    return {number: (one.columns, [row.label for row in one.rows]) for number, one in found.items()}


def test_columns_come_in_the_order_that_is_asked_for_and_cells_with_them():
    found = select_tables(TABLES, parse_choices({"columns": "avg,KP"}, "md"))
    assert {number: one.columns for number, one in found.items()} == {1: ("Avg", "KP"), 2: ("Avg",)}
    assert all(set(row.cells) == set(one.columns) for one in found.values() for row in one.rows)
    assert shape(columns="Fruit, and more") == {2: (("Fruit, and more",), ["fruit", "toys"])}
    assert shape(columns=["Fruit, and more", "VC"])[1][0] == ("VC",)


def test_rows_by_a_part_of_their_label_or_by_what_they_are():
    assert shape(rows="bagel") == {1: (("KP", "VC", "Avg"), ["Bagel 14B"])}
    assert shape(rows="published,mine")[1][1] == ["mine", "Bagel 14B", "GPT-4o"]
    assert shape(rows="ours")[1][1] == ["mine", "cascade:reasoner=a,painter=b"]
    assert shape(rows="reasoner=a,painter")[1][1] == ["cascade:reasoner=a,painter=b"], "a comma may be part of a name"


def test_tables_by_number_or_by_a_part_of_their_title():
    assert (
        list(shape(tables="1,3")) == [1, 3]
        and list(shape(tables="domain")) == [2]
        and list(shape(tables=["class", 2])) == [1, 2, 3]
    )
    assert list(shape(tables="3,1")) == [1, 3] and list(shape(tables=2)) == [2]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"columns": "KP,Nope"}, "there is no column 'Nope'; there is KP; VC; Avg; Fruit, and more; Other"),
        ({"columns": "KP", "tables": "2"}, "no column 'KP'; there is Avg; Fruit, and more"),
        ({"rows": "gemini"}, "no row 'gemini'; there is ours; strict; official; published; mine; cascade"),
        ({"rows": "published", "tables": "2"}, "no published rows"),
        ({"tables": "4"}, "no table '4'; there is 1: By class; 2: By domain; 3: By class, again"),
        ({"tables": "0"}, "no table '0'"),
        ({"tables": "²"}, "no table '²'"),
        ({"columns": ""}, "no column ''"),
        ({"rows": ", ,"}, "no row ''"),
        ({"colour": "red"}, "has no argument 'colour'; it has columns, rows, tables, intervals, label"),
        ({"intervals": "yes"}, "Expected `bool`"),
    ],
)
def test_what_fits_nothing_is_told_with_what_there_is(given: dict[str, Any], said: str):
    with pytest.raises(UserError) as told:
        select_tables(TABLES, parse_choices(given, "latex"))
    assert said in str(told.value)


@pytest.mark.parametrize("format", ["html", "parquet"])
@pytest.mark.parametrize("name", ["columns", "rows", "tables", "intervals", "label"])
def test_formats_that_show_all_refuse_a_choice(name: str, format: str):
    with pytest.raises(UserError, match=f"--{name} is for .*not for {format}"):
        parse_choices({name: True if name == "intervals" else "1"}, format)
    assert (
        parse_choices(
            {name: None if name in ("columns", "rows", "tables") else ""} if name != "intervals" else {}, format
        )
        == Choices()
    )


@pytest.mark.parametrize("format", ["md", "csv", "json"])
def test_what_is_latexs_is_refused_elsewhere(format: str):
    for one in ({"intervals": True}, {"label": "tab:x"}):
        with pytest.raises(UserError, match="is for latex"):
            parse_choices(one, format)


def test_every_text_format_shows_what_is_chosen_alone():
    chosen = parse_choices({"columns": "Avg,KP", "rows": "ours", "tables": "1"}, "csv")
    assert "| | Avg | KP |" in (md := render(TABLES, [], "md", chosen)) and "Bagel" not in md and "domain" not in md
    rows = list(csv.DictReader(io.StringIO(render(TABLES, [], "csv", chosen))))
    assert [(row["row"], row["column"]) for row in rows[:2]] == [("mine", "Avg"), ("mine", "KP")] and len(rows) == 4
    made = json.loads(render(TABLES, [], "json", chosen))["tables"]
    assert len(made) == 1 and set(made[0]["rows"][0]["cells"]) == {"Avg", "KP"}
    latex = render(TABLES, [], "latex", chosen)
    assert " & Avg & KP \\\\" in latex and "Bagel" not in latex and latex.count(r"\begin{table") == 1


@given(
    st.lists(st.sampled_from(["KP", "Avg", "Other"]), max_size=3),
    st.lists(st.sampled_from(["ours", "gpt", "toys", "mine"]), max_size=3),
    st.lists(st.sampled_from(["1", "2", "class"]), max_size=3),
)
def test_what_is_chosen_is_never_empty_and_nothing_is_changed(columns: list[str], rows: list[str], tables: list[str]):
    try:
        found = select_tables(TABLES, Choices(tuple(columns), tuple(rows), tuple(tables)))
    except UserError:
        return
    assert found and all(one.rows and one.columns for one in found.values())
    for number, one in found.items():
        whole = TABLES[number - 1]
        assert all(row.cells[column] == whole.cells(row.label)[column] for row in one.rows for column in one.columns)
