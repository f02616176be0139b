"""Rows as lines of text: in columns where the screen is wide enough, else the first words of a row above the rest.
Nothing is ever cut."""

from collections.abc import Sequence


def lines(
    head: Sequence[str], rows: Sequence[Sequence[str]], width: int, *, name: int, numbers: bool = False
) -> list[str]:
    """`name` is the column that may be long; what stands before it stays with it. `numbers`: columns after it are set
    to the right."""
    widths = [max(len(row[at]) for row in (head, *rows)) for at in range(len(head))]
    if sum(widths) + 2 * (len(widths) - 1) <= width:
        return [_line(row, widths, name, numbers) for row in (head, *rows)]
    if name:
        first = widths[0]
    else:
        first = 2
    made = [" " * (first + 2 if name else first) + _line(head[name + 1 :], widths[name + 1 :], -1, numbers)]
    for row in rows:
        made.append("  ".join([row[0].ljust(first), *row[1 : name + 1]]) if name else row[0])
        made.append(" " * (first + 2 if name else first) + _line(row[name + 1 :], widths[name + 1 :], -1, numbers))
    return made


def _line(row: Sequence[str], widths: Sequence[int], name: int, numbers: bool) -> str:
    cells = [
        cell.rjust(width) if numbers and at > name else cell.ljust(width)
        for at, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()
