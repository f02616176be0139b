"""What weft.toml and papers say of models: columns of words, and groups of rows with their own best."""

import re
from pathlib import Path
from typing import Any

import pytest

import weft
from weft import api
from weft.benchmarks import load_benchmark
from weft.errors import UserError
from weft.models.config import read_config
from weft.report.ranking import rank_cells
from weft.report.row_groups import arrange_rows
from weft.types import Cell, Row, Table
from weft_tabletop.make import make

CONFIG = """
[models."tabletop/oracle"]
about = {size = "0", open = true}

[models.mine]
use = "copy"
about = {size = "7B", open = false, note = "a|b <i>"}
"""


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[weft.Run]:
    monkeypatch.chdir(tmp_path)
    data = make("tabletop-weave", tmp_path / "data", samples=4, seed=0)
    job: dict[str, Any] = {"data": data, "judge": "tabletop/exact", "home": tmp_path / "home"}
    before = weft.evaluate("weave", model="tabletop/oracle", **job)
    (tmp_path / "weft.toml").write_text(CONFIG)
    after = weft.evaluate("weave", model="tabletop/oracle", **job)
    assert before.id == after.id, "what is said of a model is no part of its runs"
    return [after, weft.evaluate("weave", model="mine", **job)]


def test_what_is_said_of_models_are_columns_before_the_numbers(runs: list[weft.Run]):
    assert read_config()["about"]["mine"]["open"] == "no" and "about" not in read_config()["models"]["mine"]
    text = api.report(runs, "md", tables="1")
    assert "| | size | open | note | Science |" in text
    assert "| 7B | no | a\\|b &lt;i&gt; |" in text, "words are no markup"
    assert "| 0 | yes | - |" in text
    assert api.report(runs, "csv", tables="1").count(",size,") == 0, "words are no numbers of a table in CSV"


def test_rows_in_groups_have_a_best_each(runs: list[weft.Run], tmp_path: Path):
    text = api.report(runs, "latex", tables="1", row_groups="open")
    assert r"\multicolumn{8}{l}{\textit{open: yes}}" in text and r"\multicolumn{8}{l}{\textit{open: no}}" in text
    assert "*open: yes*" in api.report(runs, "md", tables="1", row_groups="open")
    page = api.write_report(runs, tmp_path / "page", home=tmp_path / "home", row_groups="open").read_text()
    assert "open: yes<" in page and "&lt;i&gt;" in page and "a|b <i>" not in page
    with pytest.raises(UserError, match="they say size, open"):
        api.report(runs, "md", row_groups="colour")


def test_on_a_page_the_headline_is_first_and_words_are_last(runs: list[weft.Run], tmp_path: Path):
    page = api.write_report(runs, tmp_path / "page", home=tmp_path / "home", by="model").read_text()
    for table in re.findall(r"<thead>.*?</thead>", page)[:2]:  # by settings, and the paper's first
        heads = [re.sub("<.*?>", "", head) for head in re.findall(r'<th scope="col">(.*?)</th>', table)]
        assert heads[0] in ("headline score", "Avg") and heads[-3:] == ["size", "open", "note"], heads


def test_ranks_are_within_a_group():
    rows = [Row(str(at), {"A": Cell(float(at))}, group="low" if at < 3 else "high") for at in range(1, 5)]
    ranks = rank_cells(Table("T", ("A",), tuple(rows)))
    assert ranks == {("2", "A"): "best", ("1", "A"): "second", ("4", "A"): "best", ("3", "A"): "second"}


@pytest.mark.parametrize(
    ("benchmark", "name", "groups"),
    [
        ("imug", "open", ["open: no", "open: yes"]),
        ("weave", "modality", ["modality: text", "modality: image", "modality: combined"]),
        ("rover-ig", "group", ["group: Closed-source", "group: Open-source"]),
    ],
)
def test_published_rows_are_grouped_as_their_paper_groups_them(benchmark: str, name: str, groups: list[str]):
    tables = arrange_rows(load_benchmark(benchmark).tables([]), [], name)
    found = {group for table in tables for group in dict.fromkeys(row.group for row in table.rows)}
    assert set(groups) <= found


def test_what_is_said_of_a_model_must_be_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "weft.toml").write_text('[models.mine]\nuse = "copy"\nabout = "7B"\n')
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="about: write a table"):
        read_config()
