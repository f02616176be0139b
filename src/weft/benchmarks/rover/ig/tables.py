"""ROVER-IG's tables: overall, Tables 2 and 4 of the paper with our rows before the published ones, then breakdowns by
dimension and type, and how far reasoning types correlate over models.

`micro` is the mean over tasks, as in the released summary, `macro` the plain mean of the four dimensions. The paper's
column Overall is sometimes the one and sometimes the other (docs/reference/errata-printed-numbers.md), so it has rows
of its own. The official arithmetic sorts tasks by their ids.
"""

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from weft.benchmarks.base import RunResults
from weft.benchmarks.rover.arithmetic import (
    NOT_ASKED_NOTE,
    SUMMARY_STOPS_NOTE,
    RoverEntry,
    build_correlation_cells,
    build_entry,
    build_group_key,
    build_macro_cell,
    build_micro_cell,
    build_official_entry,
    build_printed_macro_cell,
    group_entries,
    select_metrics,
    stops_summary,
)
from weft.benchmarks.rover.facts import read_rover_facts
from weft.benchmarks.rover.ig import rubric
from weft.benchmarks.rover.ig.data import DIMENSIONS, TYPES, parse_id
from weft.benchmarks.rows import (
    build_breakdowns,
    build_published_rows,
    build_rows,
    cells_agree,
    describe_published,
    read_published,
)
from weft.types import Cell, Row, Table

JUDGE = rubric.OFFICIAL.published_judge
CAPPED_ALIGNMENT = "alignment_held"
CAPPED_COLUMN = "Align. held"
COLUMNS = {
    "RP": rubric.PROCESS,
    "Align.": rubric.ALIGNMENT,
    CAPPED_COLUMN: CAPPED_ALIGNMENT,
    "RV": rubric.VISUAL,
    "VC": rubric.CONSISTENCY,
    "IQ": rubric.QUALITY,
}
ALL_COLUMNS = (*COLUMNS, "AVG")
DIMENSION_TITLES = {"science": "Science", "culture": "Culture", "common_sense": "Common Sense", "logic": "Logic"}
PUBLISHED_DIMENSIONS = {
    "science": "NatureScience",
    "culture": "CultureArt",
    "common_sense": "CommonSense",
    "logic": "Logic",
}
PUBLISHED_KEYS = {"RP": "RP", "Align.": "Align", "RV": "RV", "VC": "VC", "IQ": "IQ"}
MIN_MODELS = 3  # behind a correlation
OVERALL = "Overall"
# what tables of several runs show by axis; the paper's tables have the rest by dimension
SHOWN_BY_AXIS = {"dimension": ("AVG",), "type": ("AVG", "RP", "Align.", "RV")}
OVERALL_NOTE = (
    "Overall: the mean over tasks, as in the released summary (micro). The paper's Overall is sometimes that and "
    "sometimes the mean of the domains, and in Table 4 follows no single formula."
)
NOTE = (
    "0 to 100. micro: the mean over tasks; macro: the plain mean of the dimensions (the four, or those that were run). "
    "AVG pools all scores of the five metrics. Align. held: at most one point (25) above RV. A dash: not measured; "
    "models that show no thinking have no RP and no Align."
)
PUBLISHED_NOTE = (
    "Published rows were judged by GPT-4.1 with the authors' prompts; compare only runs with the same judge and "
    "prompts."
)
CORRELATION_NOTE = (
    "Means of RV by type, one point a run. With few models a correlation says little; there is no value where nothing "
    "varies."
)


def tables(runs: Sequence[RunResults]) -> Iterator[Table]:
    """Yield the overall table, the paper's Tables 2 and 4, the runs by group, and the correlations of types."""
    published: Mapping[str, Any] = {}
    data = "Tabletop in ROVER-IG's format"
    if all(run.dataset != "tabletop" for run in runs):
        published = read_published("weft.benchmarks.rover")
        data = "ROVER-IG"
    yield _build_overall_table(runs, published, f"{data}: overall")
    title = f"{data}: reasoning by domain (paper, Table 2)"
    names = ("RP", "Align.", "RV")
    overall = {f"{OVERALL} {name}": f"{OVERALL}_{PUBLISHED_KEYS[name]}" for name in names}
    yield _build_dimension_table(runs, published.get("table2", {}), names, overall, title)
    title = f"{data}: images by domain (paper, Table 4)"
    names = ("RV", "VC", "IQ")
    yield _build_dimension_table(runs, published.get("table4", {}), names, {OVERALL: OVERALL}, title)
    for axis, names in (("dimension", DIMENSIONS), ("type", TYPES)):
        build_group_cells = functools.partial(_build_group_cells, axis, names)
        shown = SHOWN_BY_AXIS[axis]
        yield from build_breakdowns(runs, data, f"by {axis}", ALL_COLUMNS, build_group_cells, 1, shown=shown)
    if len(runs) >= MIN_MODELS:
        title = f"{data}: how far reasoning types go together, over {len(runs)} runs (Pearson, RV)"
        yield _build_correlation_table(runs, title)


def build_entries(run: RunResults, official: bool) -> list[RoverEntry]:
    """Return the entries of a run; officially also those about text that a model does not have, and none of a task
    whose id names no dimension and type."""
    if not official:
        return [build_entry(verdict, rubric.OFFICIAL) for verdict in run.verdicts]
    verdicts = [verdict for verdict in run.verdicts if all(parse_id(verdict.sample))]
    entries = [build_entry(verdict, rubric.OFFICIAL) for verdict in verdicts]
    for verdict in verdicts:
        for metric, reading in read_rover_facts(verdict).official_readings.items():
            entries.append(build_official_entry(verdict, metric, reading, rubric.OFFICIAL))
    return entries


def build_cells(entries: Sequence[RoverEntry], official: bool) -> dict[str, Cell]:
    """Return the cells of some tasks, by metric and pooled."""
    cells = _build_metric_cells(entries, official)
    if not official:
        return cells
    own_entries = [entry for entry in entries if entry.metric == entry.verdict.metric]
    return _hide_capped_unless_equal(cells, _build_metric_cells(own_entries, False))


def _hide_capped_unless_equal(official: dict[str, Cell], strict: Mapping[str, Cell]) -> dict[str, Cell]:
    """Remove capped alignment from official cells, unless all other cells equal the strict ones: it is weft's own."""
    capped = {CAPPED_COLUMN: Cell(None)}
    if cells_agree({**strict, **capped}, {**official, **capped}):
        return official
    return {**official, **capped}


def _build_metric_cells(entries: Sequence[RoverEntry], official: bool) -> dict[str, Cell]:
    if official and stops_summary(entries):
        return dict.fromkeys(ALL_COLUMNS, Cell(None))
    cells: dict[str, Cell] = {}
    for name, metric in COLUMNS.items():
        is_official = official and metric != CAPPED_ALIGNMENT
        cells[name] = build_micro_cell(select_metrics(entries, metric), official=is_official)
    cells["AVG"] = build_micro_cell(select_metrics(entries, *rubric.METRICS), official=official)
    return cells


def group_run_entries(run: RunResults, axis: str, official: bool) -> dict[str, list[RoverEntry]]:
    """Return a run's entries by dimension or type: by the groups of the data, officially by the ids."""

    def group_by_id(entry: RoverEntry) -> str:
        dimension, kind = parse_id(entry.verdict.sample)
        if axis == "dimension":
            return dimension
        return kind

    key = build_group_key(run, axis)
    if official:
        key = group_by_id
    return group_entries(build_entries(run, official), key)


def _build_micro_cells(run: RunResults, official: bool) -> dict[str, Cell]:
    return build_cells(build_entries(run, official), official)


def _build_macro_cells(run: RunResults, official: bool) -> dict[str, Cell]:
    if official and stops_summary(build_entries(run, True)):
        return dict.fromkeys(ALL_COLUMNS, Cell(None))
    by_dimension = group_run_entries(run, "dimension", official)
    groups = [by_dimension[name] for name in DIMENSIONS if name in by_dimension]
    cells: dict[str, Cell] = {}
    for name, metric in COLUMNS.items():
        is_official = official and name != CAPPED_COLUMN
        cells[name] = build_macro_cell([select_metrics(group, metric) for group in groups], official=is_official)
    pooled = [select_metrics(group, *rubric.METRICS) for group in groups]
    cells["AVG"] = build_macro_cell(pooled, official=official)
    if not official:
        return cells
    return _hide_capped_unless_equal(cells, _build_macro_cells(run, False))


def _build_overall_table(runs: Sequence[RunResults], published: Mapping[str, Any], title: str) -> Table:
    rows = [
        *build_rows(runs, _build_micro_cells, "micro"),
        *build_rows(runs, _build_macro_cells, "macro"),
        *_build_published_rows(published),
    ]
    notes = [NOTE]
    if any(stops_summary(build_entries(run, True)) for run in runs):
        notes.append(SUMMARY_STOPS_NOTE)
    if any(_lacks_official_question(run) for run in runs):
        notes.append(NOT_ASKED_NOTE)
    if published:
        notes.append(PUBLISHED_NOTE)
    return Table(title, ALL_COLUMNS, tuple(rows), " ".join(notes), 1, "parts")


def _lacks_official_question(run: RunResults) -> bool:
    return any(map(rubric.OFFICIAL.lacks_official_question, run.verdicts))


def _build_published_rows(published: Mapping[str, Any]) -> list[Row]:
    """Return the paper's models: means of their printed dimensions, and Overall as it is printed."""
    printed_by_model: dict[str, dict[str, Any]] = {}
    for table in ("table4", "table2"):
        for row in published.get(table, {}).get("rows", ()):
            printed_by_model.setdefault(row["model"], {}).update(row)
    rows: list[Row] = []
    for model, printed in printed_by_model.items():
        means: dict[str, Cell] = {}
        overall: dict[str, Cell] = {}
        for name, key in PUBLISHED_KEYS.items():
            values = [printed.get(f"{PUBLISHED_DIMENSIONS[dimension]}_{key}") for dimension in DIMENSIONS]
            mean = build_printed_macro_cell(values)
            if mean is not None:
                means[name] = mean
            if printed.get(f"Overall_{key}") is not None:
                overall[name] = Cell(printed[f"Overall_{key}"])
        about = describe_published(printed)
        rows.append(Row(model, means, kind="published", subset="macro of what is printed", judge=JUDGE, about=about))
        if overall:
            rows.append(Row(model, overall, kind="published", subset="Overall as printed", judge=JUDGE, about=about))
    return rows


def _build_dimension_table(
    runs: Sequence[RunResults],
    published: Mapping[str, Any],
    names: Sequence[str],
    overall: Mapping[str, str],
    title: str,
) -> Table:
    """Return a table of the paper. `overall`: its last columns, over all tasks, with their keys in `published`."""
    keys: dict[str, str] = {}
    for dimension in DIMENSIONS:
        for name in names:
            column = f"{DIMENSION_TITLES[dimension]} {name}"
            keys[column] = f"{PUBLISHED_DIMENSIONS[dimension]}_{PUBLISHED_KEYS[name]}"
    keys |= overall

    def build_dimension_cells(run: RunResults, official: bool) -> dict[str, Cell]:
        if official and stops_summary(build_entries(run, True)):
            return dict.fromkeys(keys, Cell(None))
        by_dimension = group_run_entries(run, "dimension", official)
        cells: dict[str, Cell] = {}
        for dimension in DIMENSIONS:
            entries = by_dimension.get(dimension, [])
            for name in names:
                column = f"{DIMENSION_TITLES[dimension]} {name}"
                cells[column] = build_micro_cell(select_metrics(entries, COLUMNS[name]), official=official)
        entries = build_entries(run, official)
        for column in overall:
            metrics = [COLUMNS[name] for name in names if column in (OVERALL, f"{OVERALL} {name}")]
            cells[column] = build_micro_cell(select_metrics(entries, *metrics), official=official)
        return cells

    published_rows = build_published_rows(published, lambda row: row["model"], keys, JUDGE)
    return Table(title, tuple(keys), build_rows(runs, build_dimension_cells, paper=published_rows), OVERALL_NOTE, 1)


def _build_group_cells(
    axis: str, names: Sequence[str], run: RunResults, official: bool
) -> dict[str, Mapping[str, Cell]]:
    """Return the cells of each group, and overall. Officially, a group that the released summary does not know is only
    in the latter."""
    if official and stops_summary(build_entries(run, True)):
        return {}
    groups = group_run_entries(run, axis, official)
    order = [name for name in names if name in groups]
    if not official:
        order += [name for name in groups if name not in names]
    cells: dict[str, Mapping[str, Cell]] = {name: build_cells(groups[name], official) for name in order}
    cells["overall"] = build_cells(build_entries(run, official), official)
    return cells


def _build_correlation_table(runs: Sequence[RunResults], title: str) -> Table:
    scores: dict[str, dict[str, Cell]] = {}
    for run in runs:
        means: dict[str, Cell] = {}
        for kind, entries in group_run_entries(run, "type", official=False).items():
            mean = build_micro_cell(select_metrics(entries, rubric.VISUAL), official=False)
            if mean.value is not None:
                means[kind] = mean
        scores[run.run or run.name] = means
    scored_types = set[str]().union(*scores.values())
    names = [name for name in TYPES if name in scored_types]
    cells = build_correlation_cells(names, scores)
    rows = [Row(name, cells[name], kind="part") for name in names]
    return Table(title, tuple(names), tuple(rows), CORRELATION_NOTE, 2, "breakdown")
