"""The series of a chart, and their names: color, mark, dash, and one legend in which no name is cut."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from weft.untrusted import escape_control_characters

# Okabe and Ito's palette, and a dark red
PALETTE = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#1a1a1a", "#882255"]
SHAPES = ["circle", "square", "triangle-up", "cross", "diamond", "triangle-right", "triangle-down", "triangle-left"]
DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [4, 2], [10, 4], [1, 3], [6, 2, 1, 2, 1, 2]]
MAX_OVERLAID = 3  # series that may lie on top of one another
LABEL_LINE = 16  # pixels of one line of a name on an axis
MAX_LINE = 48  # characters of a line in a legend
Rows = Sequence[Mapping[str, Any]]


def wrap_name(text: str, max_length: int = MAX_LINE) -> list[str]:
    """Return a name in as few lines as possible, of about one length, broken after punctuation. Nothing is cut off."""
    pieces: list[str] = re.findall(r"[^\s,/=:|]*[\s,/=:|]+|[^\s,/=:|]+", escape_control_characters(text))
    lines = _fill_lines(pieces, max_length)
    longest = max((len(piece.rstrip()) for piece in pieces), default=1)
    for length in range(min(max_length, longest), max_length):
        shorter = _fill_lines(pieces, length)
        if len(shorter) == len(lines):
            return shorter
    return lines


def _fill_lines(pieces: Sequence[str], max_length: int) -> list[str]:
    lines: list[str] = [""]
    for piece in pieces:
        for start in range(0, len(piece), max_length):
            part = piece[start : start + max_length]
            if len((lines[-1] + part).rstrip()) > max_length:
                lines.append("")
            lines[-1] += part
    return [line.strip() for line in lines if line.strip()] or [""]


def name_axis(**choices: Any) -> Any:
    """Return an axis of names, one below another. A name of several lines stands in the middle of its place."""
    import altair as alt

    lines = "split(datum.label, '\\n')"
    middle = {"condition": {"test": "true", "expr": f"{-LABEL_LINE / 2:g} * (length({lines}) - 1)"}, "value": 0}
    return alt.Axis(labelLimit=0, labelExpr=lines, labelLineHeight=LABEL_LINE, labelOffset=middle, **choices)


class Series:
    """The series of a chart: color, mark and dash of each, and one legend for all.

    `order`: all series of a page, so that each looks the same in every chart, also where some have no rows. Without
    it, the order of the rows. `title`: of the legend."""

    def __init__(
        self, rows: Rows, field: str, *, order: Sequence[str] = (), legend: bool = True, title: str = ""
    ) -> None:
        self.rows: list[dict[str, Any]] = [{**row, field: "\n".join(wrap_name(str(row[field])))} for row in rows]
        present = list(dict.fromkeys(row[field] for row in self.rows))
        known = list(dict.fromkeys([*("\n".join(wrap_name(name)) for name in order), *present]))
        self.order: list[str] = [name for name in known if name in present]
        self.is_many = len(self.order) > MAX_OVERLAID
        self._places = {name: place for place, name in enumerate(known)}
        self._name = field
        self._field = f"{field}:N"
        self._has_legend = legend
        self._title = title

    def sort(self) -> None:
        """Order the series by their names."""
        self.order.sort()
        self._places = {name: place for place, name in enumerate(self.order)}

    def _legend(self) -> Any:
        import altair as alt

        if not self._has_legend:
            return None
        return alt.Legend(
            title=self._title or None,
            orient="bottom",
            columns=1,
            labelLimit=0,
            labelExpr="split(datum.label, '\\n')",
            symbolOpacity=1,
            symbolSize=110,
            symbolStrokeWidth=1,
            symbolDash=[1, 0],
        )

    def _scale(self, values: Sequence[Any]) -> Any:
        import altair as alt

        return alt.Scale(domain=self.order, range=[self._style(values, name) for name in self.order])

    def _style(self, values: Sequence[Any], name: str) -> Any:
        return values[self._places[name] % len(values)]

    def color(self) -> Any:
        import altair as alt

        return alt.Color(self._field, scale=self._scale(PALETTE), legend=self._legend())

    def shape(self) -> Any:
        """Has the same domain and legend as the color, so that vega joins the two legends."""
        import altair as alt

        return alt.Shape(self._field, scale=self._scale(SHAPES), legend=self._legend())

    def line_layers(self, base: Any, *channels: Any, width: float, **offsets: Any) -> list[Any]:
        """Return a line for each series, with its own dash. Many overlaid lines get thinner from one to the next, so
        that a line shows under another."""
        import altair as alt

        layers: list[Any] = []
        for index, name in enumerate(self.order):
            extra = 0.0
            if self.is_many and not offsets:
                extra = 3.0 * (len(self.order) - 1 - index) / len(self.order)
            rows = base.transform_filter(alt.FieldEqualPredicate(field=self._name, equal=name))
            line = rows.mark_line(strokeWidth=width + extra, strokeDash=self._style(DASHES, name), opacity=0.8)
            layers.append(line.encode(*channels, self.color(), **offsets))
        return layers

    def x_offset(self) -> Any:
        import altair as alt

        return alt.XOffset(self._field, sort=self.order)

    def y_offset(self) -> Any:
        import altair as alt

        return alt.YOffset(self._field, sort=self.order)
