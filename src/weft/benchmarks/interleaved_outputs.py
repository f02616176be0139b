"""Documents in files: lists of `{"text": ...}` and `{"image": ...}`, in records of a dataset or made elsewhere.

Made elsewhere they are <model>/<id>.json = {"output": [{"text": ...}, {"image": "<id>-o-0.png"}, ...]}, pictures beside
it. Records as OpenING keeps them (`conversations`, with `output`; the last part of a picture's path) are read as well.
A missing file is the model's; one that cannot be read, or names a picture that is not there, leaves its prompt
unscored."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from weft.benchmarks.outputs import OutputFolder
from weft.benchmarks.records import Records
from weft.errors import UserError
from weft.models.endpoint import NO_RETRY, CallError
from weft.store.blobs import Blobs
from weft.types import Modality, Part, Text
from weft.untrusted import dict_or_empty, read_json_file

# of a record, of a document
MOST_PARTS = 400
MOST_MADE = 1000


class InterleavedOutputs(OutputFolder):
    subfolders = ("",)

    def __init__(self, root: Path, blobs: Blobs) -> None:
        super().__init__(root, blobs)
        if not any(self._root.glob("*.json")) and not any(self._root.glob("*.jsonl")):
            raise UserError(
                f"{root} has no document: <id>.json with an `output` of texts and pictures is looked for, one for each prompt"
            )

    def find(self, name: str) -> Path | None:
        return super().find(name) or super().find(f"{name}l")  # some of the released outputs are called .jsonl

    def read(self, path: Path, kind: Modality) -> tuple[Part, ...]:
        try:
            entries = find_output(read_json_file(path))
        except UserError as error:
            raise CallError(str(error), NO_RETRY) from None
        if entries is None or len(entries) > MOST_MADE:
            raise CallError(
                f"{path} has no `output` that is a list of at most {MOST_MADE} texts and pictures", NO_RETRY
            )
        made: list[Part] = []
        for at, entry in enumerate(entries):
            if isinstance(entry, str):
                one: Mapping[str, Any] = {"text": entry}
            else:
                one = dict_or_empty(entry)
            text = one.get("text")
            image = one.get("image")
            if (text is None and image is None) or not all(
                value is None or isinstance(value, str) for value in (text, image)
            ):
                raise CallError(
                    f"{path}: output[{at}] must be a text, or have `text` and `image`, each a text or null", NO_RETRY
                )
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
                return self.check_inside(place)
        raise CallError(f"{path} names a picture that is not there: {name[:200]}", NO_RETRY)


def find_output(record: Any) -> list[Any] | None:
    """The output of a record of ours, or of one that keeps a conversation."""
    facts = dict_or_empty(record)
    turns: Any = facts.get("conversations")
    if "output" not in facts and isinstance(turns, list):
        none: dict[str, Any] = {}
        facts = next((dict_or_empty(turn) for turn in cast(list[Any], turns) if "output" in dict_or_empty(turn)), none)
    found = facts.get("output")
    if isinstance(found, list):
        return cast(list[Any], found)
    return None


def read_parts(
    records: Records, name: str, record: Mapping[str, Any], field: str, plain: Callable[[str], str] = str
) -> tuple[Part, ...]:
    """Words and pictures of such a list, or of a plain text; of an entry with both, the words come first. `plain` makes
    words what they are to be."""
    if isinstance(record.get(field), str):
        found: Any = [record.get(field)]
    else:
        found = record.get(field)
    if not isinstance(found, list) or not found:
        records.fail(name, field, 'must be a list of {"text": ...} and {"image": ...}, or a text')
    some = cast(list[Any], found)
    if len(some) > MOST_PARTS:
        records.fail(name, field, f"has {len(some)} entries, more than {MOST_PARTS}")
    made: list[Part] = []
    for at, entry in enumerate(some):
        place = f"{field}[{at}]"
        if isinstance(entry, str):
            one: Mapping[str, Any] = {"text": entry}
        else:
            one = dict_or_empty(entry)
        if not one.get("text") and not one.get("image"):
            records.fail(name, place, "has neither text nor image")
        text = plain(records.optional_text(name, {place: one.get("text")}, place))
        made += [Text(text)] if text else []
        path = records.optional_text(name, {place: one.get("image")}, place)
        made += [records.load_image(name, place, path)] if path else []
    return tuple(made)
