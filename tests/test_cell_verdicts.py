"""A table cell knows the verdicts behind it: the run's own objects, as many as were due, and they come to its value."""

import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import weft
from test_golden import DATA, Judge, Painter, written
from weft.arena.official import BattleFacts
from weft.arena.protocol import Arena
from weft.benchmarks.base import RunResults
from weft.benchmarks.planviz import PlanViz
from weft.report.render import render
from weft.stats.battles import LEAN
from weft.types import Cell, Row, Table, Verdict

OTHER_UNITS = (  # tables whose `due` counts tasks, questions or answers, and not verdicts
    "prompt styles",
    "what an intermediate image gains",
    "questions by skill",
)
PLAIN = {  # columns that are plain means in every strict row, with full marks
    "weave": (("KP", "VC", "IQ", "ACC"), 1),
    "imug": (("Und.", "Gen.", "Avg", "Static MCQ", "Dynamic MCQ", "T1", "T2"), 100),
    "planviz": (("Route Cor", "Route Vis", "Route Ef", "Workflow Cor", "Web&UI Vis"), 1),
    "rover-ig": (("Science RP", "Science RV", "Logic VC", "Logic IQ"), 100),
    "rover-tg": (("Physical World IR", "Physical World Align.", "Logical Assistant Acc."), 100),
    "weaverbench": (("PA", "NC", "CP", "CC intra-output", "IC style"), 10),
    "opening": (("Completeness", "Correctness"), 10),
    "gedit": (("SC", "PQ"), 10),
    "imgedit": (("Compliance", "Seamlessness", "Detail"), 5),
    "risebench": (("Reasoning", "Consistency"), 100),
    "geneval": (("Single", "Counting", "Colors", "Images"), 1),
    "kris": (("Overall", "Social", "VC", "AVG"), 100),
    "geneval2": (("GM", "AM"), 100),
    "mmvet": (("Rec", "OCR", "Spat", "Total"), 100),
}


def cells(tables: list[Table]) -> Iterator[tuple[Table, Row, str, Cell]]:
    return ((table, row, column, cell) for table in tables for row in table.rows for column, cell in row.cells.items())


class Faltering(Painter):
    """Makes nothing of every third request, so that the two arithmetics differ."""

    name = "faltering"
    asked = 0

    def __call__(self, messages: Any, want: str) -> Any:
        self.asked += 1
        return super().__call__(messages, want) if self.asked % 3 else ""


def runs_of(benchmark: str, folder: Path) -> Iterator[weft.Run]:
    data = written(benchmark, folder / "data", 8)
    for model in (Painter(), "tabletop/tiny" if benchmark != "opening" else "copy", Faltering()):
        yield weft.evaluate(benchmark, data=data, model=model, judge=Judge(), home=folder / "home", judge_repeats=2)


@pytest.mark.parametrize("benchmark", [*DATA, "opening"])
def test_every_cell_has_the_verdicts_it_was_computed_from(benchmark: str, tmp_path: Path):
    checked = plain = 0
    columns, full = PLAIN[benchmark]
    for run in runs_of(benchmark, tmp_path):
        own = {id(verdict) for verdict in run.verdicts}
        for table, row, column, cell in cells(run.tables()):
            if row.kind == "published":
                assert not cell.verdicts and not cell.expected
                continue
            assert all(id(verdict) in own for verdict in cell.verdicts), (table.title, row.label, column)
            if not cell.expected:
                assert not cell.verdicts, (table.title, row.label, column)
            elif not any(name in table.title for name in OTHER_UNITS) and (benchmark, row.arithmetic, column) != (
                "opening",
                "official",
                "Overall",
            ):
                assert len(cell.verdicts) == cell.expected, (table.title, row.label, column)
                checked += 1
            if (
                column in columns
                and row.arithmetic != "official"
                and not table.title.endswith("official")
                and cell.value is not None
            ):
                values = [verdict.value for verdict in cell.verdicts if verdict.value is not None]
                assert len(values) == cell.scored
                assert cell.value == pytest.approx(full * statistics.fmean(values), abs=0.006 * full / 10), (
                    table.title,
                    column,
                )
                plain += 1
    assert checked > 10 and plain > 2


def test_verdicts_are_no_part_of_what_a_cell_says():
    verdict = Verdict("a dialogue", 0, "key_point", 0.5, "a secret reason")
    with_it, bare = Cell(0.5, 1, 1, verdicts=[verdict]), Cell(0.5, 1, 1)
    assert (
        with_it == bare and hash(with_it) == hash(bare) and repr(with_it) == repr(bare) and with_it != Cell(0.6, 1, 1)
    )
    tables = [Table("numbers", ("KP",), (Row("m", {"KP": cell}),)) for cell in (with_it, bare)]
    assert tables[0] == tables[1]
    for form in ("json", "csv", "md", "latex"):
        made = [render([table], [], form) for table in tables]
        assert made[0] == made[1] and "secret" not in made[0] and "verdicts" not in made[0], form
    (found,) = json.loads(render(tables[:1], [], "json"))["tables"]
    assert msgspec.convert(found["rows"][0]["cells"]["KP"], Cell) == bare


def test_cells_of_battles_have_the_verdict_of_each_battle():
    said = {"a": ("A", "A"), "b": ("A", "B"), "c": ("Tie(B)", "Tie(B)"), "d": ("B", "B")}
    found = [Verdict(name, 0, "battle", (LEAN[one] + 1) / 2, detail=BattleFacts(one), variant=f"order {order}")
             for name, both in said.items() for order, one in zip(("AB", "BA"), both, strict=True)]  # fmt: skip
    found.append(
        Verdict(
            "e",
            0,
            "battle",
            1.0,
            "y has no answer",
            "rule",
            detail=BattleFacts("A", is_by_rule=True),
            variant="order AB",
        )
    )
    found.append(
        Verdict(
            "e",
            0,
            "battle",
            1.0,
            "y has no answer",
            "rule",
            detail=BattleFacts("A", is_by_rule=True),
            variant="order BA",
        )
    )
    verdicts = Arena().merge_variants(found)
    run = RunResults(
        "arena",
        {name: {"item": name, "first": "x", "second": "y"} for name in (*said, "e")},
        verdicts,
        "toy",
        "r",
        "judge",
    )
    own = {id(verdict) for verdict in verdicts}
    for table, row, column, cell in cells(list(Arena().tables([run]))):
        assert len(cell.verdicts) == cell.expected and all(id(one) in own for one in cell.verdicts), (
            table.title,
            row.label,
            column,
        )


def test_cells_of_a_study_of_wordings_have_all_wordings_of_their_tasks():
    groups = {f"t{at}": {"task": "gen", "subtask": "ui", "of": f"t{at - at % 3}", **({"style": f"s{at % 3}"} if at % 3 else {})}
              for at in range(9)}  # fmt: skip
    verdicts = [
        Verdict(name, 0, metric, at / 10)
        for at, name in enumerate(groups)
        for metric in ("correctness", "visual", "efficiency")
    ]
    tables = list(PlanViz().tables([RunResults("m", groups, verdicts, "own", "r", "judge")]))
    own = {id(verdict) for verdict in verdicts}
    assert all(id(one) in own for *_, cell in cells(tables) for one in cell.verdicts)
    over = next(table for table in tables if table.title.endswith("prompt styles")).rows[0].cells["Cor mean"]
    assert (over.expected, len(over.verdicts), {groups[one.sample].get("style") for one in over.verdicts}) == (
        3,
        6,
        {"s1", "s2"},
    )
    one = next(table for table in tables if table.title.endswith("tasks over their wordings")).rows[0].cells
    assert [(cell.expected, len(cell.verdicts)) for cell in one.values()] == [(2, 2)] * 7


class Other(Judge):
    name = "another-judge"


def test_cells_of_agreement_have_the_verdicts_that_were_compared(tmp_path: Path):
    data = written("weave", tmp_path / "data", 6)
    ends = {"data": data, "model": Painter(), "home": tmp_path / "home"}
    run, other = (weft.evaluate("weave", judge=judge, **ends) for judge in (Judge(), Other()))
    own, counted = {id(verdict) for verdict in run.verdicts}, 0
    for table, row, column, cell in cells(list(run.agree(other).tables)):
        assert all(id(one) in own for one in cell.verdicts), (table.title, row.label, column)
        if row.kind != "published" and column != "dialogues":
            assert len(cell.verdicts) == cell.expected, (table.title, row.label, column)
            counted += bool(cell.expected)
    assert counted > 10
