"""Verdicts that are missing through no fault of the model, at random, in every benchmark: strict numbers are those of a
second implementation over what is scored, official numbers say what they rest on, and nothing becomes 0 or NaN."""

import math
import operator
import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from weft.benchmarks import RunResults, load_benchmark
from weft.benchmarks.edits.protocol import JudgedEdits
from weft.benchmarks.imug.facts import ChoiceFacts, PointsFacts
from weft.benchmarks.opening.rubric import CRITERIA
from weft.benchmarks.weaverbench.facts import DocumentFacts
from weft.report.scale import headline_share
from weft.results.run import headline_score
from weft.types import Cell, OfficialReading, Row, Table, Verdict

IMAGE_METRICS = ("key_point", "visual_consistency", "image_quality")
ROVER_METRICS = (
    "reasoning_process",
    "reasoning_alignment",
    "reasoning_visual",
    "visual_consistency",
    "image_quality",
)
DIMENSIONS = {
    "PA": ("prompt_adherence",),
    "NC": ("narrative_coordination",),
    "CC": ("intra_output", "input_to_image", "input_to_text"),
    "IC": ("entity", "style"),
    "CP": ("completeness",),
}
Values = Sequence[float | None]
Found = Sequence[Verdict]


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of what is scored; None where nothing is."""
    scored = [value for value in values if value is not None]
    return statistics.fmean(scored) if scored else None


def of(found: Found, *metrics: str) -> float | None:
    return mean(verdict.value for verdict in found if verdict.metric in metrics)


def weighted(terms: Sequence[tuple[float, float | None]]) -> float | None:
    """A weighted sum, which is none if a part of it is none."""
    total = 0.0
    for weight, value in terms:
        if value is None:
            return None
        total += weight * value
    return total / sum(weight for weight, _ in terms) if terms else None


def weave_average(found: Found) -> float | None:
    present = {verdict.metric for verdict in found}
    weights: dict[str, float] = dict(zip(IMAGE_METRICS, (0.5, 0.2, 0.3), strict=True))
    if "accuracy" in present:
        weights = dict(zip((*IMAGE_METRICS, "accuracy"), (0.4, 0.1, 0.2, 0.3), strict=True))
    return weighted([(weights[metric], of(found, metric)) for metric in weights if metric in present])


def planviz_average(found: Found) -> float | None:
    pairs: dict[str, list[Verdict]] = {}
    for verdict in found:
        pairs.setdefault(verdict.sample.rpartition("-")[0], []).append(verdict)
    averages = [weighted([(1, of(pair, metric)) for metric in METRICS["planviz"]]) for pair in pairs.values()]
    return weighted([(1, average) for average in averages])


def mean_of_groups(benchmark: str, metric: str, *axes: str) -> Callable[[Found], float | None]:
    """The plain mean of the groups of an axis, and of the groups of the next axis in each of them."""

    def average(found: Found, rest: Sequence[str]) -> float | None:
        if not rest:
            return of(found, metric)
        groups: dict[str, list[Verdict]] = {}
        for verdict in found:
            kind = GROUPS[benchmark][verdict.sample.rpartition("-")[0]]
            groups.setdefault(kind[rest[0]], []).append(verdict)
        return weighted([(1, average(group, rest[1:])) for group in groups.values()])

    return lambda found: average(found, axes)


def overall(found: Found) -> float | None:
    return weighted([(1, weighted([(1, of(found, name)) for name in names])) for names in DIMENSIONS.values()])


METRICS: dict[str, tuple[str, ...]] = {
    "weave": (*IMAGE_METRICS, "accuracy"),
    "imug": ("choice", "points"),
    "rover-ig": ROVER_METRICS,
    "rover-tg": ("interleaved_reasoning", "reasoning_alignment", "accuracy"),
    "planviz": ("correctness", "visual", "efficiency"),
    "weaverbench": (*(name for names in DIMENSIONS.values() for name in names), "count"),
    "opening": CRITERIA,
    "gedit": ("sc", "pq"),
    "risebench": ("consistency", "reasoning", "plausibility"),
    "imgedit": ("compliance", "seamlessness", "detail"),
    "geneval": ("correct",),
    "kris": ("consistency", "quality", "instruction", "knowledge"),
    "geneval2": ("am", "gm"),
    "mmvet": ("correctness",),
}
GROUPS: dict[str, dict[str, dict[str, str]]] = {  # sample's name without its number -> its groups
    "weave": {
        "a": {"domain": "edit", "class": "Creation"},
        "b": {"domain": "optics", "class": "Science"},
    },
    "imug": {
        "a": {"domain": "Cooking", "task": "x", "class": "Hybrid"},
        "b": {"domain": "Apparel", "task": "x", "class": "Static Spatial"},
    },
    "rover-ig": {
        "science_temporal": {"dimension": "science", "type": "temporal"},
        "logic_math": {"dimension": "logic", "type": "mathematical"},
    },
    "rover-tg": {
        "physical": {"scenario": "Physical World", "type": "physical"},
        "jigsaw": {"scenario": "Visual Perception", "type": "jigsaw"},
    },
    "planviz": {
        "gen-ui": {"task": "gen", "subtask": "ui", "ended": "open"},
        "edit-ui": {"task": "edit", "subtask": "ui", "ended": "closed"},
        "edit-route": {"task": "edit", "subtask": "route", "ended": "open"},
    },
    "weaverbench": {
        "a": {"category": "Daily Life", "input": "text", "length": "short", "count": "exact"},
        "b": {"category": "Reasoning", "input": "image+text", "length": "short", "count": "exact"},
    },
    "opening": {"a": {"task": "t", "subtask": "s"}, "b": {"task": "u", "subtask": "v"}},
    "gedit": {
        "a": {"language": "en", "task": "color_alter", "subset": "full"},
        "b": {"language": "en", "task": "text_change", "subset": "intersection"},
        "c": {"language": "cn", "task": "color_alter", "subset": "intersection"},
    },
    "risebench": {
        "a": {"category": "causal", "subtask": "s"},
        "b": {"category": "spatial", "subtask": "t"},
    },
    "imgedit": {"a": {"suite": "basic", "type": "add"}, "b": {"suite": "basic", "type": "style"}},
    "geneval": {"a": {"tag": "counting"}, "b": {"tag": "colors"}},
    "kris": {
        "a": {"dimension": "natural", "category": "physics"},
        "b": {"dimension": "social", "category": "humanities"},
    },
    "geneval2": {"a": {"atoms": "3"}, "b": {"atoms": "10"}},
    "mmvet": {"a": {"capabilities": "ocr + math"}, "b": {"capabilities": "ocr"}},
}
HEADLINE: dict[str, Callable[[Found], float | None]] = {
    "weave": weave_average,
    "imug": lambda found: of(found, "choice", "points"),
    "rover-ig": lambda found: of(found, "reasoning_visual"),
    "rover-tg": lambda found: of(found, "accuracy"),
    "planviz": planviz_average,
    "weaverbench": overall,
    "opening": lambda found: weighted([(1, of(found, name)) for name in CRITERIA]),
    "gedit": mean_of_groups("gedit", "overall", "language", "task"),
    "risebench": lambda found: of(found, "accuracy"),
    "imgedit": mean_of_groups("imgedit", "score", "type"),
    "geneval": mean_of_groups("geneval", "correct", "tag"),
    "kris": lambda found: of(found, "consistency", "quality", "instruction", "knowledge"),
    "geneval2": lambda found: of(found, "gm"),
    "mmvet": lambda found: of(found, "correctness"),
}
HEADLINE_CELL = {  # a cell of the first table that has the headline score, by the row's subset
    "weave": ("", "Avg"),
    "imug": ("", "Avg"),
    "rover-ig": ("micro", "RV"),
    "rover-tg": ("Vis.-Aug., micro", "Acc."),
    "weaverbench": ("", "Overall"),
    "opening": ("", "Overall"),
    "risebench": ("", "Overall"),
    "imgedit": ("", "Overall"),
    "geneval": ("", "Overall"),
    "kris": ("", "Overall"),
    "geneval2": ("", "GM"),
    "mmvet": ("", "Total"),
}
READINGS = {  # by released scripts
    **{"weave": 7.0, "imug": 3.0, "rover-ig": 4.0, "rover-tg": 4.0, "planviz": 0.6},
    **{"gedit": 0.4, "risebench": 5.0, "imgedit": 0.8, "kris": 0.5, "mmvet": 0.7},
}
FROM_1_TO_5 = ("rover-ig", "rover-tg", "risebench")
FAILS_AS_A_WHOLE = (
    "opening",
    "gedit",
    "risebench",
    "imgedit",
    "kris",
)  # a model fails in all of a reply's metrics or in none
MEANS_OF_MEANS = {"planviz": "subtask", "gedit": "task", "imgedit": "type", "geneval": "tag"}  # over groups of an axis


class Fate(Struct, frozen=True):
    """What became of a verdict."""

    value: float | None
    by: Any = "judge"
    reading: OfficialReading | None = None


OURS = Fate(None)
FAILURE = Fate(0.0, "failure")


def build(benchmark: str, sample: str, number: int, metric: str, fate: Fate) -> Verdict:
    detail: Any = None
    if benchmark == "imug":
        detail = ChoiceFacts("A" if fate.value else "C", "A") if metric == "choice" else PointsFacts((3,))
    if benchmark == "weaverbench":
        detail = DocumentFacts(2, 2)
    reading = fate.reading
    if reading is None and fate.by == "judge" and fate.value is not None and benchmark in FROM_1_TO_5:
        reading = OfficialReading(1 + 4 * fate.value)
    if metric == "choice" and fate.reading is not None:
        reading = OfficialReading(1.0)
    turn = number % 2 if benchmark == "imug" else int(metric == "accuracy" and benchmark == "weave")
    return Verdict(sample, turn, metric, fate.value, "why", fate.by, detail=detail, reading=reading)


@st.composite
def runs(draw: st.DrawFn, benchmark: str) -> RunResults:
    """A run in which verdicts are missing one by one, or a whole metric or dialogue at a time."""
    fates = [OURS, FAILURE, Fate(0.0), Fate(0.25), Fate(0.5), Fate(1.0)]
    if benchmark in READINGS:
        fates.append(Fate(None, "judge", OfficialReading(READINGS[benchmark])))
    metrics = METRICS[benchmark]
    lost_metrics = draw(st.sets(st.sampled_from(metrics), max_size=1))
    kinds = draw(st.lists(st.sampled_from(sorted(GROUPS[benchmark])), max_size=7))
    verdicts: list[Verdict] = []
    groups: dict[str, dict[str, str]] = {}
    for number, kind in enumerate(kinds):
        sample = f"{kind}-{number}" if benchmark != "rover-ig" else f"{kind}_{number}"
        groups[sample] = GROUPS[benchmark][kind]
        whole = draw(st.sampled_from([None, None, None, OURS, FAILURE]))  # of a reply that failed
        for metric in metrics:
            fate = whole or draw(st.sampled_from(fates))
            if metric in lost_metrics and whole is not FAILURE:
                fate = OURS
            elif whole is None and fate is FAILURE and benchmark in FAILS_AS_A_WHOLE:
                fate = Fate(0.0)
            verdicts.append(build(benchmark, sample, number, metric, fate))
        loaded = load_benchmark(benchmark)
        if isinstance(loaded, JudgedEdits):
            verdicts += loaded.derive({verdict.metric: verdict for verdict in verdicts if verdict.sample == sample})
    return RunResults("m", groups, verdicts, "mine", "r", "judge")


def cells(tables: Iterable[Table]) -> list[tuple[Table, Row, str, Cell]]:
    return [(table, row, name, cell) for table in tables for row in table.run_rows for name, cell in row.cells.items()]


def check_sanity(cell: Cell) -> None:
    numbers = [number for number in (cell.value, cell.low, cell.high) if number is not None]
    assert all(map(math.isfinite, numbers)) and 0 <= cell.scored <= cell.expected
    if cell.scored == 0:
        assert cell.value is None, "nothing is scored"
    if cell.value is None:
        assert cell.low is None and cell.high is None
    assert "nan" not in cell.format() + cell.format_interval()


def check_says_what_it_rests_on(cell: Cell) -> None:
    """The rule for official cells: what is unscored through a fault of ours is in the cell's text."""
    if any(verdict.value is None for verdict in cell.verdicts):
        assert "/" in cell.format(), cell
    if cell.unusable:
        assert cell.value is not None and f"{cell.unusable} unusable" in cell.format()


@pytest.mark.parametrize("benchmark", METRICS)
@settings(max_examples=50)
@given(data=st.data())
def test_whatever_is_missing_no_cell_hides_it(benchmark: str, data: st.DataObject):
    run = data.draw(runs(benchmark))
    strict: dict[tuple[str, str, str], Cell] = {}
    for table, row, column, cell in cells(load_benchmark(benchmark).tables([run])):
        place = (table.title.removesuffix(", strict").removesuffix(", official"), row.name + row.subset, column)
        check_sanity(cell)
        if row.arithmetic != "official" and not table.title.endswith("official"):
            strict[place] = cell
            continue
        check_says_what_it_rests_on(cell)
        missing = [verdict for verdict in strict.get(place, cell).verdicts if verdict.value is None]
        if cell.expected and missing:
            # to RISEBench's script an edit has all of its scores or none
            name = operator.attrgetter("sample") if benchmark == "risebench" else id
            assert set(map(name, missing)) <= set(map(name, cell.verdicts)), (
                place,
                "a missing verdict is left out without a word",
            )


@pytest.mark.parametrize("benchmark", METRICS)
@settings(max_examples=50)
@given(data=st.data())
def test_the_headline_is_what_a_second_implementation_finds_and_the_table_has_the_same(
    benchmark: str, data: st.DataObject
):
    run = data.draw(runs(benchmark))
    loaded = load_benchmark(benchmark)
    expected = HEADLINE[benchmark](run.verdicts)
    found = headline_score(loaded, run.verdicts, run.groups)
    assert (found is None) == (expected is None)
    share = headline_share(loaded, run.verdicts, run.groups)
    if found is None or expected is None:
        assert share is None
    else:
        assert found[0] == pytest.approx(expected) and share == pytest.approx(expected, abs=1e-4)
    if benchmark not in HEADLINE_CELL or not run.verdicts:
        return
    subset, column = HEADLINE_CELL[benchmark]
    rows = [row for row in next(iter(loaded.tables([run]))).run_rows if row.subset == subset]
    cell = rows[0].cells[column]
    if expected is None:
        assert cell.value is None
    else:
        assert cell.value == pytest.approx(loaded.presentation.max_score * expected, rel=1e-3, abs=2e-3)


@pytest.mark.parametrize("benchmark", [name for name in METRICS if name != "weaverbench"])
@settings(max_examples=50)
@given(data=st.data())
def test_a_strict_mean_is_that_of_the_scored_verdicts_in_which_a_models_failure_is_zero(
    benchmark: str, data: st.DataObject
):
    run = data.draw(runs(benchmark))
    full = load_benchmark(benchmark).presentation.max_score
    for table, row, column, cell in cells(load_benchmark(benchmark).tables([run])):
        is_mean = len({verdict.metric for verdict in cell.verdicts}) == 1 and column not in ("per turn", "Align. held")
        if row.arithmetic == "official" or table.title.endswith("official") or not is_mean:
            continue
        subtasks = {run.groups[verdict.sample].get(MEANS_OF_MEANS.get(benchmark, "")) for verdict in cell.verdicts}
        is_macro = "macro" in row.subset or (benchmark == "rover-tg" and column.startswith("Overall "))
        is_best_of = (benchmark, column) == ("geneval", "Prompts")
        if "distributed" in table.title or is_macro or is_best_of or len(subtasks) > 1:
            continue  # these are not means of verdicts, but shares of them, or means of means
        due = mean(verdict.value for verdict in cell.verdicts)
        assert (cell.value is None) == (due is None), (table.title, row.label, column)
        if due is not None:
            assert cell.value == pytest.approx(full * due, rel=1e-3, abs=1e-3 * full), (table.title, row.label, column)
        assert cell.scored == sum(verdict.value is not None for verdict in cell.verdicts)


@pytest.mark.parametrize("benchmark", METRICS)
def test_a_run_without_a_verdict_has_tables_without_a_number(benchmark: str):
    loaded = load_benchmark(benchmark)
    for *_, cell in cells(loaded.tables([RunResults("m", {}, [], "mine")])):
        assert cell.value is None and cell.format() == "-"
    assert headline_score(loaded, [], {}) is None and headline_share(loaded, [], {}) is None
