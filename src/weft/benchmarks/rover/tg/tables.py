"""ROVER-TG's tables: overall by mode, Table 3 of the paper with our rows before the published ones, the gain from an
intermediate image (modes on the same items), the answers that it changes, and breakdowns by problem type.

`micro` is the mean over questions, `macro` the plain mean of the three scenarios, which is what the paper's Overall is
in 18 of 21 cells. Paths of the embodied questions are apart, as Track. The released code has no accuracy: the official
rows have ours.
"""

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from weft.benchmarks.base import RunResults
from weft.benchmarks.rover.arithmetic import (
    SUMMARY_STOPS_NOTE,
    RoverEntry,
    build_entry,
    build_group_key,
    build_macro_cell,
    build_micro_cell,
    build_printed_macro_cell,
    group_entries,
    select_metrics,
    stops_summary,
)
from weft.benchmarks.rover.ig.rubric import ALIGNMENT
from weft.benchmarks.rover.tg import rubric
from weft.benchmarks.rover.tg.data import TEXT_TURN, TYPES, VISUAL_TURN
from weft.benchmarks.rover.tg.gains import MODES, SCENARIO_NAMES, build_given_tables, build_visual_gain_table
from weft.benchmarks.rows import build_breakdowns, build_rows, read_published
from weft.types import Cell, Row, Table

JUDGE = rubric.OFFICIAL.published_judge
COLUMNS = {"IR": rubric.INTERLEAVED, "Align.": ALIGNMENT, "Acc.": rubric.ACCURACY}
ALL_COLUMNS = (*COLUMNS, "Track", "AVG")
SHOWN_BY_TYPE = ("Acc.", "IR", "Align.", "Track")  # in tables of several runs
OVERALL = "Overall"
OVERALL_NOTE = "Overall: the plain mean of the scenarios (macro), as the paper's is in 18 of 21 cells."
JUDGED_COLUMNS = ("IR", "Align.", "AVG")
PUBLISHED_SCENARIOS = {
    "Physical World": "PhysicalWorldModel",
    "Logical Assistant": "LogicalAssistant",
    "Visual Perception": "VisualPerception",
}
PUBLISHED_KEYS = {"IR": "IR", "Align.": "Align", "Acc.": "Acc"}
NOTE = (
    "0 to 100. micro: the mean over questions; macro: the plain mean of the scenarios (the three, or those that were "
    "run). Acc. by rule, without embodied questions, whose paths are apart: Track is 100 on the reference path and 0 "
    "where it is a quarter of the diagonal away on average. A dash: not measured."
)


def tables(runs: Sequence[RunResults]) -> Iterator[Table]:
    """Yield the overall table, the paper's Table 3, the gain from an intermediate image, and each run's breakdowns."""
    published: Mapping[str, Any] = {}
    data = "Tabletop in ROVER-TG's format"
    if all(run.dataset != "tabletop" for run in runs):
        published = read_published("weft.benchmarks.rover")
        data = "ROVER-TG"
    published_rows: Sequence[Mapping[str, Any]] = published.get("table3", {}).get("rows", ())
    yield _build_overall_table(runs, published_rows, f"{data}: overall")
    yield _build_scenario_table(runs, published_rows, f"{data}: by scenario (paper, Table 3)")
    in_both_modes = [run for run in runs if {VISUAL_TURN, TEXT_TURN} <= set(_list_turns(run))]
    if in_both_modes:
        yield build_visual_gain_table(in_both_modes, f"{data}: what an intermediate image gains")
    yield from build_given_tables(runs, data)
    for turn, mode in MODES.items():
        in_mode = _select_runs(runs, turn)
        if in_mode:
            build_type_cells = functools.partial(_build_type_cells, turn)
            by_type = f"by problem type, {mode}"
            yield from build_breakdowns(in_mode, data, by_type, ALL_COLUMNS, build_type_cells, 1, shown=SHOWN_BY_TYPE)


def _list_turns(run: RunResults) -> list[int]:
    return sorted({verdict.turn for verdict in run.verdicts})


def build_entries(run: RunResults, turn: int) -> list[RoverEntry]:
    """Return the entries of one mode, under the metrics that all modes have."""
    common_metrics: dict[str, str] = {}
    for metrics in (rubric.TEXT_ONLY_METRICS, rubric.GIVEN_METRICS):
        common_metrics |= {of_mode: metric for metric, of_mode in metrics.items()}
    entries: list[RoverEntry] = []
    for verdict in run.verdicts:
        if verdict.turn == turn:
            metric = common_metrics.get(verdict.metric, verdict.metric)
            entries.append(build_entry(verdict, rubric.OFFICIAL, metric))
    return entries


def _select_runs(runs: Sequence[RunResults], turn: int) -> list[RunResults]:
    return [run for run in runs if turn in _list_turns(run)]


def build_cells(entries: Sequence[RoverEntry], official: bool) -> dict[str, Cell]:
    """Return the cells of some questions in one mode. AVG pools the scores that a judge gave."""
    cells: dict[str, Cell] = {}
    for name, metric in COLUMNS.items():
        is_official = official and metric != rubric.ACCURACY
        cells[name] = build_micro_cell(select_metrics(entries, metric), official=is_official)
    cells["Track"] = build_micro_cell(select_metrics(entries, rubric.TRACK), official=False)
    cells["AVG"] = build_micro_cell(select_metrics(entries, rubric.INTERLEAVED, ALIGNMENT), official=official)
    return cells


def _hide_if_stopped(run: RunResults, cells: dict[str, Cell], official: bool) -> dict[str, Cell]:
    """Remove the judge's scores from official cells if the released summary stops."""
    if not official or not _stops_summary(run):
        return cells
    remaining = dict(cells)
    for name in cells:
        if name.split(" ")[-1] in JUDGED_COLUMNS:
            remaining[name] = Cell(None)
    return remaining


def _stops_summary(run: RunResults) -> bool:
    judged = [verdict for verdict in run.verdicts if verdict.metric in (rubric.INTERLEAVED, ALIGNMENT)]
    return stops_summary(build_entry(verdict, rubric.OFFICIAL) for verdict in judged)


def _build_micro_cells(turn: int, run: RunResults, official: bool) -> dict[str, Cell]:
    return _hide_if_stopped(run, build_cells(build_entries(run, turn), official), official)


def _build_macro_cells(turn: int, run: RunResults, official: bool) -> dict[str, Cell]:
    by_scenario = group_entries(build_entries(run, turn), build_group_key(run, "scenario"))
    groups = [by_scenario[name] for name in SCENARIO_NAMES if name in by_scenario]
    cells: dict[str, Cell] = {}
    for name, metric in COLUMNS.items():
        is_official = official and metric != rubric.ACCURACY
        cells[name] = build_macro_cell([select_metrics(group, metric) for group in groups], official=is_official)
    judged = [select_metrics(group, rubric.INTERLEAVED, ALIGNMENT) for group in groups]
    cells["AVG"] = build_macro_cell(judged, official=official)
    return _hide_if_stopped(run, cells, official)


def _build_overall_table(runs: Sequence[RunResults], published_rows: Sequence[Mapping[str, Any]], title: str) -> Table:
    rows: list[Row] = []
    for turn, mode in MODES.items():
        in_mode = _select_runs(runs, turn)
        rows += build_rows(in_mode, functools.partial(_build_micro_cells, turn), f"{mode}, micro")
        rows += build_rows(in_mode, functools.partial(_build_macro_cells, turn), f"{mode}, macro")
    for printed in published_rows:
        rows += _build_published_rows(printed)
    note = NOTE
    if any(map(_stops_summary, runs)):
        note = f"{NOTE} {SUMMARY_STOPS_NOTE}"
    return Table(title, ALL_COLUMNS, tuple(rows), note, 1, "parts")


def _build_published_rows(printed: Mapping[str, Any]) -> list[Row]:
    """Return a model of the paper: means of its printed scenarios, and Overall as it is printed."""
    means: dict[str, Cell] = {}
    overall: dict[str, Cell] = {}
    for name, key in PUBLISHED_KEYS.items():
        values = [printed[f"{PUBLISHED_SCENARIOS[scenario]}_{key}"] for scenario in SCENARIO_NAMES]
        mean = build_printed_macro_cell(values)
        if mean is not None:
            means[name] = mean
        if printed[f"Overall_{key}"] is not None:
            overall[name] = Cell(printed[f"Overall_{key}"])
    model = printed["model"]
    mode = printed["reasoning_mode"]
    return [
        Row(model, means, kind="published", subset=f"{mode}, macro of what is printed", judge=JUDGE),
        Row(model, overall, kind="published", subset=f"{mode}, Overall as printed", judge=JUDGE),
    ]


def _build_scenario_table(runs: Sequence[RunResults], published_rows: Sequence[Mapping[str, Any]], title: str) -> Table:
    keys: dict[str, str] = {}
    for scenario in SCENARIO_NAMES:
        for name in COLUMNS:
            keys[f"{scenario} {name}"] = f"{PUBLISHED_SCENARIOS[scenario]}_{PUBLISHED_KEYS[name]}"
    for name in COLUMNS:
        keys[f"{OVERALL} {name}"] = f"{OVERALL}_{PUBLISHED_KEYS[name]}"
    rows: list[Row] = []
    for turn, mode in MODES.items():
        rows += build_rows(_select_runs(runs, turn), functools.partial(_build_scenario_cells, turn), mode)
    for printed in published_rows:
        cells = {column: Cell(printed[key]) for column, key in keys.items()}
        rows.append(Row(printed["model"], cells, kind="published", subset=printed["reasoning_mode"], judge=JUDGE))
    return Table(title, tuple(keys), tuple(rows), OVERALL_NOTE, 1, "parts")


def _build_scenario_cells(turn: int, run: RunResults, official: bool) -> dict[str, Cell]:
    by_scenario = group_entries(build_entries(run, turn), build_group_key(run, "scenario"))
    cells: dict[str, Cell] = {}
    for scenario in SCENARIO_NAMES:
        if scenario in by_scenario:
            scenario_cells = build_cells(by_scenario[scenario], official)
            cells |= {f"{scenario} {name}": scenario_cells[name] for name in COLUMNS}
    overall = _build_macro_cells(turn, run, official)
    cells |= {f"{OVERALL} {name}": overall[name] for name in COLUMNS}
    return _hide_if_stopped(run, cells, official)


def _build_type_cells(turn: int, run: RunResults, official: bool) -> dict[str, Mapping[str, Cell]]:
    groups = group_entries(build_entries(run, turn), build_group_key(run, "type"))
    cells: dict[str, Mapping[str, Cell]] = {}
    for name in TYPES:
        if name in groups:
            cells[name] = _hide_if_stopped(run, build_cells(groups[name], official), official)
    cells["overall"] = _build_micro_cells(turn, run, official)
    return cells
