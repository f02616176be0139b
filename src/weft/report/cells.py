"""What a cell says, in every format: its value; where items behind it are unscored, how many of how many stand behind it; its interval.
Whoever shows a number shows what is made here."""

from weft.types import Cell


def shown(cell: Cell | None, digits: int = 3) -> str:
    if cell is None or (cell.value is None and not cell.due):
        return "-"
    value = "unscored" if cell.value is None else f"{cell.value:.{0 if cell.count else digits}f}"
    value += "" if cell.deviation is None or cell.value is None else f" ± {cell.deviation:.{digits}f}"
    return value if cell.scored == cell.due else f"{value} ({cell.scored}/{cell.due})"


def interval(cell: Cell | None, digits: int = 3) -> str:
    """The 95% interval; nothing where there is none."""
    if cell is None or cell.low is None or cell.high is None or cell.value is None:
        return ""
    return f"[{cell.low:.{digits}f}, {cell.high:.{digits}f}]"


def with_range(cell: Cell | None, digits: int = 3) -> str:
    """The value with its 95% interval."""
    return " ".join(text for text in (shown(cell, digits), interval(cell, digits)) if text)
