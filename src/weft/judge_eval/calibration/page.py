"""A calibration card as one HTML page: its findings in words, then its tables, then reliability curves."""

from pathlib import Path

from weft.judge_eval.calibration.tables import findings, tables
from weft.report.html import Html, build_page, inline_text, tag
from weft.report.numbers import page_header, render_table
from weft.results.cards import ALL_METRICS, CalibrationCard, MetricCard
from weft.store.blobs import write_file
from weft.types import Table

SIDE = 220  # of a curve, in pixels
MARGIN = 34  # for the axes
PADDING = 8


def write(card: CalibrationCard, out: Path) -> None:
    """Write the page of a card."""
    curves: Html | None = None
    metrics = [metric for metric in card.metrics if len(metric.curve) > 1 and metric.metric != ALL_METRICS]
    if metrics:
        figures = [_render_curve(metric) for metric in metrics]
        curves = tag("section", tag("h2", "Reliability"), tag("div", figures, class_="curves"))
    body = tag(
        "main",
        tag("h1", "Calibration card: ", inline_text(card.name)),
        tag("p", inline_text(describe_card(card)), class_="soft"),
        tag("h2", "Findings"),
        _render_findings(card),
        [_render_section(table) for table in tables(card)],
        curves,
    )
    title = f"weft: calibration card, {card.name}"
    page = build_page(title, page_header("", "", {}), body, kind="numbers")
    out.parent.mkdir(parents=True, exist_ok=True)
    write_file(out, page.encode(), world_readable=True)


def _render_findings(card: CalibrationCard) -> Html:
    lines = findings(card)
    if not lines:
        return tag("p", "None: the 95% intervals leave doubt about everything.")
    return tag("ul", [tag("li", inline_text(line)) for line in lines])


def _render_section(table: Table) -> Html:
    return tag(
        "section",
        tag("h2", inline_text(table.title)),
        render_table(table),
        tag("p", inline_text(table.note), class_="soft"),
    )


def describe_card(card: CalibrationCard) -> str:
    """How many verdicts a card is from and what they cost, in one line."""
    cost = card.cost
    if cost.calls:
        usd = "price unknown" if cost.usd is None else f"${cost.usd:.2f}"
        paid = (
            f"with repeats, changed answers and battles {cost.calls:,} calls, {cost.tokens_in:,} tokens in and "
            f"{cost.tokens_out:,} out, {usd}"
        )
    else:
        paid = "it runs in this process, at no cost"
    options = f"{card.options}. " if card.options else ""
    return f"{options}{card.questions} verdicts about answers whose faults are known; {paid}. weft {card.weft}."


def _x(share: float) -> str:
    return f"{MARGIN + share * (SIDE - MARGIN - PADDING):.1f}"


def _y(share: float) -> str:
    return f"{SIDE - MARGIN - share * (SIDE - MARGIN - PADDING):.1f}"


def _render_curve(metric: MetricCard) -> Html:
    """The judge's mean score over the reference; an exact judge is on the diagonal."""
    marks: list[Html] = [tag("line", x1=_x(0), y1=_y(0), x2=_x(1), y2=_y(1), class_="right")]
    points: list[str] = []
    for level in metric.curve:
        judge = level.judge
        if judge.value is None:
            continue
        x = _x(level.reference)
        if judge.low is not None and judge.high is not None:
            marks.append(tag("line", x1=x, y1=_y(judge.low), x2=x, y2=_y(judge.high), class_="range"))
        marks.append(tag("circle", cx=x, cy=_y(judge.value), r="4"))
        points.append(f"{x},{_y(judge.value)}")
    marks.append(tag("polyline", points=" ".join(points)))
    for share in (0.0, 0.5, 1.0):
        marks.append(tag("text", f"{share:g}", x=_x(share), y=str(SIDE - MARGIN + 16), class_="across"))
        marks.append(tag("text", f"{share:g}", x=str(MARGIN - 6), y=_y(share), class_="up"))
    marks.append(tag("text", "reference", x=_x(0.5), y=str(SIDE - 4), class_="across"))
    svg = tag("svg", marks, viewBox=f"0 0 {SIDE} {SIDE}", width=str(SIDE), height=str(SIDE), role="img")
    caption = tag("figcaption", inline_text(f"{metric.benchmark}: {metric.metric}"))
    return tag("figure", svg, caption, class_="curve")
