"""`weft relative` with CLIP-I and CLIP-T, by a tiny random CLIP in the layout that real ones are kept in."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tiny_models import clip_parts

import weft
from waiting import HANGS
from weft.models.local.weights import import_extra
from weft.report.clip_scores import CLIP_I, CLIP_T, score_run
from weft.store.blobs import Blobs
from weft.types import Image
from weft_tabletop.make import make


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random CLIP that sees 32 x 32 pixels."""
    torch: Any = pytest.importorskip("torch")
    tf: Any = pytest.importorskip("transformers")
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("clip")
    text, tokenizer = clip_parts(projection=True)
    vision = {"hidden_size": 32, "intermediate_size": 37, "num_hidden_layers": 2, "num_attention_heads": 4}
    vision |= {"image_size": 32, "patch_size": 8}
    config = tf.CLIPConfig(text_config=text.config.to_dict(), vision_config=vision, projection_dim=32)
    tf.CLIPModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    tf.CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[weft.Run]:
    place = tmp_path_factory.mktemp("runs")
    make("tabletop-planviz", place / "data", samples=12, seed=0)
    made: list[weft.Run] = []
    for error in (0.0, 0.6):
        options: dict[str, Any] = {"model_options": {"error": error}, "judge": "tabletop/exact"}
        made.append(
            weft.evaluate("planviz", data=place / "data", model="tabletop/oracle", home=place / "home", **options)
        )
    return made


def test_an_image_is_most_similar_to_itself_and_scores_are_cosines(folder: Path, runs: list[weft.Run]):
    encoder = import_extra("weft.models.local.run.clip").ClipEncoder(folder)
    blobs = Blobs(runs[0].home / "blobs")
    scores = score_run(runs[0], encoder, blobs)
    assert scores.expected[CLIP_T] == len(runs[0].turns) > scores.expected[CLIP_I] > 0, "generation has no source"
    assert len(scores.values[CLIP_I]) == scores.expected[CLIP_I]
    for values in scores.values.values():
        assert all(-1 <= value <= 1 for value in values.values())
    image = next(part for turn in runs[0].turns for part in turn.reply.parts if isinstance(part, Image))
    first, second = encoder.embed_images([blobs.decode(image)] * 2)
    assert sum(a * b for a, b in zip(first, second, strict=True)) == pytest.approx(1.0, abs=1e-5)
    assert encoder.is_cut("word " * 200) and not encoder.is_cut("a")
    assert score_run(runs[0], encoder, blobs) == scores
    other = score_run(runs[0], encoder, blobs, "reference")
    assert other.values[CLIP_I] == scores.values[CLIP_I] and other.values[CLIP_T] != scores.values[CLIP_T]


def test_the_command_prints_clip_beside_the_metrics(folder: Path, runs: list[weft.Run], tmp_path: Path):
    names = [run.id for run in runs]
    words = ["relative", *names, "--clip", str(folder), "--charts", str(tmp_path), "--home", str(runs[0].home)]
    done = subprocess.run(
        [sys.executable, "-m", "weft", *words],
        capture_output=True,
        text=True,
        timeout=HANGS,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert "| CLIP-I | CLIP-I % |" in done.stdout and "correctness % |" in done.stdout
    assert (tmp_path / "relative.pdf").read_bytes().startswith(b"%PDF")
    lost = subprocess.run(
        [sys.executable, "-m", "weft", *words[:3], "--clip", "./nowhere", "--home", str(runs[0].home)],
        capture_output=True,
        text=True,
        timeout=HANGS,
    )
    assert lost.returncode == 2 and "nowhere" in lost.stderr and lost.stderr.count("\n") == 1
