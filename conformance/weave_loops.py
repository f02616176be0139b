"""Runs one of WEAVE's released inference loops, in the interpreter that has its packages, with a model that asks our
server instead.

    python weave_loops.py CHECKOUT ROOT SAVE LOOP MODE ADDRESS

ROOT holds test/test.json; LOOP is bagel, step1x or gpt; MODE the loader's history mode, or the chat's way of showing
pictures. The loop is taken from the checkout's file, from the line where the model has been loaded; its placeholders
are filled in."""

import base64
import io
import os
import re
import sys
import types
from pathlib import Path

import requests
from PIL import Image
from tqdm import tqdm

checkout, root, save, loop, mode, address = sys.argv[1:]
infer = Path(checkout) / "infer"


class Bytes:
    """A picture whose bytes are kept whatever its file is called: a JPEG of it would not be the picture that was
    sent."""

    def __init__(self, data):
        self.data = data

    def save(self, path):
        Path(path).write_bytes(self.data)


def ask(parts, kind):
    content = []
    for part in parts:
        if isinstance(part, str):
            content.append({"type": "text", "text": part})
            continue
        out = io.BytesIO()
        part.save(out, "PNG", compress_level=1)
        content.append(
            {
                "type": "image_url",
                "image_url": {"url": "data:image/png;base64," + base64.b64encode(out.getvalue()).decode()},
            }
        )
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": content}],
        **({"modalities": ["image"]} if kind == "image" else {}),
    }
    message = requests.post(address, json=body).json()["choices"][0]["message"]
    if kind == "text":
        return message["content"]
    return Bytes(base64.b64decode(message["images"][0]["image_url"]["url"].partition(",")[2]))


class Inferencer:
    def interleave_call(self, parts, understanding_output=False, **_):
        return {"text": ask(parts, "text")} if understanding_output else {"image": ask(parts, "image")}


class Generator:
    def manual_seed(self, _):
        return self


def pipe(image, prompt, **_):
    return types.SimpleNamespace(images=[ask([image, prompt], "image")])


loader = types.ModuleType("loader")
exec(
    compile((infer / "loader.py").read_text().replace("<YOUR_DATA_PATH>", repr(root)), "loader.py", "exec"),
    loader.__dict__,
)
sys.modules["loader"] = loader
if loop == "gpt":
    source = (infer / "case_gpt.py").read_text()
    for name, value in (("<YOUR MODEL>", "m"), ("<YOUR KEY>", "k"), ("<YOUR ENDPOINT>", address)):
        source = source.replace(name, repr(value))
    source = source.replace("TEST_MODE == 'yes-first'\n", "TEST_MODE == 'yes-first':\n")
    source, changed = re.subn(r"TEST_MODE = '[a-z-]+'", f"TEST_MODE = {mode!r}", source)
else:
    source = (infer / f"case_{loop}.py").read_text()
    source = source[source.index("SAVE_DIR =") :]
    source, changed = re.subn(r"incontext_mode='[a-z]+'", f"incontext_mode={mode!r}", source)
source, placed = re.subn(r'SAVE_DIR = "[^"]+"', f"SAVE_DIR = {save!r}", source)
if (changed, placed) != (1, 1):
    sys.exit(f"the loop in case_{loop}.py is not the one that this script knows")
names = {
    "__name__": "__main__", "os": os, "tqdm": tqdm, "Image": Image, "WeaveBench": loader.WeaveBench, "img_hyper": {}, "txt_hyper": {},
    "concatenate_image": loader.concatenate_image, "inferencer": Inferencer(), "pipe": pipe, "enable_thinking_mode": False,
    "enable_reflection_mode": False, "torch": types.SimpleNamespace(Generator=Generator),
}  # fmt: skip
exec(compile(source, f"case_{loop}.py", "exec"), names)
