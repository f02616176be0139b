"""The replies that VLMEvalKit keeps: a table with a column `prediction`, as .xlsx, .tsv or .json."""

import csv
import io
import lzma
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree

from weft.errors import UserError
from weft.untrusted import dict_or_empty, parse_json, read_bytes_file, read_text_file

COLUMN = "prediction"
MAX_SHEET_BYTES = 512 * 1024**2
PIECE_BYTES = 1 << 20
MAX_DIGITS = 9  # of the number of a shared text
BROKEN_SHEET = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    ElementTree.ParseError,
    NotImplementedError,  # a compression that is not known
    RuntimeError,  # an encrypted member
    LookupError,
    ValueError,
    EOFError,
    OSError,
)
NAMESPACE = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def read_predictions(path: Path) -> list[str]:
    """Return the replies in a file of predictions. Raises UserError for a file that has none."""
    if path.suffix == ".json":
        rows = _read_json(path)
    elif path.suffix == ".tsv":
        rows = _read_table(path)
    elif path.suffix == ".xlsx":
        return _read_sheet(path)
    else:
        raise UserError(f"{path}: predictions are read from .xlsx, .tsv and .json")
    if not rows or not any(COLUMN in row for row in rows):
        raise UserError(f"{path}: it has no column {COLUMN}")
    return [str(row.get(COLUMN, "")) for row in rows]


def _read_table(path: Path) -> list[dict[str, Any]]:
    text = read_text_file(path)
    limit = csv.field_size_limit(len(text) + 1)  # a reply may be long
    reader = csv.DictReader(io.StringIO(text), delimiter="\t")
    try:
        return [{COLUMN: row[COLUMN]} for row in reader if COLUMN in row]
    except csv.Error as error:
        raise UserError(f"{path}: broken .tsv, line {reader.line_num}: {error}") from None
    finally:
        csv.field_size_limit(limit)


def _read_json(path: Path) -> list[dict[str, Any]]:
    content = parse_json(read_bytes_file(path), path)
    if isinstance(content, list):
        return [dict_or_empty(row) for row in cast(list[Any], content)]
    columns = dict_or_empty(content)
    predictions = dict_or_empty(columns.get(COLUMN))  # pandas writes columns as objects by row number
    return [{COLUMN: value} for value in predictions.values()]


def _read_sheet(path: Path) -> list[str]:
    """Return the column of predictions in the first sheet, whose first row has the names."""
    try:
        with zipfile.ZipFile(io.BytesIO(read_bytes_file(path))) as archive:
            shared = _SharedTexts()
            if "xl/sharedStrings.xml" in archive.namelist():
                _parse_member(archive, "xl/sharedStrings.xml", shared)
            sheet = _Sheet(shared.texts)
            _parse_member(archive, "xl/worksheets/sheet1.xml", sheet)
    except BROKEN_SHEET as error:
        raise UserError(f"{path}: broken .xlsx: {type(error).__name__}: {error}") from None
    if not sheet.column:
        raise UserError(f"{path}: it has no column {COLUMN}")
    return sheet.predictions


def _parse_member(archive: zipfile.ZipFile, name: str, target: "_SharedTexts | _Sheet") -> None:
    """Parse a member piece by piece; no tree of it is built, so that memory does not grow with its elements."""
    parser = ElementTree.XMLParser(target=target, encoding="utf-8")
    size = 0
    with archive.open(name) as member:
        while piece := member.read(PIECE_BYTES):
            size += len(piece)
            if size > MAX_SHEET_BYTES:
                raise UserError(f"{name} has more than {MAX_SHEET_BYTES:,} bytes")
            parser.feed(piece)
    parser.close()


class _Target:
    """What happens in a file of a spreadsheet, element by element."""

    def __init__(self) -> None:
        self._text: list[str] = []

    def doctype(self, *_: Any) -> None:
        raise UserError("it declares entities, which no spreadsheet needs")

    def data(self, data: str) -> None:
        self._text.append(data)

    def _take_text(self) -> str:
        text = "".join(self._text)
        self._text.clear()
        return text

    def close(self) -> None:
        return


class _SharedTexts(_Target):
    """Collects the texts that cells name by their number."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._pieces: list[str] = []

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._text.clear()

    def end(self, tag: str) -> None:
        if tag == f"{NAMESPACE}t":
            self._pieces.append(self._take_text())
        if tag == f"{NAMESPACE}si":
            self.texts.append("".join(self._pieces))
            self._pieces.clear()


class _Sheet(_Target):
    """Collects one column: the one whose cell in the first row is `prediction`."""

    def __init__(self, shared: Sequence[str]) -> None:
        super().__init__()
        self.predictions: list[str] = []
        self.column = ""
        self._shared = shared
        self._has_names = False
        self._cell: Mapping[str, str] = {}
        self._cell_text = ""
        self._row_text = ""

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        self._text.clear()
        if tag == f"{NAMESPACE}c":
            self._cell = attributes
            self._cell_text = ""

    def end(self, tag: str) -> None:
        if tag == f"{NAMESPACE}v":
            self._cell_text = self._take_text()
        elif tag == f"{NAMESPACE}t":
            self._cell_text += self._take_text()
        elif tag == f"{NAMESPACE}c":
            self._end_cell()
        elif tag == f"{NAMESPACE}row":
            if self._has_names:
                self.predictions.append(self._row_text)
            self._has_names = True
            self._row_text = ""

    def _end_cell(self) -> None:
        column = self._cell.get("r", "").rstrip("0123456789")
        if self._has_names and column != self.column:
            return
        text = self._cell_text
        if self._cell.get("t") == "s":
            text = self._find_shared(text)
        if self._has_names:
            self._row_text = text
        elif text == COLUMN:
            self.column = column

    def _find_shared(self, number: str) -> str:
        if not number.isascii() or not number.isdigit() or len(number) > MAX_DIGITS:
            return ""
        index = int(number)
        return self._shared[index] if index < len(self._shared) else ""
