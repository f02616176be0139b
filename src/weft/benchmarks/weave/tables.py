"""WEAVE's arithmetic (section 3.3, Tables 2 and 7-10; released `summarize.py`).

A metric is the mean over turns (micro), divided by 10 and rounded to 3 decimals; Avg is computed from the rounded
metrics: 0.5 KP + 0.2 VC + 0.3 IQ without text turns, 0.4 KP + 0.1 VC + 0.2 IQ + 0.3 ACC with them, the plain mean of
what there is otherwise. `strict` counts a model's failure as zero; what is unscored is in no mean. `official` computes
what the released scripts compute: they have a missing output judged all the same, so its score is known only where the
judge was asked about it (a run with `official`; else the cells that it belongs to have no value); they take whatever
number a reply holds; and they leave out a record, with all that was scored of it, as long as one of its verdicts is
missing."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from weft.benchmarks.base import RunResults
from weft.benchmarks.official import score_or_none
from weft.benchmarks.rows import build_breakdown, build_published_rows, build_rows, read_published
from weft.benchmarks.weave.domains import CLASSES
from weft.benchmarks.weave.official import OFFICIAL, strict_points
from weft.stats.intervals import bootstrap_interval
from weft.types import Cell, Table, Verdict

SHORT_NAMES = {"key_point": "KP", "visual_consistency": "VC", "image_quality": "IQ", "accuracy": "ACC"}
COLUMNS = ("KP", "VC", "IQ", "ACC", "Avg")
JUDGE = OFFICIAL.published_judge
PAPER_TABLE = {"Science": "table7", "Creation": "table8", "Logic": "table9", "Game": "table10"}
LABEL: Callable[[Mapping[str, Any]], str] = lambda row: (  # noqa: E731
    f"{row['model']}{' ' + str(row['params']) if row.get('params') else ''} [{row['in_context']}, {row['modality']}, {row['image_format']}]"
)
NOTE = (
    "Published rows were judged by GPT-4o with the authors' prompts; compare only runs with the same judge and prompts. "
    "A cell `0.512 (37/40)` rests on 37 of 40 items: the rest could not be scored, and the run can be repeated to ask for them again."
)
UNASKED = (
    "Outputs are missing. The released scripts have them judged all the same; a run with --official asks the judge as they do, and has the "
    "official numbers that are not here."
)


def average_weights(measured: Collection[str]) -> dict[str, float]:
    """How the paper's Avg weighs the metrics that were measured, by their short names."""
    have = [name for name in COLUMNS[:4] if name in measured]
    if have == ["KP", "VC", "IQ"]:
        return {"KP": 0.5, "VC": 0.2, "IQ": 0.3}
    if len(have) == 4:
        return {"KP": 0.4, "VC": 0.1, "IQ": 0.2, "ACC": 0.3}
    if have:
        return dict.fromkeys(have, 1 / len(have))
    return {}


def average(values: Mapping[str, float | None]) -> float | None:
    """The paper's Avg from rounded metrics by their short names; absent or None means not measured."""
    have = {name: value for name in COLUMNS[:4] if (value := values.get(name)) is not None}
    if not have:
        return None
    if set(have) >= {"KP", "VC", "IQ"}:
        return round(sum(weight * have[name] for name, weight in average_weights(have).items()), 3)
    return round(sum(have.values()) / len(have), 3)


def build_metric_cells(verdicts: Sequence[Verdict], *, official: bool) -> Mapping[str, Cell]:
    """KP, VC, IQ, ACC and Avg of one group of turns. A metric that is due but has no scored item leaves Avg without a
    value."""
    cells: dict[str, Cell] = {}
    scores: dict[str, dict[str, list[float]]] = {}
    unknown_somewhere = False
    if official:
        lost = left_out(verdicts)
    else:
        lost = set[str]()
    for metric, short in SHORT_NAMES.items():
        due = [verdict for verdict in verdicts if verdict.metric == metric]
        counted = [one for one in due if one.sample not in lost]
        found = [(one, points) for one in counted if (points := points_out_of_ten(one, official=official)) is not None]
        unknown = official and any(OFFICIAL.lacks_official_question(one) for one in counted)
        unknown_somewhere |= unknown
        if due:
            scores[short] = by_dialogue(found)
            if found and not unknown:
                value = round(sum(points for _, points in found) / len(found) / 10, 3)
            else:
                value = None
            cells[short] = Cell(value, len(found), len(due), verdicts=due)
    scored = sum(cell.scored for cell in cells.values())
    behind = [one for cell in cells.values() for one in cell.verdicts]
    known = {name: cell for name, cell in cells.items() if cell.value is not None}
    # to the scripts a metric without a score was never due
    complete = len(known) == len(cells) or (official and not unknown_somewhere)
    if complete:
        value = average({name: cell.value for name, cell in known.items()})
    else:
        value = None
    terms = [(weight, scores[name]) for name, weight in average_weights(known).items()] if complete else []
    cells["Avg"] = Cell(value, scored, len(behind), verdicts=behind)
    return {
        name: cell if cell.value is None else _with_interval(cell, terms if name == "Avg" else [(1.0, scores[name])])
        for name, cell in cells.items()
    }


def points_out_of_ten(verdict: Verdict, *, official: bool) -> float | None:
    """Out of ten; None where there are none."""
    if official:
        return score_or_none(OFFICIAL.score(verdict))
    return strict_points(verdict)


def left_out(verdicts: Sequence[Verdict]) -> set[str]:
    """The records that `summarize.py` leaves out with all that was scored of them, since one of their scores is
    missing."""
    return {
        one.sample
        for one in verdicts
        if points_out_of_ten(one, official=True) is None
        and not OFFICIAL.lacks_official_question(one)
        and not OFFICIAL.found_no_score(one)
    }


def by_dialogue(found: Sequence[tuple[Verdict, float]]) -> dict[str, list[float]]:
    made: dict[str, list[float]] = {}
    for verdict, points in found:
        made.setdefault(verdict.sample, []).append(points / 10)
    return made


def _with_interval(cell: Cell, terms: Sequence[tuple[float, Mapping[str, Sequence[float]]]]) -> Cell:
    found = bootstrap_interval(terms)
    if found is None:
        return cell
    return replace(cell, low=round(found[0], 3), high=round(found[1], 3))


def tables(runs: Sequence[RunResults]) -> Iterator[Table]:
    """Table 2 and Tables 7-10 with our rows before the published ones, then our domains."""
    if all(run.dataset != "tabletop" for run in runs):
        paper: Mapping[str, Any] = read_published("weft.benchmarks.weave")
    else:
        paper = {}
    if paper:
        data = "WEAVEBench"
    else:
        data = "Tabletop in WEAVEBench's format"
    columns = (*CLASSES, "Avg")
    theirs = build_published_rows(paper.get("table2", {}), LABEL, {column: column for column in columns}, JUDGE)
    title = f"{data}: Avg by class and overall (paper, Table 2)"
    unasked = any(OFFICIAL.lacks_official_question(verdict) for run in runs for verdict in run.verdicts)
    note = " ".join([*([UNASKED] if unasked else []), *([NOTE] if theirs else [])])
    yield Table(title, columns, build_rows(runs, _by_class, paper=theirs), note)
    for name, number in PAPER_TABLE.items():
        theirs = build_published_rows(paper.get(number, {}), LABEL, {column: column for column in COLUMNS}, JUDGE)
        ours = build_rows(
            runs,
            lambda run, official, name=name: build_metric_cells(_part(run, "class", name), official=official),
            paper=theirs,
        )
        yield Table(f"{data}: {name} (paper, Table {number.removeprefix('table')})", COLUMNS, ours)
    for run in runs:
        yield from build_breakdown(run, "by domain", COLUMNS, _by_domain)


def _by_domain(run: RunResults, official: bool) -> dict[str, Mapping[str, Cell]]:
    parts = {
        f"{domain} ({name})": _part(run, "domain", domain) for name, domains in CLASSES.items() for domain in domains
    }
    parts = {**{name: some for name, some in parts.items() if some}, "overall": run.verdicts}
    return {name: build_metric_cells(some, official=official) for name, some in parts.items()}


def _by_class(run: RunResults, official: bool) -> dict[str, Cell]:
    parts = {name: _part(run, "class", name) for name in CLASSES}
    by_class = {name: build_metric_cells(some, official=official)["Avg"] for name, some in parts.items() if some}
    return {**by_class, "Avg": build_metric_cells(run.verdicts, official=official)["Avg"]}


def _part(run: RunResults, group: str, name: str) -> Sequence[Verdict]:
    return [verdict for verdict in run.verdicts if run.groups[verdict.sample][group] == name]
