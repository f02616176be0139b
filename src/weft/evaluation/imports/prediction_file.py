"""The replies that VLMEvalKit keeps: a table with a column `prediction`, as .xlsx, .tsv or .json."""

import csv
import io
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree

from weft.errors import UserError
from weft.untrusted import dict_or_empty, parse_json, read_bytes_file, read_text_file

COLUMN = "prediction"
MAX_SHEET_BYTES = 512 * 1024**2
NAMESPACE = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def read_predictions(path: Path) -> list[str]:
    """Return the replies in a file of predictions. Raises UserError for a file that has none."""
    if path.suffix == ".json":
        rows = _read_json(path)
    elif path.suffix == ".tsv":
        rows = list(csv.DictReader(io.StringIO(read_text_file(path)), delimiter="\t"))
    elif path.suffix == ".xlsx":
        rows = list(_read_sheet(path))
    else:
        raise UserError(f"{path}: predictions are read from .xlsx, .tsv and .json")
    if not rows or not any(COLUMN in row for row in rows):
        raise UserError(f"{path}: it has no column {COLUMN}")
    return [str(row.get(COLUMN, "")) for row in rows]


def _read_json(path: Path) -> list[dict[str, Any]]:
    content = parse_json(read_bytes_file(path), path)
    if isinstance(content, list):
        return [dict_or_empty(row) for row in cast(list[Any], content)]
    columns = dict_or_empty(content)
    predictions = dict_or_empty(columns.get(COLUMN))  # pandas writes columns as objects by row number
    return [{COLUMN: value} for value in predictions.values()]


def _read_sheet(path: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of the first sheet, by the names in its first row."""
    try:
        with zipfile.ZipFile(io.BytesIO(read_bytes_file(path))) as archive:
            shared = _read_shared_texts(archive)
            sheet = _parse_member(archive, "xl/worksheets/sheet1.xml")
    except (zipfile.BadZipFile, KeyError, ElementTree.ParseError, NotImplementedError, RuntimeError) as error:
        raise UserError(f"{path}: broken .xlsx: {type(error).__name__}: {error}") from None
    names: dict[str, str] = {}
    for row in sheet.iter(f"{NAMESPACE}row"):
        values = {_column_of(cell): _text_in(cell, shared) for cell in row.iter(f"{NAMESPACE}c")}
        if not names:
            names = values
            continue
        yield {names[column]: value for column, value in values.items() if column in names}


def _parse_member(archive: zipfile.ZipFile, name: str) -> ElementTree.Element:
    if archive.getinfo(name).file_size > MAX_SHEET_BYTES:
        raise UserError(f"{name} has more than {MAX_SHEET_BYTES:,} bytes")
    with archive.open(name) as member:
        data = member.read(MAX_SHEET_BYTES + 1)
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise UserError(f"{name} declares entities, which no spreadsheet needs")
    return ElementTree.fromstring(data)


def _read_shared_texts(archive: zipfile.ZipFile) -> list[str]:
    if "xl/sharedStrings.xml" not in archive.namelist():
        return []
    root = _parse_member(archive, "xl/sharedStrings.xml")
    return ["".join(piece.text or "" for piece in entry.iter(f"{NAMESPACE}t")) for entry in root]


def _column_of(cell: ElementTree.Element) -> str:
    return re.sub(r"[0-9]+$", "", cell.get("r", ""))


def _text_in(cell: ElementTree.Element, shared: list[str]) -> str:
    value = cell.find(f"{NAMESPACE}v")
    if cell.get("t") == "s" and value is not None:
        index = int(value.text or "-1")
        return shared[index] if 0 <= index < len(shared) else ""
    if cell.get("t") == "inlineStr":
        return "".join(piece.text or "" for piece in cell.iter(f"{NAMESPACE}t"))
    return "" if value is None else value.text or ""
