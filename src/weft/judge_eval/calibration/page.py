"""A judge's card as one page: what must be known of it in words, then its tables, then reliability curves."""

from pathlib import Path

from weft.judge_eval.calibration.tables import findings, tables
from weft.report.html import Html, build_page, inline_text, tag
from weft.report.numbers import page_header, render_table
from weft.results.cards import ALL_METRICS, CalibrationCard, MetricCard
from weft.store.blobs import write_file
from weft.types import Table

SIDE = 220
EDGE = 34


def write(card: CalibrationCard, out: Path) -> None:
    found = findings(card)
    if found:
        words = tag("ul", [tag("li", inline_text(one)) for one in found])
    else:
        words = tag("p", "Nothing that its intervals leave no doubt about.")
    curves = [_curve(one) for one in card.metrics if len(one.curve) > 1 and one.metric != ALL_METRICS]
    lead = tag("p", inline_text(describe_card(card)), class_="soft")
    parts = [_section(table) for table in tables(card)]
    if curves:
        shown = tag("section", tag("h2", "Reliability"), tag("div", curves, class_="curves"))
    else:
        shown = None
    body = tag(
        "main",
        tag("h1", "Judge card: ", inline_text(card.name)),
        lead,
        tag("h2", "What must be known"),
        words,
        parts,
        shown,
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    write_file(
        out,
        build_page(f"weft: judge card, {card.name}", page_header("", "", {}), body, kind="numbers").encode(),
        world_readable=True,
    )


def _section(table: Table) -> Html:
    return tag(
        "section",
        tag("h2", inline_text(table.title)),
        render_table(table),
        tag("p", inline_text(table.note), class_="soft"),
    )


def describe_card(card: CalibrationCard) -> str:
    """What stands behind it, in a line."""
    if card.cost.usd is None:
        cost = "price unknown"
    else:
        cost = f"${card.cost.usd:.2f}"
    calls = f"{card.cost.calls:,} calls, {card.cost.tokens_in:,} tokens in and {card.cost.tokens_out:,} out, {cost}"
    if card.cost.calls:
        paid = f"with repeats, pleas and battles {calls}"
    else:
        paid = "it answers here, at no cost"
    if card.options:
        of = f"{card.options}. "
    else:
        of = ""
    return f"{of}{card.questions} verdicts about answers whose faults are known; {paid}. weft {card.weft}."


def _curve(one: MetricCard) -> Html:
    """What it says over what is true; on the diagonal they are the same."""

    def x(share: float) -> str:
        return f"{EDGE + share * (SIDE - EDGE - 8):.1f}"

    def y(share: float) -> str:
        return f"{SIDE - EDGE - share * (SIDE - EDGE - 8):.1f}"

    marks: list[Html] = [tag("line", x1=x(0), y1=y(0), x2=x(1), y2=y(1), class_="right")]
    points = [(level.reference, level.judge) for level in one.curve if level.judge.value is not None]
    for truth, judge in points:
        if judge.low is not None and judge.high is not None:
            marks.append(tag("line", x1=x(truth), y1=y(judge.low), x2=x(truth), y2=y(judge.high), class_="range"))
        marks.append(tag("circle", cx=x(truth), cy=y(judge.value or 0.0), r="4"))
    marks.append(tag("polyline", points=" ".join(f"{x(truth)},{y(judge.value or 0.0)}" for truth, judge in points)))
    for share in (0.0, 0.5, 1.0):
        marks.append(tag("text", f"{share:g}", x=x(share), y=str(SIDE - EDGE + 16), class_="across"))
        marks.append(tag("text", f"{share:g}", x=str(EDGE - 6), y=y(share), class_="up"))
    marks.append(tag("text", "truth", x=x(0.5), y=str(SIDE - 4), class_="across"))
    svg = tag("svg", marks, viewBox=f"0 0 {SIDE} {SIDE}", width=str(SIDE), height=str(SIDE), role="img")
    return tag("figure", svg, tag("figcaption", inline_text(f"{one.benchmark}: {one.metric}")), class_="curve")
