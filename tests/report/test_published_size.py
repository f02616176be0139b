"""Published rows are over the full set: wherever they stand beside a run over fewer dialogues, a note says so."""

import json
from pathlib import Path

import pytest

import weft
from weft import api

NOTE = "Published rows are over the full set of 100 dialogues, rows of this report over 4."


@pytest.fixture
def run(toy: Path, tmp_path: Path) -> weft.Run:
    return weft.evaluate("weave", data=toy, model="copy", judge="constant/5", home=tmp_path / "home")


@pytest.mark.parametrize("format", ["md", "latex", "json"])
def test_a_report_notes_how_many_dialogues_both_are_over(run: weft.Run, format: str):
    text = api.report([run], format)
    if format == "json":
        notes = [table["note"] for table in json.loads(text)["tables"]]
        text = notes[0]
    assert NOTE in " ".join(text.split())


def test_pages_notebooks_and_printed_tables_note_it_as_well(run: weft.Run, tmp_path: Path):
    page = api.write_report([run], tmp_path / "report", home=tmp_path / "home").read_text()
    assert NOTE in page
    assert NOTE in run.table()._repr_html_() and NOTE in str(run.table())


def test_tables_without_published_rows_do_not_note_it(run: weft.Run):
    assert not any(NOTE in table.note for table in run.tables() if not table.published_rows)
