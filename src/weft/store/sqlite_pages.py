"""Reads table rows from the pages of an SQLite file, without its schema and its trees.

The format is https://www.sqlite.org/fileformat2.html.
"""

import mmap
import struct
from collections.abc import Iterable, Iterator
from typing import Any

LEAF_TABLE_PAGE = 0x0D
SERIAL_SIZES = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)  # bytes of a value, by serial type
MIN_TEXT_SERIAL = 12  # serial types from here on are blobs and texts


def scan_pages(data: bytes | mmap.mmap, columns: int) -> Iterator[tuple[Any, ...]]:
    """Yield every row with this many columns from every page that is a leaf of some table.

    The first column is the row's number. A row that is cut short or makes no sense is skipped.
    """
    size = _page_size(data)
    usable = size - data[20]
    for start in range(0, len(data), size):
        page = data[start : start + size]
        header = 100 if start == 0 else 0  # the first page begins with the file's header
        if len(page) != size or page[header] != LEAF_TABLE_PAGE:
            continue
        cells = int.from_bytes(page[header + 3 : header + 5], "big")
        for index in range(min(cells, size // 4)):
            pointer = header + 8 + 2 * index
            offset = int.from_bytes(page[pointer : pointer + 2], "big")
            try:
                row = _read_cell(data, page, offset, usable, size, columns)
            except (IndexError, ValueError, OverflowError):
                continue
            if row is not None:
                yield row


def _page_size(data: bytes | mmap.mmap) -> int:
    size = int.from_bytes(data[16:18], "big")
    if size == 1:
        size = 65536
    if size < 512 or size & (size - 1):
        return 4096
    return size


def _read_cell(
    data: bytes | mmap.mmap, page: bytes, offset: int, usable: int, size: int, columns: int
) -> tuple[Any, ...] | None:
    """Read one row, following its overflow pages. Section 1.6 has the rule for how much of it is on the page."""
    length, offset = _read_varint(page, offset)
    number, offset = _read_varint(page, offset)
    max_local = usable - 35
    local = length
    if length > max_local:
        min_local = (usable - 12) * 32 // 255 - 23
        local = min_local + (length - min_local) % (usable - 4)
        if local > max_local:
            local = min_local
    if not 0 < length <= len(data) or offset + local > len(page):
        return None
    payload = bytearray(page[offset : offset + local])
    next_page = 0
    if length > local:
        next_page = int.from_bytes(page[offset + local : offset + local + 4], "big")
    while len(payload) < length:
        if not 0 < next_page <= len(data) // size:
            return None
        overflow = data[(next_page - 1) * size : next_page * size]
        payload += overflow[4 : 4 + min(usable - 4, length - len(payload))]
        next_page = int.from_bytes(overflow[:4], "big")
    return _read_record(bytes(payload), number, columns)


def _read_record(payload: bytes, number: int, columns: int) -> tuple[Any, ...] | None:
    header, offset = _read_varint(payload, 0)
    serials: list[int] = []
    while offset < header:
        serial, offset = _read_varint(payload, offset)
        serials.append(serial)
    if len(serials) != columns or offset != header:
        return None
    values = list(_read_values(payload, header, serials))
    if values[0] is None:  # an INTEGER PRIMARY KEY is stored as the row's number
        values[0] = number
    return tuple(values)


def _read_values(payload: bytes, offset: int, serials: Iterable[int]) -> Iterator[Any]:
    for serial in serials:
        if serial in (10, 11):
            raise ValueError("a reserved serial type")
        if serial < MIN_TEXT_SERIAL:
            size = SERIAL_SIZES[serial]
        else:
            size = (serial - MIN_TEXT_SERIAL) // 2
        raw = payload[offset : offset + size]
        if len(raw) != size:
            raise ValueError("cut short")
        offset += size
        if serial == 0:
            yield None
        elif serial in (8, 9):
            yield serial - 8
        elif serial == 7:
            yield struct.unpack(">d", raw)[0]
        elif serial >= MIN_TEXT_SERIAL:
            yield raw
        else:
            yield int.from_bytes(raw, "big", signed=True)


def _read_varint(data: bytes, offset: int) -> tuple[int, int]:
    """Return a number of one to nine bytes, and the offset after it."""
    value = 0
    for step in range(8):
        byte = data[offset + step]
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            return value, offset + step + 1
    return value << 8 | data[offset + 8], offset + 9
