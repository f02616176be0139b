"""Tables that may be wider than the terminal: cut between columns, with the first ones repeated. No cell is cut."""

from collections.abc import Sequence

from rich.table import Table

from weft.cli.screen import Screen

CELL_FRAME = 3  # a cell's padding, and the border on one side


def print_in_blocks(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    labels: int = 1,
    left: Sequence[str] = (),
    screen: Screen | None = None,
) -> None:
    """Print a table, in as many blocks as the width needs. The first `labels` columns are in each; those named in
    `left` are aligned to the left."""
    screen = screen or Screen()
    widths = [max(map(len, column)) for column in zip(columns, *rows, strict=True)]
    for number, block in enumerate(cut_columns(widths, screen.width, labels)):
        table = Table(title=title if not number else None, title_justify="left")
        for index in block:
            table.add_column(columns[index], no_wrap=True, justify="left" if columns[index] in left else "right")
        for row in rows:
            table.add_row(*(row[index] for index in block))
        screen.print(table)


def cut_columns(widths: Sequence[int], width: int, labels: int) -> list[list[int]]:
    """Return the columns of each block: the labels, and as many others as fit, but at least one."""
    first = list(range(labels))
    used = sum(widths[index] + CELL_FRAME for index in first) + 1
    blocks: list[list[int]] = []
    free = 0
    for index in range(labels, len(widths)):
        need = widths[index] + CELL_FRAME
        if need > free or not blocks:
            blocks.append([*first])
            free = width - used
        blocks[-1].append(index)
        free -= need
    return blocks or [first]
