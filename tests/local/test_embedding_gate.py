"""The gate on embeddings, with tiny random weights: an image that comes back as it was is rejected, another is not."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tiny_models import clip_parts, seeded

from weft.building.build import run_build
from weft.building.parts import read_rows
from weft.building.request import BuildRequest
from weft.store.journal import Journal

MODELS = {"writer": "tabletop/oracle", "painter": "tabletop/oracle", "editor": "tabletop/faulty"}


def make_weights(kind: str, folder: Path) -> Path:
    tf: Any = pytest.importorskip("transformers")
    vision = {"hidden_size": 32, "intermediate_size": 37, "num_hidden_layers": 2, "num_attention_heads": 4}
    vision |= {"image_size": 32, "patch_size": 8}
    size = {"height": 32, "width": 32}
    with seeded():
        if kind == "clip":
            text, _ = clip_parts(projection=True)
            config = tf.CLIPConfig(text_config=text.config.to_dict(), vision_config=vision, projection_dim=32)
            tf.CLIPModel(config).save_pretrained(folder)
            tf.CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size=size).save_pretrained(folder)
        else:
            text = {"hidden_size": 32, "intermediate_size": 37, "num_hidden_layers": 1, "num_attention_heads": 4}
            tf.SiglipModel(tf.SiglipConfig(text_config=text, vision_config=vision)).save_pretrained(folder)
            tf.SiglipImageProcessorPil(size=size).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("kind", ["clip", "siglip"])
def test_what_comes_back_unedited_is_found_and_no_image_is_opened_twice(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
):
    options = {"gates": "pixels", "least_change": 0, "mends": 0, "embedder": str(make_weights(kind, tmp_path / kind))}
    options["most_similar"] = 0.999999
    faults = {"editor.rate": "0.6"}
    request = BuildRequest("tabletop-fusion", tmp_path / "out", MODELS, 12, options=options, model_options=faults)
    assert asyncio.run(run_build(request)).reason is None
    rows = list(read_rows(tmp_path / "out"))
    attempts = [attempt for row in rows for attempt in row.attempts if attempt.shown and attempt.image is not None]
    verdicts = {
        (attempt.image in attempt.shown, verdict.passed)
        for attempt in attempts
        for verdict in attempt.verdicts
        if verdict.gate == "embedding"
    }
    assert verdicts == {(True, False), (False, True)}
    journal = Journal(tmp_path / "out" / "journal.sqlite", readonly=True)
    try:
        (kept,) = journal._rows("SELECT count(*) FROM features WHERE kind = 'embedding'")
    finally:
        journal.close()
    assert kept[0] >= len({attempt.image for attempt in attempts if attempt.verdicts[-1].gate == "embedding"})
    for file in (tmp_path / "out" / "parts").iterdir():
        file.unlink()
    monkeypatch.setattr("weft.building.features._compute", lambda *_: pytest.fail("an image was opened again"))
    assert asyncio.run(run_build(request)).reason is None
    assert list(read_rows(tmp_path / "out")) == rows
