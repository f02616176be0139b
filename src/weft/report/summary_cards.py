"""The tiles at the top of a report, one per run: how it was made, what is missing and why, what it cost."""

from collections.abc import Mapping

from weft.report.html import Html, inline_text, join, tag
from weft.results.summary import Summary, describe_replies, describe_scored, format_cost


def build_card(label: str, summary: Summary, *, folded: bool) -> Html:
    """Return the tile of one run. A folded one shows its title until it is opened."""
    rows: list[Html] = []
    for name, text in _facts(summary):
        rows.append(join(tag("dt", name), tag("dd", inline_text(text))))
    content = [
        tag("dl", rows),
        _reasons("why zeroed", summary.zeroed),
        _reasons("why unscored", summary.unscored),
    ]
    if folded:
        return tag("details", tag("summary", inline_text(label)), content, class_="card")
    return tag("div", tag("h3", inline_text(label)), content, class_="card")


def _facts(summary: Summary) -> list[tuple[str, str]]:
    manifest = summary.manifest
    facts = [
        ("run", summary.run),
        ("model", manifest.model.name),
        ("judge", manifest.judge.name),
        ("state", f"{summary.state}, started {summary.started}"),
        ("turns", f"{summary.turns} in {summary.samples} dialogues"),
        ("replies", describe_replies(summary)),
        ("verdicts", describe_scored(summary)),
    ]
    questions, annotators = summary.annotation_counts
    if questions:
        people = "annotator" if annotators == 1 else "annotators"
        facts.append(("annotations", f"{questions} by {annotators} {people}"))
    if summary.judge_card:
        facts.append(("calibration", summary.judge_card))
    if manifest.option_labels:
        facts.append(("options", ", ".join(manifest.option_labels)))
    if manifest.presets:
        facts.append(("presets", ", ".join(f"{role}: {preset}" for role, preset in manifest.presets.items())))
    if manifest.strategy != "none":
        facts.append(("strategy", f"{manifest.strategy}: {summary.calls} model calls for {summary.turns} replies"))
    if summary.wall_time_s is not None:
        facts.append(("wall time", format_duration(summary.wall_time_s)))
    for total in summary.totals:
        tokens = f"{total.tokens_in:,} + {total.tokens_out:,} tokens"
        seconds = f"{total.seconds / max(1, total.calls):.2f} s per call"
        text = f"{total.calls} ({total.retries} retries), {tokens}, {format_cost(total.cost)}, {seconds}"
        facts.append((f"{total.role} calls", text))
    return facts


def _reasons(title: str, counts: Mapping[str, int]) -> Html | None:
    if not counts:
        return None
    items = [tag("li", f"{count} x ", inline_text(reason)) for reason, count in counts.items()]
    return tag("details", tag("summary", f"{title} ({sum(counts.values())})"), tag("ul", items))


def format_duration(seconds: float) -> str:
    """Return `2 h 5 min`, `5 min 3 s` or `3 s`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    if minutes:
        return f"{minutes} min {rest} s"
    return f"{rest} s"
