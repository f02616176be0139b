"""What a cell says, in every format: its value, and its interval. Whoever shows a number shows what is made here."""

from weft.types import Cell


def shown(cell: Cell | None, digits: int = 3) -> str:
    return "-" if cell is None else cell.told(digits)


def interval(cell: Cell | None, digits: int = 3) -> str:
    """The 95% interval; nothing where there is none."""
    return "" if cell is None else cell.between(digits)


def with_range(cell: Cell | None, digits: int = 3) -> str:
    """The value with its 95% interval."""
    return " ".join(text for text in (shown(cell, digits), interval(cell, digits)) if text)
