"""The judge's prompts, and how they are filled. A template's slots (`[[name]]`) are filled once, all together: what is filled in is never
searched for slots, so that no text of a model or a dataset can pull in another."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from weft.errors import UserError
from weft.judges.fence import joined
from weft.judges.official_prompts import read_constants
from weft.types import Part, Text

SLOT = re.compile(r"\[\[(\w+)\]\]")


class Rubrics(Struct, frozen=True):
    """The judge's prompts by name; `source` is `weft` or where the official ones came from; `digest` goes into the manifest."""

    texts: Mapping[str, str]
    source: str
    digest: str

    @property
    def ours(self) -> bool:
        return self.source == "weft"


def read_rubrics(folder: Path, prompts: str, file: str, official: Mapping[str, str], name: str) -> Rubrics:
    """`weft` for `rubrics/*.md` in `folder`, `official:CHECKOUT` for named constants of a file of the paper's repository."""
    if prompts == "weft":
        found = sorted((folder / "rubrics").glob("*.md"))
        return rubrics_of({path.stem: path.read_text(encoding="utf-8") for path in found}, "weft")
    if not official:
        raise UserError(f"--prompts {prompts}: {name} has weft's own prompts alone")
    if not prompts.startswith("official:"):
        raise UserError(f"--prompts {prompts}: give 'weft', or 'official:DIR' with a checkout of the official repository")
    constants = read_constants(Path(prompts.removeprefix("official:")), file, official.values())
    return rubrics_of({metric: constants[constant] for metric, constant in official.items()}, f"official {file}")


def rubrics_of(texts: Mapping[str, str], source: str) -> Rubrics:
    return Rubrics(texts, source, hashlib.sha256(msgspec.json.encode(texts, order="deterministic")).hexdigest())


def filled(text: str, slots: Mapping[str, Sequence[Part]]) -> tuple[Part, ...]:
    """A template with its slots filled; every slot that it has must be given."""
    parts: list[Part] = []
    end = 0
    for match in SLOT.finditer(text):
        parts += [Text(text[end : match.start()]), *slots[match.group(1)]]
        end = match.end()
    return joined([*parts, Text(text[end:])])


def object_schema(**properties: Any) -> dict[str, Any]:
    """The schema of an object with exactly these keys."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
