"""Plots without a browser or a network: altair charts, drawn by vl-convert to PNG, SVG and PDF, for light pages and
dark ones. A plot has one legend, in which no name is cut. Series differ in dash and mark as well as in colour, so that
they can be told apart in print and by the colour-blind; where there are many, they stand beside one another, so that
none hides another."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from weft.untrusted import escape_control_characters

# Okabe and Ito's, and a dark red
PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#1a1a1a", "#882255"]
# the same where it is dark
DARK = ["#3D9BE0", "#F0763A", "#12B886", "#E39BC8", "#F2C037", "#9AD7FF", "#F4F6F8", "#A0629B"]
SHAPES = ["circle", "square", "triangle-up", "cross", "diamond", "triangle-right", "triangle-down", "triangle-left"]
DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 2], [10, 4], [1, 3], [6, 2, 1, 2, 1, 2]]
INK = "#1b1f24"
SOFT = "#57606a"
FAINT = "#d8dee4"
PAPER = "#ffffff"
NIGHT = {INK: "#e6e8ea", SOFT: "#9aa4ad", FAINT: "#3a424a", PAPER: "#14171a", **dict(zip(PALETTE, DARK, strict=True))}
FEW = 3  # series that may lie upon one another
LONG = 48  # characters of a line in a legend
Rows = Sequence[Mapping[str, Any]]


def wrap_name(text: str, most: int = LONG) -> list[str]:
    """A name in lines of about one length, broken where names have joints; what has none is broken anyway, and nothing
    is lost."""
    pieces: list[str] = re.findall(r"[^\s,/=:|]*[\s,/=:|]+|[^\s,/=:|]+", escape_control_characters(text))
    whole = _filled(pieces, most)
    least = min(most, max((len(piece.rstrip()) for piece in pieces), default=1))
    return next(lines for width in range(least, most + 1) if len(lines := _filled(pieces, width)) == len(whole))


def _filled(pieces: Sequence[str], most: int) -> list[str]:
    made: list[str] = [""]
    for piece in (some[at : at + most] for some in pieces for at in range(0, len(some), most)):
        if len((made[-1] + piece).rstrip()) > most:
            made.append("")
        made[-1] += piece
    return [line.strip() for line in made if line.strip()] or [""]


class Series:
    """How the series of a plot are told apart: colour, mark and dash of each, and the one legend of all."""

    def __init__(self, rows: Rows, field: str, *, legend: bool = True) -> None:
        self.rows: list[dict[str, Any]] = [{**row, field: "\n".join(wrap_name(str(row[field])))} for row in rows]
        self.order: list[str] = list(dict.fromkeys(row[field] for row in self.rows))
        self._name = field
        self._field = f"{field}:N"
        self._shown = legend

    def _legend(self) -> Any:
        import altair as alt

        if not self._shown:
            return None
        return alt.Legend(
            title=None,
            orient="bottom",
            columns=1,
            labelLimit=0,
            labelExpr="split(datum.label, '\\n')",
            symbolOpacity=1,
            symbolSize=110,
            symbolStrokeWidth=1,
            symbolDash=[1, 0],
        )

    def _scale(self, among: Sequence[Any]) -> Any:
        import altair as alt

        return alt.Scale(domain=self.order, range=[among[at % len(among)] for at in range(len(self.order))])

    def color(self) -> Any:
        import altair as alt

        return alt.Color(self._field, scale=self._scale(PALETTE), legend=self._legend())

    def shape(self) -> Any:
        """Of the same domain and legend as the colour, so that the two are one."""
        import altair as alt

        return alt.Shape(self._field, scale=self._scale(SHAPES), legend=self._legend())

    def line_layers(self, base: Any, *channels: Any, wide: float, **more: Any) -> list[Any]:
        """A line for each, with its own dash; many get thinner from one to the next, so that one shows beside another
        that lies upon it."""
        import altair as alt

        made: list[Any] = []
        for at, name in enumerate(self.order):
            width = wide + (
                3.0 * (len(self.order) - 1 - at) / len(self.order) if len(self.order) > FEW and not more else 0.0
            )
            only = base.transform_filter(alt.FieldEqualPredicate(field=self._name, equal=name))
            mark = only.mark_line(strokeWidth=width, strokeDash=DASHES[at % len(DASHES)], opacity=0.8)
            made.append(mark.encode(*channels, self.color(), **more))
        return made

    def x_offset(self) -> Any:
        import altair as alt

        return alt.XOffset(self._field, sort=self.order)

    def y_offset(self) -> Any:
        import altair as alt

        return alt.YOffset(self._field, sort=self.order)


def _chart(rows: Rows, title: str, width: float, height: float) -> Any:
    import altair as alt

    return alt.Chart(alt.Data(values=list(rows)), title=_title(title, width), width=width, height=height)


def _title(text: str, width: float) -> list[str]:
    return wrap_name(text, max(24, int(width / 8)))


def line_chart(rows: Rows, *, x: str, y: str, series: str, title: str, top: float = 1.0) -> Any:
    """Lines with points. What is between each row's `low` and `high` is a band; where there are many series, a line
    beside those of others. The axis starts a little below the lowest."""
    import altair as alt

    of = Series(rows, series)
    floor = max(0.0, int(min(row["low"] for row in rows) / top * 20 - 1) / 20) * top
    many = len(of.order) > FEW
    places = len({row[x] for row in rows})
    base = _chart(of.rows, title, max(460, min(900, 9 * len(of.order) * places)) if many else 460, 280)
    if many:
        scale = alt.Scale(type="band", paddingInner=0.25)
    else:
        scale = alt.Undefined
    across = alt.X(f"{x}:O", axis=alt.Axis(labelAngle=0), scale=scale)
    up = alt.Y("low:Q", scale=alt.Scale(domain=[floor, top], nice=False), title=f"{y} (95% interval)")
    beside = {"xOffset": of.x_offset()} if many else {}
    if many:
        mark = base.mark_rule(strokeWidth=1.2, opacity=0.8)
    else:
        mark = base.mark_area(opacity=0.16)
    spread = mark.encode(across, up, alt.Y2("high:Q"), of.color(), **beside)
    drawn = of.line_layers(base, across, alt.Y(f"{y}:Q"), wide=1.5 if many else 2.5, **beside)
    points = base.mark_point(size=50 if many else 80, filled=True, opacity=1).encode(
        across, alt.Y(f"{y}:Q"), of.color(), shape=of.shape(), **beside
    )
    return _styled(alt.layer(spread, *drawn, points))


def bar_chart(rows: Rows, *, x: str, y: str, title: str) -> Any:
    """Bars with a line from each row's `low` to `high` and the value above; names break at their commas."""
    import altair as alt

    order = [row[x] for row in rows]
    base = _chart(rows, title, 150 * len(rows), 280)
    names = alt.Axis(labelAngle=0, labelLimit=200, title=None, labelExpr="split(datum.label, ', ')", labelPadding=8)
    across = alt.X(f"{x}:N", sort=order, axis=names)
    up = alt.Y(
        f"{y}:Q",
        scale=alt.Scale(domain=[0, 1.08], nice=False),
        axis=alt.Axis(values=[0, 0.2, 0.4, 0.6, 0.8, 1]),
        title=f"{y} (95% interval)",
    )
    drawn = base.mark_bar(width=56).encode(
        across, up, alt.Color(f"{x}:N", sort=order, scale=alt.Scale(range=PALETTE), legend=None)
    )
    whiskers = base.mark_rule(strokeWidth=2, color=INK).encode(across, alt.Y("low:Q"), alt.Y2("high:Q"))
    labels = base.mark_text(dy=-8, fontSize=12, color=INK).encode(
        across, alt.Y("high:Q"), alt.Text(f"{y}:Q", format=".2f")
    )
    return _styled(alt.layer(drawn, whiskers, labels))


def cost_chart(rows: Rows, *, x: str, y: str, series: str, label: str, title: str) -> Any:
    """Points joined within a series, each with its name and a line from `low` to `high`: what more calls buy."""
    import altair as alt

    of = Series(rows, series)
    low = min(row["low"] for row in rows)
    high = max(row["high"] for row in rows)
    room = 0.08 * (high - low)
    base = _chart(of.rows, title, 520, 320)
    across = alt.X(f"{x}:Q", scale=alt.Scale(domain=[0, max(row[x] for row in rows) * 1.12], nice=False))
    scale = alt.Scale(domain=[low - room, high + room], nice=False)
    up = alt.Y(f"{y}:Q", scale=scale, title=f"{y} (95% interval)")
    whiskers = base.mark_rule(strokeWidth=1.5, opacity=0.6).encode(
        across, alt.Y("low:Q", scale=scale, title=f"{y} (95% interval)"), alt.Y2("high:Q"), of.color()
    )
    joined = of.line_layers(base, across, up, wide=2.0)
    points = base.mark_point(size=90, filled=True, opacity=1).encode(across, up, of.color(), shape=of.shape())
    names = base.mark_text(align="left", dx=8, dy=-8, fontSize=11).encode(
        across, up, alt.Text(f"{label}:N"), of.color()
    )
    return _styled(alt.layer(whiskers, *joined, points, names))


def grouped_bar_chart(rows: Rows, *, x: str, y: str, series: str, title: str, top: float = 1.0) -> Any:
    """Bars side by side within each `x`, with a line from each row's `low` to `high`."""
    import altair as alt

    of = Series(rows, series)
    names = list(dict.fromkeys(row[x] for row in rows))
    across = alt.X(
        f"{x}:N", sort=names, axis=alt.Axis(labelAngle=0, title=None, labelLimit=0, labelExpr="split(datum.label, ' ')")
    )
    up = alt.Y(f"{y}:Q", scale=alt.Scale(domain=[0, top], nice=False), title=f"{y} (95% interval)")
    width = max(420, min(900, 22 * len(of.order) * len(names) + 80))
    base = _chart(of.rows, title, width, 260)
    drawn = base.mark_bar(stroke=INK, strokeWidth=0.5).encode(across, up, of.x_offset(), of.color())
    whiskers = base.mark_rule(strokeWidth=1.5, color=INK).encode(
        across, alt.Y("low:Q"), alt.Y2("high:Q"), of.x_offset()
    )
    return _styled(alt.layer(drawn, whiskers))


def ranking_chart(rows: Rows, *, name: str, x: str, series: str, title: str) -> Any:
    """Names one under another, the best on top, each with its value and a line from `low` to `high`."""
    import altair as alt

    of = Series(Series(rows, name).rows, series, legend=len({row[series] for row in rows}) > 1)
    names = list(dict.fromkeys(row[name] for row in of.rows))
    bounds = [one for row in rows for one in (row[x], row.get("low"), row.get("high")) if one is not None]
    room = max((max(bounds) - min(bounds)) * 0.06, 1.0)
    scale = alt.Scale(domain=[min(bounds) - room, max(bounds) + room], nice=False)
    down = alt.Y(
        f"{name}:N", sort=names, title=None, axis=alt.Axis(labelLimit=0, labelExpr="split(datum.label, '\\n')")
    )
    base = _chart(of.rows, title, 420, max(90, 34 * len(names) * max(1, len(of.order) / 2)))
    line = base.mark_rule(strokeWidth=2, opacity=0.6)
    whiskers = line.encode(alt.X("low:Q", scale=scale, title=x), alt.X2("high:Q"), down, of.y_offset(), of.color())
    points = base.mark_point(size=90, filled=True, opacity=1).encode(
        alt.X(f"{x}:Q", scale=scale, title=x), down, of.y_offset(), of.color(), shape=of.shape()
    )
    return _styled(alt.layer(whiskers, points))


def radar_chart(rows: Rows, *, axis: str, y: str, series: str, title: str, top: float = 1.0) -> Any:
    """A polygon for each series, an axis for each group, the centre zero and the rim full marks."""
    import math

    import altair as alt

    of = Series(rows, series)
    names = list(dict.fromkeys(row[axis] for row in rows))
    angle = {name: 2 * math.pi * at / len(names) for at, name in enumerate(names)}

    def place(name: str, share: float) -> dict[str, float]:
        return {"x": share * math.sin(angle[name]), "y": share * math.cos(angle[name])}

    rings = [
        {"ring": r, "order": at, **place(name, r)}
        for r in (0.25, 0.5, 0.75, 1.0)
        for at, name in enumerate([*names, names[0]])
    ]
    spokes = [{"spoke": name, **place(name, r)} for name in names for r in (0.0, 1.0)]
    marks = [{"text": f"{top * r:g}", "x": 0.0, "y": r} for r in (0.25, 0.5, 0.75, 1.0)]
    rim = [{"text": name.replace("_", " "), "align": _side(angle[name]), **place(name, 1.1)} for name in names]
    polygons: list[dict[str, Any]] = []
    for one in of.order:
        mine = {row[axis]: row[y] / top for row in of.rows if row[series] == one}
        closed = [name for name in names if name in mine]
        polygons += [
            {series: one, "order": at, **place(name, mine[name])} for at, name in enumerate([*closed, *closed[:1]])
        ]
    room = alt.Scale(domain=[-1.62, 1.62], nice=False)
    x = alt.X("x:Q", scale=room, axis=None)
    up = alt.Y("y:Q", scale=alt.Scale(domain=[-1.25, 1.25], nice=False), axis=None)

    def chart(values: list[dict[str, Any]]) -> Any:
        return alt.Chart(alt.Data(values=values))

    layers = [
        chart(rings).mark_line(color=FAINT, strokeWidth=1).encode(x, up, alt.Detail("ring:N"), alt.Order("order:Q")),
        chart(spokes).mark_line(color=FAINT, strokeWidth=1).encode(x, up, alt.Detail("spoke:N")),
        *of.line_layers(chart(polygons), x, up, alt.Order("order:Q"), wide=2.0),
        chart(polygons).mark_point(size=40, filled=True, opacity=1).encode(x, up, of.color(), shape=of.shape()),
        chart(marks).mark_text(fontSize=10, color=SOFT, dx=12, dy=6).encode(x, up, alt.Text("text:N")),
        *(
            chart([one for one in rim if one["align"] == side])
            .mark_text(fontSize=11, align=side, color=INK)
            .encode(x, up, alt.Text("text:N"))
            for side in ("left", "center", "right")
            if any(one["align"] == side for one in rim)
        ),
    ]
    return _styled(alt.layer(*layers).properties(width=560, height=430, title=_title(title, 560)))


def _side(angle: float) -> str:
    import math

    across = math.sin(angle)
    if abs(across) < 0.15:
        return "center"
    if across > 0:
        return "left"
    return "right"


def histogram(rows: Rows, *, x: str, y: str, series: str, title: str) -> Any:
    """How many dialogues come to which score: bars side by side within each bin."""
    import altair as alt

    of = Series(rows, series)
    bins = list(dict.fromkeys(row[x] for row in rows))
    base = _chart(of.rows, title, max(540, min(900, 9 * len(bins) * len(of.order))), 240)
    return _styled(
        base.mark_bar(stroke=INK, strokeWidth=0.4).encode(
            alt.X(f"{x}:N", sort=bins, axis=alt.Axis(labelAngle=0), title=x),
            alt.Y(f"{y}:Q", title=y, axis=alt.Axis(tickMinStep=1, format="d")),
            of.x_offset(),
            of.color(),
        )
    )


def render_svg(chart: Any, *, dark: bool = False) -> str:
    """Drawn. A control character in a name, which no SVG may have, would end the process that draws."""
    import vl_convert

    spec = _shown(chart.to_dict())
    return vl_convert.vegalite_to_svg(_by_night(spec) if dark else spec)


def _shown(spec: Any) -> Any:
    if isinstance(spec, str):
        return "\n".join(escape_control_characters(line) for line in spec.split("\n"))
    if isinstance(spec, dict):
        return {escape_control_characters(str(key)): _shown(value) for key, value in cast(dict[Any, Any], spec).items()}
    if isinstance(spec, list):
        return [_shown(one) for one in cast(list[Any], spec)]
    return spec


def _by_night(spec: Any, key: str = "") -> Any:
    """The same in the colours of a dark page. What is data stays as it is, even if it looks like a colour."""
    if isinstance(spec, dict):
        return {
            one: value if one in ("data", "domain") else _by_night(value, one)
            for one, value in cast(dict[str, Any], spec).items()
        }
    if isinstance(spec, list):
        return [_by_night(one, key) for one in cast(list[Any], spec)]
    is_colour = key in ("color", "fill", "stroke", "background", "range") or key.endswith("Color")
    if is_colour and isinstance(spec, str):
        return NIGHT.get(spec, spec)
    return spec


def save(chart: Any, stem: Path) -> list[Path]:
    """As PNG (twice the size, for screens), SVG and PDF (for print)."""
    import vl_convert

    stem.parent.mkdir(parents=True, exist_ok=True)
    png, page, pdf = (stem.with_suffix(suffix) for suffix in (".png", ".svg", ".pdf"))
    drawn = render_svg(chart)
    page.write_text(drawn, encoding="utf-8")
    png.write_bytes(vl_convert.svg_to_png(drawn, scale=2))
    pdf.write_bytes(vl_convert.svg_to_pdf(drawn))
    return [png, page, pdf]


def _styled(chart: Any) -> Any:
    told = {"labelColor": INK, "titleColor": INK}
    return (
        chart.properties(background=PAPER)
        .configure_view(stroke=None)
        .configure_axis(gridColor=FAINT, domainColor=SOFT, tickColor=SOFT, labelFontSize=12, titleFontSize=12, **told)
        .configure_legend(labelFontSize=12, rowPadding=4, **told)
        .configure_title(fontSize=13, color=INK, anchor="start", frame="bounds")
    )
