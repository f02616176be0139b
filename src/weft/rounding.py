"""The one rounding: a number is rounded once, when it is shown.

    format_number(0.9945, 3)     # 0.995

Half-way goes away from zero, as on paper. `assets/list.js` has the same function for pages.
"""

import math

SIGNIFICANT_DIGITS = 12  # two ways to compute one number differ only beyond them


def round_number(number: float, digits: int) -> float:
    """Return a number with this many decimals. Zero never has a minus."""
    if not math.isfinite(number):
        return number
    scale = 10.0**digits
    scaled = float(f"{abs(number) * scale:.{SIGNIFICANT_DIGITS}g}")
    return math.copysign(math.floor(scaled + 0.5) / scale, number) or 0.0


def format_number(number: float, digits: int, *, sign: bool = False) -> str:
    """Return a number as text with this many decimals. `sign` adds a plus."""
    rounded = round_number(number, digits)
    if sign:
        return f"{rounded:+.{digits}f}"
    return f"{rounded:.{digits}f}"


def format_bounds(low: float, high: float, digits: int) -> str:
    """Return an interval, such as `[0.480, 0.541]`."""
    return f"[{format_number(low, digits)}, {format_number(high, digits)}]"
