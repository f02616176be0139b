"""Outputs made elsewhere in WEAVE's layout: what is one, and what is not."""

from pathlib import Path

import pytest

from weft.benchmarks.weave.outputs import WeaveOutputs
from weft.errors import UserError
from weft.store.blobs import Blobs


def test_a_folder_of_other_texts_has_no_outputs(tmp_path: Path):
    folder = tmp_path / "outputs"
    folder.mkdir()
    (folder / "readme.txt").write_text("hello")
    with pytest.raises(UserError, match="has no output of a model: expected images"):
        WeaveOutputs(folder, Blobs(tmp_path / "blobs"))
    (folder / "table1_2.txt").write_text("red")
    assert WeaveOutputs(folder, Blobs(tmp_path / "blobs")).name == "folder/outputs"
