"""WeaverBench's numbers, 0 to 10: Table 2 of the paper with our rows before the published ones, the eight scores behind
it, then parts.

CC is the mean of its three scores, IC of its two, Overall of the five dimensions. Acc: of the prompts that say how many
pictures they want, the percentage whose document has as many. `strict`: a model's failure is zero, and so is what
`rules.py` says; what is unscored is in no mean. `official`: the judge's own scores, and files counted."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from weft.benchmarks.base import RunResults
from weft.benchmarks.official import score_or_none
from weft.benchmarks.rows import (
    CountedVerdict,
    VerdictT,
    WeightedTerms,
    build_breakdown,
    build_mean_cell,
    build_published_rows,
    build_rows,
    read_published,
)
from weft.benchmarks.weaverbench.data import CATEGORIES, IMAGE_INPUT, LENGTHS, TEXT_INPUT, WeaverBenchGold
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
from weft.types import Cell, Table, Verdict

JUDGE = OFFICIAL.published_judge
DIMENSIONS: Mapping[str, tuple[str, ...]] = {
    "PA": (ADHERENCE,),
    "NC": (NARRATIVE,),
    "CC": (INTRA, TO_IMAGE, TO_TEXT),
    "IC": (ENTITY, STYLE),
    "CP": (COMPLETE,),
}
SHORT = {
    "PA": ADHERENCE,
    "NC": NARRATIVE,
    "CC intra-output": INTRA,
    "CC input to image": TO_IMAGE,
    "CC input to text": TO_TEXT,
    "IC entity": ENTITY,
    "IC style": STYLE,
    "CP": COMPLETE,
}
KEYS = {name: name.replace(" ", "_").replace("-", "_") for name in SHORT}  # in published rows
KINDS = ("question", "picture", "document, free", "document, exact")
NOTE = (
    "0 to 10; Acc in percent. Overall: the mean of the five, where all are there. CC and IC are means of three and two scores. Acc: of the "
    "prompts that say how many pictures they want, those whose document has as many, each of them a picture of its own. A cell "
    "`8.1 (37/40)` rests on 37 of 40 scores: the rest could not be scored."
)
PAPER = "Published rows: the paper's prompts, which are not public, by a judge that it does not name; Acc there is of 122 prompts."


def dimension_terms(verdicts: Sequence[VerdictT], name: str) -> list[tuple[float, Sequence[VerdictT]]]:
    """The mean of the scores of a dimension that are there at all."""
    there = [some for metric in DIMENSIONS[name] if (some := [one for one in verdicts if one.metric == metric])]
    return [(1 / len(there), some) for some in there]


def overall_terms(verdicts: Sequence[VerdictT], *, whole: bool = True) -> list[tuple[float, Sequence[VerdictT]]]:
    """The mean of the dimensions. `whole`: only if all five are there."""
    found = [terms for name in DIMENSIONS if (terms := dimension_terms(verdicts, name))]
    if not found or (whole and len(found) < len(DIMENSIONS)):
        return []
    return [(weight / len(found), some) for terms in found for weight, some in terms]


def tables(runs: Sequence[RunResults]) -> Iterator[Table]:
    if all(run.dataset == "weaverbench" for run in runs):
        paper: Mapping[str, Any] = read_published("weft.benchmarks.weaverbench")
    else:
        paper = {}
    whose = {"weaverbench": "WeaverBench", "tabletop": "Tabletop in WeaverBench's format"}
    if runs:
        data = whose.get(runs[0].dataset, "Prompts of one's own in WeaverBench's format")
    else:
        data = "WeaverBench"
    rows = build_rows(runs, _main, paper=_published(paper))
    yield Table(
        f"{data} (paper, Table 2)",
        (*DIMENSIONS, "Overall", "Acc"),
        rows,
        " ".join([NOTE, *([PAPER] if paper else [])]),
        2,
    )
    theirs = build_published_rows(paper.get("table2", {}), lambda row: row["model"], KEYS, JUDGE)
    yield Table(f"{data}: the eight scores", tuple(SHORT), build_rows(runs, _eight, paper=theirs), "0 to 10.", 2)
    planned = build_rows(runs, _planned)
    if any(cell.value is not None for row in planned for cell in row.cells.values()):
        yield Table(f"{data}: plan accuracy, percent", (*KINDS, "all", "collages"), planned, PLAN, 2)
    for run in runs:
        yield from build_breakdown(run, "by category, input and length", (*DIMENSIONS, "Overall", "Acc"), _parts, 2)


PLAN = (
    "Whether a document has the pictures that were due: none for a question, one for a picture, one at least where nothing is said, "
    "exactly so many where it is. `collages`: of the documents with separate pictures, those in which one is a collage."
)


def _entries(run: RunResults, official: bool) -> list[CountedVerdict]:
    """A run's verdicts as they count. Officially: what the judge said, or counting came to, before our rules."""
    if not official:
        return [CountedVerdict(one, one.value, one.metric, one.sample) for one in run.verdicts]
    made: list[CountedVerdict] = []
    for one in run.verdicts:
        made.append(CountedVerdict(one, score_or_none(OFFICIAL.score(one)), one.metric, one.sample))
        made += [
            CountedVerdict(one, value, metric, one.sample)
            for metric, value in OFFICIAL.single_image_scores(one).items()
        ]
    return made


def _cell(terms: WeightedTerms) -> Cell:
    if terms:
        return build_mean_cell(terms, digits=4, scale=10)
    return Cell(None)


def _accuracy(entries: Sequence[CountedVerdict]) -> Cell:
    asked = [one for one in entries if one.metric == COUNT and _goal(one.verdict).required]
    if asked:
        return build_mean_cell(asked, digits=2, scale=100)
    return Cell(None)


def _goal(verdict: Verdict) -> WeaverBenchGold:
    return WeaverBenchGold(read_document_facts(verdict).required, "")


def _cells(entries: Sequence[CountedVerdict]) -> dict[str, Cell]:
    made = {name: _cell(dimension_terms(entries, name)) for name in DIMENSIONS}
    return {**made, "Overall": _cell(overall_terms(entries)), "Acc": _accuracy(entries)}


def _main(run: RunResults, official: bool) -> dict[str, Cell]:
    return _cells(_entries(run, official))


def _eight(run: RunResults, official: bool) -> dict[str, Cell]:
    found = _entries(run, official)
    of = {name: [one for one in found if one.metric == metric] for name, metric in SHORT.items()}
    return {name: _cell([(1.0, some)] if some else []) for name, some in of.items()}


def _planned(run: RunResults, official: bool) -> dict[str, Cell]:
    found = _entries(run, official)
    counts = [one for one in found if one.metric == COUNT]
    made = {kind: [one for one in counts if _goal(one.verdict).kind == kind] for kind in KINDS}
    looked = [one for one in run.verdicts if one.metric == SEPARATE and one.by == "judge"]
    collages = [CountedVerdict(one, _has_collage(one), SEPARATE, one.sample) for one in looked]
    return {
        name: build_mean_cell(some, digits=2, scale=100) if some else Cell(None)
        for name, some in {**made, "all": counts, "collages": collages}.items()
    }


def _has_collage(verdict: Verdict) -> float | None:
    count = count_collages(verdict)
    if count is None:
        return None
    return float(count > 0)


def _parts(run: RunResults, official: bool) -> dict[str, Mapping[str, Cell]]:
    found = _entries(run, official)
    names = {
        "category": _known(run, "category", tuple(CATEGORIES)),
        "input": (TEXT_INPUT, IMAGE_INPUT),
        "length": LENGTHS,
    }
    made: dict[str, Mapping[str, Cell]] = {}
    for axis, groups in names.items():
        for group in groups:
            some = [one for one in found if run.groups[one.sample].get(axis) == group]
            if some:
                made[group if axis == "category" else f"{axis}: {group}"] = _cells(some)
    return made


def _known(run: RunResults, axis: str, first: Sequence[str]) -> list[str]:
    there = dict.fromkeys(groups.get(axis, "") for groups in run.groups.values())
    return [*(name for name in first if name in there), *(name for name in there if name and name not in first)]


def _published(paper: Mapping[str, Any]) -> list[Any]:
    """CC and IC as means of what is printed; Overall and Acc as printed."""
    rows: list[dict[str, Any]] = []
    for row in paper.get("table2", {}).get("rows", ()):
        means = {
            "CC": [row[KEYS[name]] for name in KEYS if name.startswith("CC")],
            "IC": [row["IC_entity"], row["IC_style"]],
        }
        rows.append({**row, **{name: round(sum(some) / len(some), 4) for name, some in means.items()}})
    columns = {**{name: name for name in DIMENSIONS}, "Overall": "Overall", "Acc": "Acc_percent"}
    return build_published_rows({"rows": rows}, lambda row: row["model"], columns, JUDGE)
