"""PlanViz's tables against the paper's own cells, and the arithmetic at random against a second implementation."""

import statistics
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.benchmarks.base import RunResults
from weft.benchmarks.official import MissingScore
from weft.benchmarks.planviz import PlanViz
from weft.benchmarks.planviz.official import OFFICIAL
from weft.benchmarks.planviz.tables import JUDGE, tables
from weft.benchmarks.rows import read_published
from weft.report.scale import headline_share
from weft.types import Cell, OfficialReading, Table, Verdict

PAPER = read_published("weft.benchmarks.planviz")
SUBTASKS, METRICS = ("route", "workflow", "ui"), ("correctness", "visual", "efficiency")
PRINTED = ("Route", "Workflow", "WebUI")


def off(value: float, printed: float) -> bool:
    """Whether a number of two decimals is not the mean of numbers of two decimals."""
    return abs(value - printed) > 0.005 + 1e-9


def test_averages_of_sub_tasks_are_those_of_their_printed_metrics_but_for_four():
    wrong = {
        (table, row["model"], name, row[f"{name}_Avg"])
        for table in ("table3", "table4")
        for row in PAPER[table]["rows"]
        for name in PRINTED
        if off(statistics.fmean(row[f"{name}_{metric}"] for metric in ("Cor", "Vis", "Ef")), row[f"{name}_Avg"])
    }
    assert wrong == {
        ("table3", "GPT-Image-1", "WebUI", 0.53),
        ("table4", "Ovis-U1", "Workflow", 0.24),
        ("table4", "Janus-4o", "Workflow", 0.31),
        ("table4", "OmniGen2", "Workflow", 0.22),
    }
    # 22 models and the human reference; 18 models
    assert [len(PAPER[table]["rows"]) for table in ("table3", "table4")] == [23, 18]


def test_overall_is_the_mean_of_the_averages_but_for_two():
    """Of those that are printed, or of what the printed metrics come to before they are rounded."""
    wrong: set[tuple[str, str, float, float]] = set()
    for table in ("table3", "table4"):
        for row in PAPER[table]["rows"]:
            printed = statistics.fmean(row[f"{name}_Avg"] for name in PRINTED)
            exact = statistics.fmean(row[f"{name}_{metric}"] for name in PRINTED for metric in ("Cor", "Vis", "Ef"))
            if off(printed, row["Overall"]) and off(exact, row["Overall"]):
                wrong.add((table, row["model"], row["Overall"], round(printed, 2)))
    assert wrong == {("table3", "AnyEdit", 0.36, 0.38), ("table4", "GPT-Image-1", 0.80, 0.90)}


def of(table: Table, kind: str) -> dict[str, dict[str, float | None]]:
    return {row.label: {name: cell.value for name, cell in row.cells.items()} for row in table.rows if row.kind == kind}


def run_of(row: dict[str, Any], task: str) -> RunResults:
    """A run that has just the printed metrics: one task in each sub-task."""
    verdicts: list[Verdict] = []
    groups: dict[str, dict[str, str]] = {}
    for subtask, printed in zip(SUBTASKS, PRINTED, strict=True):
        groups[subtask] = {"task": task, "subtask": subtask, "ended": "open"}
        verdicts += [
            Verdict(subtask, 0, metric, row[f"{printed}_{key}"])
            for metric, key in zip(METRICS, ("Cor", "Vis", "Ef"), strict=True)
        ]
    return RunResults(row["model"], groups, verdicts, "planviz")


@pytest.mark.parametrize(("table", "task"), [("table3", "edit"), ("table4", "gen")])
def test_all_rows_of_tables_3_and_4_from_their_printed_metrics(table: str, task: str):
    title = {"edit": "editing (paper, Table 3)", "gen": "generation (paper, Table 4)"}[task]
    for row in PAPER[table]["rows"]:
        made = next(one for one in tables([run_of(row, task)]) if title in one.title)
        ours = of(made, "run")[row["model"]]
        for subtask, printed in zip(("Route", "Workflow", "Web&UI"), PRINTED, strict=True):
            assert ours[f"{subtask} Cor"] == row[f"{printed}_Cor"]
            exact = statistics.fmean(row[f"{printed}_{metric}"] for metric in ("Cor", "Vis", "Ef"))
            assert ours[f"{subtask} Avg"] == pytest.approx(exact, abs=1e-4)
        assert ours["Overall"] == pytest.approx(
            statistics.fmean(ours[f"{one} Avg"] or 0 for one in ("Route", "Workflow", "Web&UI")), abs=1e-3
        )
        theirs = of(made, "published")[row["model"]]
        assert theirs["Overall"] == row["Overall"] and len(theirs) == 13


def test_gpt_image_1_leads_generation_once_its_row_is_added_up():
    """Printed as 0.80; Seedream-4.5 has 0.88."""
    overall = {
        row["model"]: statistics.fmean(row[f"{name}_Avg"] for name in PRINTED) for row in PAPER["table4"]["rows"]
    }
    assert max(overall, key=lambda model: overall[model]) == "GPT-Image-1" and round(overall["Seedream-4.5"], 2) == 0.88
    first = of(next(iter(tables([run_of(PAPER["table4"]["rows"][0], "gen")]))), "published")
    assert (
        first["GPT-Image-1, generation"]["Avg"] == pytest.approx(2.71 / 3)
        and first["GPT-Image-1, generation"]["Overall as printed"] == 0.80
    )


def test_table_5_stands_beside_ours():
    made = next(one for one in tables([run_of(PAPER["table3"]["rows"][0], "edit")]) if "open-ended" in one.title)
    theirs = of(made, "published")
    assert (
        set(theirs) == {"FLUX.1 dev", "Ovis-U1", "OmniGen2", "Bagel", "GPT-Image-1"}
        and theirs["GPT-Image-1"]["closed gen Vis"] == 1.0
    )
    assert len(theirs["Bagel"]) == 12 and {row.judge for row in made.published_rows} == {JUDGE}


def test_published_rows_are_not_beside_another_dataset():
    run = run_of(PAPER["table3"]["rows"][0], "edit")
    tabletop = RunResults(run.name, run.groups, run.verdicts, "tabletop")
    assert all(not table.published_rows for table in tables([tabletop])) and any(
        table.published_rows for table in tables([run])
    )


SHARES = st.sampled_from([None, 0.0, 0.2, 0.5, 0.8, 1.0])
TASKS = st.lists(
    st.tuples(
        st.sampled_from(("gen", "edit")),
        st.sampled_from(SUBTASKS),
        st.sampled_from(("open", "closed")),
        SHARES,
        SHARES,
        SHARES,
        st.booleans(),
    ),
    min_size=1,
    max_size=25,
)


def finished(tasks: Sequence[tuple[Any, ...]]) -> RunResults:
    verdicts: list[Verdict] = []
    groups: dict[str, dict[str, str]] = {}
    for at, (task, subtask, ended, *shares, failed) in enumerate(tasks):
        groups[f"t{at}"] = {"task": task, "subtask": subtask, "ended": ended}
        for metric, value in zip(METRICS, shares, strict=True):
            verdicts.append(Verdict(f"t{at}", 0, metric, 0.0 if failed else value, by="failure" if failed else "judge"))
    return RunResults("mine", groups, verdicts, "mine")


def second(tasks: Sequence[tuple[Any, ...]], task: str, official: bool) -> float | None:
    """Overall in plain loops: the mean of sub-tasks' means of metrics' means."""
    averages: list[float] = []
    for subtask in SUBTASKS:
        some = [one for one in tasks if one[0] == task and one[1] == subtask and not (official and one[6])]
        if not [one for one in tasks if one[0] == task and one[1] == subtask]:
            continue
        columns = [
            [0.0 if one[6] else one[3 + at] for one in some if one[6] or one[3 + at] is not None] for at in range(3)
        ]
        if official and not some:
            continue  # all of it is left out
        if not all(columns):
            return None
        averages.append(statistics.fmean(statistics.fmean(column) for column in columns))
    return statistics.fmean(averages) if averages else None


@given(TASKS)
def test_overall_against_a_second_implementation(tasks: list[tuple[Any, ...]]):
    run = finished(tasks)
    first = next(iter(tables([run])))
    rows = {row.label: row.cells for row in first.run_rows}
    for task, name in (("edit", "editing"), ("gen", "generation")):
        if not any(one[0] == task for one in tasks):
            assert not any(label.endswith(name) for label in rows)
            continue
        strict = rows.get(f"mine, {name}") or rows[f"mine (strict), {name}"]
        assert same(strict["Avg"], second(tasks, task, False))
        official = rows.get(f"mine, {name}") or rows[f"mine (official), {name}"]
        due = second(tasks, task, True)
        if due is not None or f"mine (official), {name}" in rows:  # where it has no number at all there is no row of it
            assert same(official["Avg"], due)


def same(cell: Cell, value: float | None) -> bool:
    return cell.value is None if value is None else cell.value == pytest.approx(value, abs=1e-4)


@given(TASKS)
def test_the_headline_is_the_mean_of_the_cells(tasks: list[tuple[Any, ...]]):
    run = finished(tasks)
    found = [second(tasks, task, False) for task in ("edit", "gen") if any(one[0] == task for one in tasks)]
    cells = [
        len({one[1] for one in tasks if one[0] == task})
        for task in ("edit", "gen")
        if any(one[0] == task for one in tasks)
    ]
    made = headline_share(PlanViz(), run.verdicts, run.groups)
    if None in found:
        assert made is None, "a part of it is not scored at all"
    else:
        due = sum((value or 0) * count for value, count in zip(found, cells, strict=True)) / sum(cells)
        assert made == pytest.approx(due, abs=1e-4)


def test_distributions_add_up():
    run = finished(
        [("edit", "route", "open", value, value, None, False) for value in (0.0, 0.1, 0.2, 0.5, 0.9, 1.0, 1.0, 1.0)]
    )
    made = next(table for table in tables([run]) if "distributed" in table.title)
    assert {row.name for row in made.rows} == {"Route, editing, Cor", "Route, editing, Vis"}
    shown = {name: cell.value for name, cell in made.rows[0].cells.items()}
    assert shown == {
        "0": 12.5,
        "to 0.2": 25.0,
        "to 0.4": 0.0,
        "to 0.6": 12.5,
        "to 0.8": 0.0,
        "below 1": 12.5,
        "1": 37.5,
    }


def test_what_the_released_scorer_counts():
    judged = Verdict("t", 0, "visual", 0.6)
    assert OFFICIAL.score(judged) == 0.6
    assert isinstance(OFFICIAL.score(Verdict("t", 0, "visual", 0.0, by="failure")), MissingScore)
    # nothing keeps it within its scale
    assert OFFICIAL.score(Verdict("t", 0, "visual", 0.6, reading=OfficialReading(1.4))) == 1.4
    assert isinstance(OFFICIAL.score(Verdict("t", 0, "visual", 0.6, reading=OfficialReading())), MissingScore)
    assert (
        OFFICIAL.score(
            Verdict("t", 0, "visual", 0.6, reading=OfficialReading(0.2), variant_reading=OfficialReading(0.4))
        )
        == 0.4
    )
    both = [
        Verdict("t", 0, "visual", 0.6, reading=OfficialReading(one), variant=f"repeat {at}")
        for at, one in enumerate((0.2, 0.4, None))
    ]
    assert OFFICIAL.score(PlanViz().merge_variants(both)[0]) == pytest.approx(0.3)
