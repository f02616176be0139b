"""The plots of a report, built from verdicts alone: by turn, by axis, distributions, score against calls.

Values are on the scale of the benchmark's paper. Intervals are 95%, by dialogue; a mean over one dialogue has none."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from weft.benchmarks.base import SampleGroups
from weft.report import plots
from weft.report.group_plots import build_group_plots
from weft.report.scale import headline_share, to_points
from weft.results.run import Run, find_cluster
from weft.results.titles import titles_without_setting
from weft.rounding import format_number
from weft.stats.intervals import estimate_mean
from weft.types import Verdict

MAX_SERIES = 8  # as many as can be told apart
MIN_RADAR_AXES = 3
FAMILIES = {
    "none": "the model alone",
    "cot": "chain of thought",
    "self-verify": "self-verification, N =",
    "best-of": "best of N =",
}
BINS = 10
WIDE = 600  # pixels from which a plot gets a row of the page for itself
CALLS = "calls per turn"
BIN = "score of a dialogue"
Runs = Mapping[str, Run]  # by title
Rows = list[dict[str, Any]]


class Plot(Struct, frozen=True):
    """A plot of the report."""

    name: str  # of its file
    title: str
    chart: Any  # altair
    description: str  # what it shows, in words, for those who cannot see it

    @property
    def wide(self) -> bool:
        width: Any = self.chart.to_dict().get("width", 0)
        return isinstance(width, (int, float)) and width > WIDE


def build_plots(runs: Runs) -> list[Plot]:
    """Return the plots of these runs. A plot without data is left out."""
    if not any(map(_has_scores, runs.values())):
        return []
    presentation = _first(runs).benchmark.presentation
    if presentation.pairwise:
        return _ranking(runs)
    by_turn = [] if presentation.turn_names else _by_turn(runs)
    by_groups = _by_groups(runs) if len(runs) > 1 else _by_second_axis(runs)
    first_plots = [_note_limit(plot, len(runs)) for plot in (*by_turn, *_by_axis(runs))]
    last_plots = [_note_limit(plot, len(runs)) for plot in _distributions(runs)]
    return [*first_plots, *by_groups, *last_plots, *_against_calls(runs)]


def _note_limit(plot: Plot, runs: int, limit: int = MAX_SERIES) -> Plot:
    """Add to a plot how many of the runs it shows, if those are not all."""
    if runs <= limit:
        return plot
    note = f" (the first {limit} of {runs} runs)"
    return replace(plot, title=plot.title + note, description=plot.description + note)


def _has_scores(run: Run) -> bool:
    return any(verdict.value is not None for verdict in run.verdicts)


def _first(runs: Runs) -> Run:
    return next(iter(runs.values()))


def _shown_runs(runs: Runs) -> list[tuple[str, Run]]:
    return list(runs.items())[:MAX_SERIES]


def in_words(name: str) -> str:
    """Return the name of a metric, an axis or a group as people write it: `key point` for `key_point`."""
    return " ".join(name.replace("_", " ").split())


def _describe(title: str, lines: Iterable[str]) -> str:
    return f"{title}. " + "; ".join(lines)


def _ranking(runs: Runs) -> list[Plot]:
    """Return the benchmark's ranking, where a verdict says nothing about one model alone."""
    presentation = _first(runs).benchmark.presentation
    title, rows = presentation.ranking([run.results(name) for name, run in _shown_runs(runs)])
    if not rows:
        return []
    chart = plots.ranking_chart(rows, name="name", x=title, series="series", title=title)
    description = _describe(title, (f"{row['series']}, {row['name']}: {format_number(row[title], 1)}" for row in rows))
    return [Plot("ranked", title, chart, description)]


def _cluster_points(run: Run, includes: Callable[[Verdict], bool]) -> dict[str, list[float]]:
    """Return the points of the scored verdicts that are included, by dialogue."""
    points: dict[str, list[float]] = {}
    for verdict in run.verdicts:
        if verdict.value is not None and includes(verdict):
            cluster = find_cluster(run.benchmark, verdict.sample, run.groups[verdict.sample])
            points.setdefault(cluster, []).append(run.benchmark.presentation.max_score * verdict.value)
    return points


def _estimate(run: Run, points: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """Return the mean with its interval. One dialogue says nothing about others, so its mean has no interval."""
    estimate = estimate_mean(points, (0.0, run.benchmark.presentation.max_score))
    if len(points) < 2:
        return {"score": estimate.value, "low": None, "high": None}
    return {"score": estimate.value, "low": estimate.low, "high": estimate.high}


def _format_score(run: Run, row: Mapping[str, Any]) -> str:
    return format_number(row["score"], run.benchmark.presentation.digits)


def _by_turn(runs: Runs) -> list[Plot]:
    """Return one plot of all metrics for one run; one plot per metric for several."""
    first = _first(runs)
    if len(runs) == 1:
        rows: Rows = []
        for metric in first.benchmark.metrics:
            rows += _turn_rows(first, metric, in_words(metric))
        return _turn_plot(first, rows, "by-turn", "Score by turn")
    built: list[Plot] = []
    for metric in first.benchmark.metrics:
        rows = []
        for title, run in _shown_runs(runs):
            rows += _turn_rows(run, metric, title)
        built += _turn_plot(first, rows, f"by-turn-{metric}", f"Score by turn: {in_words(metric)}", list(runs))
    return built


def _turn_plot(run: Run, rows: Rows, name: str, title: str, order: Sequence[str] = ()) -> list[Plot]:
    if len({row["turn"] for row in rows}) < 2:
        return []
    top = run.benchmark.presentation.max_score
    chart = plots.line_chart(rows, x="turn", y="score", series="series", title=title, top=top, order=order)
    lines = (f"{row['series']}, turn {row['turn']}: {_format_score(run, row)}" for row in rows)
    return [Plot(name, title, chart, _describe(title, lines))]


def _turn_rows(run: Run, metric: str, series: str) -> Rows:
    rows: Rows = []
    for turn in sorted({verdict.turn for verdict in run.verdicts}):
        points = _cluster_points(run, lambda verdict, turn=turn: verdict.metric == metric and verdict.turn == turn)
        if points:
            rows.append({"series": series, "turn": turn + 1, **_estimate(run, points)})
    return rows


def _all_groups(runs: Runs) -> dict[str, Mapping[str, str]]:
    groups: dict[str, Mapping[str, str]] = {}
    for run in runs.values():
        groups.update(run.groups)
    return groups


def _group_names(groups: SampleGroups, axis: str) -> list[str]:
    return list(dict.fromkeys(of_sample[axis] for of_sample in groups.values() if of_sample.get(axis)))


def _by_axis(runs: Runs) -> list[Plot]:
    """Return each metric in each group of the benchmark's first axis."""
    first = _first(runs)
    if not first.benchmark.axes:
        return []
    axis = first.benchmark.axes[0]
    groups = _all_groups(runs)
    if len(runs) == 1:
        rows: Rows = []
        for metric in first.benchmark.metrics:
            rows += _axis_rows(first, groups, axis, metric, in_words(metric))
        return _axis_plot(first, rows, axis, f"by-{axis}", f"Score by {in_words(axis)} and metric")
    built: list[Plot] = []
    for metric in first.benchmark.metrics:
        rows = []
        for title, run in _shown_runs(runs):
            rows += _axis_rows(run, groups, axis, metric, title)
        heading = f"Score by {in_words(axis)}: {in_words(metric)}"
        built += _axis_plot(first, rows, axis, f"by-{axis}-{metric}", heading, list(runs))
    return built


def _axis_rows(run: Run, groups: SampleGroups, axis: str, metric: str, series: str) -> Rows:
    rows: Rows = []
    for group in _group_names(groups, axis):

        def includes(verdict: Verdict, group: str = group) -> bool:
            return verdict.metric == metric and groups[verdict.sample].get(axis) == group

        points = _cluster_points(run, includes)
        if points:
            rows.append({axis: in_words(group), "series": series, **_estimate(run, points)})
    return rows


def _axis_plot(run: Run, rows: Rows, axis: str, name: str, title: str, order: Sequence[str] = ()) -> list[Plot]:
    if not rows:
        return []
    top = run.benchmark.presentation.max_score
    chart = plots.grouped_bar_chart(rows, x=axis, y="score", series="series", title=title, top=top, order=order)
    lines = (f"{row[axis]}, {row['series']}: {_format_score(run, row)}" for row in rows)
    return [Plot(name, title, chart, _describe(title, lines))]


def _by_groups(runs: Runs) -> list[Plot]:
    """Return several runs by the groups of each axis."""
    built: list[Plot] = []
    for plot in build_group_plots(runs, in_words):
        described = _describe(plot.title, plot.lines)
        built.append(_note_limit(Plot(plot.name, plot.title, plot.chart, described), len(runs), plot.limit))
    return built


def _by_second_axis(runs: Runs) -> list[Plot]:
    """Return one run's headline score by the second axis, if there are enough groups for a radar chart."""
    first = _first(runs)
    if len(first.benchmark.axes) < 2:
        return []
    axis = first.benchmark.axes[1]
    groups = _all_groups(runs)
    names = _group_names(groups, axis)
    if len(names) < MIN_RADAR_AXES:
        return []
    rows: Rows = []
    for title, run in runs.items():
        for group in names:
            verdicts = [verdict for verdict in run.verdicts if groups[verdict.sample].get(axis) == group]
            share = headline_share(run.benchmark, verdicts, groups)
            if share is not None:
                rows.append({axis: in_words(group), "run": title, "score": to_points(run.benchmark, share)})
    if not rows:
        return []
    title = f"Headline score by {in_words(axis)}"
    top = first.benchmark.presentation.max_score
    chart = plots.radar_chart(rows, axis=axis, y="score", series="run", title=title, top=top)
    lines = (f"{row[axis]}, {row['run']}: {_format_score(first, row)}" for row in rows)
    return [Plot(f"by-{axis}", title, chart, _describe(title, lines))]


def _distributions(runs: Runs) -> list[Plot]:
    """Return how the headline scores of dialogues are distributed, and each metric that the benchmark names for it."""
    headline = _distribution(runs, "", "Distribution of dialogues by headline score", "dialogues")
    metrics = _first(runs).benchmark.presentation.distribution_metrics
    return [
        headline,
        *(_distribution(runs, name, f"Distribution of {in_words(name)}", f"spread-{name}") for name in metrics),
    ]


def _distribution(runs: Runs, metric: str, title: str, name: str) -> Plot:
    rows: Rows = []
    for label, run in _shown_runs(runs):
        bins = [_bin_of(share) for share in _dialogue_shares(run, metric)]
        full = run.benchmark.presentation.max_score
        for number in range(BINS):
            interval = f"{full * number / BINS:g}-{full * (number + 1) / BINS:g}"
            rows.append({BIN: interval, "dialogues": bins.count(number), "run": label})
    chart = plots.histogram(rows, x=BIN, y="dialogues", series="run", title=title)
    lines = (f"{row['run']}, {row[BIN]}: {row['dialogues']}" for row in rows if row["dialogues"])
    return Plot(name, title, chart, _describe(title, lines))


def _bin_of(share: float) -> int:
    return min(BINS - 1, int(round(BINS * share, 6)))


def _dialogue_shares(run: Run, metric: str) -> list[float]:
    """Return each dialogue's mean of a metric, or its headline score without one. Unscored dialogues are left out."""
    by_sample: dict[str, list[Verdict]] = {}
    for verdict in run.verdicts:
        if not metric or verdict.metric == metric:
            by_sample.setdefault(verdict.sample, []).append(verdict)
    shares: list[float] = []
    for verdicts in by_sample.values():
        if metric:
            share = _mean(verdicts)
        else:
            share = headline_share(run.benchmark, verdicts, run.groups)
        if share is not None:
            shares.append(share)
    return shares


def _mean(verdicts: Sequence[Verdict]) -> float | None:
    values = [verdict.value for verdict in verdicts if verdict.value is not None]
    if not values:
        return None
    return sum(values) / len(values)


def strategy_label(strategy: str) -> dict[str, str]:
    """Return a strategy's family, and the number that tells it from others of its family."""
    kind, _, number = strategy.partition(":")
    return {"family": FAMILIES.get(kind, kind), "label": number}


def _against_calls(runs: Runs) -> list[Plot]:
    """Return the score against model calls per turn, where runs differ in their strategy."""
    if len({run.record.manifest.strategy for run in runs.values()}) < 2:
        return []
    rows: Rows = []
    models = titles_without_setting([run.title_input for run in runs.values()], "strategy")
    for run, model in zip(runs.values(), models, strict=True):
        points = _cluster_points(run, lambda _: True)
        if not points or not run.turns:
            continue
        label = strategy_label(run.record.manifest.strategy)
        if len(set(models)) > 1:
            label["family"] = f"{model}: {label['family']}"
        calls = sum(max(1, len(turn.reply.keys)) for turn in run.turns) / len(run.turns)
        rows.append({CALLS: calls, **label, **_estimate(run, points)})
    if not rows:
        return []
    families = list(dict.fromkeys(row["family"] for row in rows))
    title = "Score against calls"
    if len(families) > MAX_SERIES:
        title += f" (the first {MAX_SERIES} of {len(families)} series)"
    rows = [row for row in rows if row["family"] in families[:MAX_SERIES]]
    chart = plots.cost_chart(rows, x=CALLS, y="score", series="family", label="label", title=title)
    first = _first(runs)
    lines = (
        f"{row['family']} {row['label']}: {_format_score(first, row)} at {format_number(row[CALLS], 1)}" for row in rows
    )
    return [Plot("against-calls", title, chart, _describe(title, lines))]
