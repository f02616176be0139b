"""WEAVE's arithmetic (section 3.3, Tables 2 and 7-10; released `summarize.py`).

A metric is the mean over turns (micro), divided by 10. Avg is 0.5 KP + 0.2 VC + 0.3 IQ without text turns, 0.4 KP +
0.1 VC + 0.2 IQ + 0.3 ACC with them, the plain mean of the measured metrics otherwise.

`strict` counts a model's failure as zero; unscored verdicts are in no mean. `official` is what the released scripts
compute. They round each metric to 3 decimals, compute Avg from the rounded metrics and round it again. They have a
missing output judged like any other: its score is known only if the judge was asked about it (a run with `official`),
else the cells that need it have no value. They take whatever number a reply contains. And they leave out a record, with
all of its scores, as long as one of its verdicts is missing.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from weft.benchmarks.base import RunResults
from weft.benchmarks.official import score_or_none, with_official_counts
from weft.benchmarks.rows import build_breakdowns, build_published_rows, build_rows, read_published
from weft.benchmarks.weave.domains import CLASSES
from weft.benchmarks.weave.official import OFFICIAL, strict_points
from weft.stats.intervals import mean_interval, mix_means
from weft.types import Cell, Row, Table, Verdict

SHORT_NAMES = {"key_point": "KP", "visual_consistency": "VC", "image_quality": "IQ", "accuracy": "ACC"}
COLUMNS = ("KP", "VC", "IQ", "ACC", "Avg")
JUDGE = OFFICIAL.published_judge
RELEASED_DIGITS = 3  # decimals to which the released scripts round, before and after they average
PAPER_TABLE = {"Science": "table7", "Creation": "table8", "Logic": "table9", "Game": "table10"}
NOTE = (
    "Published rows were judged by GPT-4o with the authors' prompts; compare only runs with the same judge and "
    "prompts. A cell `0.512 (37/40)` rests on 37 of 40 items: the rest could not be scored, and the run can be "
    "repeated to ask for them again."
)
UNASKED_NOTE = (
    "Outputs are missing. The released scripts have them judged all the same; a run with --official asks the judge as "
    "they do, and has the official numbers that are not here."
)
ClusteredScores = dict[str, list[float]]  # sample id -> its scores, from 0 to 1


def average_weights(measured: Collection[str]) -> dict[str, float]:
    """Return how the paper's Avg weighs the measured metrics, by their columns."""
    columns = [column for column in COLUMNS[:4] if column in measured]
    if columns == ["KP", "VC", "IQ"]:
        return {"KP": 0.5, "VC": 0.2, "IQ": 0.3}
    if len(columns) == 4:
        return {"KP": 0.4, "VC": 0.1, "IQ": 0.2, "ACC": 0.3}
    if columns:
        return dict.fromkeys(columns, 1 / len(columns))
    return {}


def official_average(values: Mapping[str, float | None]) -> float | None:
    """Compute the released Avg from rounded metrics by column. A metric that is absent or None was not measured."""
    measured: dict[str, float] = {}
    for column in COLUMNS[:4]:
        value = values.get(column)
        if value is not None:
            measured[column] = value
    if not measured:
        return None
    if set(measured) >= {"KP", "VC", "IQ"}:
        weights = average_weights(measured)
        return round(sum(weight * measured[column] for column, weight in weights.items()), RELEASED_DIGITS)
    return round(sum(measured.values()) / len(measured), RELEASED_DIGITS)


def build_metric_cells(verdicts: Sequence[Verdict], *, official: bool) -> Mapping[str, Cell]:
    """Build KP, VC, IQ, ACC and Avg of one group of turns.

    A metric that is expected but has no scored verdict leaves Avg without a value.
    """
    skipped_samples: set[str] = find_skipped_samples(verdicts) if official else set()
    cells: dict[str, Cell] = {}
    scores: dict[str, ClusteredScores] = {}
    lacks_question = False
    for metric, column in SHORT_NAMES.items():
        expected = [verdict for verdict in verdicts if verdict.metric == metric]
        if not expected:
            continue
        counted = [verdict for verdict in expected if verdict.sample not in skipped_samples]
        is_unknown = official and any(map(OFFICIAL.lacks_official_question, counted))
        lacks_question |= is_unknown
        points, scores[column] = _collect_points(counted, official=official)
        value = None
        if points and not is_unknown:
            value = sum(points) / len(points) / 10
            if official:
                value = round(value, RELEASED_DIGITS)
        cells[column] = Cell(value, len(points), len(expected), verdicts=expected)
        if official:
            cells[column] = with_official_counts(cells[column], OFFICIAL, counted)
    # To the scripts a metric without a score was never expected.
    needs_all = not official or lacks_question
    average_cell, terms = _build_average(cells, scores, needs_all=needs_all, official=official)
    with_intervals = {column: _with_interval(cell, [(1.0, scores[column])]) for column, cell in cells.items()}
    return {**with_intervals, "Avg": _with_interval(average_cell, terms)}


def _collect_points(verdicts: Sequence[Verdict], *, official: bool) -> tuple[list[float], ClusteredScores]:
    """Return the points of all scored verdicts, in order, and their scores by sample."""
    points: list[float] = []
    scores: ClusteredScores = {}
    for verdict in verdicts:
        value = points_out_of_ten(verdict, official=official)
        if value is not None:
            points.append(value)
            scores.setdefault(verdict.sample, []).append(value / 10)
    return points, scores


def _build_average(
    cells: Mapping[str, Cell], scores: Mapping[str, ClusteredScores], *, needs_all: bool, official: bool
) -> tuple[Cell, list[tuple[float, ClusteredScores]]]:
    """Build the cell of Avg, and the weighted terms that its interval is computed from."""
    scored = sum(cell.scored for cell in cells.values())
    verdicts: list[Verdict] = []
    for cell in cells.values():
        verdicts += cell.verdicts
    values = {column: cell.value for column, cell in cells.items() if cell.value is not None}
    if needs_all and len(values) < len(cells):
        not_asked = sum(cell.not_asked for cell in cells.values())
        return Cell(None, scored, len(verdicts), not_asked=not_asked, verdicts=verdicts), []
    unusable = sum(cell.unusable for cell in cells.values())
    terms = [(weight, scores[column]) for column, weight in average_weights(values).items()]
    average: float | None = None
    if official:
        average = official_average(values)
    elif values:
        average = mix_means((weight, values[column]) for column, weight in average_weights(values).items())
    return Cell(average, scored, len(verdicts), unusable=unusable, verdicts=verdicts), terms


def points_out_of_ten(verdict: Verdict, *, official: bool) -> float | None:
    """Return a verdict's points out of ten, or None if it has none."""
    if official:
        return score_or_none(OFFICIAL.score(verdict))
    return strict_points(verdict)


def find_skipped_samples(verdicts: Sequence[Verdict]) -> set[str]:
    """Return the records that `summarize.py` leaves out with all of their scores, because one score is missing."""
    samples: set[str] = set()
    for verdict in verdicts:
        if points_out_of_ten(verdict, official=True) is not None:
            continue
        if not OFFICIAL.lacks_official_question(verdict) and not OFFICIAL.found_no_score(verdict):
            samples.add(verdict.sample)
    return samples


def _with_interval(cell: Cell, terms: Sequence[tuple[float, Mapping[str, Sequence[float]]]]) -> Cell:
    """Add the 95% interval to a cell, if it has a value and there is an interval."""
    if cell.value is None:
        return cell
    interval = mean_interval(terms)
    if interval is None:
        return cell
    return replace(cell, low=interval[0], high=interval[1])


def tables(runs: Sequence[RunResults]) -> Iterator[Table]:
    """Yield Table 2 and Tables 7-10 with our rows before the published ones, then the runs by domain."""
    paper: Mapping[str, Any] = {}
    dataset = "Tabletop in WEAVEBench's format"
    if all(run.dataset != "tabletop" for run in runs):
        paper = read_published("weft.benchmarks.weave")
        dataset = "WEAVEBench"
    columns = (*CLASSES, "Avg")
    published = _published_rows(paper, "table2", columns)
    notes: list[str] = []
    if _lacks_official_questions(runs):
        notes.append(UNASKED_NOTE)
    if published:
        notes.append(NOTE)
    title = f"{dataset}: Avg by class and overall (paper, Table 2)"
    rows = build_rows(runs, _cells_by_class, paper=published, released_digits=RELEASED_DIGITS)
    yield Table(title, columns, rows, " ".join(notes))
    for class_name, table in PAPER_TABLE.items():

        def cells(run: RunResults, official: bool, class_name: str = class_name) -> Mapping[str, Cell]:
            return build_metric_cells(_select(run, "class", class_name), official=official)

        title = f"{dataset}: {class_name} (paper, Table {table.removeprefix('table')})"
        published = _published_rows(paper, table, COLUMNS)
        yield Table(title, COLUMNS, build_rows(runs, cells, paper=published, released_digits=RELEASED_DIGITS))
    yield from build_breakdowns(runs, dataset, "by domain", COLUMNS, _cells_by_domain, released_digits=RELEASED_DIGITS)


def _lacks_official_questions(runs: Sequence[RunResults]) -> bool:
    return any(any(map(OFFICIAL.lacks_official_question, run.verdicts)) for run in runs)


def _published_rows(paper: Mapping[str, Any], table: str, columns: Sequence[str]) -> list[Row]:
    return build_published_rows(paper.get(table, {}), _published_name, dict(zip(columns, columns, strict=True)), JUDGE)


def _published_name(row: Mapping[str, Any]) -> str:
    model = row["model"]
    if row.get("params"):
        model = f"{model} {row['params']}"
    return f"{model} [{row['in_context']}, {row['modality']}, {row['image_format']}]"


def _cells_by_domain(run: RunResults, official: bool) -> dict[str, Mapping[str, Cell]]:
    cells: dict[str, Mapping[str, Cell]] = {}
    for class_name, domains in CLASSES.items():
        for domain in domains:
            verdicts = _select(run, "domain", domain)
            if verdicts:
                cells[f"{domain} ({class_name})"] = build_metric_cells(verdicts, official=official)
    cells["overall"] = build_metric_cells(run.verdicts, official=official)
    return cells


def _cells_by_class(run: RunResults, official: bool) -> dict[str, Cell]:
    cells: dict[str, Cell] = {}
    for class_name in CLASSES:
        verdicts = _select(run, "class", class_name)
        if verdicts:
            cells[class_name] = build_metric_cells(verdicts, official=official)["Avg"]
    cells["Avg"] = build_metric_cells(run.verdicts, official=official)["Avg"]
    return cells


def _select(run: RunResults, axis: str, group: str) -> list[Verdict]:
    """Return the verdicts of the samples in a group."""
    return [verdict for verdict in run.verdicts if run.groups[verdict.sample][axis] == group]
