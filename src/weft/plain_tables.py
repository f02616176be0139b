"""A table as plain text, and as HTML for a notebook, with names escaped."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from weft.untrusted import escape_control_characters

if TYPE_CHECKING:
    from weft.types import Row, Table


def table_text(table: Table) -> str:
    """Return values with their intervals, in columns."""
    rows = [["", *map(escape_control_characters, table.columns)]]
    for row in table.rows:
        rows.append([escape_control_characters(row.label)])
        for column in table.columns:
            rows[-1].append(escape_control_characters(" ".join(_format_cell(table, row, column)).strip()))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [escape_control_characters(table.title)]
    for row in rows:
        cells = [text.ljust(width) for text, width in zip(row, widths, strict=True)]
        lines.append("  ".join(cells).rstrip())
    if table.published_rows and table.note:
        lines.append(table.note)
    return "\n".join(lines)


def table_html(table: Table) -> str:
    """Return values with their intervals, with names escaped."""
    head = "".join(f"<th>{escape_text(column)}</th>" for column in ("", *table.columns))
    rows: list[str] = []
    for row in table.rows:
        cells = [f"<th>{escape_text(row.label)}</th>"]
        for column in table.columns:
            value, interval = _format_cell(table, row, column)
            cells.append(f"<td>{escape_text(value)}<br><small>{escape_text(interval)}</small></td>")
        rows.append(f"<tr>{''.join(cells)}</tr>")
    note = ""
    if table.published_rows:
        note = f"<p>{escape_text(table.note)}</p>"
    return f"<table><caption>{escape_text(table.title)}</caption><tr>{head}</tr>{''.join(rows)}</table>{note}"


def escape_text(text: str) -> str:
    """Return a text for a notebook's cell."""
    return html.escape(escape_control_characters(text))


def _format_cell(table: Table, row: Row, column: str) -> tuple[str, str]:
    """Return a cell's value and its interval; a dash and nothing for a missing cell."""
    cell = row.cells.get(column)
    if cell is None:
        return "-", ""
    return cell.format(table.digits), cell.format_interval(table.digits)
