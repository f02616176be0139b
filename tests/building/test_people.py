"""People look at a sample of what was built: its references are rated like the outputs of a model."""

import csv
import io
from pathlib import Path

import pytest
from typer.testing import CliRunner

from weft.cli.app import app

MODELS = "--writer tabletop/oracle --painter tabletop/oracle --checker tabletop/exact"


def weft(words: str) -> str:
    done = CliRunner().invoke(app, words.split(), env={"COLUMNS": "200"})
    assert done.exit_code == 0, (done.output, done.exception)
    return done.stdout


def test_people_say_what_share_of_a_built_dataset_is_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    weft(f"build tabletop-recall --seeds 6 {MODELS} --out built")
    weft("run weave --data built --model reference --judge constant/max --no-preflight")
    lines = ["sample,turn,metric,annotator,value"]
    lines += [f"{sample},{turn},key_point,ann,{int(turn < 3)}" for sample in range(1, 7) for turn in (1, 2, 3, 4)]
    (tmp_path / "people.csv").write_text("\n".join(lines))
    assert "24 annotations, 24 new here" in weft("rate last --import people.csv")
    rows = [row for row in csv.DictReader(io.StringIO(weft("agree last --format csv"))) if row["row"] == "key_point"]
    values = {row["column"]: row["value"] for row in rows}
    assert (values["n"], values["dialogues"], values["judge"], values["people"]) == ("24", "6", "1.000", "0.500")
    (people,) = [row for row in rows if row["column"] == "people"]
    assert 0 <= float(people["low"]) <= 0.5 <= float(people["high"]) <= 1
