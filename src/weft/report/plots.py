"""Plots without a browser or a network: altair charts, drawn by vl-convert to PNG and SVG. Lines differ in dash and mark as well as in
colour, so that they can be told apart in print and by the colour-blind."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # Okabe and Ito


def lines(rows: Sequence[Mapping[str, Any]], *, x: str, y: str, series: str, title: str, low: str = "low", high: str = "high") -> Any:
    """Lines with points and a band between `low` and `high`."""
    import altair as alt

    order = list(dict.fromkeys(row[series] for row in rows))
    base = alt.Chart(alt.Data(values=list(rows)), title=title, width=440, height=280)
    colour = alt.Color(
        f"{series}:N",
        sort=order,
        scale=alt.Scale(range=list(PALETTE)),
        legend=alt.Legend(title=None, labelLimit=320, orient="bottom", columns=1),
    )
    across = alt.X(f"{x}:O", axis=alt.Axis(labelAngle=0))
    band = base.mark_errorbar(ticks=True, thickness=1.5).encode(across, alt.Y(f"{low}:Q", title=y), alt.Y2(f"{high}:Q"), colour)
    drawn = base.mark_line(point=alt.OverlayMarkDef(size=60, filled=True)).encode(
        across,
        alt.Y(f"{y}:Q", scale=alt.Scale(domain=[0, 1]), title=y),
        colour,
        strokeDash=alt.StrokeDash(f"{series}:N", sort=order, legend=None),
        shape=alt.Shape(f"{series}:N", sort=order, legend=None),
    )
    return _plain(alt.layer(band, drawn))


def bars(rows: Sequence[Mapping[str, Any]], *, x: str, y: str, title: str, low: str = "low", high: str = "high") -> Any:
    import altair as alt

    order = [row[x] for row in rows]
    base = alt.Chart(alt.Data(values=list(rows)), title=title, width=90 * len(rows), height=280)
    across = alt.X(f"{x}:N", sort=order, axis=alt.Axis(labelAngle=0, labelLimit=160, title=None))
    drawn = base.mark_bar(width=44).encode(
        across,
        alt.Y(f"{y}:Q", scale=alt.Scale(domain=[0, 1]), title=y),
        alt.Color(f"{x}:N", sort=order, scale=alt.Scale(range=list(PALETTE)), legend=None),
    )
    whiskers = base.mark_errorbar(ticks=True).encode(across, alt.Y(f"{low}:Q", title=y), alt.Y2(f"{high}:Q"))
    return _plain(alt.layer(drawn, whiskers))


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
    return (
        chart.configure_view(stroke=None)
        .configure_axis(gridColor="#ddd", labelFontSize=12, titleFontSize=12)
        .configure_legend(labelFontSize=12)
    )
