"""The references of a tabletop dataset in symbols, for the exact judge: `tabletop.json` next to the official files."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

SIDECAR = "tabletop.json"


def write_sidecar(folder: Path, samples: Mapping[str, Any]) -> None:
    """Write the references of all samples, by the samples' names."""
    stream_sidecar(folder, samples.items())


def stream_sidecar(folder: Path, samples: Iterable[tuple[str, Any]]) -> None:
    """Write names and references one after the other, with one sample in memory at a time."""
    with (folder / SIDECAR).open("w", encoding="utf-8") as file:
        file.write('{\n "version": 1,\n "samples": {')
        separator = "\n  "
        for name, references in samples:
            indented = json.dumps(references, indent=1).replace("\n", "\n  ")
            file.write(f"{separator}{json.dumps(name)}: {indented}")
            separator = ",\n  "
        file.write("}\n}\n" if separator == "\n  " else "\n }\n}\n")


def sidecar_path(data: Path) -> Path:
    """Where the sidecar of a dataset is, or would be."""
    folder = data.parent if data.is_file() else data
    for candidate in (folder, data / "test", data / "data"):
        if (candidate / SIDECAR).is_file():
            return candidate / SIDECAR
    return folder / SIDECAR
