"""Plots without a browser or a network: altair charts, drawn by vl-convert to PNG and SVG. Lines differ in dash and mark as well as in
colour, so that they can be told apart in print and by the colour-blind."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"]  # Okabe and Ito
Rows = Sequence[Mapping[str, Any]]


def lines(rows: Rows, *, x: str, y: str, series: str, title: str) -> Any:
    """Lines with points, and a band between each row's `low` and `high`. The axis starts a little below the lowest band."""
    import altair as alt

    order = list(dict.fromkeys(row[series] for row in rows))
    floor = max(0.0, int(min(row["low"] for row in rows) * 20 - 1) / 20)
    base = alt.Chart(alt.Data(values=list(rows)), title=title, width=460, height=280)
    across = alt.X(f"{x}:O", axis=alt.Axis(labelAngle=0))
    legend = alt.Legend(title=None, labelLimit=320, orient="bottom", columns=1, symbolSize=140, symbolOpacity=1)
    colour = alt.Color(f"{series}:N", sort=order, scale=alt.Scale(range=PALETTE), legend=legend)
    dash = alt.StrokeDash(f"{series}:N", sort=order, legend=None)
    shape = alt.Shape(f"{series}:N", sort=order, legend=None)
    up = alt.Y("low:Q", scale=alt.Scale(domain=[floor, 1], nice=False), title=f"{y} (95% interval)")
    band = base.mark_area(opacity=0.16).encode(across, up, alt.Y2("high:Q"), colour)
    drawn = base.mark_line(strokeWidth=2.5).encode(across, alt.Y(f"{y}:Q"), colour, dash)
    points = base.mark_point(size=80, filled=True, opacity=1).encode(across, alt.Y(f"{y}:Q"), colour, shape=shape)
    return _plain(alt.layer(band, drawn, points))


def bars(rows: Rows, *, x: str, y: str, title: str) -> Any:
    """Bars with a line from each row's `low` to `high` and the value above; names break at their commas."""
    import altair as alt

    order = [row[x] for row in rows]
    base = alt.Chart(alt.Data(values=list(rows)), title=title, width=150 * len(rows), height=280)
    names = alt.Axis(labelAngle=0, labelLimit=200, title=None, labelExpr="split(datum.label, ', ')", labelPadding=8)
    across = alt.X(f"{x}:N", sort=order, axis=names)
    up = alt.Y(
        f"{y}:Q",
        scale=alt.Scale(domain=[0, 1.08], nice=False),
        axis=alt.Axis(values=[0, 0.2, 0.4, 0.6, 0.8, 1]),
        title=f"{y} (95% interval)",
    )
    drawn = base.mark_bar(width=56).encode(across, up, alt.Color(f"{x}:N", sort=order, scale=alt.Scale(range=PALETTE), legend=None))
    whiskers = base.mark_rule(strokeWidth=2).encode(across, alt.Y("low:Q"), alt.Y2("high:Q"))
    labels = base.mark_text(dy=-8, fontSize=12).encode(across, alt.Y("high:Q"), alt.Text(f"{y}:Q", format=".2f"))
    return _plain(alt.layer(drawn, whiskers, labels))


def against_cost(rows: Rows, *, x: str, y: str, series: str, label: str, title: str) -> Any:
    """Points joined within a series, each with its name and a line from `low` to `high`: what more calls buy."""
    import altair as alt

    order = list(dict.fromkeys(row[series] for row in rows))
    low, high = min(row["low"] for row in rows), max(row["high"] for row in rows)
    room = 0.08 * (high - low)
    base = alt.Chart(alt.Data(values=list(rows)), title=title, width=520, height=320)
    across = alt.X(f"{x}:Q", scale=alt.Scale(domain=[0, max(row[x] for row in rows) * 1.12], nice=False))
    up = alt.Y(f"{y}:Q", scale=alt.Scale(domain=[low - room, high + room], nice=False), title=f"{y} (95% interval)")
    legend = alt.Legend(title=None, orient="bottom", symbolSize=140, symbolOpacity=1)
    colour = alt.Color(f"{series}:N", sort=order, scale=alt.Scale(range=PALETTE), legend=legend)
    shape = alt.Shape(f"{series}:N", sort=order, legend=None)
    whiskers = base.mark_rule(strokeWidth=1.5, opacity=0.6).encode(across, alt.Y("low:Q"), alt.Y2("high:Q"), colour)
    joined = base.mark_line(strokeWidth=2, opacity=0.7).encode(across, up, colour)
    points = base.mark_point(size=90, filled=True, opacity=1).encode(across, up, colour, shape=shape)
    names = base.mark_text(align="left", dx=8, dy=-8, fontSize=11).encode(across, up, alt.Text(f"{label}:N"), colour)
    return _plain(alt.layer(whiskers, joined, points, names))


def save(chart: Any, stem: Path) -> list[Path]:
    """As PNG (twice the size, for screens) and SVG (for print)."""
    import vl_convert

    stem.parent.mkdir(parents=True, exist_ok=True)
    spec = chart.to_dict()
    png, svg = stem.with_suffix(".png"), stem.with_suffix(".svg")
    png.write_bytes(vl_convert.vegalite_to_png(spec, scale=2))
    svg.write_text(vl_convert.vegalite_to_svg(spec), encoding="utf-8")
    return [png, svg]


def _plain(chart: Any) -> Any:
    shown = chart.configure_view(stroke=None).configure_axis(gridColor="#ddd", labelFontSize=12, titleFontSize=12)
    return shown.configure_legend(labelFontSize=12).configure_title(fontSize=13)
