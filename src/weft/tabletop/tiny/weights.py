"""Files of tensors in the safetensors layout: a length, a JSON header, the bytes. Matrices are int8 with a scale for each row."""

import hashlib
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weft.errors import UserError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Arrays = dict[str, NDArray[np.float32]]

TYPES = {"F32": "<f4", "F16": "<f2", "I8": "|i1"}
SCALE = ".scale"


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
        kind = "I8" if array.dtype == np.int8 else "F32"
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [start, start + array.nbytes]}
        start += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def load(path: Path) -> "tuple[Arrays, dict[str, str]]":
    """All tensors as float32, and the facts saved with them. A file that is missing or broken is one clear line."""
    import numpy as np

    try:
        data = path.read_bytes()
        length = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8 : 8 + length])
        facts: dict[str, str] = header.pop("__metadata__", {})
        body = memoryview(data)[8 + length :]
        if max(entry["data_offsets"][1] for entry in header.values()) != len(body):
            raise ValueError("it is cut short")
        if hashlib.sha256(body).hexdigest() != facts.get("sha256"):
            raise ValueError("its contents do not match its digest")
        raw = {
            name: np.frombuffer(body[entry["data_offsets"][0] : entry["data_offsets"][1]], TYPES[entry["dtype"]]).reshape(entry["shape"])
            for name, entry in header.items()
        }
    except FileNotFoundError:
        raise UserError(f"{path}: there are no weights; `weft train tiny` makes them") from None
    except (ValueError, KeyError, TypeError, struct.error, OSError) as error:
        raise UserError(f"{path}: these weights cannot be read: {error}") from None
    made: Arrays = {}
    for name, array in raw.items():
        if name.endswith(SCALE):
            continue
        scale = raw.get(name + SCALE)
        wide = array.astype(np.float32)
        made[name] = wide if scale is None else wide * scale.reshape(-1, *[1] * (array.ndim - 1))
    return made, facts
