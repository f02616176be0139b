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
    AnyArrays = dict[str, NDArray[Any]]

IMAGE_NETWORK_FILE = "pictures.safetensors"  # the name that weights of earlier versions have
TYPES = {"F32": "<f4", "F16": "<f2", "I8": "|i1"}
SCALE_SUFFIX = ".scale"
MAX_BYTES = 1024**3
MIN_QUANTISED = 1000  # smaller tensors, and vectors, stay float32


def save(path: Path, arrays: Mapping[str, Any], facts: Mapping[str, str]) -> None:
    """Write tensors, large matrices as int8 by row, and facts about them."""
    tensors = _quantise(arrays)
    body = b"".join(array.tobytes() for array in tensors.values())
    header: dict[str, Any] = {"__metadata__": {**facts, "sha256": hashlib.sha256(body).hexdigest()}}
    start = 0
    for name, array in tensors.items():
        end = start + array.nbytes
        kind = "I8" if array.dtype.kind == "i" else "F32"
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [start, end]}
        start = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def _quantise(arrays: Mapping[str, Any]) -> "AnyArrays":
    import numpy as np

    tensors: AnyArrays = {}
    for name, array in arrays.items():
        if array.size < MIN_QUANTISED or array.ndim < 2:
            tensors[name] = array.astype(np.float32)
            continue
        rows: Any = array.reshape(array.shape[0], -1).astype(np.float32)
        scale: Any = np.maximum(np.abs(rows).max(axis=1), 1e-8) / 127
        tensors[name] = (rows / scale[:, None]).round().astype(np.int8).reshape(array.shape)
        tensors[name + SCALE_SUFFIX] = scale.astype(np.float32)
    return tensors


def load(path: Path) -> "tuple[Arrays, dict[str, str]]":
    """Return all tensors as float32, and the facts saved with them.

    Raises UserError, in one line, for a file that is missing or broken.
    """
    try:
        tensors, facts = _read_tensors(read_file(path, MAX_BYTES))
    except FileNotFoundError:
        raise UserError(f"{path}: there are no weights; `weft train tiny` makes them") from None
    except Exception as error:  # a broken header may hold anything
        raise UserError(f"{path}: these weights cannot be read: {type(error).__name__}: {error}") from None
    return _restore_floats(tensors, path), facts


def _read_tensors(data: bytes) -> "tuple[AnyArrays, dict[str, str]]":
    """Raises ValueError unless the tensors fill the file without a gap, and the digest is theirs."""
    import numpy as np

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
    tensors: AnyArrays = {}
    for name, entry in header.items():
        low, high = entry["data_offsets"]
        tensors[name] = np.frombuffer(body[low:high], TYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors, facts


def _restore_floats(tensors: "AnyArrays", path: Path) -> "Arrays":
    import numpy as np

    arrays: Arrays = {}
    for name, tensor in tensors.items():
        if name.endswith(SCALE_SUFFIX):
            continue
        array = tensor.astype(np.float32)
        scale = tensors.get(name + SCALE_SUFFIX)
        if scale is not None:
            if array.ndim < 2 or scale.shape != array.shape[:1]:
                raise UserError(f"{path}: these weights cannot be read: the scale of {name} does not fit it")
            array = array * scale.reshape(-1, *[1] * (array.ndim - 1))
        if not np.isfinite(array).all():
            raise UserError(f"{path}: these weights cannot be read: {name} has numbers that are not finite")
        arrays[name] = array
    return arrays
