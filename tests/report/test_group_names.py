"""Groups that a dataset calls like a column of weft's own, or like what every object of JavaScript has."""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

import weft
from weft.benchmarks import Benchmark, Presentation
from weft.benchmarks.base import Assessment, Dialogue, JudgedTurn, RunResults
from weft.report import plots
from weft.report.charts import build_plots
from weft.report.correlate import correlate_models
from weft.results.run import name_runs
from weft.store.blobs import Blobs
from weft.types import Dataset, Message, Sample, Table, Text, Turn

GROUPS = ("all", "change", "change %", "models", "constructor", "toString", "__proto__", "__lookupGetter__")


class Named(Benchmark):
    name = "named"
    version = "1"
    metrics = ("request",)
    axes = ("kind",)
    presentation = Presentation(title="Named", digits=2)

    def load(self, data: Path, blobs: Blobs) -> Dataset:
        turns = (Turn(0, (Text("Name a colour."),), "text", reference=()),)
        samples = tuple(Sample(f"s{n}", turns, groups={"kind": group}) for n, group in enumerate(GROUPS * 2))
        return Dataset("named", "1", samples)

    def build_messages(self, sample: Sample, turn: Turn, dialogue: Dialogue, options: Any) -> tuple[Message, ...]:
        return (Message("user", (*turn.prompt, Text(sample.id))),)

    def questions(self, judged_turn: JudgedTurn) -> Iterable[Assessment]:
        text = "".join(part.text for part in judged_turn.reply.parts if isinstance(part, Text))
        yield judged_turn.verdict("request", zlib.crc32(f"{text} {judged_turn.sample.id}".encode()) % 5 / 4, "by rule")

    def tables(self, runs: Sequence[RunResults]) -> Iterable[Table]:
        return ()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[weft.Run]:
    folder = tmp_path_factory.mktemp("named")
    job: Mapping[str, Any] = {"data": folder, "judge": "constant/1", "home": folder / "home"}
    return [weft.evaluate(Named, model=f"constant/{number}", **job) for number in (1, 2, 3, 4)]


def test_a_group_keeps_its_number_beside_a_column_of_the_same_name(runs: list[weft.Run]):
    grid = weft.grid(runs, "model,kind")
    assert grid.table.columns == (*GROUPS, "(all)", "(change)", "(change %)")
    for run, row in zip(runs, grid.table.rows, strict=True):
        for group in GROUPS:
            values = [verdict.value for verdict in run.verdicts if run.groups[verdict.sample]["kind"] == group]
            assert row.cells[group].value == pytest.approx(fmean(value or 0.0 for value in values)), group
        assert row.cells["(all)"].value == pytest.approx(run.gist.value)
    found = correlate_models(runs, over="kind").table
    assert found.columns[-1] == "(models)" and found.columns[3] == "models"
    assert all(row.cells["(models)"].value == 4 for row in found.rows)


def test_plots_have_groups_of_any_name(runs: list[weft.Run]):
    built = build_plots(name_runs(runs))
    assert [plot for plot in built if "by-kind" in plot.name]
    for plot in built:
        assert plots.render_svg(plot.chart).startswith("<svg")
