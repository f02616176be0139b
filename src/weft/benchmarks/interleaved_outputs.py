"""Documents in files: lists of `{"text": ...}` and `{"image": ...}`, in a dataset's records or as a model's outputs.

Outputs made elsewhere are <model>/<id>.json = {"output": [{"text": ...}, {"image": "<id>-o-0.png"}, ...]}, with the
images in the same folder. OpenING's records (`conversations`, with `output`; only the last component of an image's path
counts) are read as well. A missing file is the model's fault; a file that cannot be read, or names an image that does
not exist, leaves its prompt unscored.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from weft.benchmarks.outputs import OutputFolder
from weft.benchmarks.records import Records
from weft.errors import UserError
from weft.models.endpoint import NO_RETRY, CallError
from weft.types import Modality, Part, Text
from weft.untrusted import dict_or_empty, read_json_file

MAX_RECORD_PARTS = 400
MAX_OUTPUT_PARTS = 1000


class InterleavedOutputs(OutputFolder):
    """A folder of documents, one <id>.json per prompt, as a model."""

    subfolders = ("",)
    file_names = "<id>.json with an `output` of texts and images, one for each prompt"
    patterns = ("*.json", "*.jsonl")

    def find(self, name: str) -> Path | None:
        return super().find(name) or super().find(f"{name}l")  # some of the released outputs are called .jsonl

    def read(self, path: Path, kind: Modality) -> tuple[Part, ...]:
        try:
            entries = find_output(read_json_file(path))
        except UserError as error:
            raise CallError(str(error), NO_RETRY) from None
        if entries is None or len(entries) > MAX_OUTPUT_PARTS:
            raise CallError(
                f"{path} has no `output` that is a list of at most {MAX_OUTPUT_PARTS} texts and images", NO_RETRY
            )
        parts: list[Part] = []
        for index, entry in enumerate(entries):
            fields = _entry_fields(entry)
            text = fields.get("text")
            image = fields.get("image")
            is_valid = isinstance(text, str | None) and isinstance(image, str | None)
            if not is_valid or (text is None and image is None):
                raise CallError(
                    f"{path}: output[{index}] must be a text, or have `text` and `image`, each a text or null", NO_RETRY
                )
            if text:
                parts.append(Text(text))
            if image:
                parts += super().read(self._find_image(path, image), "image")
        return tuple(parts)

    def _find_image(self, path: Path, name: str) -> Path:
        """Return the image that a document names: at its path, or under its file name in the document's folder."""
        for candidate in (path.parent / name, path.parent / Path(name.replace("\\", "/")).name):
            try:
                exists = candidate.is_file()
            except (OSError, ValueError):  # not a valid file name
                exists = False
            if exists:
                return self.check_inside(candidate)
        raise CallError(f"{path} names an image that does not exist: {name[:200]}", NO_RETRY)


def find_output(record: Any) -> list[Any] | None:
    """Return the `output` list of a record, or of the first turn in its `conversations` that has one."""
    fields = dict_or_empty(record)
    turns: Any = fields.get("conversations")
    if "output" not in fields and isinstance(turns, list):
        for turn in cast(list[Any], turns):
            if "output" in dict_or_empty(turn):
                fields = dict_or_empty(turn)
                break
    output = fields.get("output")
    if isinstance(output, list):
        return cast(list[Any], output)
    return None


def read_parts(
    records: Records, name: str, record: Mapping[str, Any], field: str, clean: Callable[[str], str] = str
) -> tuple[Part, ...]:
    """Read a record's field that is such a list, or one text, into parts. In an entry with both, the text comes first.

    `clean` is applied to every text. A malformed field makes the record `name` unusable.
    """
    value: Any = record.get(field)
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list) or not value:
        records.fail(name, field, 'must be a list of {"text": ...} and {"image": ...}, or a text')
    entries = cast(list[Any], value)
    if len(entries) > MAX_RECORD_PARTS:
        records.fail(name, field, f"has {len(entries)} entries, more than {MAX_RECORD_PARTS}")
    parts: list[Part] = []
    for index, entry in enumerate(entries):
        entry_field = f"{field}[{index}]"
        fields = _entry_fields(entry)
        if not fields.get("text") and not fields.get("image"):
            records.fail(name, entry_field, "has neither text nor image")
        text = clean(records.optional_text(name, {entry_field: fields.get("text")}, entry_field))
        if text:
            parts.append(Text(text))
        path = records.optional_text(name, {entry_field: fields.get("image")}, entry_field)
        if path:
            parts.append(records.load_image(name, entry_field, path))
    return tuple(parts)


def _entry_fields(entry: Any) -> Mapping[str, Any]:
    """Return an entry as a mapping; a bare text stands for `{"text": ...}`."""
    if isinstance(entry, str):
        return {"text": entry}
    return dict_or_empty(entry)
