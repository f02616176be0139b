"""The official numbers that a run of weft prints, by table, row and column."""

import weft


def official_cells(run: weft.Run, digits: int) -> dict[tuple[str, str, str], float]:
    """Cells of the rows that are official, or strict and official at once, with as many digits as the scripts give.

    Titles stand without the name of the dataset or of the run. The row of a breakdown is known by its part, that of a
    leaderboard by its subset.
    """
    cells: dict[tuple[str, str, str], float] = {}
    for table in run.tables():
        if table.title.endswith(", strict"):
            continue
        title = table.title.partition(": ")[2].removesuffix(", official").partition(" (paper")[0]
        for row in table.run_rows:
            name = row.name if table.kind == "breakdown" else row.subset
            if row.arithmetic != "strict":
                found = {column: cell.value for column, cell in row.cells.items() if cell.value is not None}
                found = {column: value for column, value in found.items() if not _is_added(run, column)}
                cells |= {(title, name, column): as_scripts_round(value, digits) for column, value in found.items()}
    return cells


def _is_added(run: weft.Run, column: str) -> bool:
    """Whether a column is of the paper's table and not of what the scripts print."""
    return run.benchmark.name.startswith("rover") and column.startswith("Overall")


def as_scripts_round(value: float, digits: int) -> float:
    """A number as Python's `round` has it, of which the scripts make use. Two ways to compute one number differ in its
    last bits, which would decide where a number lies half-way."""
    return round(float(f"{value:.12g}"), digits)
