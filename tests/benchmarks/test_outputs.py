"""Outputs made elsewhere: a folder without a single one is a mistake to tell, and no run of zeros."""

from pathlib import Path

import pytest
from PIL import Image as Pil

import weft
from server import drawn
from weft.benchmarks.base import load_benchmark
from weft.errors import UserError
from weft.store.blobs import Blobs
from weft.workspace import open_journal

EXPECTED = {  # what is looked for, as an error names it
    "weave": r"images under the names of the dataset's, or <stem of the first image>_<turn>\.txt",
    "imug": r"question_<id>/ with result\.json",
    "rover-ig": r"gen_<id>\.png or gen_<id>\.txt",
    "rover-tg": r"gen_<id>\.png or gen_<id>\.txt",
    "planviz": r"<list>/<index>\.png.*or <id>\.png",
    "weaverbench": r"<id>\.json",
    "opening": r"<id>\.json",
}


@pytest.mark.parametrize("benchmark", EXPECTED)
def test_a_folder_without_an_output_is_refused_with_the_names_that_are_looked_for(benchmark: str, tmp_path: Path):
    outputs = tmp_path / "outputs"
    (outputs / "imgs").mkdir(parents=True)
    (outputs / "README.md").write_text("nothing here yet")
    with pytest.raises(UserError, match=f"no output of a model: expected .*{EXPECTED[benchmark]}"):
        weft.evaluate(benchmark, data=tmp_path, model=f"folder/{outputs}", judge="constant/5", home=tmp_path / "home")


def test_one_output_is_enough_to_score(toy: Path, tmp_path: Path):
    outputs = tmp_path / "outputs"
    outputs.mkdir()
    (outputs / "toy_2.png").write_bytes(drawn("one", 40))
    run = weft.evaluate("weave", data=toy, model=f"folder/{outputs}", judge="constant/5", home=tmp_path / "home")
    assert run.replies.outcomes["answered"] == 1
    assert [record.id for record in open_journal(tmp_path / "home").runs()] == [run.id]


@pytest.mark.parametrize(
    ("benchmark", "inside", "outside"),
    [
        ("gedit", "fullset/text_change/en/a.png", "Basic/a.png"),
        ("risebench", "images/causal_reasoning/a.png", "fullset/text_change/en/a.png"),
        ("imgedit", "UGE/a.png", "images/causal_reasoning/a.png"),
        ("imgedit", "a.png", "images/a.png"),
        ("geneval2", "00012.png", "UGE/00012.png"),
    ],
)
def test_images_of_another_layout_are_refused_and_not_zero(benchmark: str, inside: str, outside: str, tmp_path: Path):
    outputs = load_benchmark(benchmark).preparation.outputs
    for name, path in (("good", inside), ("bad", outside)):
        file = tmp_path / name / path
        file.parent.mkdir(parents=True)
        Pil.new("RGB", (4, 4)).save(file)
    outputs(tmp_path / "good", Blobs(tmp_path / "blobs"))
    if inside.count("/"):
        outputs(tmp_path / "good" / inside.partition("/")[0], Blobs(tmp_path / "blobs"))
    with pytest.raises(UserError, match="no output of a model"):
        outputs(tmp_path / "bad", Blobs(tmp_path / "blobs"))
