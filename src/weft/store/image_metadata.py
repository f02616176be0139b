"""Images without their metadata: no texts, comments, EXIF, XMP, thumbnails or bytes after the end.

What is needed to show an image stays: its pixels, byte for byte as they are encoded; how it is turned; its colour
profile. Chunks and segments are dropped, and nothing is encoded again, so an image without metadata keeps its bytes. A
file whose structure cannot be followed, although it can be decoded, is encoded as a new PNG.
"""

import re
import struct
import zlib
from collections.abc import Iterator, Sequence

from weft.secrets import scrub
from weft.store.images import (
    PIXEL_BUDGET,
    decode,
    encode_png,
    exif_orientation,
    make_upright,
    measure,
    open_lazily,
    verify_image,
)

PNG_START = b"\x89PNG\r\n\x1a\n"
PNG_CONTENT = (b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND")
PNG_FRAMES = (b"acTL", b"fcTL", b"fdAT")  # of an animation, which weft refuses: without them it would be none
PNG_COLOUR_SIZES = {  # bytes of chunks that say how colours and pixels are meant
    b"gAMA": 4,
    b"cHRM": 32,
    b"sRGB": 1,
    b"cICP": 4,
    b"mDCV": 24,
    b"cLLI": 8,
    b"pHYs": 9,
}
PNG_TEXTS = (b"iTXt", b"tEXt", b"zTXt")
PNG_TURNING_TEXTS = (b"Raw profile type", b"XML:com.adobe.xmp")  # may say how the image is turned
MAX_PROFILE_BYTES = 8 * 1024 * 1024
WEBP_CONTENT = (b"VP8 ", b"VP8L", b"VP8X", b"ALPH", b"ANIM", b"ANMF")
WEBP_HEADERS = {b"VP8X": 10, b"ANIM": 6}  # their bytes
WEBP_FRAME_HEADER = 16  # bytes of an ANMF chunk in front of its own chunks
WEBP_FLAGS = {0x20: b"ICCP", 0x08: b"EXIF", 0x04: b"XMP "}  # in the header, of other chunks
JPEG_CODING = (*(set(range(0xC0, 0xD0)) - {0xC8}), 0xDB, 0xDD)  # frames, tables, restart intervals
JPEG_SCAN, JPEG_END = 0xDA, 0xD9
NEXT_JPEG_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]", re.DOTALL)
JPEG_PROFILE = b"ICC_PROFILE\0"


class _Unknown(Exception):
    """A file whose structure cannot be followed."""


def remove_metadata(data: bytes) -> bytes:
    """Return an image's bytes without metadata; the same object if it has none.

    Raises ImageError for bytes that are not an image.
    """
    try:
        strip = next((strip for start, strip in STRIPPERS.items() if data.startswith(start)), _strip_unknown)
        bare = strip(data)
        return data if bare == data else bare
    except (_Unknown, struct.error, IndexError, zlib.error):
        _, width, height = measure(data)
        with PIXEL_BUDGET.reserve(width * height):
            return encode_png(make_upright(decode(data)))


def without_metadata(data: bytes) -> tuple[bytes, bool]:
    """Return an image without metadata, and whether that is known to be usable: if it had some, it was verified with
    it. Raises ImageError for bytes that are not a usable image."""
    bare = remove_metadata(data)
    if bare is data:
        return data, False
    verify_image(data)
    return bare, True


def _orientation(data: bytes) -> int:
    """Return how an image is turned, from whatever weft reads it from when it decodes the image."""
    _, width, height = measure(data)
    with PIXEL_BUDGET.reserve(width * height):  # a PNG may say it after its pixels
        return exif_orientation(open_lazily(data))


def _exif(orientation: int) -> bytes:
    """Return EXIF that says nothing but how the image is turned."""
    return b"MM\0*\0\0\0\x08" + struct.pack(">HHHIHHI", 1, 0x0112, 3, 1, orientation, 0, 0)


def _is_clean(payload: bytes) -> bool:
    """Return whether there is no secret in it, in letters of one byte or of two."""
    texts = [payload.decode("latin-1"), payload[::2].decode("latin-1"), payload[1::2].decode("latin-1")]
    return all(scrub(text) == text for text in texts)


def _strip_png(data: bytes) -> bytes:
    chunks = list(_png_chunks(memoryview(data)))
    is_animated = any(name == b"acTL" and struct.unpack_from(">I", payload)[0] > 1 for name, payload, _ in chunks)
    kept: list[bytes | memoryview] = []
    for name, payload, chunk in chunks:
        if name in PNG_CONTENT or (is_animated and name in PNG_FRAMES):
            kept.append(chunk)
        elif name == b"iCCP":
            kept += _png_profile(bytes(payload), chunk)
        elif len(payload) == PNG_COLOUR_SIZES.get(name) and _is_clean(bytes(payload)):
            kept.append(chunk)
    if any(_may_turn(name, payload) for name, payload, _ in chunks) and (orientation := _orientation(data)) != 1:
        kept.insert(1, _png_chunk(b"eXIf", _exif(orientation)))
    if kept == [chunk for _, _, chunk in chunks] and len(data) == len(PNG_START) + sum(map(len, kept)):
        return data
    return b"".join((PNG_START, *kept))


def _png_chunks(data: memoryview) -> Iterator[tuple[bytes, memoryview, memoryview]]:
    """Yield each chunk's name, its content, and the whole chunk, up to the last one."""
    at = len(PNG_START)
    name = b""
    while name != b"IEND":
        size, name = struct.unpack_from(">I4s", data, at)
        start = at
        at = start + size + 12
        if at > len(data):
            raise _Unknown
        yield name, data[start + 8 : at - 4], data[start:at]


def _may_turn(name: bytes, payload: memoryview) -> bool:
    """Return whether a chunk may say how the image is turned."""
    return name == b"eXIf" or (name in PNG_TEXTS and bytes(payload[:20]).startswith(PNG_TURNING_TEXTS))


def _png_chunk(name: bytes, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload)) + name + payload + struct.pack(">I", zlib.crc32(name + payload))


def _png_profile(payload: bytes, chunk: memoryview) -> list[bytes | memoryview]:
    """Return the chunk of a colour profile, without what else is in it; none for a profile that cannot be read."""
    title, _, packed = payload.partition(b"\0")
    inflating = zlib.decompressobj()
    try:
        profile = inflating.decompress(packed[1:], MAX_PROFILE_BYTES)
    except zlib.error:
        return []
    if not inflating.eof or not _is_clean(profile):
        return []
    if inflating.unused_data or not _is_clean(title):
        return [_png_chunk(b"iCCP", b"ICC Profile\0\0" + zlib.compress(profile))]
    return [chunk]


def _strip_jpeg(data: bytes) -> bytes:
    segments = list(_jpeg_segments(data))
    profile = [payload for marker, payload, _ in segments if marker == 0xE2 and payload.startswith(JPEG_PROFILE)]
    has_profile = bool(profile) and _is_clean(b"".join(payload[len(JPEG_PROFILE) + 2 :] for payload in profile))
    kept: list[bytes] = [data[:2]]
    may_be_turned = False
    for marker, payload, scan in segments:
        if marker == 0xE0 and payload.startswith(b"JFIF\0") and len(payload) >= 14:
            payload = payload[:12] + b"\0\0"  # without a thumbnail
        elif marker == 0xEE and payload.startswith(b"Adobe"):
            payload = payload[:12]
        elif marker == 0xE2 and payload.startswith(JPEG_PROFILE) and has_profile:
            pass
        elif marker not in (*JPEG_CODING, JPEG_SCAN, JPEG_END):
            may_be_turned = may_be_turned or marker == 0xE1
            continue
        if marker == JPEG_END:
            kept.append(b"\xff\xd9")
        else:
            kept += [bytes((0xFF, marker)), struct.pack(">H", len(payload) + 2), payload, scan]
    bare = b"".join(kept)
    if may_be_turned and (orientation := _orientation(data)) != 1:
        payload = b"Exif\0\0" + _exif(orientation)
        return bare[:2] + b"\xff\xe1" + struct.pack(">H", len(payload) + 2) + payload + bare[2:]
    return bare


def _jpeg_segments(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield marker and content of each segment, and the coded pixels behind a scan's, up to the end marker.

    A file without its end marker ends with its last scan.
    """
    at = 2
    while at < len(data):
        if data[at] != 0xFF:
            raise _Unknown
        while data[at] == 0xFF:
            at += 1
        marker = data[at]
        at += 1
        if marker == JPEG_END:
            yield marker, b"", b""
            return
        (size,) = struct.unpack_from(">H", data, at)
        payload = data[at + 2 : at + size]
        if size < 2 or at + size > len(data):
            raise _Unknown
        at += size
        scan = b""
        if marker == JPEG_SCAN:
            match = NEXT_JPEG_MARKER.search(data, at)
            end = match.start() if match else len(data)
            scan = data[at:end]
            at = end
        yield marker, payload, scan


def _strip_webp(data: bytes) -> bytes:
    (size,) = struct.unpack_from("<I", data, 4)
    chunks = list(_webp_chunks(data[12 : 8 + size]))
    kept: list[tuple[bytes, bytes]] = []
    for name, payload in chunks:
        if name == b"ANMF":
            frame = _build_webp(
                [chunk for chunk in _webp_chunks(payload[WEBP_FRAME_HEADER:]) if chunk[0] in WEBP_CONTENT]
            )
            kept.append((name, payload[:WEBP_FRAME_HEADER] + frame))
        elif name in WEBP_CONTENT or (name == b"ICCP" and _is_clean(payload)):
            kept.append((name, payload[: WEBP_HEADERS.get(name)]))
    if kept == chunks and len(data) == 8 + size:
        return data
    orientation = 1
    if any(name in (b"EXIF", b"XMP ") for name, _ in chunks):
        orientation = _orientation(data)
    if orientation != 1:
        kept.append((b"EXIF", _exif(orientation)))
    body = b"WEBP" + _build_webp([_with_flags(chunk, kept) for chunk in kept])
    return b"RIFF" + struct.pack("<I", len(body)) + body


def _webp_chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 0
    while at + 8 <= len(data):
        name, size = struct.unpack_from("<4sI", data, at)
        if at + 8 + size > len(data):
            raise _Unknown
        yield name, data[at + 8 : at + 8 + size]
        at += 8 + size + size % 2


def _build_webp(chunks: Sequence[tuple[bytes, bytes]]) -> bytes:
    return b"".join(
        name + struct.pack("<I", len(payload)) + payload + b"\0" * (len(payload) % 2) for name, payload in chunks
    )


def _with_flags(chunk: tuple[bytes, bytes], kept: Sequence[tuple[bytes, bytes]]) -> tuple[bytes, bytes]:
    """Return the chunk; a header says which of the other chunks there are."""
    name, payload = chunk
    if name != b"VP8X":
        return chunk
    names = [name for name, _ in kept]
    flags = payload[0]
    for flag, other in WEBP_FLAGS.items():
        flags &= ~flag
        if other in names:
            flags |= flag
    return name, bytes((flags,)) + payload[1:]


def _strip_gif(data: bytes) -> bytes:
    at = 13 + _gif_table_size(data[10])
    kept = [data[:at]]
    while data[at] != 0x3B:
        start = at
        if data[at] == 0x2C:  # an image
            at += 10 + _gif_table_size(data[at + 9]) + 1
        elif data[at] == 0x21:  # an extension
            at += 2
        else:
            raise _Unknown
        at = _skip_gif_blocks(data, at)
        if data[start] == 0x2C:
            kept.append(data[start:at])
        elif data[start + 1 : start + 3] == b"\xf9\x04":  # how the image behind it is shown
            kept.append(data[start : start + 7] + b"\0")
    return b"".join(kept) + b";"


def _gif_table_size(flags: int) -> int:
    """Return the bytes of the colour table that these flags announce."""
    if not flags & 0x80:
        return 0
    return 3 << ((flags & 7) + 1)


def _skip_gif_blocks(data: bytes, at: int) -> int:
    while data[at]:
        at += data[at] + 1
    return at + 1


def _strip_unknown(data: bytes) -> bytes:
    raise _Unknown


STRIPPERS = {PNG_START: _strip_png, b"\xff\xd8\xff": _strip_jpeg, b"RIFF": _strip_webp, b"GIF8": _strip_gif}
