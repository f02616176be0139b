"""Charts without a browser or a network: altair charts, rendered by vl-convert to PNG, SVG and PDF, for light and dark
pages.

A chart has one legend, in which no name is cut. Series differ in dash and mark as well as in color, so that they can be
told apart in print and by the color-blind; many series stand side by side, so that none hides another. A row whose
`low` is None has no interval."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from weft.errors import UserError
from weft.report.series import LABEL_LINE, PALETTE, Rows, Series, name_axis, wrap_name
from weft.report.svg_text import fit_texts
from weft.rounding import format_number
from weft.untrusted import escape_control_characters

# the series' colors for dark pages
DARK = ["#3D9BE0", "#F0763A", "#12B886", "#E39BC8", "#F2C037", "#9AD7FF", "#F4F6F8", "#A0629B"]
INK = "#1b1f24"
SOFT = "#57606a"
FAINT = "#d8dee4"
PAPER = "#ffffff"
NIGHT = {INK: "#e6e8ea", SOFT: "#9aa4ad", FAINT: "#3a424a", PAPER: "#14171a", **dict(zip(PALETTE, DARK, strict=True))}
RINGS = (0.25, 0.5, 0.75, 1.0)  # of a radar chart
FORMATS = (".png", ".svg", ".pdf")
HAS_INTERVAL = "isValid(datum.low)"
JAVASCRIPT_NAMES = (  # the renderer looks names up in objects, which have these already
    *("constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString"),
    *("valueOf", "__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__", "__proto__"),
)


def base_chart(rows: Rows, title: str, width: float, height: float) -> Any:
    """Return a chart of rows without marks."""
    import altair as alt

    return alt.Chart(alt.Data(values=list(rows)), title=wrap_title(title, width), width=width, height=height)


def wrap_title(text: str, width: float) -> list[str]:
    """Return a title in lines of about the width of its chart."""
    return wrap_name(text, max(24, int(width / 8)))


def _value_range(rows: Rows, y: str) -> tuple[float, float]:
    """Return the lowest and the highest number that is drawn, interval bounds included."""
    bounds: list[float] = []
    for row in rows:
        bounds += [bound for bound in (row[y], row.get("low"), row.get("high")) if bound is not None]
    return min(bounds), max(bounds)


def line_chart(
    rows: Rows,
    *,
    x: str,
    y: str,
    series: str,
    title: str,
    top: float = 1.0,
    order: Sequence[str] = (),
    legend_title: str = "",
) -> Any:
    """Return lines with points. Intervals are bands; with many series, vertical lines side by side. The axis starts a
    little below the lowest number. `order`: of all series of the page; without it, the order of the rows."""
    import altair as alt

    styles = Series(rows, series, order=order, title=legend_title)
    floor = max(0.0, int(_value_range(rows, y)[0] / top * 20 - 1) / 20) * top
    position = alt.X(f"{x}:O", axis=alt.Axis(labelAngle=0))
    low = alt.Y("low:Q", scale=alt.Scale(domain=[floor, top], nice=False), title=f"{y} (95% interval)")
    value = alt.Y(f"{y}:Q")
    if styles.is_many:
        positions = len({row[x] for row in rows})
        base = base_chart(styles.rows, title, max(460, min(900, 9 * len(styles.order) * positions)), 280)
        position = alt.X(f"{x}:O", axis=alt.Axis(labelAngle=0), scale=alt.Scale(type="band", paddingInner=0.25))
        offsets = {"xOffset": styles.x_offset()}
        interval = base.transform_filter(HAS_INTERVAL).mark_rule(strokeWidth=1.2, opacity=0.8)
        points = base.mark_point(size=50, filled=True, opacity=1)
        lines = styles.line_layers(base, position, value, width=1.5, **offsets)
    else:
        base = base_chart(styles.rows, title, 460, 280)
        offsets = {}
        interval = base.transform_filter(HAS_INTERVAL).mark_area(opacity=0.16)
        points = base.mark_point(size=80, filled=True, opacity=1)
        lines = styles.line_layers(base, position, value, width=2.5)
    bands = interval.encode(position, low, alt.Y2("high:Q"), styles.color(), **offsets)
    marks = points.encode(position, value, styles.color(), shape=styles.shape(), **offsets)
    return with_style(alt.layer(bands, *lines, marks))


def curve_chart(rows: Rows, *, x: str, y: str, series: str, title: str) -> Any:
    """Return lines over a number that is drawn to scale, such as the steps of training; without intervals."""
    import altair as alt

    styles = Series(rows, series)
    base = base_chart(styles.rows, title, 460, 280)
    position = alt.X(f"{x}:Q", axis=alt.Axis(grid=False))
    value = alt.Y(f"{y}:Q", scale=alt.Scale(zero=False), title=title)
    lines = styles.line_layers(base, position, value, width=1.5 if styles.is_many else 2.5)
    points = base.mark_point(size=40, filled=True, opacity=1)
    return with_style(alt.layer(*lines, points.encode(position, value, styles.color(), shape=styles.shape())))


def bar_chart(rows: Rows, *, x: str, y: str, title: str) -> Any:
    """Return bars with their intervals and the value above. Names break at their commas."""
    import altair as alt

    order = [row[x] for row in rows]
    labelled: Rows = [{**row, "shown": format_number(row[y], 2)} for row in rows]
    base = base_chart(labelled, title, 150 * len(rows), 280)
    names = alt.Axis(labelAngle=0, labelLimit=200, title=None, labelExpr="split(datum.label, ', ')", labelPadding=8)
    position = alt.X(f"{x}:N", sort=order, axis=names)
    value = alt.Y(
        f"{y}:Q",
        scale=alt.Scale(domain=[0, 1.08], nice=False),
        axis=alt.Axis(values=[0, 0.2, 0.4, 0.6, 0.8, 1]),
        title=f"{y} (95% interval)",
    )
    color = alt.Color(f"{x}:N", sort=order, scale=alt.Scale(range=PALETTE), legend=None)
    bars = base.mark_bar(width=56).encode(position, value, color)
    intervals = base.mark_rule(strokeWidth=2, color=INK).encode(position, alt.Y("low:Q"), alt.Y2("high:Q"))
    numbers = base.mark_text(dy=-8, fontSize=12, color=INK)
    labels = numbers.encode(position, alt.Y("high:Q"), alt.Text("shown:N"))
    return with_style(alt.layer(bars, intervals, labels))


def cost_chart(rows: Rows, *, x: str, y: str, series: str, label: str, title: str) -> Any:
    """Return points with labels and intervals, joined within a series: the score against its cost."""
    import altair as alt

    styles = Series(rows, series)
    lowest, highest = _value_range(rows, y)
    margin = 0.08 * (highest - lowest)
    base = base_chart(styles.rows, title, 520, 320)
    position = alt.X(f"{x}:Q", scale=alt.Scale(domain=[0, max(row[x] for row in rows) * 1.12], nice=False))
    scale = alt.Scale(domain=[lowest - margin, highest + margin], nice=False)
    value = alt.Y(f"{y}:Q", scale=scale, title=f"{y} (95% interval)")
    low = alt.Y("low:Q", scale=scale, title=f"{y} (95% interval)")
    rules = base.transform_filter(HAS_INTERVAL).mark_rule(strokeWidth=1.5, opacity=0.6)
    intervals = rules.encode(position, low, alt.Y2("high:Q"), styles.color())
    lines = styles.line_layers(base, position, value, width=2.0)
    points = base.mark_point(size=90, filled=True, opacity=1)
    marks = points.encode(position, value, styles.color(), shape=styles.shape())
    texts = base.mark_text(align="left", dx=8, dy=-8, fontSize=11)
    labels = texts.encode(position, value, alt.Text(f"{label}:N"), styles.color())
    return with_style(alt.layer(intervals, *lines, marks, labels))


def grouped_bar_chart(
    rows: Rows, *, x: str, y: str, series: str, title: str, top: float = 1.0, order: Sequence[str] = ()
) -> Any:
    """Return bars side by side within each `x`, with their intervals. Numbers below zero, such as those of
    correlations, lower the axis. `order`: of all series of the page; without it, the order of their first bars."""
    import altair as alt

    styles = Series(rows, series, order=order)
    floor = min(0.0, _value_range(rows, y)[0])
    names = list(dict.fromkeys(row[x] for row in rows))
    axis = alt.Axis(labelAngle=0, title=None, labelLimit=0, labelExpr="split(datum.label, ' ')")
    position = alt.X(f"{x}:N", sort=names, axis=axis)
    value = alt.Y(f"{y}:Q", scale=alt.Scale(domain=[floor, top], nice=False), title=f"{y} (95% interval)")
    width = max(420, min(900, 22 * len(styles.order) * len(names) + 80))
    base = base_chart(styles.rows, title, width, 260)
    bars = base.mark_bar(stroke=INK, strokeWidth=0.5).encode(position, value, styles.x_offset(), styles.color())
    channels = (position, alt.Y("low:Q"), alt.Y2("high:Q"), styles.x_offset())
    intervals = [rules.encode(*channels) for rules in _interval_rules(base)]
    return with_style(alt.layer(bars, *intervals))


def _interval_rules(base: Any) -> list[Any]:
    """Return the marks of intervals over bars: dark lines on wider light ones, so that they show on a dark bar."""
    rows = base.transform_filter(HAS_INTERVAL)
    return [rows.mark_rule(strokeWidth=2.7, color=PAPER), rows.mark_rule(strokeWidth=1.3, color=INK)]


def horizontal_bar_chart(
    rows: Rows,
    *,
    name: str,
    x: str,
    series: str,
    title: str,
    one_each: bool = False,
    legend_title: str = "",
    order: Sequence[str] = (),
) -> Any:
    """Return bars from zero, one below another, with their intervals and values (`text`). Long names have room.

    `one_each`: a name is in one series only, and has one bar. `order`: of all series, also of those that some names
    lack; without it, the order of their first bars."""
    import altair as alt

    is_legend_needed = len({row[series] for row in rows}) > 1
    styles = Series(Series(rows, name).rows, series, order=order, legend=is_legend_needed, title=legend_title)
    names = list(dict.fromkeys(row[name] for row in styles.rows))
    lowest, highest = _value_range(rows, x)
    scale = alt.Scale(domain=[min(0.0, lowest), highest * 1.02], nice=False)
    position = alt.Y(f"{name}:N", sort=names, title=None, axis=name_axis(), scale=alt.Scale(paddingInner=0.25))
    bars_each = len(styles.order)
    if one_each:
        bars_each = 1
        styles.sort()  # a series has the same color wherever its best bar is
    most_lines = max(label.count("\n") + 1 for label in names)
    bar_height = max(22 if len(styles.order) > 1 else 30, LABEL_LINE * most_lines / bars_each)
    offsets = [] if one_each else [styles.y_offset()]
    base = base_chart(styles.rows, title, 420, max(60, bar_height * len(names) * bars_each))
    value = alt.X(f"{x}:Q", scale=scale, title=f"{x} (95% interval)")
    bars = base.mark_bar(stroke=INK, strokeWidth=0.5, opacity=0.85)
    low = alt.X("low:Q", scale=scale, title=f"{x} (95% interval)")
    intervals = [rules.encode(low, alt.X2("high:Q"), position, *offsets) for rules in _interval_rules(base)]
    texts = base.mark_text(align="left", fontSize=11, color=INK)
    layers = [
        bars.encode(value, position, *offsets, styles.color()),
        *intervals,
        texts.encode(alt.XValue(428), position, alt.Text("text:N"), *offsets),
    ]
    return with_style(alt.layer(*layers))


def ranking_chart(rows: Rows, *, name: str, x: str, series: str, title: str) -> Any:
    """Return names one below another, the best on top, each with its value and its interval."""
    import altair as alt

    is_legend_needed = len({row[series] for row in rows}) > 1
    styles = Series(Series(rows, name).rows, series, legend=is_legend_needed)
    names = list(dict.fromkeys(row[name] for row in styles.rows))
    lowest, highest = _value_range(rows, x)
    margin = max((highest - lowest) * 0.06, 1.0)
    scale = alt.Scale(domain=[lowest - margin, highest + margin], nice=False)
    position = alt.Y(f"{name}:N", sort=names, title=None, axis=name_axis())
    base = base_chart(styles.rows, title, 420, max(90, 34 * len(names) * max(1, len(styles.order) / 2)))
    rules = base.transform_filter(HAS_INTERVAL).mark_rule(strokeWidth=2, opacity=0.6)
    low = alt.X("low:Q", scale=scale, title=x)
    intervals = rules.encode(low, alt.X2("high:Q"), position, styles.y_offset(), styles.color())
    value = alt.X(f"{x}:Q", scale=scale, title=x)
    points = base.mark_point(size=90, filled=True, opacity=1)
    marks = points.encode(value, position, styles.y_offset(), styles.color(), shape=styles.shape())
    return with_style(alt.layer(intervals, marks))


def radar_chart(rows: Rows, *, axis: str, y: str, series: str, title: str, top: float = 1.0) -> Any:
    """Return a polygon for each series and a spoke for each group. The center is zero, the rim is full marks."""
    import altair as alt

    styles = Series(rows, series)
    names = list(dict.fromkeys(row[axis] for row in rows))
    angles = {name: 2 * math.pi * index / len(names) for index, name in enumerate(names)}
    polygons: list[dict[str, Any]] = []
    for label in styles.order:
        shares = {row[axis]: row[y] / top for row in styles.rows if row[series] == label}
        present = [name for name in names if name in shares]
        for order, name in enumerate([*present, *present[:1]]):
            polygons.append({series: label, "order": order, **_radar_point(angles[name], shares[name])})
    x_channel = alt.X("x:Q", scale=alt.Scale(domain=[-1.62, 1.62], nice=False), axis=None)
    y_channel = alt.Y("y:Q", scale=alt.Scale(domain=[-1.25, 1.25], nice=False), axis=None)
    base = alt.Chart(alt.Data(values=polygons))
    points = base.mark_point(size=40, filled=True, opacity=1)
    layers = [
        *_radar_grid(angles, x_channel, y_channel),
        *styles.line_layers(base, x_channel, y_channel, alt.Order("order:Q"), width=2.0),
        points.encode(x_channel, y_channel, styles.color(), shape=styles.shape()),
        *_radar_labels(angles, top, x_channel, y_channel),
    ]
    return with_style(alt.layer(*layers).properties(width=560, height=430, title=wrap_title(title, 560)))


def _radar_point(angle: float, share: float) -> dict[str, float]:
    return {"x": share * math.sin(angle), "y": share * math.cos(angle)}


def _radar_grid(angles: Mapping[str, float], x_channel: Any, y_channel: Any) -> list[Any]:
    """Return rings and spokes."""
    import altair as alt

    rings: list[dict[str, Any]] = []
    closed = [*angles.values(), 0.0]
    for ring in RINGS:
        rings += [{"ring": ring, "order": order, **_radar_point(angle, ring)} for order, angle in enumerate(closed)]
    spokes: list[dict[str, Any]] = []
    for name, angle in angles.items():
        spokes += [{"spoke": name, **_radar_point(angle, 0.0)}, {"spoke": name, **_radar_point(angle, 1.0)}]
    ring_lines = alt.Chart(alt.Data(values=rings)).mark_line(color=FAINT, strokeWidth=1)
    spoke_lines = alt.Chart(alt.Data(values=spokes)).mark_line(color=FAINT, strokeWidth=1)
    return [
        ring_lines.encode(x_channel, y_channel, alt.Detail("ring:N"), alt.Order("order:Q")),
        spoke_lines.encode(x_channel, y_channel, alt.Detail("spoke:N")),
    ]


def _radar_labels(angles: Mapping[str, float], top: float, x_channel: Any, y_channel: Any) -> list[Any]:
    """Return the scale of the rings and the names around the rim."""
    import altair as alt

    ticks = [{"text": f"{top * ring:g}", "x": 0.0, "y": ring} for ring in RINGS]
    scale = alt.Chart(alt.Data(values=ticks)).mark_text(fontSize=10, color=SOFT, dx=12, dy=6)
    layers = [scale.encode(x_channel, y_channel, alt.Text("text:N"))]
    by_side: dict[str, list[dict[str, Any]]] = {"left": [], "center": [], "right": []}
    for name, angle in angles.items():
        side = _text_alignment(angle)
        by_side[side].append({"text": name, "align": side, **_radar_point(angle, 1.1)})
    for side, labels in by_side.items():
        if labels:
            texts = alt.Chart(alt.Data(values=labels)).mark_text(fontSize=11, align=cast(Any, side), color=INK)
            layers.append(texts.encode(x_channel, y_channel, alt.Text("text:N")))
    return layers


def _text_alignment(angle: float) -> str:
    x = math.sin(angle)
    if abs(x) < 0.15:
        return "center"
    if x > 0:
        return "left"
    return "right"


def histogram(rows: Rows, *, x: str, y: str, series: str, title: str) -> Any:
    """Return bars side by side within each bin."""
    import altair as alt

    styles = Series(rows, series)
    bins = list(dict.fromkeys(row[x] for row in rows))
    base = base_chart(styles.rows, title, max(540, min(900, 9 * len(bins) * len(styles.order))), 240)
    return with_style(
        base.mark_bar(stroke=INK, strokeWidth=0.4).encode(
            alt.X(f"{x}:N", sort=bins, axis=alt.Axis(labelAngle=0), title=x),
            alt.Y(f"{y}:Q", title=y, axis=alt.Axis(tickMinStep=1, format="d")),
            styles.x_offset(),
            styles.color(),
        )
    )


def render_svg(chart: Any, *, dark: bool = False) -> str:
    """Return a chart as SVG. Control characters are escaped: one in a name would crash the renderer, as would a name
    that every object of JavaScript has."""
    import vl_convert

    spec = _escape_spec(chart.to_dict())
    if dark:
        spec = _darken_spec(spec)
    return fit_texts(vl_convert.vegalite_to_svg(spec))


def _escape_spec(spec: Any) -> Any:
    if isinstance(spec, str):
        return "\n".join(map(_escape_text, spec.split("\n")))
    if isinstance(spec, list):
        return list(map(_escape_spec, cast(list[Any], spec)))
    if isinstance(spec, dict):
        items = cast(dict[Any, Any], spec).items()
        return {_escape_text(str(key)): _escape_spec(value) for key, value in items}
    return spec


def _escape_text(text: str) -> str:
    if text in JAVASCRIPT_NAMES:
        return f"{text} "  # which looks the same
    return escape_control_characters(text)


def _darken_spec(spec: Any, key: str = "") -> Any:
    """Return a chart in the colors of a dark page. Data stays as it is, even if it looks like a color."""
    if key in ("data", "domain"):
        return spec
    if isinstance(spec, dict):
        return {name: _darken_spec(value, name) for name, value in cast(dict[str, Any], spec).items()}
    if isinstance(spec, list):
        return [_darken_spec(value, key) for value in cast(list[Any], spec)]
    is_color = key in ("color", "fill", "stroke", "background", "range") or key.endswith("Color")
    if is_color and isinstance(spec, str):
        return NIGHT.get(spec, spec)
    return spec


def save(chart: Any, stem: Path) -> list[Path]:
    """Write a chart as PNG (twice the size, for screens), SVG and PDF (for print); return the paths."""
    return save_svg(render_svg(chart), stem, scale=2)


def save_svg(text: str, stem: Path, *, scale: float, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write a drawing as PNG (`scale` times the size), SVG and PDF, or some of them; return the paths.

    A suffix of a format on `stem` is dropped. Raises UserError for a path that has no name, such as `.`."""
    import vl_convert

    if stem.suffix in FORMATS:
        stem = stem.with_suffix("")
    if stem.name in ("", ".."):
        raise UserError(f"{stem} is a folder: add a name for the files, such as {stem / 'figure'}")

    stem.parent.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    for suffix in formats:
        path = stem.with_name(stem.name + suffix)
        if suffix == ".png":
            path.write_bytes(vl_convert.svg_to_png(text, scale=scale))
        elif suffix == ".svg":
            path.write_text(text, encoding="utf-8")
        else:
            path.write_bytes(vl_convert.svg_to_pdf(text))
        paths.append(path)
    return paths


def with_style(chart: Any) -> Any:
    """Return a chart in the colors and the type of all charts."""
    colors = {"labelColor": INK, "titleColor": INK}
    return (
        chart.properties(background=PAPER)
        .configure_view(stroke=None)
        .configure_axis(gridColor=FAINT, domainColor=SOFT, tickColor=SOFT, labelFontSize=12, titleFontSize=12, **colors)
        .configure_legend(labelFontSize=12, titleFontSize=12, rowPadding=4, **colors)
        .configure_title(fontSize=13, color=INK, anchor="start", frame="bounds")
    )
