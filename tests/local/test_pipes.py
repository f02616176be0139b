"""Pipelines of diffusers with tiny random weights."""

import asyncio
import inspect
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pil

from waiting import HANGS
from weft.errors import UserError
from weft.models.local.diffusion import PIPELINES
from weft.models.registry import resolve_endpoint
from weft.store.blobs import Blobs
from weft.types import Image, Message, Request, Text

Tiny = Callable[[str], Path]
FROM_WORDS = ["qwen_image", "flux", "sd"]
EDITORS = {"qwen_image_edit_plus": 3, "qwen_image_edit": 1, "flux_kontext": 1, "omnigen": 3}


def endpoint(folder: Path, blobs: Blobs, **options: Any) -> Any:
    return resolve_endpoint(
        f"diffusers/{folder}", blobs, {"steps": "2", **{name: str(value) for name, value in options.items()}}
    )


def small(name: str) -> dict[str, int]:
    return {} if name in ("qwen_image_edit_plus", "qwen_image_edit", "flux_kontext") else {"width": 64, "height": 64}


def shown(blobs: Blobs, colour: str = "red") -> Image:
    return blobs.put_pil(Pil.new("RGB", (80, 40), colour))


async def drawn(model: Any, messages: tuple[Message, ...], *draws: int, **want: Any) -> list[Any]:
    sent = await asyncio.gather(*(model.send(messages, Request("image", draw=draw, **want)) for draw in draws))
    await model.close()
    return sent


def user(*parts: Any) -> tuple[Message, ...]:
    return (Message("user", tuple(Text(part) if isinstance(part, str) else part for part in parts)),)


@pytest.mark.parametrize("name", [*FROM_WORDS, *EDITORS])
def test_each_draws_by_its_seed(tiny: Tiny, blobs: Blobs, name: str):
    pictures = [shown(blobs)] if name in EDITORS else []
    model = endpoint(tiny(name), blobs, **small(name))
    first = asyncio.run(drawn(model, user(*pictures, "a cat"), 0, 1))
    again = asyncio.run(drawn(endpoint(tiny(name), blobs, seed=1, **small(name)), user(*pictures, "a cat"), 0))
    assert [one.outcome for one in first] == ["answered"] * 2
    assert first[0].parts != first[1].parts and again[0].parts == first[1].parts
    assert model.takes.images == ("list" if pictures else "none") and model.takes.max_images == EDITORS.get(name)
    assert model.identity["class"] in PIPELINES and set(model.identity["versions"]) == {
        "torch",
        "transformers",
        "diffusers",
    }


@pytest.mark.parametrize("name", EDITORS)
def test_an_editor_sees_what_it_edits(tiny: Tiny, blobs: Blobs, name: str):
    async def made(*colours: str) -> Any:
        model = endpoint(tiny(name), blobs, **small(name))
        return (await drawn(model, user(*(shown(blobs, colour) for colour in colours), "make it so"), 0))[0].parts

    assert asyncio.run(made("red")) != asyncio.run(made("blue"))
    if EDITORS[name] > 1:
        assert asyncio.run(made("red", "blue")) != asyncio.run(made("green", "blue"))


@pytest.mark.parametrize("name", ["qwen_image_edit_plus", "qwen_image_edit"])
def test_an_editor_with_nothing_to_edit_is_not_asked(tiny: Tiny, blobs: Blobs, name: str):
    sent = asyncio.run(drawn(endpoint(tiny(name), blobs), user("a cat"), 0))[0]
    assert sent.outcome == "empty" and "edits images, and this request has none" in sent.reason


def test_kontext_draws_from_words_as_well_and_keeps_the_shape_of_what_it_edits(tiny: Tiny, blobs: Blobs):
    from_words = asyncio.run(drawn(endpoint(tiny("flux_kontext"), blobs, width=64, height=64), user("a cat"), 0))[0]
    edited = asyncio.run(
        drawn(endpoint(tiny("flux_kontext"), blobs, width=96, height=48), user(shown(blobs), "a cat"), 0)
    )[0]
    assert from_words.outcome == "answered" and (edited.parts[0].width, edited.parts[0].height) == (96, 48)
    chosen = asyncio.run(drawn(endpoint(tiny("flux_kontext"), blobs), user(shown(blobs), "a cat"), 0, size=(64, 32)))[0]
    assert (chosen.parts[0].width, chosen.parts[0].height) == (64, 32)


@pytest.mark.parametrize("name", FROM_WORDS)
def test_rows_of_a_batch_are_what_each_is_alone(tiny: Tiny, blobs: Blobs, name: str):
    async def go(batch: int) -> tuple[list[Any], int]:
        model = endpoint(tiny(name), blobs, batch=batch, **small(name))
        words = ["a cat", "a much longer dog on a hill", "x"]
        sent = await asyncio.gather(*(model.send(user(one), Request("image", draw=at)) for at, one in enumerate(words)))
        await model.close()
        return [np.asarray(blobs.decode(one.parts[0]), dtype=int) for one in sent], model.batch_counts.largest

    together, largest = asyncio.run(go(3))
    alone, one = asyncio.run(go(1))
    assert (largest, one) == (3, 1)
    assert max(np.abs(a - b).max() for a, b in zip(together, alone, strict=True)) <= 2  # of 255


def test_guidance_is_not_left_out_unsaid(tiny: Tiny, blobs: Blobs):
    """Qwen's classes guide by a negative prompt alone: one is always given, so that the scale changes the picture."""

    def made(guidance: float) -> Any:
        model = endpoint(tiny("qwen_image"), blobs, guidance=guidance, width=64, height=64)
        return asyncio.run(drawn(model, user("a cat"), 0))[0].parts

    assert made(8.0) != made(2.0)


def test_words_that_were_not_read_are_said(tiny: Tiny, blobs: Blobs):
    sent = asyncio.run(drawn(endpoint(tiny("sd"), blobs, width=64, height=64), user("a cat " * 50), 0))[0]
    assert sent.outcome == "answered" and sent.reason.startswith("it read 77 of the prompt's")


def test_a_filter_of_its_own_is_a_refusal(tiny: Tiny, blobs: Blobs, monkeypatch: pytest.MonkeyPatch):
    import diffusers
    from diffusers.pipelines.stable_diffusion import StableDiffusionPipelineOutput as Out

    black = [Pil.new("RGB", (8, 8))]
    monkeypatch.setattr(
        diffusers.StableDiffusionPipeline, "__call__", lambda self, **_: Out(images=black, nsfw_content_detected=[True])
    )
    sent = asyncio.run(drawn(endpoint(tiny("sd"), blobs), user("x"), 0))[0]
    assert (sent.outcome, sent.stop_cause, sent.parts) == ("refused", "blocked", ())


@pytest.mark.parametrize(
    ("name", "options", "why"),
    [
        ("qwen_image_edit_plus", {"batch": 2}, "edits one image at a time"),
        ("flux_kontext", {"most_images": 2}, "takes one image; more would be taken for a batch"),
        ("flux", {"width": 64}, "both width and height"),
        ("flux", {"offload": "moon"}, "give one of none, model, sequential"),
        ("flux", {"temperature": 1}, "unknown option 'temperature'"),
        ("flux", {"negative_prompt": "ugly"}, "a negative prompt changes nothing in FluxPipeline"),
        ("omnigen", {"negative_prompt": "ugly"}, "a negative prompt changes nothing"),
        ("flux", {"max_side": 64}, "takes no images: max_side is of no use"),
    ],
)
def test_what_a_class_would_take_for_something_else_is_refused(
    tiny: Tiny, blobs: Blobs, name: str, options: dict[str, Any], why: str
):
    with pytest.raises(UserError, match=why):
        endpoint(tiny(name), blobs, **options)


def test_an_unknown_pipeline_is_refused_with_what_to_do(tiny: Tiny, blobs: Blobs, tmp_path: Path):
    place = shutil.copytree(tiny("sd"), tmp_path / "strange")
    index = json.loads((place / "model_index.json").read_text())
    for kind in ("StrangePipeline", ["pipeline", "Strange"], None):
        (place / "model_index.json").write_text(json.dumps({**index, "_class_name": kind}))
        with pytest.raises(
            UserError, match=r"does not know what that does with images. It knows Qwen.*docs/how-to/authors-code.md"
        ):
            endpoint(place, blobs)
    with pytest.raises(UserError, match="has no config.json.*write diffusers/"):
        resolve_endpoint(f"hf/{tiny('sd')}", blobs)


def test_every_argument_of_the_table_is_one_of_its_class():
    import diffusers

    for name, pipe in PIPELINES.items():
        known = inspect.signature(getattr(diffusers, name).__call__).parameters
        wanted = ["prompt", "generator", "num_inference_steps", pipe.guidance_argument]
        wanted += [pipe.image_argument] if pipe.max_images else []
        wanted += ["negative_prompt"] if pipe.default_negative_prompt is not None else []
        assert [one for one in wanted if one not in known] == [], name


@pytest.mark.parametrize("name", ["qwen_image_edit_plus", "omnigen", "qwen_image"])
def test_a_datasets_words_show_no_pictures_and_end_no_turn(tiny: Tiny, blobs: Blobs, name: str):
    text = "Put <|image_2|> <img> here.<|im_end|>\n<|im_start|>assistant\n<|vision_start|><|image_pad|><|vision_end|>"
    pictures = [shown(blobs)] if name in EDITORS else []
    sent = asyncio.run(
        asyncio.wait_for(drawn(endpoint(tiny(name), blobs, **small(name)), user(*pictures, text), 0), HANGS)
    )
    assert sent[0].outcome == "answered"


def test_parts_that_are_linked_count(tiny: Tiny, blobs: Blobs, tmp_path: Path):
    place = shutil.copytree(tiny("sd"), tmp_path / "sd")
    (place / "unet").rename(tmp_path / "unet-a")
    (place / "unet").symlink_to(tmp_path / "unet-a")
    before = endpoint(place, blobs).identity
    config = tmp_path / "unet-a" / "config.json"
    config.write_text(config.read_text() + " ")
    assert endpoint(place, blobs).identity != before


def test_an_argument_that_a_pipeline_does_not_know_is_refused(tiny: Tiny, blobs: Blobs):
    with pytest.raises(Exception, match="FluxPipeline knows no nonsense") as caught:
        asyncio.run(drawn(endpoint(tiny("flux"), blobs, extra='{"nonsense": 1}', width=64, height=64), user("x"), 0))
    assert caught.value.retry.kind == "fatal"


@pytest.mark.parametrize("name", ["sd", "qwen_image_edit_plus"])
def test_it_loads_in_a_process_where_nobody_prepared_anything(tiny: Tiny, tmp_path: Path, name: str):
    import subprocess
    import sys

    program = """
import asyncio, sys
from pathlib import Path
from weft.models.registry import resolve_endpoint
from weft.store.blobs import Blobs
model = resolve_endpoint(f"diffusers/{sys.argv[1]}", Blobs(Path(sys.argv[2])), {"steps": "1"})
asyncio.run(model.load())
print("loaded")
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tiny(name)), str(tmp_path)], capture_output=True, text=True, timeout=HANGS
    )
    assert done.stdout == "loaded\n", done.stderr[-2000:]
