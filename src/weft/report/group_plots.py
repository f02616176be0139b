"""Plots of several runs by the groups of each axis: a heat map of headline scores, and a radar chart of few groups.

Where a dataset has both text and image turns, each kind has a heat map of its own as well."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from weft.report import plots
from weft.report.heat_map import heat_map
from weft.report.layout import name_beside
from weft.report.scale import headline_share, to_points
from weft.results.run import Run
from weft.rounding import format_number
from weft.types import Verdict

MIN_GROUPS = 2
MAX_GROUPS = 40  # of a heat map
MAX_RUNS = 24  # of a heat map
MAX_RADAR_RUNS = 8  # more lines cannot be told apart
RADAR_GROUPS = range(3, 9)  # more spokes cannot be told apart
ALL = "all"
KINDS = {"": "", "text": "text turns", "image": "image turns"}
Runs = Mapping[str, Run]  # by title
Scores = dict[tuple[str, str], float | None]  # by run and group


class GroupPlot(Struct, frozen=True):
    """A plot before it has its description: what is drawn, and the numbers in it."""

    name: str
    title: str
    chart: Any
    lines: tuple[str, ...]
    limit: int  # the most runs that it shows


def build_group_plots(runs: Runs, in_words: Callable[[str], str]) -> list[GroupPlot]:
    """Return the plots of these runs by each axis of their benchmark that has several groups."""
    runs = dict(list(runs.items())[:MAX_RUNS])
    built: list[GroupPlot] = []
    modalities = {title: _modalities_of(run) for title, run in runs.items()}
    found = {kind for kinds in modalities.values() for kind in kinds.values()}
    kinds = tuple(KINDS) if {"text", "image"} <= found else ("",)
    for axis in _first(runs).benchmark.axes:
        groups = _list_groups(runs, axis)
        if not MIN_GROUPS <= len(groups) <= MAX_GROUPS:
            continue
        for kind in kinds:
            scores = _build_scores(runs, modalities, axis, groups, kind)
            if any(value is not None for value in scores.values()):
                built += _draw(runs, scores, axis, groups, kind, in_words)
    return built


def _first(runs: Runs) -> Run:
    return next(iter(runs.values()))


def _modalities_of(run: Run) -> dict[tuple[str, int], str]:
    """Return the modality of each turn of a run."""
    return {(turn.sample, turn.turn): turn.modality for turn in run.turns}


def _list_groups(runs: Runs, axis: str) -> list[str]:
    found: dict[str, None] = {}
    for run in runs.values():
        found.update(dict.fromkeys(groups[axis] for groups in run.groups.values() if groups.get(axis)))
    declared = _first(runs).benchmark.presentation.axis_names.get(axis, ())
    return list(dict.fromkeys([*(name for name in declared if name in found), *found]))


def _build_scores(
    runs: Runs, modalities: Mapping[str, Mapping[tuple[str, int], str]], axis: str, groups: Sequence[str], kind: str
) -> Scores:
    """Return the headline scores of each run in each group and in all, of all turns or those of one kind."""
    scores: Scores = {}
    total = name_beside(groups, ALL)
    for title, run in runs.items():
        of_kind: list[Verdict] = []
        by_group: dict[str, list[Verdict]] = {group: [] for group in groups}
        for verdict in run.verdicts:
            if kind and modalities[title].get((verdict.sample, verdict.turn)) != kind:
                continue
            of_kind.append(verdict)
            by_group.get(run.groups[verdict.sample].get(axis, ""), []).append(verdict)
        for name, verdicts in {**by_group, total: of_kind}.items():
            share = headline_share(run.benchmark, verdicts, run.groups) if verdicts else None
            scores[title, name] = to_points(run.benchmark, share)
    return scores


def _draw(
    runs: Runs, scores: Scores, axis: str, groups: Sequence[str], kind: str, in_words: Callable[[str], str]
) -> list[GroupPlot]:
    presentation = _first(runs).benchmark.presentation
    total = name_beside(groups, ALL)
    columns = [*groups, total]
    title = f"Headline score by {in_words(axis)}"
    name = f"by-{axis}-map"
    if kind:
        title += f": {KINDS[kind]}"
        name += f"-{kind}"
    values = {(run, in_words(group)): value for (run, group), value in scores.items()}
    known = [value for value in values.values() if value is not None]
    chart = heat_map(
        values,
        list(runs),
        [in_words(group) for group in columns],
        title=title,
        domain=(min(known), max(known)),
        digits=presentation.digits,
    )
    drawn = [GroupPlot(name, title, chart, _describe_scores(runs, scores, columns, in_words), MAX_RUNS)]
    if not kind and len(groups) in RADAR_GROUPS:
        title += ", from zero to full marks"
        shown = dict(list(runs.items())[:MAX_RADAR_RUNS])
        rows = [
            {axis: in_words(group), "run": run, "score": scores[run, group]}
            for run in shown
            for group in groups
            if scores[run, group] is not None
        ]
        radar = plots.radar_chart(rows, axis=axis, y="score", series="run", title=title, top=presentation.max_score)
        described = _describe_scores(shown, scores, columns, in_words)
        drawn.append(GroupPlot(f"by-{axis}", title, radar, described, MAX_RADAR_RUNS))
    return drawn


def _describe_scores(
    runs: Runs, scores: Scores, columns: Sequence[str], in_words: Callable[[str], str]
) -> tuple[str, ...]:
    """Return a line for each number."""
    digits = _first(runs).benchmark.presentation.digits
    lines: list[str] = []
    for run in runs:
        for group in columns:
            value = scores[run, group]
            if value is not None:
                lines.append(f"{in_words(group)}, {run}: {format_number(value, digits)}")
    return tuple(lines)
