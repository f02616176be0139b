"""Plots of the paper's tables: our rows with the published ones.

Each table has a heat map of its columns and a bar chart of its overall column, the best on top; a table by turn has
lines. Our rows are marked. Where there is no room for all rows, the title says so."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from weft.errors import UserError
from weft.report import plots
from weft.report.charts import MAX_SERIES, Plot
from weft.report.heat_map import heat_map
from weft.report.model_scores import AVERAGES
from weft.rounding import format_number
from weft.types import Row, Table

TURN = re.compile(r"T(?:urn )?(\d+)")
OURS = "our runs"
PUBLISHED = "published"
MIN_TURNS = 3
MIN_PUBLISHED = 4  # rows that have room beside ours
MIN_COLUMNS = 2
MARK = " (ours)"  # after the names of our rows
PlotRows = list[dict[str, Any]]


def build_published_plots(tables: Sequence[Table]) -> list[Plot]:
    """Return the plots of all tables that have our rows and published ones. Raises UserError if there is none."""
    built: list[Plot] = []
    for number, table in enumerate(tables, start=1):
        rows = [row for row in table.rows if _is_shown(row) and _numbers(row, table.columns)]
        if table.kind == "breakdown" or len({row.kind for row in rows}) < 2:
            continue
        name = f"published-{number}"
        turns = _turn_columns(table)
        if turns:
            built += _draw_turns(table, rows, turns, name)
        else:
            built += [*_draw_bars(table, rows, name), *_draw_heat_map(table, rows, name)]
    if not built:
        raise UserError("--with-published: no table of these runs has published rows; their data are not the paper's")
    return built


def _is_shown(row: Row) -> bool:
    """Return whether a row is a model's. Of two arithmetics the strict one is drawn, which is weft's own."""
    return row.kind != "part" and row.arithmetic != "official"


def _numbers(row: Row, columns: Sequence[str]) -> dict[str, float]:
    values = {column: row.cells[column].value for column in columns if column in row.cells}
    return {column: value for column, value in values.items() if value is not None}


def _label(row: Row) -> str:
    if row.kind == "published":
        return row.label
    return f"{replace(row, arithmetic='').label}{MARK}"


def _turn_columns(table: Table) -> dict[str, int]:
    """Return the columns that are turns, with their numbers; empty if there are too few for a line."""
    matches = {column: TURN.fullmatch(column) for column in table.columns}
    turns = {column: int(match.group(1)) for column, match in matches.items() if match}
    return turns if len(turns) >= MIN_TURNS else {}


def _draw_turns(table: Table, rows: Sequence[Row], turns: Mapping[str, int], name: str) -> list[Plot]:
    """Return a plot for each kind of rows, such as `text` and `image`: our rows, then the best published ones."""
    by_kind: dict[str, list[Row]] = {}
    for row in rows:
        by_kind.setdefault(_kind_of(row), []).append(row)
    built: list[Plot] = []
    for kind, members in by_kind.items():
        shown = _choose_rows(members, list(turns))
        title = f"{table.title}: {kind}" if kind else table.title
        if len(shown) < len(members):
            title += f" (the first of ours and the best published, {len(shown)} of {len(members)})"
        points: PlotRows = []
        for row in shown:
            for column, turn in turns.items():
                cell = row.cells.get(column)
                if cell is not None and cell.value is not None:
                    bounds = {"low": cell.low, "high": cell.high}
                    points.append({"turn": turn, "score": cell.value, "series": _label(row), **bounds})
        top = max(max(point["score"], point["high"] or 0.0) for point in points)
        chart = plots.line_chart(points, x="turn", y="score", series="series", title=title, top=top)
        lines = [f"{point['series']}, turn {point['turn']}: {format_number(point['score'], table.digits)}"
                 for point in points]  # fmt: skip
        built.append(Plot(f"{name}-{kind}".rstrip("-"), title, chart, f"{title}. {'; '.join(lines)}"))
    return built


def _choose_rows(rows: Sequence[Row], columns: Sequence[str]) -> list[Row]:
    """Return as many rows as can be told apart: ours in their order, then the best published ones, for which there is
    room."""
    published = sorted((row for row in rows if row.kind == "published"), key=lambda row: -_mean_of(row, columns))
    ours = [row for row in rows if row.kind != "published"][: MAX_SERIES - min(len(published), MIN_PUBLISHED)]
    return [*ours, *published[: MAX_SERIES - len(ours)]]


def _kind_of(row: Row) -> str:
    """Return the last part of a row's label, which says what its numbers are of; empty without one."""
    return row.label.rpartition(", ")[2] if ", " in row.label else ""


def _mean_of(row: Row, columns: Sequence[str]) -> float:
    values = list(_numbers(row, columns).values())
    return sum(values) / len(values) if values else float("-inf")


def _draw_bars(table: Table, rows: Sequence[Row], name: str) -> list[Plot]:
    """Return the overall column as bars, the best on top; none for a table without one."""
    column = next((column for column in reversed(table.columns) if column in AVERAGES), "")
    ranked = sorted((row for row in rows if _numbers(row, [column])), key=lambda row: -_mean_of(row, [column]))
    if not column or len({row.kind for row in ranked}) < 2:
        return []
    bars: PlotRows = []
    for row in ranked:
        cell = row.cells[column]
        bars.append(
            {
                "name": _label(row),
                "score": cell.value,
                "low": cell.low,
                "high": cell.high,
                "series": PUBLISHED if row.kind == "published" else OURS,
                "text": format_number(cell.value or 0.0, table.digits),
            }
        )
    title = f"{table.title}: {column}"
    chart = plots.horizontal_bar_chart(bars, name="name", x="score", series="series", title=title, one_each=True)
    lines = [f"{bar['name']}: {bar['text']}" for bar in bars]
    return [Plot(f"{name}-overall", title, chart, f"{title}. {'; '.join(lines)}")]


def _draw_heat_map(table: Table, rows: Sequence[Row], name: str) -> list[Plot]:
    columns = [column for column in table.columns if any(_numbers(row, [column]) for row in rows)]
    if len(columns) < MIN_COLUMNS:
        return []
    values: dict[tuple[str, str], float | None] = {}
    lines: list[str] = []
    for row in rows:
        for column, value in _numbers(row, columns).items():
            values[_label(row), column] = value
            lines.append(f"{_label(row)}, {column}: {format_number(value, table.digits)}")
    known = [value for value in values.values() if value is not None]
    chart = heat_map(
        values,
        [_label(row) for row in rows],
        columns,
        title=table.title,
        domain=(min(known), max(known)),
        digits=table.digits,
    )
    return [Plot(f"{name}-map", table.title, chart, f"{table.title}. {'; '.join(lines)}")]
