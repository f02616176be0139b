"""The worked example in docs/how-to/authors-code.md, as it stands, around a checkout that only pretends."""

import asyncio
import re
from pathlib import Path

import pytest

from weft.models.registry import resolve_endpoint
from weft.store.blobs import Blobs
from weft.types import Image, Message, Request, Text

CHECKOUT = '''
import torch
from PIL import Image

class Inferencer:
    """Takes what the authors' takes: texts and pictures in their order; draws from the common stream."""

    def interleave_inference(self, input_lists, think=False, understanding_output=False, num_timesteps=50, image_shapes=(64, 64)):
        for part in input_lists:
            if not isinstance(part, str):
                assert part.mode == "RGB"
                image_shapes = part.size[::-1]
        if understanding_output:
            return [" | ".join(part if isinstance(part, str) else "picture" for part in input_lists)]
        red = int(torch.randint(0, 256, (1,)))
        return [Image.new("RGB", image_shapes[::-1], (red, 0, 0))]

def load_inferencer(checkout):
    return Inferencer()
'''


def test_the_example_is_a_model(tmp_path: Path, blobs: Blobs, monkeypatch: pytest.MonkeyPatch):
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "authors-code.md").read_text()
    example = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0]
    (tmp_path / "bagel.py").write_text(example)
    (tmp_path / "Bagel").mkdir()
    (tmp_path / "Bagel" / "load.py").write_text(CHECKOUT)
    monkeypatch.setenv("BAGEL", str(tmp_path / "Bagel"))
    model = resolve_endpoint(f"{tmp_path}/bagel.py:Model", blobs)
    assert (
        model.takes.own_images == "user"
        and model.takes.max_side == 1024
        and model.identity["version"] == "7B-MoT, 50 steps"
    )

    async def go() -> None:
        from PIL import Image as Pil

        shown = blobs.put_pil(Pil.new("RGBA", (40, 20), "red"))
        dialogue = (
            Message("user", (Text("Here:"), shown, Text("What?"))),
            Message("assistant", (Text("Red."),)),
            Message("user", (Text("And now?"),)),
        )
        said = await model.send(dialogue, Request("text"))
        assert said.parts == (Text("User: | Here: | picture | What? | Assistant: | Red. | User: | And now?"),)
        drawn = [await model.send(dialogue, Request("image", draw=draw)) for draw in (0, 0, 1)]
        assert drawn[0].parts == drawn[1].parts != drawn[2].parts
        picture = drawn[0].parts[0]
        assert isinstance(picture, Image) and (picture.width, picture.height) == (40, 20)
        sized = await model.send((Message("user", (Text("Draw."),)),), Request("image", size=(96, 32)))
        assert isinstance(sized.parts[0], Image) and (sized.parts[0].width, sized.parts[0].height) == (96, 32)

    asyncio.run(go())
