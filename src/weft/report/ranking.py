"""Which numbers of a table are the best of their column, and which the second: for LaTeX and for pages. Ties share
their mark. A run's official row is the same run again, and is left out; so are tables whose rows are no rivals."""

from weft.types import Table


def rank_cells(table: Table) -> dict[tuple[str, str], str]:
    """(row, column) -> `best` or `second`, at the digits that are shown. A column with one number has no best; nothing
    is marked that is zero, or of which a part is unscored."""
    made: dict[tuple[str, str], str] = {}
    if table.kind != "leaderboard":
        return made
    for column in table.columns:
        values = {
            row.label: round(cell.value, table.digits)
            for row in table.rows
            if row.arithmetic != "official"
            if (cell := row.cells.get(column)) is not None
            and cell.value
            and not cell.count
            and cell.scored == cell.expected
        }
        ranked = sorted(set(values.values()), reverse=True)
        if len(values) < 2:
            continue
        for name, value in values.items():
            if value in ranked[:2] and len(ranked) > 1:
                if value == ranked[0]:
                    made[name, column] = "best"
                else:
                    made[name, column] = "second"
    return made
