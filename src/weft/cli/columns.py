"""Rows of text in aligned columns. Where the terminal is too narrow, a row takes two lines; nothing is ever cut."""

from collections.abc import Sequence

GAP = 2  # spaces between columns


def align_rows(
    header: Sequence[str], rows: Sequence[Sequence[str]], width: int, *, label: int, numbers: bool = False
) -> list[str]:
    """Return the header and the rows as lines.

    `label` is the index of the column that may be long: in a narrow terminal the columns up to it are on a line of
    their own. `numbers`: the columns after it are aligned to the right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    if sum(widths) + GAP * (len(widths) - 1) <= width:
        return [_align_row(row, widths, label, numbers) for row in (header, *rows)]
    return _align_two_line_rows(header, rows, widths, label, numbers)


def _align_two_line_rows(
    header: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int], label: int, numbers: bool
) -> list[str]:
    if label:
        indent = " " * (widths[0] + GAP)
    else:
        indent = " " * GAP
    value_widths = widths[label + 1 :]
    lines: list[str] = []
    if any(header[: label + 1]):
        lines.append("  ".join([header[0].ljust(widths[0]), *header[1 : label + 1]]).rstrip())
    lines.append(indent + _align_row(header[label + 1 :], value_widths, -1, numbers))
    for row in rows:
        if label:
            lines.append("  ".join([row[0].ljust(widths[0]), *row[1 : label + 1]]))
        else:
            lines.append(row[0])
        lines.append(indent + _align_row(row[label + 1 :], value_widths, -1, numbers))
    return lines


def _align_row(row: Sequence[str], widths: Sequence[int], label: int, numbers: bool) -> str:
    cells: list[str] = []
    for index, (cell, width) in enumerate(zip(row, widths, strict=True)):
        if numbers and index > label:
            cells.append(cell.rjust(width))
        else:
            cells.append(cell.ljust(width))
    return (" " * GAP).join(cells).rstrip()
