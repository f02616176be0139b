"""Plots without a browser or a network: altair charts, drawn by vl-convert to PNG, SVG and PDF. Lines differ in dash and mark as well as in
colour, so that they can be told apart in print and by the colour-blind."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from weft.outside import visible

PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"]  # Okabe and Ito
Rows = Sequence[Mapping[str, Any]]


def lines(rows: Rows, *, x: str, y: str, series: str, title: str, top: float = 1.0) -> Any:
    """Lines with points, and a band between each row's `low` and `high`. The axis starts a little below the lowest band."""
    import altair as alt

    order = list(dict.fromkeys(row[series] for row in rows))
    floor = max(0.0, int(min(row["low"] for row in rows) / top * 20 - 1) / 20) * top
    base = alt.Chart(alt.Data(values=list(rows)), title=title, width=460, height=280)
    across = alt.X(f"{x}:O", axis=alt.Axis(labelAngle=0))
    legend = alt.Legend(title=None, labelLimit=320, orient="bottom", columns=1, symbolSize=140, symbolOpacity=1)
    colour = alt.Color(f"{series}:N", scale=alt.Scale(domain=order, range=PALETTE), legend=legend)
    dash = alt.StrokeDash(f"{series}:N", sort=order, legend=None)
    shape = alt.Shape(f"{series}:N", scale=alt.Scale(domain=order), legend=legend)  # of the same domain, or it has a legend of its own
    up = alt.Y("low:Q", scale=alt.Scale(domain=[floor, top], nice=False), title=f"{y} (95% interval)")
    band = base.mark_area(opacity=0.16).encode(across, up, alt.Y2("high:Q"), colour)
    drawn = base.mark_line(strokeWidth=2.5).encode(across, alt.Y(f"{y}:Q"), colour, dash)
    points = base.mark_point(size=80, filled=True, opacity=1).encode(across, alt.Y(f"{y}:Q"), colour, shape=shape)
    return _styled(alt.layer(band, drawn, points))


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
    return _styled(alt.layer(drawn, whiskers, labels))


def against_cost(rows: Rows, *, x: str, y: str, series: str, label: str, title: str) -> Any:
    """Points joined within a series, each with its name and a line from `low` to `high`: what more calls buy."""
    import altair as alt

    order = list(dict.fromkeys(row[series] for row in rows))
    low, high = min(row["low"] for row in rows), max(row["high"] for row in rows)
    room = 0.08 * (high - low)
    base = alt.Chart(alt.Data(values=list(rows)), title=title, width=520, height=320)
    across = alt.X(f"{x}:Q", scale=alt.Scale(domain=[0, max(row[x] for row in rows) * 1.12], nice=False))
    scale = alt.Scale(domain=[low - room, high + room], nice=False)
    up = alt.Y(f"{y}:Q", scale=scale, title=f"{y} (95% interval)")
    legend = alt.Legend(title=None, orient="bottom", symbolSize=140, symbolOpacity=1, columns=2, labelLimit=320)
    colour = alt.Color(f"{series}:N", scale=alt.Scale(domain=order, range=PALETTE), legend=legend)
    shape = alt.Shape(f"{series}:N", scale=alt.Scale(domain=order), legend=legend)
    whiskers = base.mark_rule(strokeWidth=1.5, opacity=0.6).encode(
        across, alt.Y("low:Q", scale=scale, title=f"{y} (95% interval)"), alt.Y2("high:Q"), colour
    )
    joined = base.mark_line(strokeWidth=2, opacity=0.7).encode(across, up, colour)
    points = base.mark_point(size=90, filled=True, opacity=1).encode(across, up, colour, shape=shape)
    names = base.mark_text(align="left", dx=8, dy=-8, fontSize=11).encode(across, up, alt.Text(f"{label}:N"), colour)
    return _styled(alt.layer(whiskers, joined, points, names))


def grouped(rows: Rows, *, x: str, y: str, series: str, title: str, top: float = 100.0) -> Any:
    """Bars side by side within each `x`, with a line from each row's `low` to `high`."""
    import altair as alt

    order, names = (list(dict.fromkeys(row[key] for row in rows)) for key in (series, x))
    across = alt.X(f"{x}:N", sort=names, axis=alt.Axis(labelAngle=0, title=None, labelLimit=160, labelExpr="split(datum.label, ' ')"))
    beside = alt.XOffset(f"{series}:N", sort=order)
    legend = alt.Legend(title=None, orient="bottom", columns=1, labelLimit=400)
    colour = alt.Color(f"{series}:N", sort=order, scale=alt.Scale(range=PALETTE), legend=legend)
    up = alt.Y(f"{y}:Q", scale=alt.Scale(domain=[0, top], nice=False), title=f"{y} (95% interval)")
    width = max(420, min(900, 26 * len(order) * len(names) + 80))
    base = alt.Chart(alt.Data(values=list(rows)), title=title, width=width, height=260)
    drawn = base.mark_bar(stroke="#222", strokeWidth=0.5).encode(across, up, beside, colour)
    whiskers = base.mark_rule(strokeWidth=1.5).encode(across, alt.Y("low:Q"), alt.Y2("high:Q"), beside)
    return _styled(alt.layer(drawn, whiskers))


def ladder(rows: Rows, *, name: str, x: str, series: str, title: str) -> Any:
    """Names one under another, the best on top, each with its value and a line from `low` to `high`."""
    import altair as alt

    names, order = (list(dict.fromkeys(row[key] for row in rows)) for key in (name, series))
    bounds = [one for row in rows for one in (row[x], row.get("low"), row.get("high")) if one is not None]
    room = max((max(bounds) - min(bounds)) * 0.06, 1.0)
    scale = alt.Scale(domain=[min(bounds) - room, max(bounds) + room], nice=False)
    down = alt.Y(f"{name}:N", sort=names, title=None, axis=alt.Axis(labelLimit=340))
    beside = alt.YOffset(f"{series}:N", sort=order)
    legend = alt.Legend(title=None, orient="bottom", columns=1, labelLimit=400) if len(order) > 1 else None
    colour = alt.Color(f"{series}:N", sort=order, scale=alt.Scale(range=PALETTE), legend=legend)
    base = alt.Chart(alt.Data(values=list(rows)), title=title, width=420, height=max(90, 34 * len(names) * max(1, len(order) / 2)))
    line = base.mark_rule(strokeWidth=2, opacity=0.6)
    whiskers = line.encode(alt.X("low:Q", scale=scale, title=x), alt.X2("high:Q"), down, beside, colour)
    points = base.mark_point(size=90, filled=True, opacity=1).encode(alt.X(f"{x}:Q", scale=scale, title=x), down, beside, colour)
    return _styled(alt.layer(whiskers, points))


def radar(rows: Rows, *, axis: str, y: str, series: str, title: str, top: float = 100.0) -> Any:
    """A polygon for each series, an axis for each group, the centre zero and the rim full marks."""
    import math

    import altair as alt

    names, order = (list(dict.fromkeys(row[key] for row in rows)) for key in (axis, series))
    angle = {name: 2 * math.pi * at / len(names) for at, name in enumerate(names)}

    def place(name: str, share: float) -> dict[str, float]:
        return {"x": share * math.sin(angle[name]), "y": share * math.cos(angle[name])}

    rings = [{"ring": r, "order": at, **place(name, r)} for r in (0.25, 0.5, 0.75, 1.0) for at, name in enumerate([*names, names[0]])]
    spokes = [{"spoke": name, **place(name, r)} for name in names for r in (0.0, 1.0)]
    marks = [{"text": f"{top * r:g}", "x": 0.0, "y": r} for r in (0.25, 0.5, 0.75, 1.0)]
    rim = [{"text": name.replace("_", " "), "align": _side(angle[name]), **place(name, 1.1)} for name in names]
    polygons: list[dict[str, Any]] = []
    for one in order:
        mine = {row[axis]: row[y] / top for row in rows if row[series] == one}
        closed = [name for name in names if name in mine]
        polygons += [{series: one, "order": at, **place(name, mine[name])} for at, name in enumerate([*closed, *closed[:1]])]
    room = alt.Scale(domain=[-1.62, 1.62], nice=False)
    x, up = alt.X("x:Q", scale=room, axis=None), alt.Y("y:Q", scale=alt.Scale(domain=[-1.25, 1.25], nice=False), axis=None)

    def chart(values: list[dict[str, Any]]) -> Any:
        return alt.Chart(alt.Data(values=values))

    colour = alt.Color(
        f"{series}:N", sort=order, scale=alt.Scale(range=PALETTE), legend=alt.Legend(title=None, orient="bottom", columns=1, labelLimit=360)
    )
    layers = [
        chart(rings).mark_line(color="#ccc", strokeWidth=1).encode(x, up, alt.Detail("ring:N"), alt.Order("order:Q")),
        chart(spokes).mark_line(color="#ddd", strokeWidth=1).encode(x, up, alt.Detail("spoke:N")),
        chart(polygons)
        .mark_line(strokeWidth=2.2)
        .encode(x, up, colour, alt.Order("order:Q"), strokeDash=alt.StrokeDash(f"{series}:N", sort=order, legend=None)),
        chart(polygons)
        .mark_point(size=36, filled=True, opacity=1)
        .encode(x, up, colour, shape=alt.Shape(f"{series}:N", sort=order, legend=None)),
        chart(marks).mark_text(fontSize=9, color="#777", dx=10).encode(x, up, alt.Text("text:N")),
        *(
            chart([one for one in rim if one["align"] == side]).mark_text(fontSize=11, align=side).encode(x, up, alt.Text("text:N"))
            for side in ("left", "center", "right")
            if any(one["align"] == side for one in rim)
        ),
    ]
    return _styled(alt.layer(*layers).properties(width=560, height=430, title=title))


def _side(angle: float) -> str:
    import math

    across = math.sin(angle)
    return "center" if abs(across) < 0.15 else "left" if across > 0 else "right"


def histogram(rows: Rows, *, x: str, y: str, series: str, title: str) -> Any:
    """How many dialogues come to which score: bars side by side within each bin."""
    import altair as alt

    order, bins = (list(dict.fromkeys(row[key] for row in rows)) for key in (series, x))
    base = alt.Chart(alt.Data(values=list(rows)), title=title, width=460, height=240)
    legend = alt.Legend(title=None, orient="bottom", columns=1, labelLimit=360)
    return _styled(
        base.mark_bar(stroke="#222", strokeWidth=0.4).encode(
            alt.X(f"{x}:N", sort=bins, axis=alt.Axis(labelAngle=0), title=x),
            alt.Y(f"{y}:Q", title=y, axis=alt.Axis(tickMinStep=1, format="d")),
            alt.XOffset(f"{series}:N", sort=order),
            alt.Color(f"{series}:N", sort=order, scale=alt.Scale(range=PALETTE), legend=legend),
        )
    )


def svg(chart: Any) -> str:
    """Drawn. A control character in a name, which no SVG may have, would end the process that draws."""
    import vl_convert

    return vl_convert.vegalite_to_svg(_shown(chart.to_dict()))


def _shown(spec: Any) -> Any:
    if isinstance(spec, str):
        return visible(spec)
    if isinstance(spec, dict):
        return {visible(str(key)): _shown(value) for key, value in cast(dict[Any, Any], spec).items()}
    return [_shown(one) for one in cast(list[Any], spec)] if isinstance(spec, list) else spec


def save(chart: Any, stem: Path) -> list[Path]:
    """As PNG (twice the size, for screens), SVG and PDF (for print)."""
    import vl_convert

    stem.parent.mkdir(parents=True, exist_ok=True)
    png, page, pdf = (stem.with_suffix(suffix) for suffix in (".png", ".svg", ".pdf"))
    drawn = svg(chart)
    page.write_text(drawn, encoding="utf-8")
    png.write_bytes(vl_convert.svg_to_png(drawn, scale=2))
    pdf.write_bytes(vl_convert.svg_to_pdf(drawn))
    return [png, page, pdf]


def _styled(chart: Any) -> Any:
    shown = chart.configure_view(stroke=None).configure_axis(gridColor="#ddd", labelFontSize=12, titleFontSize=12)
    return shown.configure_legend(labelFontSize=12).configure_title(fontSize=13)
