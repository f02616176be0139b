"""The papers' tables over several benchmarks with our rows: where the numbers come from, and what never mixes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import weft
from edits import Painter, Saying, rise_record, write_rise
from weft.benchmarks import load_benchmark
from weft.cli.app import app
from weft.errors import UserError
from weft.evaluation.imports.score import ImportedScore
from weft.evaluation.imports.store import save
from weft.evaluation.session import Session
from weft.report.paper_cards import build_paper_tables, list_papers, parse_papers
from weft.types import Table

RECORDS = 3  # of a RISEBench that counts as the published one
SPEC = Path(__file__).parents[3] / "shared" / "spec" / "published_companions.json"
OURS = {"BAGEL + WEAVE-100k": "+ WEAWE-100k", "Bagel + WEAVE-100k": "+ WEAWE-100k", "Wan-Weaver": "Wan-Weaver (Ours)"}


def imported(task: str, value: float, tool: str = "evalscope", model: str = "mine") -> ImportedScore:
    fields: Any = {"model": model, "served_model": "", "tool": tool, "version": "1", "metric": "acc", "judge": ""}
    return ImportedScore(task=task, value=value, scored=900, expected=900, **fields)


def build(name: str, *scores: ImportedScore) -> Table:
    (table,) = build_paper_tables(parse_papers(name), {}, None, scores)
    return table


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home with a run of a suite over a small RISEBench that passes for the published one."""
    monkeypatch.setattr("weft.benchmarks.risebench.data.PUBLISHED_RECORDS", RECORDS)

    def name_section(session: Session) -> None:
        session.names["suite"] = "risebench"

    records = [rise_record(0, consistency_free=True), rise_record(1), rise_record(2)]
    judge = Saying(lambda question: {"reasoning": "so", "score": 5})
    data = write_rise(tmp_path / "data", records)
    home = tmp_path / "home"
    weft.evaluate("risebench", data=data, model=Painter(), judge=judge, home=home, on_start=name_section)
    yield home


def report(home: Path, *words: str) -> str:
    done = CliRunner().invoke(app, ["suite", "report", *words, "--home", str(home)], env={"COLUMNS": "10000"})
    assert not done.exit_code, done.output
    return done.output


def test_our_row_stands_below_theirs_by_the_rule_of_the_paper(home: Path):
    save(imported("mmmu_val", 51.25, model="painter"), home, 1.0)
    table = json.loads(report(home, "--published", "weave-4", "--format", "json"))["tables"][0]
    *theirs, ours = table["rows"]
    assert len(theirs) == 11 and all(row["kind"] == "published" for row in theirs)
    cells = ours["cells"]
    assert ours["group"] == "ours" and round(cells["Tem."]["value"], 1) == 66.7, "the rule until 13 April 2026"
    assert ours["name"] == "painter" and cells["MMMU"]["value"] == 51.25
    for words in ("RISEBench, our rows: judged by saying", "Published rows are over the full set of 360 edits"):
        assert words in table["note"]


def test_a_run_over_other_data_stands_in_no_column(home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr("weft.benchmarks.risebench.data.PUBLISHED_RECORDS", 360)

    def name_section(session: Session) -> None:
        session.names["suite"] = "own"

    data = write_rise(tmp_path / "own", [rise_record(5)])
    judge = Saying(lambda question: {"reasoning": "so", "score": 5})
    other = tmp_path / "other"
    weft.evaluate("risebench", data=data, model=Painter(), judge=judge, home=other, on_start=name_section)
    table = json.loads(report(other, "--published", "weave-4", "--format", "json"))["tables"][0]
    assert all(row["kind"] == "published" for row in table["rows"])
    assert "painter: own is not on the paper's data" in table["note"]


@pytest.mark.parametrize("format", ["text", "md", "latex", "csv", "html"])
def test_every_format_has_both_papers_and_no_run_is_needed(
    tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    text = report(tmp_path / "none", "--published", "weave-3,weaver-3", "--format", format)
    if format == "html":
        text = (tmp_path / "reports" / "papers.html").read_text()
    assert "6.42" in text and "5.57" in text and "Wan-Weaver" in text


def test_two_papers_columns_are_never_one():
    weave, weaver = (build(name).published_rows for name in ("weave-3", "weaver-3"))
    assert next(row for row in weave if row.name == "OmniGen2").cells["Avg"].value == 5.57
    assert next(row for row in weaver if row.name == "OmniGen2").cells["GEdit-EN"].value == 6.42
    assert "the two papers' columns are not one" in build("weaver-3").note
    assert "+3.6%" in build("weave-3").note and "looks like a slip" in build("weaver-3").note


def test_rewritten_prompts_are_a_column_of_their_own():
    rows = {row.name: row.cells for row in build("weaver-3").published_rows}
    assert (rows["Bagel"]["GenEval"].value, rows["Bagel"]["GenEval, rewritten"].value) == (None, 0.88)
    assert (rows["Wan-Weaver"]["GenEval"].value, rows["Wan-Weaver"]["GenEval, rewritten"].value) == (0.89, None)


def test_two_tools_of_one_task_are_two_rows():
    table = build("weave-4", imported("mmmu_val", 50.67, "lmms-eval"), imported("MMMU_DEV_VAL", 54.78, "VLMEvalKit"))
    first, second = table.run_rows
    assert (first.cells["MMMU"].value, second.cells["MMMU"].value) == (50.67, 54.78)
    assert second.label == "mine, MMMU_DEV_VAL (VLMEvalKit)" and second.cells["MMB"].value is None
    assert "MMMU, mine: imported; lmms-eval 1, task mmmu_val" in table.note


def test_an_unknown_paper_is_named_with_those_that_there_are():
    with pytest.raises(UserError, match="there is no 'weave-5'; there is weave-3, weave-4, weaver-3"):
        parse_papers("weave-3, weave-5")


def test_every_column_that_a_benchmark_has_finds_it():
    for card in list_papers().values():
        for column in card.columns:
            assert bool(column.benchmark) != bool(column.tasks)
            if column.benchmark:
                tables = load_benchmark(column.benchmark).tables([])
                assert any(column.table in table.title and column.column in table.columns for table in tables), column


def test_every_number_is_the_one_that_the_paper_prints():
    if not SPEC.is_file():
        pytest.skip("the papers' rows as they were read are not at hand")
    papers = json.loads(SPEC.read_text())
    printed: dict[str, dict[str, dict[str, float | None]]] = {}
    for row in papers["weave_table_3"]["rows"]:
        printed.setdefault("weave-3", {})[row["model"]] = {**row["scores"], "Avg": row["avg"]}
    for row in papers["weave_table_4"]["rows"]:
        numbers = {**row["understanding"], **row["geneval"], **row["risebench"], "GenEval": row["geneval_overall"]}
        printed.setdefault("weave-4", {})[row["model"]] = numbers
    for row in papers["weaver_table_3"]["rows"]:
        printed.setdefault("weaver-3", {})[row["model"]] = row["scores"]
    for name, rows in printed.items():
        ours = build(name).published_rows
        assert len(ours) == len(rows)
        for row, numbers in zip(ours, rows.values(), strict=True):
            assert rows.get(OURS.get(row.name, row.name), numbers) == numbers, row.name
            cells = {column: cell.value for column, cell in row.cells.items()}
            rewritten = cells.pop("GenEval, rewritten", None)
            if rewritten is not None:
                cells["GenEval"] = rewritten
            assert cells == numbers, (name, row.name)
