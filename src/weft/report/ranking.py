"""Which cells of a leaderboard are the best and the second best of their column, for pages and for LaTeX."""

from weft.types import Cell, Table


def rank_cells(table: Table) -> dict[tuple[str, str], str]:
    """Return `best` or `second` by (row label, column), at the digits that are shown. Tied cells share their rank.

    A column with one number has no best. Official rows are not ranked, since they show a run a second time; neither
    are zeros, counts and cells of which a part is unscored. Tables that are not leaderboards have no ranks."""
    ranks: dict[tuple[str, str], str] = {}
    if table.kind != "leaderboard":
        return ranks
    for column in table.columns:
        values = _ranked_values(table, column)
        if len(values) < 2:
            continue
        ordered = sorted(set(values.values()), reverse=True)
        for label, value in values.items():
            if value == ordered[0]:
                ranks[label, column] = "best"
            elif value == ordered[1]:
                ranks[label, column] = "second"
    return ranks


def _ranked_values(table: Table, column: str) -> dict[str, float]:
    values: dict[str, float] = {}
    for row in table.rows:
        cell = row.cells.get(column)
        if row.arithmetic != "official" and cell is not None and _is_ranked(cell):
            values[row.label] = round(cell.value or 0.0, table.digits)
    return values


def _is_ranked(cell: Cell) -> bool:
    return bool(cell.value) and not cell.count and cell.scored == cell.expected
