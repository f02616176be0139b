"""The statistics of a dataset as plots: groups, kinds of turns, modality sequences, histograms, words."""

from collections.abc import Iterator, Sequence
from typing import Any

from weft.datasets.counts import DatasetCounts, Path, name_length_bin
from weft.datasets.tables import sort_bins
from weft.report.charts import Plot, in_words
from weft.report.plots import INK, LABEL_LINE, PALETTE, Series, base_chart, with_style, wrap_name
from weft.report.word_cloud import word_cloud
from weft.rounding import format_number

MAX_BARS = 60  # groups, or modality sequences, of one plot
MAX_LABEL_CHARS = 40
CLOUD_WORDS = 80
BAR_HEIGHT = 20  # pixels, with the gap
FEW_TICKS = 8  # an axis up to this number has a tick at each whole one: between them, labels would repeat


def build_dataset_plots(counts: DatasetCounts) -> list[Plot]:
    """Return the plots of a dataset. One that would show a single bar is left out."""
    plots = [*_groups(counts), *_kinds(counts), *_sequences(counts), *_histograms(counts)]
    words = [(word, occurrences) for word, occurrences, _ in counts.words.most_common(CLOUD_WORDS)]
    if words:
        title = f"{counts.title}: frequent words"
        description = ", ".join(f"{word} {count}" for word, count in words)
        plots.append(Plot("words", title, word_cloud(words, title), f"{title}: {description}"))
    return plots


def _groups(counts: DatasetCounts) -> Iterator[Plot]:
    """Yield the number of dialogues by group, for each level of the composition that has room."""
    for depth in range(1, len(counts.composition) + 1):
        paths = [path for path in counts.groups if len(path) == depth]
        if not 1 < len(paths) <= MAX_BARS:
            continue
        order = list(dict.fromkeys(path[:1] for path in paths))
        paths.sort(key=lambda path: (order.index(path[:1]), -counts.groups[path].dialogues))
        has_legend = len(order) < len(paths)
        rows = [_group_row(counts, path, path[has_legend:] or path) for path in paths]
        axes = ", ".join(map(in_words, counts.composition[:depth]))
        yield _bar_plot(f"by-{'-'.join(counts.composition[:depth])}", f"{counts.title}: dialogues by {axes}", rows)


def _group_row(counts: DatasetCounts, path: Path, names: Path) -> dict[str, Any]:
    """Return the bar of a group; `names` are those that the legend does not have."""
    dialogues = counts.groups[path].dialogues
    share = format_number(100 * dialogues / counts.total.dialogues, 1)
    name = " / ".join(map(in_words, names))
    described = f"{in_words(path[0])}, {' / '.join(map(in_words, path[1:] or path))}"
    text = f"{dialogues:,} ({share}%)"
    return {"name": name, "group": in_words(path[0]), "number": dialogues, "text": text, "described": described}


def _bar_plot(name: str, title: str, rows: Sequence[dict[str, Any]], unit: str = "dialogues") -> Plot:
    descriptions = [row.get("described") or f"{row['group']}, {row['name']}" for row in rows]
    description = "; ".join(f"{text}: {row['text']}" for text, row in zip(descriptions, rows, strict=True))
    return Plot(name, title, _bar_chart(rows, title, unit), f"{title}. {description}")


def _bar_chart(rows: Sequence[dict[str, Any]], title: str, unit: str) -> Any:
    """Return horizontal bars with their numbers, colored by group. Bars of one name in several groups stay apart."""
    import altair as alt

    labelled: list[dict[str, Any]] = []
    for place, row in enumerate(rows):
        label = "\n".join(wrap_name(row["name"], MAX_LABEL_CHARS))
        labelled.append({**row, "label": label, "place": place})
    groups = {row["group"] for row in rows}
    is_legend_needed = 1 < len(groups) < len(rows)
    styles = Series(labelled, "group", legend=is_legend_needed)
    names = [row["label"] for row in labelled]
    lines = sum(max(BAR_HEIGHT, LABEL_LINE * (name.count("\n") + 1)) for name in names)
    base = base_chart([{**row, "key": f"{row['place']}\t{row['label']}"} for row in styles.rows], title, 420, lines)
    axis = alt.Axis(labelLimit=0, labelExpr="split(split(datum.label, '\\t')[1], '\\n')", title=None)
    keys = [f"{place}\t{name}" for place, name in enumerate(names)]
    position = alt.Y("key:N", sort=keys, axis=axis, scale=alt.Scale(paddingInner=0.2))
    most = max(row["number"] for row in rows)
    value = alt.X(
        "number:Q",
        title=unit,
        scale=alt.Scale(domain=[0, most * 1.02], nice=False),
        axis=_whole_numbers(most),
    )
    bars = base.mark_bar(stroke=INK, strokeWidth=0.4, opacity=0.9).encode(value, position, styles.color())
    texts = base.mark_text(align="left", fontSize=11, color=INK).encode(alt.XValue(428), position, alt.Text("text:N"))
    return with_style(alt.layer(bars, texts))


def _whole_numbers(most: int) -> Any:
    """Return an axis of whole numbers."""
    import altair as alt

    if most <= FEW_TICKS:
        return alt.Axis(format="d", values=list(range(most + 1)))
    return alt.Axis(format="d", tickMinStep=1)


def _kinds(counts: DatasetCounts) -> Iterator[Plot]:
    """Yield the kinds of turns, and what else the benchmark counts, as bars."""
    numbers = {**counts.total.turn_kinds, **counts.total.further}
    if len(numbers) < 2:
        return
    kinds = set(counts.total.turn_kinds)
    rows: list[dict[str, Any]] = []
    for name, number in numbers.items():
        group = "turns" if name in kinds else "further counts"
        rows.append({"name": name, "group": group, "number": number, "text": f"{number:,}"})
    title = f"{counts.title}: kinds of turns"
    yield _bar_plot("kinds-of-turns", title, rows, "number")


def _sequences(counts: DatasetCounts) -> Iterator[Plot]:
    totals: dict[str, int] = {}
    for (_, sequence), count in counts.sequences.items():
        totals[sequence] = totals.get(sequence, 0) + count
    ordered = sorted(totals.items(), key=lambda item: (-item[1], item[0]))
    if len(ordered) < 2:
        return
    rows: list[dict[str, Any]] = []
    for sequence, count in ordered[:MAX_BARS]:
        turns = sequence.count(",") + 1
        group = f"{turns} turns" if turns > 1 else "1 turn"
        share = format_number(100 * count / counts.total.dialogues, 1)
        rows.append({"name": sequence, "group": group, "number": count, "text": f"{count:,} ({share}%)"})
    title = f"{counts.title}: modality sequences"
    if len(ordered) > MAX_BARS:
        title += f" (the first {MAX_BARS} of {len(ordered)})"
    yield _bar_plot("modality-sequences", title, rows)


def _histograms(counts: DatasetCounts) -> Iterator[Plot]:
    for name, bins in counts.histograms.items():
        if len(bins) > 1:
            labels = sort_bins(list(bins))
            yield _histogram_plot(counts, name, "dialogues", [(label, bins[label]) for label in labels])
    lengths = [(name_length_bin(start), count) for start, count in sorted(counts.question_lengths.items())]
    if len(lengths) > 1:
        yield _histogram_plot(counts, "question lengths in characters", "questions", lengths)


def _histogram_plot(counts: DatasetCounts, name: str, unit: str, bins: Sequence[tuple[str, int]]) -> Plot:
    import altair as alt

    title = f"{counts.title}: {name}"
    rows = [{"bin": label, "count": number, "text": f"{number:,}"} for label, number in bins[:MAX_BARS]]
    order = [label for label, _ in bins[:MAX_BARS]]
    base = base_chart(rows, title, max(360, min(900, 52 * len(rows))), 240)
    position = alt.X("bin:N", sort=order, axis=alt.Axis(labelAngle=0, labelLimit=0), title=name)
    value = alt.Y("count:Q", title=unit, axis=_whole_numbers(max(number for _, number in bins[:MAX_BARS])))
    bars = base.mark_bar(stroke=INK, strokeWidth=0.4, color=PALETTE[0]).encode(position, value)
    texts = base.mark_text(dy=-7, fontSize=11, color=INK).encode(position, value, alt.Text("text:N"))
    description = "; ".join(f"{row['bin']}: {row['text']}" for row in rows)
    return Plot(name.replace(" ", "-"), title, with_style(alt.layer(bars, texts)), f"{title}. {description}")
