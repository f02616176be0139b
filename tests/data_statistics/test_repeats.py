"""Repeated tasks and images: planted ones are found, and what is merely similar is not taken for one."""

import hashlib
import io
import itertools
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pil
from PIL import ImageEnhance
from typer.testing import CliRunner

from weft.cli.app import app
from weft.datasets.image_hashes import ImageHashes
from weft.datasets.near_hashes import MAX_ALL_PAIRS, find_near_pairs
from weft.datasets.perceptual_hash import perceptual_hash
from weft.datasets.repeats import RepeatFinder
from weft.datasets.task_texts import TaskTexts
from weft.datasets.union_find import UnionFind
from weft.types import Image, Sample, Text, Turn

WORDS = [
    "paint",
    "the",
    "small",
    "wooden",
    "door",
    "of",
    "the",
    "old",
    "red",
    "house",
    "green",
    "and",
    "put",
    "two",
    "lanterns",
    "beside",
    "it",
    "before",
    "night",
    "falls",
]


def scene(seed: int, side: int = 256) -> Any:
    """An image with structure at every scale, another for each seed."""
    source = np.random.default_rng(seed)
    layers = np.zeros((side, side, 3))
    for size in (4, 8, 16, 64):
        noise = (source.random((size, size, 3)) * 255).astype(np.uint8)
        layers += np.asarray(Pil.fromarray(noise).resize((side, side), Pil.Resampling.BICUBIC), dtype=float) / 4
    return Pil.fromarray(layers.astype(np.uint8))


def as_jpeg(image: Any, quality: int) -> Any:
    out = io.BytesIO()
    image.save(out, "JPEG", quality=quality)
    return Pil.open(io.BytesIO(out.getvalue()))


COPIES: dict[str, Callable[[Any], Any]] = {
    "as JPEG": lambda image: as_jpeg(image, 60),
    "half as large": lambda image: image.resize((128, 128)),
    "three times as large": lambda image: image.resize((768, 768)),
    "brighter": lambda image: ImageEnhance.Brightness(image).enhance(1.15),
    "transparent nowhere": lambda image: image.convert("RGBA"),
    "of 64 colors": lambda image: image.quantize(64),
}
OTHERS: dict[str, Callable[[Any], Any]] = {
    "mirrored": lambda image: image.transpose(Pil.Transpose.FLIP_LEFT_RIGHT),
    "turned": lambda image: image.transpose(Pil.Transpose.ROTATE_90),
    "a quarter cut off": lambda image: image.crop((64, 64, 256, 256)),
}


def distance(first: Any, second: Any) -> int:
    return (perceptual_hash(first) ^ perceptual_hash(second)).bit_count()


@pytest.mark.parametrize("kind", COPIES)
def test_a_copy_of_an_image_has_nearly_its_hash(kind: str):
    found = sum(distance(scene(seed), COPIES[kind](scene(seed))) <= 4 for seed in range(20))
    assert found >= (17 if kind == "of 64 colors" else 20), "a coarse palette with dots may cost a few bits more"


@pytest.mark.parametrize("kind", OTHERS)
def test_another_view_and_another_image_have_other_hashes(kind: str):
    assert not sum(distance(scene(seed), OTHERS[kind](scene(seed))) <= 4 for seed in range(20))
    assert not sum(distance(scene(seed), scene(seed + 100)) <= 4 for seed in range(20))


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16", "I", "F"])
@pytest.mark.parametrize("size", [(1, 1), (1, 300), (300, 2), (64, 64)])
def test_every_kind_of_image_has_a_hash_and_one_without_structure_has_none(mode: str, size: tuple[int, int]):
    assert perceptual_hash(Pil.new(mode, size)) == 0


def near_pairs(hashes: list[int]) -> set[tuple[int, int]]:
    pairs = itertools.combinations(range(len(hashes)), 2)
    return {(a, b) for a, b in pairs if (hashes[a] ^ hashes[b]).bit_count() <= 4}


@pytest.mark.parametrize("count", [0, 1, 300, MAX_ALL_PAIRS + 700])
def test_all_near_hashes_are_connected_and_no_others(count: int):
    draw = random.Random(count)
    hashes = [draw.getrandbits(64) for _ in range(count)]
    for place in range(0, count, 7):  # plant neighbours at every distance from 0 to 6 bits
        flips = draw.sample(range(64), place // 7 % 7)
        hashes[place] = hashes[(place * 13 + 1) % count] ^ sum(1 << bit for bit in flips)
    found = UnionFind(count)
    pairs = list(find_near_pairs(hashes))
    assert all((hashes[a] ^ hashes[b]).bit_count() <= 4 for a, b in pairs)
    found.join_pairs(pairs)
    expected = UnionFind(count)
    expected.join_pairs(near_pairs(hashes))
    assert [found.find(item) for item in range(count)] == [expected.find(item) for item in range(count)]


def test_texts_that_differ_in_a_word_of_twenty_are_alike_and_in_four_are_not():
    texts = TaskTexts()
    long = [f"{word}{number}" for number in range(3) for word in WORDS]
    changed = [*long[:30], "blue", *long[31:]]
    other = [word if number % 12 else "blue" for number, word in enumerate(long)]
    for words in (long, changed, other, ["Paint"], ["paint!"]):
        texts.add(" ".join(words))
    assert texts.similarity(0, 1) == pytest.approx(51 / 61, abs=0.03)
    assert texts.similarity(0, 2) < 0.5
    assert texts.whole(3) == texts.whole(4) and texts.whole(0) != texts.whole(1)
    pairs = {tuple(sorted(pair)) for pair in texts.candidates([0, 1, 2], [7, 7, 7])}
    assert (0, 1) in pairs
    assert not list(texts.candidates([0, 1], [7, 8])), "other input images"


def image_of(hashes: ImageHashes, image: Any) -> Image:
    out = io.BytesIO()
    image.save(out, "PNG")
    data = out.getvalue()
    digest = hashlib.sha256(data).hexdigest()
    hashes.add(digest, data)
    return Image(digest, "image/png", image.width, image.height, len(data))


def sentence(draw: random.Random) -> str:
    return " ".join(draw.choice(WORDS) + str(draw.randrange(50)) for _ in range(24))


Plant = Callable[[str, Any], tuple[str, Any]]
PLANTED: dict[str, tuple[Plant, str]] = {  # how a task of the dataset is planted again -> whether it must be found, and as exact
    "the same": (lambda text, image: (text, image), "same"),
    "in other case and punctuation": (lambda text, image: (text.upper() + " !", image), "same"),
    "with a word more": (lambda text, image: (text + " now", image), "nearly"),
    "with its image as JPEG": (lambda text, image: (text, as_jpeg(image, 70)), "nearly"),
    "with its image scaled": (lambda text, image: (text, image.resize((160, 160))), "nearly"),
    "with another image": (lambda text, image: (text, scene(9999)), ""),
    "with other words": (lambda text, image: (" ".join(reversed(text.split())), image), ""),
}  # fmt: skip


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_task_is_found_if_words_and_images_are_alike(kind: str):
    plant, expected = PLANTED[kind]
    hashes = ImageHashes()
    finder = RepeatFinder(hashes)
    draw = random.Random(5)
    originals = [(sentence(draw), scene(seed)) for seed in range(12)]
    planted = [plant(text, image) for text, image in originals[:4]]
    for number, (text, image) in enumerate([*originals, *planted]):
        turn = Turn(0, (Text(text), image_of(hashes, image)), "text", ())
        finder.add(Sample(f"s{number}", (turn,)), ("one",))
    repeats = finder.find()
    if kind == "with another image":  # the same image in all four
        assert repeats.exact_images == 1 and repeats.same_words == 8
    found = {task.samples for task in repeats.tasks}
    if expected:
        assert found == {(f"s{number}", f"s{number + 12}") for number in range(4)}
        assert all(task.exact == (expected == "same") for task in repeats.tasks)
    else:
        assert not found


def test_images_look_alike_only_within_a_group_and_between_dialogues():
    def find(groups: tuple[str, str], *, in_one_dialogue: bool = False) -> tuple[int, int, int]:
        hashes = ImageHashes()
        finder = RepeatFinder(hashes)
        images = [image_of(hashes, scene(1)), image_of(hashes, as_jpeg(scene(1), 70))]
        dialogues = [images] if in_one_dialogue else [[image] for image in images]
        for number, of_dialogue in enumerate(dialogues):
            turn = Turn(0, (Text(f"{number} {WORDS[number:]}"),), "text", ())
            finder.add(Sample(str(number), (turn,), tuple(of_dialogue)), (groups[number],))
        repeats = finder.find()
        return repeats.images, repeats.exact_images, repeats.similar_images

    assert find(("a", "a")) == (2, 0, 1)
    assert find(("a", "b")) == (2, 0, 0)
    assert find(("a", "a"), in_one_dialogue=True) == (2, 0, 0)


def test_the_check_warns_of_a_task_that_is_there_three_times(tmp_path: Path):
    from weft.benchmarks.planviz.files import TASK_LISTS

    file = tmp_path / next(task_list.file for task_list in TASK_LISTS if task_list.task == "gen")
    file.parent.mkdir(parents=True)
    tasks = [
        {"name": f"t{number}", "prompt": " ".join(WORDS), "correctness_key_points": ["A door."]} for number in range(3)
    ]
    tasks.append({"name": "t9", "prompt": "Draw a way through the town.", "correctness_key_points": ["A way."]})
    file.write_text(json.dumps(tasks))
    result = CliRunner().invoke(app, ["data", "check", "planviz", str(tmp_path)])
    warnings = [line for line in result.output.splitlines() if "times" in line]
    assert len(warnings) == 1 and warnings[0].startswith("warning: the same task is there 3 times: ")
    assert all(f"-t{number}" in warnings[0] for number in range(3)) and "t9" not in warnings[0]
