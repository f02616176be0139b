"""The files of a dataset: an image for a scene, and JSON lines."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from weft.store.images import encode_png
from weft_tabletop.world.scenes import Scene, draw


def write_image(file: Path, scene: Scene) -> None:
    """Draw a scene into a PNG file."""
    file.write_bytes(encode_png(draw(scene)))


def write_named_image(out: Path, name: str, scene: Scene) -> str:
    """Draw a scene into the dataset's `images/`, and return its path in the dataset."""
    path = f"images/{name}.png"
    write_image(out / path, scene)
    return path


def write_lines(file: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write records as JSON, one a line."""
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
