"""The plot of a grid: lines over a setting that is a number, a heat map where columns are groups, bars otherwise."""

from collections.abc import Sequence
from typing import Any

from weft.report import plots
from weft.report.charts import MAX_SERIES, Plot, in_words
from weft.report.grid_layout import GridLayout
from weft.report.heat_map import heat_map
from weft.report.select import format_with_change
from weft.results.settings import is_numeric
from weft.types import Cell, Table

NAME = "grid"
MIN_POINTS = 3  # of a line


def build_grid_plot(layout: GridLayout, table: Table, column: str, change: str) -> Plot | None:
    """Return the plot of a grid's table: `column` has the number that is plotted, `change` its change in percent,
    which bars have beside them. None where there is no number."""
    values = [row.cells[column].value for row in table.rows]
    if all(value is None for value in values):
        return None
    title = table.title
    if layout.axis:
        chart = _draw_heat_map(layout, table, column)
    elif len(layout.values[-1]) >= MIN_POINTS and is_numeric(layout.values[-1]):
        chart = _draw_lines(layout, table, column)
    else:
        chart = _draw_bars(layout, table, column, change)
    described = [f"{row.label}: {row.cells[column].format(table.digits)}" for row in table.rows]
    return Plot(NAME, title, chart, f"{title}. {'; '.join(described)}")


def _draw_heat_map(layout: GridLayout, table: Table, column: str) -> Any:
    values: dict[tuple[str, str], float | None] = {}
    columns = [*layout.groups, column]
    for row in table.rows:
        for name in columns:
            values[row.label, in_words(name)] = row.cells.get(name, Cell(None)).value
    labels = [row.label for row in table.rows]
    names = [in_words(name) for name in columns]
    domain = find_domain([value for value in values.values() if value is not None])
    return heat_map(values, labels, names, title=table.title, domain=domain, digits=table.digits)


def find_domain(values: Sequence[float]) -> tuple[float, float]:
    """Return the ends of a color scale: from the lowest to the highest number."""
    low = min(values)
    high = max(values)
    if low == high:
        return (min(0.0, low), max(high, 1e-9))
    return (low, high)


def _split_keys(layout: GridLayout) -> list[tuple[str, str]]:
    """Return for each row the name of its series and its place on the axis of the last setting."""
    return [(", ".join(key[:-1]), key[-1]) for key in layout.cells]


def _draw_lines(layout: GridLayout, table: Table, column: str) -> Any:
    setting = in_words(layout.settings[-1])
    rows: list[dict[str, Any]] = []
    for (series, value), row in zip(_split_keys(layout), table.rows, strict=True):
        cell = row.cells[column]
        if cell.value is not None:
            score = {"score": cell.value, "low": cell.low, "high": cell.high}
            rows.append({setting: float(value), "series": series or column, **score})
    top = _find_top(rows)
    heading = ", ".join(map(in_words, layout.settings[:-1]))
    return plots.line_chart(
        rows, x=setting, y="score", series="series", title=table.title, top=top, legend_title=heading
    )


def _draw_bars(layout: GridLayout, table: Table, column: str, change: str) -> Any:
    """Return bars in groups of the first settings, one for each value of the last; with many values, or only one
    setting, one for each row."""
    is_grouped = len(layout.settings) > 1 and len(layout.values[-1]) <= MAX_SERIES
    rows: list[dict[str, Any]] = []
    for (series, value), row in zip(_split_keys(layout), table.rows, strict=True):
        cell = row.cells[column]
        if cell.value is None:
            continue
        names = {"name": series, "series": value} if is_grouped else {"name": row.label, "series": column}
        text = format_with_change(cell, row.cells.get(change), table.digits)
        rows.append({**names, "score": cell.value, "low": cell.low, "high": cell.high, "text": text})
    heading = ", ".join(map(in_words, layout.settings[-1:]))
    return plots.horizontal_bar_chart(
        rows, name="name", x="score", series="series", title=table.title, legend_title=heading
    )


def _find_top(rows: Sequence[dict[str, Any]]) -> float:
    """Return the highest number that is drawn."""
    return max(max(row["score"], row["high"] or row["score"]) for row in rows)
