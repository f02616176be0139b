"""Preference pairs: of the attempts at one image, the chosen one against each that was rejected. JSON lines with
paths to images, which are beside them."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from weft.building.draft import Attempt, Row
from weft.building.layouts.weave import EXTENSIONS, IMAGES, link_image
from weft.building.provenance import Describe
from weft.store.blobs import Blobs
from weft.types import Image

FILE = "pairs.jsonl"


def write_pairs(folder: Path, rows: Iterable[Row], blobs: Blobs, describe: Describe) -> int:
    """Write the pairs of all rows but those of the test part, also of rows that were dropped. Return how many."""
    count = 0
    written: set[str] = set()

    def place(image: Image) -> str:
        path = f"{IMAGES}/{image.digest[:2]}/{image.digest[:32]}.{EXTENSIONS.get(image.media_type, 'img')}"
        if path not in written:
            link_image(blobs, image, folder / path)
            written.add(path)
        return path

    with (folder / FILE).open("wb") as file:
        for row in rows:
            if row.draft is not None and row.draft.split == "test":
                continue
            for chosen, rejected in find_pairs(row.attempts):
                reasons = [f"{one.gate}: {one.reason or one.value}" for one in rejected.verdicts if not one.passed]
                pair: dict[str, Any] = {
                    "seed": row.number,
                    "item": chosen.item,
                    "prompt": chosen.prompt,
                    "shown": [place(image) for image in chosen.shown],
                    "chosen": {"image": place(_image(chosen)), "role": chosen.role},
                    "rejected": {
                        "image": place(_image(rejected)),
                        "role": rejected.role,
                        "reasons": reasons,
                    },
                }
                file.write(msgspec.json.encode(pair) + b"\n")
                count += 1
    return count


def find_pairs(attempts: Iterable[Attempt]) -> Iterator[tuple[Attempt, Attempt]]:
    """Yield the chosen attempt at each item with each one that has another image and was rejected by a gate."""
    by_item: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        by_item.setdefault(attempt.item, []).append(attempt)
    for tried in by_item.values():
        for chosen in (attempt for attempt in tried if attempt.chosen):
            for other in tried:
                if other.image is not None and not other.passed and other.image != chosen.image:
                    yield chosen, other


def _image(attempt: Attempt) -> Image:
    assert attempt.image is not None
    return attempt.image
