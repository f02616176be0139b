"""ROVER-IG's tables: overall, Tables 2 and 4 of the paper with our rows before the published ones, then our own domains
and types, and how far reasoning types go together over models.

`micro` is the mean over tasks, as the released summary has it, `macro` the plain mean of the four domains. The paper's
column Overall is sometimes the one and sometimes the other (docs/errata.md), so it stands apart. The official way sorts
tasks by their ids."""

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
from weft.benchmarks.rows import build_breakdown, build_published_rows, build_rows, read_published
from weft.types import Cell, Row, Table

JUDGE = rubric.OFFICIAL.published_judge
CAPPED_ALIGNMENT = "alignment_held"
COLUMNS = {
    "RP": rubric.PROCESS,
    "Align.": rubric.ALIGNMENT,
    "Align. held": CAPPED_ALIGNMENT,
    "RV": rubric.VISUAL,
    "VC": rubric.CONSISTENCY,
    "IQ": rubric.QUALITY,
}
TITLES = {"science": "Science", "culture": "Culture", "common_sense": "Common Sense", "logic": "Logic"}
PRINTED = {"science": "NatureScience", "culture": "CultureArt", "common_sense": "CommonSense", "logic": "Logic"}
KEYS = {"RP": "RP", "Align.": "Align", "RV": "RV", "VC": "VC", "IQ": "IQ"}
FEWEST = 3  # models behind a correlation
NOTE = (
    "0 to 100. micro: the mean over tasks; macro: the plain mean of the domains (the four, or those that were run). AVG pools all "
    "scores of the five metrics. Align. "
    "held: at most one point (25) above RV. A dash: not measured; models that show no thinking have no RP and no Align."
)
PAPER = "Published rows were judged by GPT-4.1 with the authors' prompts; compare only runs with the same judge and prompts."


def tables(runs: Sequence[RunResults]) -> Iterator[Table]:
    if all(run.dataset != "tabletop" for run in runs):
        paper: Mapping[str, Any] = read_published("weft.benchmarks.rover")
    else:
        paper = {}
    if paper:
        data = "ROVER-IG"
    else:
        data = "Tabletop in ROVER-IG's format"
    yield _overall(runs, paper, f"{data}: overall")
    yield _by_domain(runs, paper, ("RP", "Align.", "RV"), "table2", f"{data}: reasoning by domain (paper, Table 2)")
    yield _by_domain(runs, paper, ("RV", "VC", "IQ"), "table4", f"{data}: pictures by domain (paper, Table 4)")
    for run in runs:
        for group, names in (("dimension", DIMENSIONS), ("type", TYPES)):
            some = functools.partial(_parts, group, names)
            yield from build_breakdown(run, f"by {group}", (*COLUMNS, "AVG"), some, 1)
    if len(runs) >= FEWEST:
        yield _correlations(runs, f"{data}: how far reasoning types go together, over {len(runs)} runs (Pearson, RV)")


def build_entries(run: RunResults, official: bool) -> list[RoverEntry]:
    """A run's verdicts; in the official way also those about words that a model does not have."""
    made = [build_entry(one, rubric.OFFICIAL) for one in run.verdicts]
    if not official:
        return made
    unsaid = [
        (one, name, kept) for one in run.verdicts for name, kept in read_rover_facts(one).official_readings.items()
    ]
    return made + [build_official_entry(one, name, kept, rubric.OFFICIAL) for one, name, kept in unsaid]


def build_cells(entries: Sequence[RoverEntry], official: bool) -> dict[str, Cell]:
    """Of some tasks, by metric and pooled. What is held is ours alone: it stands in an official row only where that is
    ours as well."""
    made = _cells(entries, official)
    if official:
        strict = _cells([one for one in entries if one.metric == one.verdict.metric], False)
    else:
        strict = made
    same = all(made[name].value == strict[name].value for name in made if name != "Align. held")
    if same:
        return made
    return {**made, "Align. held": Cell(None)}


def _cells(entries: Sequence[RoverEntry], official: bool) -> dict[str, Cell]:
    pooled = select_metrics(entries, *rubric.METRICS)
    if official and stops_summary(entries):
        return dict.fromkeys((*COLUMNS, "AVG"), Cell(None))
    return {
        **{
            name: build_micro_cell(select_metrics(entries, one), official=official and one != CAPPED_ALIGNMENT)
            for name, one in COLUMNS.items()
        },
        "AVG": build_micro_cell(pooled, official=official),
    }


def group_run_entries(run: RunResults, group: str, official: bool) -> dict[str, list[RoverEntry]]:
    """A run's verdicts by dimension or type: as the data say, or as the ids say."""

    def by_id(one: RoverEntry) -> str:
        return parse_id(one.verdict.sample)[0 if group == "dimension" else 1]

    return group_entries(build_entries(run, official), by_id if official else build_group_key(run, group))


def _overall(runs: Sequence[RunResults], paper: Mapping[str, Any], title: str) -> Table:
    def over_domains(run: RunResults, official: bool) -> dict[str, Cell]:
        found = group_run_entries(run, "dimension", official)
        there = [found[name] for name in DIMENSIONS if name in found]
        if official and stops_summary(build_entries(run, True)):
            return dict.fromkeys((*COLUMNS, "AVG"), Cell(None))
        found = {name: [select_metrics(some, one) for some in there] for name, one in COLUMNS.items()}
        found["AVG"] = [select_metrics(some, *rubric.METRICS) for some in there]
        made = {
            name: build_macro_cell(some, official=official and name != "Align. held") for name, some in found.items()
        }
        if not official:
            strict = made
        else:
            strict = over_domains(run, False)
        same = all(made[name].value == strict[name].value for name in made if name != "Align. held")
        if same:
            return made
        return {**made, "Align. held": Cell(None)}

    rows = [
        *build_rows(runs, lambda run, official: build_cells(build_entries(run, official), official), of="micro"),
        *build_rows(runs, over_domains, of="macro"),
        *_published(paper),
    ]
    stopped = any(stops_summary(build_entries(run, True)) for run in runs)
    unasked = any(map(rubric.OFFICIAL.lacks_official_question, (verdict for run in runs for verdict in run.verdicts)))
    note = " ".join(
        [
            NOTE,
            *([SUMMARY_STOPS_NOTE] if stopped else []),
            *([NOT_ASKED_NOTE] if unasked else []),
            *([PAPER] if paper else []),
        ]
    )
    return Table(title, (*COLUMNS, "AVG"), tuple(rows), note, 1, "mixed")


def _published(paper: Mapping[str, Any]) -> list[Row]:
    """The paper's models: means of their printed domains, and Overall as it is printed."""
    made: list[Row] = []
    printed = {row["model"]: row for table in ("table4", "table2") for row in paper.get(table, {}).get("rows", ())}
    for model in printed:
        both = {**_row(paper, "table4", model), **_row(paper, "table2", model)}
        found = {
            name: mean
            for name, key in KEYS.items()
            if (mean := build_printed_macro_cell([both.get(f"{PRINTED[one]}_{key}") for one in DIMENSIONS]))
        }
        made.append(Row(f"{model}, macro of what is printed", found, kind="published", judge=JUDGE))
        told = {name: both.get(f"Overall_{key}") for name, key in KEYS.items()}
        overall = {name: Cell(value) for name, value in told.items() if value is not None}
        if overall:
            made.append(Row(f"{model}, Overall as printed", overall, kind="published", judge=JUDGE))
    return made


def _row(paper: Mapping[str, Any], table: str, model: str) -> Mapping[str, Any]:
    rows: Sequence[Mapping[str, Any]] = paper.get(table, {}).get("rows", ())
    nothing: Mapping[str, Any] = {}
    return next((row for row in rows if row["model"] == model), nothing)


def _by_domain(
    runs: Sequence[RunResults], paper: Mapping[str, Any], names: Sequence[str], table: str, title: str
) -> Table:
    columns = {f"{TITLES[domain]} {name}": (domain, name) for domain in DIMENSIONS for name in names}

    def found(run: RunResults, official: bool) -> dict[str, Cell]:
        by_domain = group_run_entries(run, "dimension", official)
        if official and stops_summary(build_entries(run, True)):
            return dict.fromkeys(columns, Cell(None))
        return {
            column: build_micro_cell(select_metrics(by_domain.get(domain, ()), COLUMNS[name]), official=official)
            for column, (domain, name) in columns.items()
        }

    keys = {column: f"{PRINTED[domain]}_{KEYS[name]}" for column, (domain, name) in columns.items()}
    theirs = build_published_rows(paper.get(table, {}), lambda row: row["model"], keys, JUDGE)
    return Table(title, tuple(columns), build_rows(runs, found, paper=theirs), "", 1)


def _parts(group: str, names: Sequence[str], run: RunResults, official: bool) -> dict[str, Mapping[str, Cell]]:
    """Groups that the released summary does not know are in no part of it, and in its overall."""
    found = group_run_entries(run, group, official)
    order = [name for name in names if name in found] + [name for name in found if name not in names and not official]
    if official and stops_summary(build_entries(run, True)):
        return {}
    return {
        **{name: build_cells(found[name], official) for name in order},
        "overall": build_cells(build_entries(run, official), official),
    }


def _correlations(runs: Sequence[RunResults], title: str) -> Table:
    scores: dict[str, dict[str, Cell]] = {}
    for run in runs:
        found = group_run_entries(run, "type", official=False)
        means = {
            name: build_micro_cell(select_metrics(some, rubric.VISUAL), official=False) for name, some in found.items()
        }
        scores[run.run or run.name] = {name: mean for name, mean in means.items() if mean.value is not None}
    names = [name for name in TYPES if any(name in some for some in scores.values())]
    made = build_correlation_cells(names, scores)
    note = "Means of RV by type, one point a run. With few models a correlation says little; one where nothing varies has no value."
    return Table(title, tuple(names), tuple(Row(name, made[name], kind="part") for name in names), note, 2, "breakdown")
