"""A chart of numbers by row and column: a colored cell for each, with the number in it."""

from collections.abc import Mapping, Sequence
from typing import Any

from weft.report.plots import FAINT, PAPER, base_chart, with_style
from weft.report.series import LABEL_LINE, name_axis, wrap_name
from weft.rounding import format_number

CELL_WIDTH = 58.0
CELL_HEIGHT = 30.0
MAX_HEAD = 14  # characters of a column's name on one line
MAX_LABEL = 44  # of a row's
LINE_HEIGHT = 14
MAX_COLUMNS = 9  # more are drawn as rows, if there are fewer rows
LIGHTEST = "#eef4fa"
DARKEST = "#0b3d70"
DARK_TEXT = "#16202b"  # cells have their colors on dark pages too, and so has the text on them
LIGHT_TEXT = "#f7f9fb"
LIGHT_TEXT_FROM = 0.55  # of the scale: text on darker cells is light
Values = Mapping[tuple[str, str], float | None]


def heat_map(
    values: Values,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    title: str,
    domain: tuple[float, float],
    digits: int,
    legend: str = "score",
) -> Any:
    """Return the chart. A row and column without a value has an empty cell. `domain`: the ends of the color scale.

    Many columns of few rows are drawn as rows, so that the chart is no wider than a page."""
    import altair as alt

    if len(columns) > max(MAX_COLUMNS, len(rows)):
        turned = {(column, row): value for (row, column), value in values.items()}
        return heat_map(turned, columns, rows, title=title, domain=domain, digits=digits, legend=legend)
    low, high = domain
    row_names = ["\n".join(wrap_name(name, MAX_LABEL)) for name in rows]
    column_names, head_lines = _wrap_heads(columns)
    cells: list[dict[str, Any]] = []
    for row, row_name in zip(rows, row_names, strict=True):
        for column, column_name in zip(columns, column_names, strict=True):
            value = values.get((row, column))
            if value is not None:
                share = (value - low) / (high - low) if high > low else 0.0
                text = format_number(value, digits)
                cells.append({"row": row_name, "column": column_name, legend: value, "text": text, "share": share})
    widest = max((len(cell["text"]) for cell in cells), default=1)
    width = max(CELL_WIDTH, 9.0 * widest, *(_head_width(name) for name in column_names)) * len(columns)
    most_lines = max((name.count("\n") + 1 for name in row_names), default=1)
    height = max(CELL_HEIGHT, LABEL_LINE * most_lines) * len(row_names)  # all rows are equally high
    base = base_chart(cells, title, width, height)
    lines = "split(datum.label, '\\n')"
    x = alt.X("column:N", sort=column_names, title=None, axis=alt.Axis(
        orient="top", labelAngle=0, labelLimit=0, labelExpr=lines, labelBaseline="bottom", domain=False, ticks=False,
        labelLineHeight=LINE_HEIGHT, labelPadding=6 + LINE_HEIGHT * (head_lines - 1),
    ))  # fmt: skip
    y = alt.Y("row:N", sort=row_names, title=None, axis=name_axis(domain=False, ticks=False))
    scale = alt.Scale(domain=[low, high], range=[LIGHTEST, DARKEST], clamp=True)
    color = alt.Color(
        f"{legend}:Q",
        scale=scale,
        legend=alt.Legend(orient="right", title=legend, labelLimit=0, gradientStrokeColor=FAINT),
    )
    rectangles = base.mark_rect(stroke=PAPER, strokeWidth=1.5).encode(x, y, color)
    layers = [rectangles]
    for condition, ink in (("datum.share < ", DARK_TEXT), ("datum.share >= ", LIGHT_TEXT)):
        texts = base.transform_filter(f"{condition}{LIGHT_TEXT_FROM}").mark_text(fontSize=12, color=ink)
        layers.append(texts.encode(x, y, alt.Text("text:N")))
    return with_style(alt.layer(*layers))


def _wrap_heads(columns: Sequence[str]) -> tuple[list[str], int]:
    """Return the names of columns in as many lines each, the first of which may be empty, and how many those are."""
    wrapped = [wrap_name(name, MAX_HEAD) for name in columns]
    count = max(map(len, wrapped), default=1)
    return ["\n".join(["" for _ in range(count - len(lines))] + lines) for lines in wrapped], count


def _head_width(name: str) -> float:
    """Return about how many pixels the name of a column needs."""
    return 7.2 * max(map(len, name.split("\n"))) + 8
