"""Models for builds. They count their calls in a file, which outlives a process that is killed."""

import contextlib
import hashlib
import json
import os
import signal
from pathlib import Path
from typing import Any

from PIL import Image as Pil

from weft.models.endpoint import Endpoint
from weft.types import Gives, Takes

LOG = "WEFT_TEST_CALLS"  # a file: one line for each call
DIE_AT = "WEFT_TEST_DIE_AT"  # the call at which the process kills itself


def _note(what: str) -> None:
    path = Path(os.environ[LOG])
    with path.open("a") as file:
        file.write(what + "\n")
    die_at = int(os.environ.get(DIE_AT, "0"))
    if die_at and len(path.read_text().splitlines()) >= die_at:
        with contextlib.suppress(FileExistsError):  # one process dies, and only once
            path.with_suffix(".died").touch(exist_ok=False)
            os.kill(os.getpid(), signal.SIGKILL)


def _text(messages: Any) -> str:
    return "".join(part for part in messages[-1][1] if isinstance(part, str))


class Writer:
    version = "1"

    def __call__(self, messages: Any, want: str) -> str:
        text = _text(messages)
        _note(f"writer {text.splitlines()[0]}")
        return json.dumps({"name": hashlib.sha256(text.encode()).hexdigest()[:6]})


class Painter:
    version = "1"

    def __call__(self, messages: Any, want: str) -> Any:
        text = _text(messages)
        _note(f"painter {text}")
        colour = tuple(hashlib.sha256(text.encode()).digest()[:3])
        return Pil.new("RGB", (16, 16), colour)


class TextOnly(Endpoint):
    gives = Gives(image=False, interleaved=False)


class Blind(Endpoint):
    takes = Takes(images="none")


text_only = TextOnly("text-only", version=1)
blind = Blind("blind", version=1)
