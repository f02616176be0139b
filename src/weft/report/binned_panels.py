"""Stacked bars of percentages by bin, in panels: a column for each metric, and a row for each group.

Panels are put side by side one by one. Facets of Vega-Lite would put a panel under the name of another where a group
lacks a metric."""

from collections.abc import Mapping, Sequence
from typing import Any

from weft.report.plots import PAPER, with_style, wrap_title
from weft.report.series import LABEL_LINE, Series

WIDTH = 190.0  # pixels of a panel
BAR = 18.0
COLORS = ["#b2182b", "#ef8a62", "#fddbc7", "#e3e6e8", "#d1e5f0", "#67a9cf", "#2166ac"]  # from zero to full marks
Rows = Sequence[Mapping[str, Any]]


def draw_binned_panels(rows: Rows, bins: Sequence[str], title: str) -> Any:
    """Return the chart. A row has `name` (of its bar), `group`, `metric`, `bin`, `order` (of the bin) and `percent`."""
    import altair as alt

    shown = Series(rows, "name").rows
    names, groups, metrics = (list(dict.fromkeys(row[field] for row in shown)) for field in ("name", "group", "metric"))
    lines: list[Any] = []
    for group in groups:
        panels: list[Any] = []
        for metric in metrics:
            members = [row for row in shown if row["group"] == group and row["metric"] == metric]
            is_first = metric == metrics[0]
            panel = _draw_panel(members, names, bins, is_first=is_first, is_last=group == groups[-1], group=group)
            if group == groups[0]:
                panel = panel.properties(title=alt.TitleParams(metric, anchor="middle", frame="group", fontSize=12))
            panels.append(panel)
        lines.append(alt.hconcat(*panels, spacing=10))
    whole = alt.vconcat(*lines, spacing=10)
    return with_style(whole.properties(title=wrap_title(title, WIDTH * len(metrics))))


def _draw_panel(
    rows: Rows, names: Sequence[str], bins: Sequence[str], *, is_first: bool, is_last: bool, group: str
) -> Any:
    """Return one panel. The first of a line names its bars and its group, those of the last line have an axis."""
    import altair as alt

    most_lines = max(name.count("\n") + 1 for name in names)
    base = alt.Chart(alt.Data(values=list(rows)), width=WIDTH, height=max(BAR, LABEL_LINE * most_lines) * len(names))
    labels = alt.Axis(
        labels=is_first,
        labelLimit=0,
        labelExpr="split(datum.label, '\\n')",
        domain=False,
        ticks=False,
        title=(group or None) if is_first else None,
        titleAngle=0,
        titleAlign="right",
        titlePadding=12,
    )
    scale = alt.Scale(domain=[0, 100], nice=False)
    percent = alt.Axis(labels=is_last, ticks=is_last, title="% of scores" if is_last else None, grid=False)
    legend = alt.Legend(title="score", orient="bottom", symbolStrokeWidth=0, columns=len(bins))
    return base.mark_bar(stroke=PAPER, strokeWidth=0.5).encode(
        alt.X("percent:Q", scale=scale, axis=percent),
        alt.Y("name:N", sort=list(names), scale=alt.Scale(domain=list(names)), axis=labels),
        alt.Color("bin:N", sort=list(bins), scale=alt.Scale(domain=list(bins), range=COLORS), legend=legend),
        alt.Order("order:Q"),
    )
