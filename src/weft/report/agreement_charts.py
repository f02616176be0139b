"""Bar charts of agreement tables: correlations, errors and means by metric or class, with a bar for each row.

A table's columns end in what they measure, as in `KP r`, `RV MAE` or `Cor judge`; columns that end otherwise are
correlations. Rows without a value, such as those that a paper does not print, are not drawn."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec import Struct

from weft.report import plots
from weft.report.charts import MAX_SERIES, Plot
from weft.rounding import format_number
from weft.types import Row, Table

CORRELATION = "Pearson r"
ERROR = "mean absolute error"
MEAN = "mean score"
MEASURES = {"r": CORRELATION, "MAE": ERROR, "judge": MEAN, "people": MEAN, "other": MEAN}
NAMES = {CORRELATION: "r", ERROR: "mae", MEAN: "means"}  # of files
TOPS = {CORRELATION: 1.0, MEAN: 1.0}


class Bar(Struct, frozen=True):
    """One column of a table as a chart shows it."""

    column: str
    group: str  # the metric or class
    measure: str
    side: str  # whose mean it is; empty for correlations and errors


def build_agreement_charts(tables: Sequence[Table]) -> list[Plot]:
    """Return a chart for each table and measure. A measure without a value has none."""
    built: list[Plot] = []
    for number, table in enumerate(tables, start=1):
        stem = "agreement" if len(tables) == 1 else f"agreement-{number}"
        bars = [_parse_column(column) for column in table.columns]
        for measure in dict.fromkeys(bar.measure for bar in bars):
            plot = _build_chart(table, [bar for bar in bars if bar.measure == measure], stem)
            if plot is not None:
                built.append(plot)
    return built


def _parse_column(column: str) -> Bar:
    group, _, last = column.rpartition(" ")
    measure = MEASURES.get(last)
    if not group or measure is None:
        return Bar(column, column, CORRELATION, "")
    return Bar(column, group, measure, last if measure == MEAN else "")


def _build_chart(table: Table, bars: Sequence[Bar], stem: str) -> Plot | None:
    measure = bars[0].measure
    judges = {row.judge for row in table.run_rows}
    shown = [row for row in table.rows if any(_value(row, bar) is not None for bar in bars)]
    sides = len({bar.side for bar in bars})
    limit = max(1, MAX_SERIES // sides)
    title = table.title if "Pearson" in table.title else f"{table.title}: {measure}"
    if len(shown) > limit:
        title += f" (the first {limit} of {len(shown)} rows)"
    rows: list[dict[str, Any]] = []
    lines: list[str] = []
    drawn: set[tuple[str, str]] = set()
    for group in dict.fromkeys(bar.group for bar in bars):  # in the order of the columns, whatever rows lack
        for row in shown[:limit]:
            for bar in bars:
                value = _value(row, bar)
                series = _name_series(row, bar, judges)
                if bar.group != group or value is None or (group, series) in drawn:
                    continue
                drawn.add((group, series))
                cell = row.cells[bar.column]
                rows.append({"group": group, "series": series, measure: value, "low": cell.low, "high": cell.high})
                lines.append(f"{group}, {series}: {format_number(value, cell.decimals(table.digits))}")
    if not rows:
        return None
    # a row's color is that of the other charts
    order = list(dict.fromkeys(_name_series(row, bar, judges) for row in shown for bar in bars))
    chart = plots.grouped_bar_chart(
        rows, x="group", y=measure, series="series", title=title, top=_find_top(rows, measure), order=order
    )
    return Plot(f"{stem}-{NAMES[measure]}", title, chart, f"{title}. {'; '.join(lines)}")


def _name_series(row: Row, bar: Bar, judges: Collection[str]) -> str:
    """Return whose bar it is. Where rows compare two judges over all models, a mean is a judge's or that of people, in
    whichever rows it stands."""
    if not bar.side:
        return row.label
    if len(judges) < 2 or row.kind == "published":
        return f"{row.label}: {bar.side}"
    return row.judge if bar.side == "judge" else bar.side


def _value(row: Row, bar: Bar) -> float | None:
    cell = row.cells.get(bar.column)
    return None if cell is None else cell.value


def _find_top(rows: Sequence[Mapping[str, Any]], measure: str) -> float:
    """Return the end of the axis: full marks for correlations and means of shares, else the highest number."""
    highest = max(max(row[measure], row["high"] or row[measure]) for row in rows)
    return max(highest, TOPS.get(measure, 1e-9))
