"""Every CSV that leaves weft is written here, so that no spreadsheet takes a text of models, servers or datasets for a
formula."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
GUARD = "'"  # spreadsheets take what follows for text


def format_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table as CSV. Numbers have every digit, so that they can be read back exactly; None is an empty cell."""
    lines = [_format_line([guard_formula(column) for column in columns])]
    lines += [_format_line([_format_cell(value) for value in row]) for row in rows]
    return "".join(lines)


def guard_formula(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula. A plain number is none."""
    if text.startswith(FORMULA_STARTS) and NUMBER.fullmatch(text) is None:
        return GUARD + text
    return text


def remove_guard(cell: str) -> str:
    """Return the text that a cell was written from."""
    if cell.startswith(GUARD) and cell[1:].startswith(FORMULA_STARTS):
        return cell[1:]
    return cell


def _format_line(cells: Sequence[str]) -> str:
    """Return a line. What begins a new line in any program is quoted, not only our own end of a line."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow(cells)
    return out.getvalue().removesuffix("\r\n") + "\n"


def _format_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return repr(value)
    return guard_formula(str(value))
