"""The plots of a report, from verdicts alone, for every benchmark: by turn, by its axes, how dialogues come out, what
calls buy. Values are on the scale of the benchmark's paper; intervals are 95%, by dialogue."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from weft.report import plots
from weft.report.scale import format_number, headline_share, to_points
from weft.results.run import Run
from weft.results.titles import titles_without_setting
from weft.stats.intervals import estimate_mean
from weft.types import Verdict

MAX_SERIES = 8  # as many as can be told apart
FAMILIES = {
    "none": "the model alone",
    "cot": "chain of thought",
    "self-verify": "self-verification, N =",
    "best-of": "best of N =",
}
BINS = 10
WIDE = 600  # of a plot that takes a row of a page for itself


class Plot(Struct, frozen=True):
    name: str
    title: str
    chart: Any
    description: str  # what it shows, for those who do not see it

    @property
    def wide(self) -> bool:
        width: Any = self.chart.to_dict().get("width", 0)
        return isinstance(width, (int, float)) and width > WIDE


def build_plots(runs: Mapping[str, Run]) -> list[Plot]:
    """`runs` by the name they have in the report. What there is nothing to draw of is left out."""
    if not any(verdict.value is not None for run in runs.values() for verdict in run.verdicts):
        return []
    if next(iter(runs.values())).benchmark.presentation.pairwise:
        return _ranked(runs)
    steps = not next(iter(runs.values())).benchmark.presentation.turn_names
    made = [
        *(_by_turn(runs) if steps else ()),
        *_by_axis(runs),
        *_by_finer_axis(runs),
        *_spread(runs),
        _against_calls(runs),
    ]
    found = [plot for plot in made if plot is not None]
    if len(runs) <= MAX_SERIES:
        return found
    note = f" (the first {MAX_SERIES} of {len(runs)} runs)"
    return [
        plot
        if plot.name == "against-calls"
        else replace(plot, title=plot.title + note, description=plot.description + note)
        for plot in found
    ]


def _ranked(runs: Mapping[str, Run]) -> list[Plot]:
    """What the benchmark ranks, where a verdict says nothing of one model alone."""
    presentation = next(iter(runs.values())).benchmark.presentation
    what, rows = presentation.ranking([run.results(name) for name, run in list(runs.items())[:MAX_SERIES]])
    if not rows:
        return []
    told = f"{what}. " + "; ".join(f"{row['series']}, {row['name']}: {row[what]:.1f}" for row in rows)
    return [Plot("ranked", what, plots.ranking_chart(rows, name="name", x=what, series="series", title=what), told)]


def _values(run: Run, keep: Callable[[Verdict], bool]) -> dict[str, list[float]]:
    """Points by dialogue."""
    made: dict[str, list[float]] = {}
    groups = run.groups
    for verdict in run.verdicts:
        if verdict.value is not None and keep(verdict):
            of = run.benchmark.cluster_of(verdict.sample, groups[verdict.sample])
            made.setdefault(of, []).append(run.benchmark.presentation.max_score * verdict.value)
    return made


def _figure(run: Run, row: Mapping[str, Any]) -> str:
    return format_number(row["score"], run.benchmark.presentation.digits)


def _estimate(values: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    found = estimate_mean(values)
    return {"score": found.value, "low": found.low, "high": found.high}


def _by_turn(runs: Mapping[str, Run]) -> list[Plot]:
    first = next(iter(runs.values()))
    made: list[Plot] = []
    if len(runs) == 1:
        rows = [row for metric in first.benchmark.metrics for row in _turns(first, metric, metric)]
        sets = {"": rows}
    else:
        sets = {
            metric: [row for name, run in list(runs.items())[:MAX_SERIES] for row in _turns(run, metric, name)]
            for metric in first.benchmark.metrics
        }
    for metric, rows in sets.items():
        if len({row["turn"] for row in rows}) > 1:
            title = "Score by turn" + (f": {metric}" if metric else "")
            chart = plots.line_chart(
                rows, x="turn", y="score", series="series", title=title, top=first.benchmark.presentation.max_score
            )
            told = f"{title}. " + "; ".join(
                f"{row['series']}, turn {row['turn']}: {_figure(first, row)}" for row in rows
            )
            made.append(Plot("by-turn" + (f"-{metric}" if metric else ""), title, chart, told))
    return made


def _turns(run: Run, metric: str, series: str) -> list[dict[str, Any]]:
    numbers = sorted({verdict.turn for verdict in run.verdicts})
    found = {number: _values(run, lambda v, n=number: v.metric == metric and v.turn == n) for number in numbers}
    return [{"series": series, "turn": number + 1, **_estimate(values)} for number, values in found.items() if values]


def _by_axis(runs: Mapping[str, Run]) -> list[Plot]:
    """Each metric in each group of the benchmark's coarsest axis."""
    first = next(iter(runs.values()))
    if not first.benchmark.axes:
        return []
    axis = first.benchmark.axes[0]
    several = len(runs) > 1
    groups = {sample: found for run in runs.values() for sample, found in run.groups.items()}
    values_of_axis = list(dict.fromkeys(found[axis] for found in groups.values() if axis in found))
    made: list[Plot] = []
    for metric in first.benchmark.metrics if several else [""]:
        rows: list[dict[str, Any]] = []
        for name, run in list(runs.items())[:MAX_SERIES]:
            for one in [metric] if several else first.benchmark.metrics:
                for group in values_of_axis:
                    values = _values(run, lambda v, m=one, g=group: v.metric == m and groups[v.sample].get(axis) == g)
                    if values:
                        rows.append({axis: group, "series": name if several else one, **_estimate(values)})
        if rows:
            if several:
                title = f"By {axis}: {metric}"
            else:
                title = f"By {axis} and metric"
            chart = plots.grouped_bar_chart(
                rows, x=axis, y="score", series="series", title=title, top=first.benchmark.presentation.max_score
            )
            told = f"{title}. " + "; ".join(f"{row[axis]}, {row['series']}: {_figure(first, row)}" for row in rows)
            made.append(Plot(f"by-{axis}{'-' + metric if metric else ''}", title, chart, told))
    return made


def _by_finer_axis(runs: Mapping[str, Run]) -> list[Plot]:
    """The main number in each group of the second axis, where there are enough of them for a shape."""
    first = next(iter(runs.values()))
    if len(first.benchmark.axes) < 2:
        return []
    axis = first.benchmark.axes[1]
    groups = {sample: found for run in runs.values() for sample, found in run.groups.items()}
    values = list(dict.fromkeys(found[axis] for found in groups.values() if found.get(axis)))
    if len(values) < 3:
        return []
    rows: list[dict[str, Any]] = []
    for name, run in list(runs.items())[:MAX_SERIES]:
        for value in values:
            found = headline_share(
                run.benchmark, [v for v in run.verdicts if groups[v.sample].get(axis) == value], groups
            )
            if found is not None:
                rows.append({axis: value, "run": name, "score": to_points(run.benchmark, found)})
    title = f"Main number by {axis}"
    told = f"{title}. " + "; ".join(f"{row[axis]}, {row['run']}: {_figure(first, row)}" for row in rows)
    chart = plots.radar_chart(
        rows, axis=axis, y="score", series="run", title=title, top=first.benchmark.presentation.max_score
    )
    return [Plot(f"by-{axis}", title, chart, told)]


def _spread(runs: Mapping[str, Run]) -> list[Plot]:
    """How dialogues come out by the main number, and by each metric that the benchmark wants drawn."""
    first = next(iter(runs.values()))
    made = [_spread_of(runs, "", "How dialogues come out (main number)", "dialogues")]
    metrics = first.benchmark.presentation.distribution_metrics
    return made + [_spread_of(runs, metric, f"How {metric} is distributed", f"spread-{metric}") for metric in metrics]


def _spread_of(runs: Mapping[str, Run], metric: str, title: str, name: str) -> Plot:
    rows: list[dict[str, Any]] = []
    for label, run in list(runs.items())[:MAX_SERIES]:
        verdicts: dict[str, list[Verdict]] = {}
        for verdict in run.verdicts:
            if not metric or verdict.metric == metric:
                verdicts.setdefault(verdict.sample, []).append(verdict)
        found = [
            _mean(some) if metric else headline_share(run.benchmark, some, run.groups) for some in verdicts.values()
        ]
        places = [min(BINS - 1, int(round(BINS * one, 6))) for one in found if one is not None]
        for at in range(BINS):
            low, high = (f"{run.benchmark.presentation.max_score * edge / BINS:g}" for edge in (at, at + 1))
            rows.append({"score of a dialogue": f"{low}-{high}", "dialogues": places.count(at), "run": label})
    told = f"{title}. " + "; ".join(
        f"{row['run']}, {row['score of a dialogue']}: {row['dialogues']}" for row in rows if row["dialogues"]
    )
    return Plot(
        name, title, plots.histogram(rows, x="score of a dialogue", y="dialogues", series="run", title=title), told
    )


def _mean(verdicts: Sequence[Verdict]) -> float | None:
    values = [one.value for one in verdicts if one.value is not None]
    if values:
        return sum(values) / len(values)
    return None


def strategy_label(strategy: str) -> dict[str, str]:
    """A strategy's family, and what tells it from the others of its family."""
    kind, _, number = strategy.partition(":")
    return {"family": FAMILIES.get(kind, kind), "label": number}


def _against_calls(runs: Mapping[str, Run]) -> Plot | None:
    """Where runs differ in their strategy: what more calls buy."""
    if len({run.record.manifest.strategy for run in runs.values()}) < 2:
        return None
    rows: list[dict[str, Any]] = []
    alike = titles_without_setting([run.title_input for run in runs.values()], "strategy")
    for run, alone in zip(runs.values(), alike, strict=True):
        values = _values(run, lambda _: True)
        if values and run.turns:
            calls = sum(max(1, len(turn.reply.keys)) for turn in run.turns) / len(run.turns)
            told = strategy_label(run.record.manifest.strategy)
            if len(set(alike)) == 1:
                family = told["family"]
            else:
                family = f"{alone}: {told['family']}"
            rows.append({"calls a turn": calls, "family": family, "label": told["label"], **_estimate(values)})
    drawn = list(dict.fromkeys(row["family"] for row in rows))
    title = "Score against calls" + (
        f" (the first {MAX_SERIES} of {len(drawn)} series)" if len(drawn) > MAX_SERIES else ""
    )
    rows = [row for row in rows if row["family"] in drawn[:MAX_SERIES]]
    first = next(iter(runs.values()))
    told = f"{title}. " + "; ".join(
        f"{row['family']} {row['label']}: {_figure(first, row)} at {row['calls a turn']:.1f}" for row in rows
    )
    return Plot(
        "against-calls",
        title,
        plots.cost_chart(rows, x="calls a turn", y="score", series="family", label="label", title=title),
        told,
    )
