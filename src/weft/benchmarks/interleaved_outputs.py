"""Documents in files: lists of `{"text": ...}` and `{"image": ...}`, in records of a dataset or made elsewhere.

Made elsewhere they are <model>/<id>.json = {"output": [{"text": ...}, {"image": "<id>-o-0.png"}, ...]}, pictures beside it. Records as
OpenING keeps them (`conversations`, with `output`; the last part of a picture's path) are read as well. A missing file is the model's; one
that cannot be read, or names a picture that is not there, leaves its prompt unscored."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from weft.benchmarks.outputs import Folder
from weft.benchmarks.records import Records
from weft.errors import UserError
from weft.models.endpoint import NO, CallError
from weft.store.blobs import Blobs
from weft.types import Kind, Part, Text
from weft.untrusted import fields, json_file

MOST_PARTS, MOST_MADE = 400, 1000  # of a record, of a document


class Outputs(Folder):
    inner = ("",)

    def __init__(self, root: Path, blobs: Blobs) -> None:
        super().__init__(root, blobs)
        if not any(self._root.glob("*.json")) and not any(self._root.glob("*.jsonl")):
            raise UserError(f"{root} has no document: <id>.json with an `output` of texts and pictures is looked for, one for each prompt")

    def find(self, name: str) -> Path | None:
        return super().find(name) or super().find(f"{name}l")  # some of the released outputs are called .jsonl

    def read(self, path: Path, kind: Kind) -> tuple[Part, ...]:
        try:
            entries = output_of(json_file(path))
        except UserError as error:
            raise CallError(str(error), NO) from None
        if entries is None or len(entries) > MOST_MADE:
            raise CallError(f"{path} has no `output` that is a list of at most {MOST_MADE} texts and pictures", NO)
        made: list[Part] = []
        for at, entry in enumerate(entries):
            one: Mapping[str, Any] = {"text": entry} if isinstance(entry, str) else fields(entry)
            text, image = one.get("text"), one.get("image")
            if (text is None and image is None) or not all(value is None or isinstance(value, str) for value in (text, image)):
                raise CallError(f"{path}: output[{at}] must be a text, or have `text` and `image`, each a text or null", NO)
            made += [Text(text)] if text else []
            made += super().read(self._picture(path, image), "image") if image else ()
        return tuple(made)

    def _picture(self, path: Path, name: str) -> Path:
        """Beside the document, whatever folders its name has before it."""
        for place in (path.parent / name, path.parent / Path(name.replace("\\", "/")).name):
            try:
                there = place.is_file()
            except (OSError, ValueError):  # a name that is none
                there = False
            if there:
                return self.inside(place)
        raise CallError(f"{path} names a picture that is not there: {name[:200]}", NO)


def output_of(record: Any) -> list[Any] | None:
    """The output of a record of ours, or of one that keeps a conversation."""
    facts = fields(record)
    turns: Any = facts.get("conversations")
    if "output" not in facts and isinstance(turns, list):
        none: dict[str, Any] = {}
        facts = next((fields(turn) for turn in cast(list[Any], turns) if "output" in fields(turn)), none)
    found = facts.get("output")
    return cast(list[Any], found) if isinstance(found, list) else None


def parts_of(records: Records, name: str, record: Mapping[str, Any], field: str, plain: Callable[[str], str] = str) -> tuple[Part, ...]:
    """Words and pictures of such a list, or of a plain text; of an entry with both, the words come first. `plain` makes words what
    they are to be."""
    found: Any = [record.get(field)] if isinstance(record.get(field), str) else record.get(field)
    if not isinstance(found, list) or not found:
        records.fail(name, field, 'must be a list of {"text": ...} and {"image": ...}, or a text')
    some = cast(list[Any], found)
    if len(some) > MOST_PARTS:
        records.fail(name, field, f"has {len(some)} entries, more than {MOST_PARTS}")
    made: list[Part] = []
    for at, entry in enumerate(some):
        place = f"{field}[{at}]"
        one: Mapping[str, Any] = {"text": entry} if isinstance(entry, str) else fields(entry)
        if not one.get("text") and not one.get("image"):
            records.fail(name, place, "has neither text nor image")
        text = plain(records.text_or_none(name, {place: one.get("text")}, place))
        made += [Text(text)] if text else []
        path = records.text_or_none(name, {place: one.get("image")}, place)
        made += [records.picture(name, place, path)] if path else []
    return tuple(made)
