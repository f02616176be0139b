"""Tables for a paper, as an author asks for them."""

import csv
import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from waiting import HANGS

WEFT = Path(sys.executable).parent / "weft"
Weft = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def weft(tmp_path: Path) -> Weft:
    def call(*words: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [WEFT, *map(str, words)], cwd=tmp_path, capture_output=True, text=True, timeout=HANGS, env=dict(os.environ)
        )

    return call


def test_one_table_of_a_run_beside_one_published_row(weft: Weft, toy: Path, tmp_path: Path):
    assert weft("run", "weave", "--data", toy, "--model", "copy", "--judge", "constant/5").returncode == 0
    words = ["report", "last", "--tables", "1", "--rows", "ours,Ovis", "--columns", "Avg,Science"]
    done = weft(*words, "--format", "latex", "--intervals", "--label", "tab:main", "--out", "main.tex")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "main.tex").read_text()
    assert text.count(r"\begin{table") == 1 and r"\label{tab:main}" in text and " & Avg & Science \\\\" in text
    assert "Ovis-U1" in text and "Bagel" not in text and r"{\scriptsize" in text and "compare with care" in text
    rows = list(csv.DictReader(io.StringIO(weft(*words, "--format", "csv").stdout)))
    assert {row["column"] for row in rows} == {"Avg", "Science"} and {row["published"] for row in rows} == {"0", "1"}
    for format in ("html", "parquet"):
        refused = weft(*words, "--format", format)
        assert refused.returncode == 2 and f"--columns is for md, latex, csv, json, not for {format}" in refused.stderr
    unknown = weft("report", "last", "--format", "md", "--tables", "9")
    assert (
        unknown.returncode == 2
        and "there is 1: WEAVEBench: Avg by class" in unknown.stderr
        and "Traceback" not in unknown.stderr
    )


def test_published_tables_can_be_chosen_from_too(weft: Weft):
    done = weft("report", "--published", "imug", "--tables", "by turn", "--columns", "T1,T6")
    assert done.returncode == 0 and "| | T1 | T6 |" in done.stdout and done.stdout.count("## ") == 1
    wrong = weft("report", "--published", "imug", "--columns", "T9")
    assert wrong.returncode == 2 and "there is no column 'T9'; there is Static Spatial Und." in wrong.stderr
    assert r"\label{tab:weft-imug-2}" in weft("report", "--published", "imug", "--format", "latex").stdout
    assert (
        "--columns" in (shown := weft("report", "--help").stdout)
        and "--intervals" in shown
        and "--rows ours,bagel" in shown
    )
