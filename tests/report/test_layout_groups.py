"""Groups of columns in LaTeX tables: where a wide table is cut, and what stands above a group."""

from weft.report.latex_notes import describe_ranks
from weft.report.layout import plan_layout, span_columns
from weft.report.ranking import rank_cells
from weft.report.render import render
from weft.types import Cell, Row, Table

DOMAINS = ("Science", "Culture", "Common Sense", "Logic", "Overall")


def build_table(columns: tuple[str, ...], note: str = "", unranked: tuple[str, ...] = ()) -> Table:
    rows = tuple(
        Row(name, {column: Cell(value, 4, 4, value - 1, value + 1) for column in columns})
        for name, value in (("a model with a long name [of several settings]", 10.0), ("another one", 20.0))
    )
    return Table("t", columns, rows, note, unranked=unranked)


def test_a_wide_table_is_cut_between_groups():
    columns = tuple(f"{domain} {metric}" for domain in DOMAINS for metric in ("RP", "Align.", "RV"))
    plan = plan_layout(build_table(columns), intervals=True, below=0)
    assert len(plan.columns) > 1
    groups: list[str] = []
    for piece in plan.columns:
        groups += dict.fromkeys(column.group for column in piece)
    assert groups == list(DOMAINS), "no group is in two pieces"


def test_one_group_that_is_wider_than_the_page_is_cut():
    columns = tuple(f"Science {number} of many" for number in range(40))
    assert len(plan_layout(build_table(columns), intervals=True, below=0).columns) > 1


def test_a_header_over_several_columns_has_no_comma_at_its_end():
    plan = plan_layout(build_table(("document, free", "document, exact")), intervals=False, below=0)
    (heads,) = [head for head, columns in span_columns(plan.columns[0]) if len(columns) > 1]
    assert heads == ["document"]


def test_columns_without_a_best_are_not_marked():
    table = build_table(("x", "images"), unranked=("images",))
    ranks = rank_cells(table)
    assert set(ranks.values()) == {"best", "second"} and {column for _, column in ranks} == {"x"}
    assert describe_ranks(table, ranks, []) == "Best in bold, second underlined"


def test_a_note_says_nothing_of_intervals_that_are_not_shown():
    note = "Changes are from a, with 95% intervals by dialogue. A correlation without interval: none. n: how many."
    table = build_table(("x",), note)
    plain = render([table], [], "latex")
    assert "Changes are from a." in plain and "interval" not in plain and "n: how many" in plain
