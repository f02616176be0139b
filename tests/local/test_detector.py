"""The judge `detector/...`: how instances are scored, boxed and coloured, and GenEval by tiny random weights."""

from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pil
from tiny_models import clip_parts, seeded

import weft
from edits import Painter
from weft.judges.detections import COCO_CLASSES, COLORS
from weft.models.local.weights import import_extra
from weft_tabletop.make.files import write_lines

SIDE = 64


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A random Mask2Former of 80 classes, and a random CLIP."""
    tf: Any = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("weights")
    swin = {"image_size": SIDE, "embed_dim": 8, "depths": [1, 1, 1, 1], "num_heads": [1, 1, 2, 2], "window_size": 2}
    swin |= {"out_features": ["stage1", "stage2", "stage3", "stage4"]}
    sizes = {"hidden_dim": 32, "feature_size": 32, "mask_feature_size": 32, "num_attention_heads": 2}
    sizes |= {"dim_feedforward": 16, "encoder_feedforward_dim": 16, "encoder_layers": 1, "decoder_layers": 2}
    names = dict(enumerate(COCO_CLASSES))
    labels = {"num_queries": 6, "id2label": names, "label2id": {name: at for at, name in names.items()}}
    config = tf.Mask2FormerConfig(backbone_config=tf.SwinConfig(**swin), **sizes, **labels)
    with seeded():
        tf.Mask2FormerForUniversalSegmentation(config).save_pretrained(folder / "detector")
        processor = tf.Mask2FormerImageProcessorPil(size={"shortest_edge": SIDE, "longest_edge": 2 * SIDE})
        processor.save_pretrained(folder / "detector")
        text, tokenizer = clip_parts(projection=True)
        vision = {"hidden_size": 32, "intermediate_size": 37, "num_hidden_layers": 2, "num_attention_heads": 4}
        vision |= {"image_size": 32, "patch_size": 8}
        clip = tf.CLIPConfig(text_config=text.config.to_dict(), vision_config=vision, projection_dim=32)
        tf.CLIPModel(clip).save_pretrained(folder / "clip")
        tokenizer.save_pretrained(folder / "clip")
        size = {"height": 32, "width": 32}
        tf.CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size=size).save_pretrained(folder / "clip")
    return {"detector": folder / "detector", "clip": folder / "clip"}


@pytest.fixture
def run() -> Any:
    return import_extra("weft.models.local.run.detect")


def write_prompts(folder: Path, *names: str) -> Path:
    folder.mkdir()
    prompts: list[dict[str, Any]] = []
    for number, name in enumerate(names):
        rule = {"class": name, "count": 1, "color": "red"}
        prompts.append({"tag": "colors", "include": [rule], "prompt": f"a photo of a red {name}, number {number}"})
    write_lines(folder / "evaluation_metadata.jsonl", prompts)
    return folder


def evaluate(data: Path, home: Path, weights: dict[str, Path]) -> weft.Run:
    options = {"clip": str(weights["clip"]), "device": "cpu", "batch": 4}
    judge = f"detector/{weights['detector']}"
    return weft.evaluate("geneval", data=data, home=home, model=Painter(), judge=judge, judge_options=options)


def test_random_weights_decide_every_image(tmp_path: Path, weights: dict[str, Path], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("weft.judges.detector.MIN_CONFIDENCE", 0.0)  # random weights are sure of nothing
    found = evaluate(write_prompts(tmp_path / "data", "cat", "tv remote"), tmp_path, weights)
    assert len(found.verdicts) == 8 and all(v.value == 0 and v.by == "judge" for v in found.verdicts)
    assert all("0 of 1" in verdict.reason for verdict in found.verdicts), "none is above the threshold"
    assert found.record.manifest.judge.name.startswith("detector/")


def test_a_class_that_the_weights_do_not_know_is_unscored(tmp_path: Path, weights: dict[str, Path]):
    found = evaluate(write_prompts(tmp_path / "data", "unicorn"), tmp_path, weights)
    assert all(verdict.value is None and "'unicorn'" in verdict.reason for verdict in found.verdicts)


def test_confidence_is_the_class_times_the_mean_of_the_mask_and_the_box_holds_the_mask(run: Any):
    torch: Any = import_extra("torch")
    classes = torch.full((2, 81), -20.0)
    classes[0, 15], classes[1, 80] = 20.0, 20.0  # a cat, and nothing
    masks = torch.full((2, 8, 8), -9.0)
    masks[0, 2:4, 3:6] = 2.0
    found = run.find_instances(classes, masks, {15}, (8, 8), (8, 8), (8, 8))
    assert {label for label, *_ in found} == {15}, "no other class was wanted"
    best = found[0]
    label, box, confidence, mask = best
    assert COCO_CLASSES[label] == "cat" and box == (3.0, 2.0, 6.0, 4.0) and int(mask.sum()) == 6
    assert confidence == pytest.approx(float(torch.tensor(2.0).sigmoid()), abs=1e-4)


def test_a_mask_is_cut_to_what_the_image_takes_of_a_padded_batch(run: Any):
    torch: Any = import_extra("torch")
    mask = torch.full((8, 8), -9.0)
    mask[:4, :4] = 9.0  # the image fills the upper left quarter of the batch
    resized = run.resize_mask(mask, (32, 32), (16, 16), (100, 50))
    assert resized.shape == (100, 50) and bool((resized[:90, :40] > 0).all())


def test_an_object_is_cut_out_on_grey_and_its_colour_is_one_of_ten(run: Any, weights: dict[str, Path]):
    torch: Any = import_extra("torch")
    mask = torch.zeros(SIDE, SIDE, dtype=torch.bool)
    mask[10:20, 10:20] = True
    image = Pil.new("RGB", (SIDE, SIDE), "red")
    cut = run.cut_out(image, (8.0, 10.0, 20.0, 20.0), mask)
    assert cut.size == (12, 10) and cut.getpixel((0, 0)) == (153, 153, 153) and cut.getpixel((5, 5)) == (255, 0, 0)
    namer = run.ColorNamer(weights["clip"], COLORS, "cpu")
    (first,) = namer.name(image, [((8.0, 10.0, 20.0, 20.0), mask)], "cat")
    assert first in COLORS and namer.name(image, [((8.0, 10.0, 20.0, 20.0), mask)], "cat") == [first]


def test_images_of_several_sizes_are_one_batch(run: Any, weights: dict[str, Path]):
    detector = run.ObjectDetector(weights["detector"], "cpu")
    images = [Pil.new("RGB", size, "red") for size in ((40, 80), (90, 50))]
    every = set(range(len(COCO_CLASSES)))
    found = detector.find(images, [every, every])
    assert [len(one) for one in found] == [100, 100]
    for image, instances in zip(images, found, strict=True):
        assert all(tuple(mask.shape) == (image.height, image.width) for *_, mask in instances)
    numbers = {found[0][0][0]}
    (some, none) = detector.find(images, [numbers, set()])
    assert not none and [one[:3] for one in some] == [one[:3] for one in found[0] if one[0] in numbers]
