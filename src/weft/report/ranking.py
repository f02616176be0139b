"""Which cells of a table are the best of their column, the second and the third, for pages and for LaTeX."""

from collections.abc import Collection

from weft.rounding import round_number
from weft.types import Cell, Row, Table

RANKS = ("best", "second", "third")
DEFAULT_RANKS = 2


def rank_cells(
    table: Table, rivals: Collection[str] | None = None, top: int = DEFAULT_RANKS
) -> dict[tuple[str, str], str]:
    """Return the first `top` of RANKS by (row label, column), at the digits that are shown. Tied cells share their
    rank.

    `rivals`: the labels of the rows that compete. Without it all do but official rows, which show a run a second time.
    Rows of one group compete with each other, and in a table of parts rows of the same part. A column with one number
    has no best, and none of `table.unranked` has one. Counts and cells of which a part is unscored are not ranked. A
    zero is a number to be better than, and is never marked itself. Other tables have no ranks."""
    if table.kind not in ("leaderboard", "parts", "groups"):
        return {}
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in table.rows:
        competes = row.arithmetic != "official" if rivals is None else row.label in rivals
        if competes:
            groups.setdefault((row.group, part_of(table, row)), []).append(row)
    ranks: dict[tuple[str, str], str] = {}
    columns = [column for column in table.columns if column not in table.unranked]
    for rows in groups.values():
        for column in columns:
            ranks |= {(label, column): rank for label, rank in _rank_column(rows, column, table.digits, top).items()}
    return ranks


def part_of(table: Table, row: Row) -> str:
    """Return the part in which a row competes. Published means `macro of what is printed` are of the part `macro`."""
    if table.kind != "parts":
        return ""
    return row.subset.partition(" of ")[0]


def _rank_column(rows: Collection[Row], column: str, digits: int, top: int) -> dict[str, str]:
    values: dict[str, float] = {}
    for row in rows:
        cell = row.cells.get(column)
        if cell is not None and _is_ranked(cell):
            values[row.label] = round_number(cell.value or 0.0, cell.decimals(digits))
    if len(values) < 2:
        return {}
    ordered = sorted(set(values.values()), reverse=True)
    names = dict(zip(ordered[:top], RANKS, strict=False))
    return {label: names[value] for label, value in values.items() if value and value in names}


def _is_ranked(cell: Cell) -> bool:
    return cell.value is not None and not cell.count and cell.scored == cell.expected
