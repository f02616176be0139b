"""ROVER-TG's tables: overall by mode, Table 3 of the paper with our rows before the published ones, what a picture on
the way gains (both modes on the same items), and our own problem types.

`micro` is the mean over questions, `macro` the plain mean of the three scenarios, which is what the paper's Overall is
in 18 of 21 cells. Paths of the embodied questions stand apart, as Track. The released code has no accuracy: the
official rows have ours."""

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
from weft.benchmarks.rover.tg.data import SCENARIOS, TEXT_TURN, TYPES, VISUAL_TURN
from weft.benchmarks.rows import build_breakdown, build_rows, read_published
from weft.stats.paired import compare_paired
from weft.types import Cell, Row, Table

JUDGE = rubric.OFFICIAL.published_judge
MODES = {VISUAL_TURN: "Vis.-Aug.", TEXT_TURN: "Text"}
COLUMNS = {"IR": rubric.INTERLEAVED, "Align.": ALIGNMENT, "Acc.": rubric.ACCURACY}
NAMES = tuple(dict.fromkeys(SCENARIOS.values()))
PRINTED = {
    "Physical World": "PhysicalWorldModel",
    "Logical Assistant": "LogicalAssistant",
    "Visual Perception": "VisualPerception",
}
KEYS = {"IR": "IR", "Align.": "Align", "Acc.": "Acc"}
NOTE = (
    "0 to 100. micro: the mean over questions; macro: the plain mean of the scenarios (the three, or those that were run). Acc. by "
    "rule, without embodied "
    "questions, whose paths stand apart: Track is 100 on the true path and 0 where it is a quarter of the diagonal away on "
    "average. A dash: not measured."
)
GAIN = (
    "Acc. with a picture on the way less Acc. in words alone, in points, on the questions that were asked both ways (--mode both); "
    "95% intervals by resampling questions."
)


def tables(runs: Sequence[RunResults]) -> Iterator[Table]:
    if all(run.dataset != "tabletop" for run in runs):
        paper: Mapping[str, Any] = read_published("weft.benchmarks.rover")
    else:
        paper = {}
    if paper:
        data = "ROVER-TG"
    else:
        data = "Tabletop in ROVER-TG's format"
    yield _overall(runs, paper, f"{data}: overall")
    yield _by_scenario(runs, paper, f"{data}: by scenario (paper, Table 3)")
    both = [run for run in runs if {verdict.turn for verdict in run.verdicts} == {VISUAL_TURN, TEXT_TURN}]
    if both:
        yield _gain(both, f"{data}: what a picture on the way gains")
    for run in runs:
        for turn in sorted({verdict.turn for verdict in run.verdicts}):
            some = functools.partial(_parts, turn)
            yield from build_breakdown(run, f"by problem type, {MODES[turn]}", (*COLUMNS, "Track", "AVG"), some, 1)


def build_entries(run: RunResults, turn: int) -> list[RoverEntry]:
    """The verdicts of one mode, under the names that both have."""
    plain = {name: metric for metric, name in rubric.TEXT_ONLY_METRICS.items()}
    return [
        build_entry(one, rubric.OFFICIAL, plain.get(one.metric, one.metric)) for one in run.verdicts if one.turn == turn
    ]


def build_cells(entries: Sequence[RoverEntry], official: bool) -> dict[str, Cell]:
    """Of some questions in one mode. AVG pools the scores that a judge gave."""
    made = {
        name: build_micro_cell(select_metrics(entries, one), official=official and one != rubric.ACCURACY)
        for name, one in COLUMNS.items()
    }
    judged = build_micro_cell(select_metrics(entries, rubric.INTERLEAVED, ALIGNMENT), official=official)
    return {**made, "Track": build_micro_cell(select_metrics(entries, rubric.TRACK), official=False), "AVG": judged}


def _or_none(run: RunResults, cells: dict[str, Cell], official: bool) -> dict[str, Cell]:
    """Where the released summary stops, nothing that a judge said has an official number."""
    judged = ("IR", "Align.", "AVG")
    if not official or not _stops(run):
        return cells
    return {name: Cell(None) if name.split(" ")[-1] in judged else one for name, one in cells.items()}


def _stops(run: RunResults) -> bool:
    return stops_summary(
        build_entry(one, rubric.OFFICIAL) for one in run.verdicts if one.metric in (rubric.INTERLEAVED, ALIGNMENT)
    )


def _overall(runs: Sequence[RunResults], paper: Mapping[str, Any], title: str) -> Table:
    rows: list[Row] = []
    for turn, mode in MODES.items():
        there = [run for run in runs if build_entries(run, turn)]

        def over_scenarios(run: RunResults, official: bool, turn: int = turn) -> dict[str, Cell]:
            found = group_entries(build_entries(run, turn), build_group_key(run, "scenario"))
            groups = [found[name] for name in NAMES if name in found]
            made: dict[str, Cell] = {}
            for name, one in COLUMNS.items():
                made[name] = build_macro_cell(
                    [select_metrics(some, one) for some in groups], official=official and one != rubric.ACCURACY
                )
            made["AVG"] = build_macro_cell(
                [select_metrics(some, rubric.INTERLEAVED, ALIGNMENT) for some in groups], official=official
            )
            return _or_none(run, made, official)

        rows += build_rows(
            there,
            lambda run, official, turn=turn: _or_none(run, build_cells(build_entries(run, turn), official), official),
            of=f"{mode}, micro",
        )
        rows += build_rows(there, over_scenarios, of=f"{mode}, macro")
    rows += _published(paper)
    stopped = any(map(_stops, runs))
    note = " ".join([NOTE, *([SUMMARY_STOPS_NOTE] if stopped else [])])
    return Table(title, (*COLUMNS, "Track", "AVG"), tuple(rows), note, 1, "mixed")


def _published(paper: Mapping[str, Any]) -> list[Row]:
    made: list[Row] = []
    for row in paper.get("table3", {}).get("rows", ()):
        found = {
            name: mean
            for name, key in KEYS.items()
            if (mean := build_printed_macro_cell([row[f"{PRINTED[one]}_{key}"] for one in NAMES]))
        }
        overall = {name: Cell(row[f"Overall_{key}"]) for name, key in KEYS.items() if row[f"Overall_{key}"] is not None}
        name = f"{row['model']}, {row['reasoning_mode']}"
        made.append(Row(f"{name}, macro of what is printed", found, kind="published", judge=JUDGE))
        made.append(Row(f"{name}, Overall as printed", overall, kind="published", judge=JUDGE))
    return made


def _by_scenario(runs: Sequence[RunResults], paper: Mapping[str, Any], title: str) -> Table:
    columns = {f"{scenario} {name}": (scenario, name) for scenario in NAMES for name in COLUMNS}
    rows: list[Row] = []
    for turn, mode in MODES.items():

        def found(run: RunResults, official: bool, turn: int = turn) -> dict[str, Cell]:
            groups = {
                name: build_cells(some, official)
                for name, some in group_entries(build_entries(run, turn), build_group_key(run, "scenario")).items()
            }
            made = {
                column: groups[scenario][name] for column, (scenario, name) in columns.items() if scenario in groups
            }
            return _or_none(run, made, official)

        rows += build_rows([run for run in runs if build_entries(run, turn)], found, of=mode)
    for row in paper.get("table3", {}).get("rows", ()):
        values = {
            column: Cell(row[f"{PRINTED[scenario]}_{KEYS[name]}"]) for column, (scenario, name) in columns.items()
        }
        rows.append(Row(f"{row['model']}, {row['reasoning_mode']}", values, kind="published", judge=JUDGE))
    return Table(title, tuple(columns), tuple(rows), "", 1, "mixed")


def _gain(runs: Sequence[RunResults], title: str) -> Table:
    rows: list[Row] = []
    for run in runs:
        answered = select_metrics([*build_entries(run, VISUAL_TURN), *build_entries(run, TEXT_TURN)], rubric.ACCURACY)
        by_scenario = group_entries(answered, build_group_key(run, "scenario"))
        found = {
            name: _paired(some)
            for name, some in {**{one: by_scenario.get(one, []) for one in NAMES}, "all": answered}.items()
        }
        rows.append(Row(run.name, found, run=run.run, judge=run.judge))
    return Table(title, (*NAMES, "all"), tuple(rows), GAIN, 1)


def _paired(entries: Sequence[RoverEntry]) -> Cell:
    """The mean difference in points. `due` counts questions, each of which has a verdict for each mode."""
    values: dict[str, dict[int, float]] = {}
    for one in entries:
        if one.strict is not None:
            values.setdefault(one.verdict.sample, {})[one.verdict.turn] = one.strict
    behind = [one.verdict for one in entries if one.verdict.sample in values]
    clusters = {name: [some[VISUAL_TURN] - some[TEXT_TURN]] for name, some in values.items() if len(some) == 2}
    if clusters:
        found = compare_paired([(1.0, clusters)])
    else:
        found = None
    if found is None:
        return Cell(None, 0, len(values), verdicts=behind)
    if found.low is None or found.high is None:
        bounds = (None, None)
    else:
        bounds = (round(found.low, 2), round(found.high, 2))
    return Cell(round(found.value, 2), found.pairs, len(values), *bounds, verdicts=behind)


def _parts(turn: int, run: RunResults, official: bool) -> dict[str, Mapping[str, Cell]]:
    found = group_entries(build_entries(run, turn), build_group_key(run, "type"))
    groups = {**{name: found[name] for name in TYPES if name in found}, "overall": build_entries(run, turn)}
    return {name: _or_none(run, build_cells(some, official), official) for name, some in groups.items()}
