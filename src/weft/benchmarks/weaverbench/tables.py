"""WeaverBench's numbers, 0 to 10: Table 2 of the paper with our rows before the published ones, the eight scores behind
it, then breakdowns.

CC is the mean of its three scores, IC of its two, Overall of the five dimensions. Acc: of the prompts that say how many
images they want, the percentage whose document has as many. `strict`: a model's failure is zero, and `rules.py`
applies; an unscored verdict is in no mean. `official`: the judge's own scores, and files counted.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from weft.benchmarks.base import RunResults
from weft.benchmarks.official import score_or_none
from weft.benchmarks.rows import (
    CountedVerdict,
    VerdictT,
    WeightedTerms,
    build_breakdowns,
    build_mean_cell,
    build_published_rows,
    build_rows,
    read_published,
)
from weft.benchmarks.weaverbench.data import CATEGORIES, IMAGE_INPUT, LENGTHS, TEXT_INPUT
from weft.benchmarks.weaverbench.facts import read_document_facts
from weft.benchmarks.weaverbench.official import OFFICIAL
from weft.benchmarks.weaverbench.rubric import (
    ADHERENCE,
    COMPLETE,
    COUNT,
    ENTITY,
    INTRA,
    NARRATIVE,
    SEPARATE,
    STYLE,
    TO_IMAGE,
    TO_TEXT,
)
from weft.benchmarks.weaverbench.rules import count_collages
from weft.types import Cell, Row, Table, Verdict

JUDGE = OFFICIAL.published_judge
DIMENSIONS: Mapping[str, tuple[str, ...]] = {
    "PA": (ADHERENCE,),
    "NC": (NARRATIVE,),
    "CC": (INTRA, TO_IMAGE, TO_TEXT),
    "IC": (ENTITY, STYLE),
    "CP": (COMPLETE,),
}
SCORE_COLUMNS = {
    "PA": ADHERENCE,
    "NC": NARRATIVE,
    "CC intra-output": INTRA,
    "CC input to image": TO_IMAGE,
    "CC input to text": TO_TEXT,
    "IC entity": ENTITY,
    "IC style": STYLE,
    "CP": COMPLETE,
}
PUBLISHED_KEYS = {name: name.replace(" ", "_").replace("-", "_") for name in SCORE_COLUMNS}
PUBLISHED_CC = [key for name, key in PUBLISHED_KEYS.items() if name.startswith("CC")]
PUBLISHED_IC = [key for name, key in PUBLISHED_KEYS.items() if name.startswith("IC")]
QUESTION = "question"
FREE_DOCUMENT = "document, free"
EXACT_DOCUMENT = "document, exact"
KINDS = (QUESTION, "T2I", "I2I", FREE_DOCUMENT, EXACT_DOCUMENT)
COUNTS = ("collages", "images a document")
PLAN_COLUMNS = (*KINDS, "all", *COUNTS)
TITLES = {"weaverbench": "WeaverBench", "tabletop": "Tabletop in WeaverBench's format"}
NOTE = (
    "0 to 10; Acc in percent. Overall: the mean of the five, where all are there. CC and IC are means of three and two "
    "scores. Acc: of the prompts that say how many images they want, those whose document has as many, each of them an "
    "image of its own. A cell `8.1 (37/40)` rests on 37 of 40 scores: the rest could not be scored."
)
PUBLISHED_NOTE = (
    "Published rows: the paper's prompts, which are not public, by a judge that it does not name; Acc there is of 122 "
    "prompts."
)
PLAN_NOTE = (
    "Whether a document has the expected number of images, in percent: none for a question, one for an image from text "
    "(T2I) or from an image (I2I), at least one that is no collage where the prompt does not say, exactly so many "
    "where it does. `collages`: of the documents that may have several images, those in which one is a collage, in "
    "percent. `images a document`: the mean number of image files of both kinds of documents. Of a planner alone, the "
    "images that it orders."
)


def _select_metric(verdicts: Sequence[VerdictT], metric: str) -> list[VerdictT]:
    return [verdict for verdict in verdicts if verdict.metric == metric]


def dimension_terms(verdicts: Sequence[VerdictT], name: str) -> list[tuple[float, Sequence[VerdictT]]]:
    """Return the weighted terms of a dimension: the mean of those of its scores that have verdicts."""
    groups: list[list[VerdictT]] = []
    for metric in DIMENSIONS[name]:
        group = _select_metric(verdicts, metric)
        if group:
            groups.append(group)
    return [(1 / len(groups), group) for group in groups]


def overall_terms(verdicts: Sequence[VerdictT], *, whole: bool = True) -> list[tuple[float, Sequence[VerdictT]]]:
    """Return the weighted terms of Overall, the mean of the dimensions; none if `whole` and a dimension is missing."""
    dimensions: list[list[tuple[float, Sequence[VerdictT]]]] = []
    for name in DIMENSIONS:
        terms = dimension_terms(verdicts, name)
        if terms:
            dimensions.append(terms)
    if whole and len(dimensions) < len(DIMENSIONS):
        return []
    overall: list[tuple[float, Sequence[VerdictT]]] = []
    for terms in dimensions:
        for weight, group in terms:
            overall.append((weight / len(dimensions), group))
    return overall


def tables(runs: Sequence[RunResults]) -> Iterator[Table]:
    """Yield the paper's Table 2, the eight scores, plan accuracy, and each run's breakdown."""
    published: Mapping[str, Any] = {}
    note = NOTE
    if all(run.dataset == "weaverbench" for run in runs):
        published = read_published("weft.benchmarks.weaverbench")
        note = f"{NOTE} {PUBLISHED_NOTE}"
    title = "WeaverBench"
    if runs:
        title = TITLES.get(runs[0].dataset, "Own prompts in WeaverBench's format")
    columns = (*DIMENSIONS, "Overall", "Acc")
    rows = build_rows(runs, _build_dimension_cells, paper=_build_published_dimensions(published))
    yield Table(f"{title} (paper, Table 2)", columns, rows, note, 2)
    table2 = published.get("table2", {})
    published_rows = build_published_rows(table2, lambda row: row["model"], PUBLISHED_KEYS, JUDGE)
    rows = build_rows(runs, _build_score_cells, paper=published_rows)
    yield Table(f"{title}: the eight scores", tuple(SCORE_COLUMNS), rows, "0 to 10.", 2)
    plan_rows = build_rows(runs, _build_plan_cells)
    if any(_has_value(row) for row in plan_rows):
        yield Table(f"{title}: plan accuracy, percent", PLAN_COLUMNS, plan_rows, PLAN_NOTE, 2, unranked=COUNTS)
    by_group = "by category, input and length"
    yield from build_breakdowns(runs, title, by_group, columns, _build_group_cells, 2, shown=("Overall",))


def _has_value(row: Row) -> bool:
    return any(cell.value is not None for cell in row.cells.values())


def _count_verdicts(run: RunResults, official: bool) -> list[CountedVerdict]:
    """Return a run's verdicts with the values that count. Officially those are the values before our rules."""
    counted: list[CountedVerdict] = []
    for verdict in run.verdicts:
        if not official:
            counted.append(CountedVerdict(verdict, verdict.value, verdict.metric, verdict.sample))
            continue
        value = score_or_none(OFFICIAL.score(verdict))
        counted.append(CountedVerdict(verdict, value, verdict.metric, verdict.sample))
        for metric, score in OFFICIAL.single_image_scores(verdict).items():
            counted.append(CountedVerdict(verdict, score, metric, verdict.sample))
    return counted


def _build_cell(terms: WeightedTerms) -> Cell:
    if not terms:
        return Cell(None)
    return build_mean_cell(terms, scale=10)


def _build_percent_cell(counted: Sequence[CountedVerdict]) -> Cell:
    if not counted:
        return Cell(None)
    return build_mean_cell(counted, scale=100)


def _build_cells(counted: Sequence[CountedVerdict]) -> dict[str, Cell]:
    cells = {name: _build_cell(dimension_terms(counted, name)) for name in DIMENSIONS}
    cells["Overall"] = _build_cell(overall_terms(counted))
    counts = _select_metric(counted, COUNT)
    required = [verdict for verdict in counts if read_document_facts(verdict.verdict).required]
    cells["Acc"] = _build_percent_cell(required)
    return cells


def _build_dimension_cells(run: RunResults, official: bool) -> dict[str, Cell]:
    return _build_cells(_count_verdicts(run, official))


def _build_score_cells(run: RunResults, official: bool) -> dict[str, Cell]:
    counted = _count_verdicts(run, official)
    cells: dict[str, Cell] = {}
    for name, metric in SCORE_COLUMNS.items():
        verdicts = _select_metric(counted, metric)
        if verdicts:
            cells[name] = _build_cell([(1.0, verdicts)])
        else:
            cells[name] = Cell(None)
    return cells


def _build_plan_cells(run: RunResults, official: bool) -> dict[str, Cell]:
    counts = _select_metric(_count_verdicts(run, official), COUNT)
    by_kind: dict[str, list[CountedVerdict]] = {kind: [] for kind in KINDS}
    for counted in counts:
        required = read_document_facts(counted.verdict).required
        by_kind[_find_kind(required, run.groups[counted.sample])].append(counted)
    cells = {kind: _build_percent_cell(verdicts) for kind, verdicts in by_kind.items()}
    cells["all"] = _build_percent_cell(counts)
    judged = [verdict for verdict in run.verdicts if verdict.metric == SEPARATE and verdict.by == "judge"]
    collages = [CountedVerdict(verdict, _has_collage(verdict), SEPARATE, verdict.sample) for verdict in judged]
    cells["collages"] = _build_percent_cell(collages)
    cells["images a document"] = _build_images_cell(by_kind[FREE_DOCUMENT] + by_kind[EXACT_DOCUMENT])
    return cells


def _find_kind(required: int | None, groups: Mapping[str, str]) -> str:
    """Return the column of plan accuracy for a prompt."""
    if required is None:
        return FREE_DOCUMENT
    if required == 0:
        return QUESTION
    if required > 1:
        return EXACT_DOCUMENT
    return "I2I" if groups.get("input") == IMAGE_INPUT else "T2I"


def _build_images_cell(counts: Sequence[CountedVerdict]) -> Cell:
    """Build the cell of the mean number of images. It has no interval: such a number has no upper end."""
    scored = [counted.verdict for counted in counts if counted.value is not None]
    images = [read_document_facts(verdict).images for verdict in scored]
    mean = sum(images) / len(images) if images else None
    return Cell(mean, len(scored), len(counts), verdicts=[counted.verdict for counted in counts])


def _has_collage(verdict: Verdict) -> float | None:
    """Return 1 or 0; None if it could not be judged."""
    count = count_collages(verdict)
    if count is None:
        return None
    return float(count > 0)


def _build_group_cells(run: RunResults, official: bool) -> dict[str, Mapping[str, Cell]]:
    counted = _count_verdicts(run, official)
    groups_by_axis = {
        "category": _list_categories(run),
        "input": (TEXT_INPUT, IMAGE_INPUT),
        "length": LENGTHS,
    }
    cells: dict[str, Mapping[str, Cell]] = {}
    for axis, groups in groups_by_axis.items():
        for group in groups:
            verdicts = [verdict for verdict in counted if run.groups[verdict.sample].get(axis) == group]
            if not verdicts:
                continue
            name = group
            if axis != "category":
                name = f"{axis}: {group}"
            cells[name] = _build_cells(verdicts)
    return cells


def _list_categories(run: RunResults) -> list[str]:
    """Return the categories of a run: WeaverBench's own in the paper's order, then others."""
    used = dict.fromkeys(groups.get("category", "") for groups in run.groups.values())
    categories = [name for name in CATEGORIES if name in used]
    categories += [name for name in used if name and name not in CATEGORIES]
    return categories


def _build_published_dimensions(published: Mapping[str, Any]) -> list[Row]:
    """Return the paper's rows: CC and IC as means of what is printed; Overall and Acc as printed."""
    rows: list[dict[str, Any]] = []
    for printed in published.get("table2", {}).get("rows", ()):
        row = dict(printed)
        for name, keys in (("CC", PUBLISHED_CC), ("IC", PUBLISHED_IC)):
            row[name] = sum(printed[key] for key in keys) / len(keys)
        rows.append(row)
    columns = {name: name for name in (*DIMENSIONS, "Overall")}
    columns["Acc"] = "Acc_percent"
    return build_published_rows({"rows": rows}, lambda row: row["model"], columns, JUDGE)
