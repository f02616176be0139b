"""Files of tensors in the safetensors layout: a length, a JSON header, the bytes. Matrices are int8 with a scale for
each row."""

import hashlib
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.errors import UserError
from weft.untrusted import read_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Arrays = dict[str, NDArray[np.float32]]

TYPES = {"F32": "<f4", "F16": "<f2", "I8": "|i1"}
SCALE = ".scale"
LARGEST = 1024**3  # bytes of a file


def save(path: Path, arrays: Mapping[str, Any], facts: Mapping[str, str]) -> None:
    """Matrices of 1,000 numbers and more become int8 by row; everything else stays float32."""
    import numpy as np

    stored: dict[str, NDArray[Any]] = {}
    for name, array in arrays.items():
        if array.size < 1000 or array.ndim < 2:
            stored[name] = array.astype(np.float32)
            continue
        rows: Any = array.reshape(array.shape[0], -1).astype(np.float32)
        scale: Any = np.maximum(np.abs(rows).max(axis=1), 1e-8) / 127
        stored[name] = (rows / scale[:, None]).round().astype(np.int8).reshape(array.shape)
        stored[name + SCALE] = scale.astype(np.float32)
    body = b"".join(array.tobytes() for array in stored.values())
    header: dict[str, Any] = {"__metadata__": {**facts, "sha256": hashlib.sha256(body).hexdigest()}}
    start = 0
    for name, array in stored.items():
        if array.dtype == np.int8:
            kind = "I8"
        else:
            kind = "F32"
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [start, start + array.nbytes]}
        start += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def load(path: Path) -> "tuple[Arrays, dict[str, str]]":
    """All tensors as float32, and the facts saved with them. A file that is missing or broken is one clear line."""
    import numpy as np

    try:
        data = read_file(path, LARGEST)
        length = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8 : 8 + length])
        facts: dict[str, str] = header.pop("__metadata__", {})
        body = memoryview(data)[8 + length :]
        end = 0
        for low, high in sorted(tuple(entry["data_offsets"]) for entry in header.values()):
            if low != end or high < low:
                raise ValueError("its tensors overlap, or leave something out")
            end = high
        if end != len(body):
            raise ValueError("it is cut short")
        if hashlib.sha256(body).hexdigest() != facts.get("sha256"):
            raise ValueError("its contents do not match its digest")
        raw = {
            name: np.frombuffer(
                body[entry["data_offsets"][0] : entry["data_offsets"][1]], TYPES[entry["dtype"]]
            ).reshape(entry["shape"])
            for name, entry in header.items()
        }
    except FileNotFoundError:
        raise UserError(f"{path}: there are no weights; `weft train tiny` makes them") from None
    except Exception as error:  # what its header says may be anything
        raise UserError(f"{path}: these weights cannot be read: {type(error).__name__}: {error}") from None
    made: Arrays = {}
    for name, array in raw.items():
        if name.endswith(SCALE):
            continue
        scale = raw.get(name + SCALE)
        wide = array.astype(np.float32)
        if scale is not None and (array.ndim < 2 or scale.shape != array.shape[:1]):
            raise UserError(f"{path}: these weights cannot be read: the scale of {name} does not fit it")
        if scale is None:
            made[name] = wide
        else:
            made[name] = wide * scale.reshape(-1, *[1] * (array.ndim - 1))
        if not np.isfinite(made[name]).all():
            raise UserError(f"{path}: these weights cannot be read: {name} has numbers that are none")
    return made, facts
