"""The references of a tabletop dataset in symbols, for the exact judge: `tabletop.json` next to the official files."""

import json
from pathlib import Path
from typing import Any

SIDECAR = "tabletop.json"


def write_sidecar(folder: Path, samples: dict[str, Any]) -> None:
    (folder / SIDECAR).write_text(json.dumps({"version": 1, "samples": samples}, indent=1) + "\n", encoding="utf-8")


def sidecar_path(data: Path) -> Path:
    """Where the sidecar of a dataset is, or would be."""
    folder = data.parent if data.is_file() else data
    for candidate in (folder, data / "test", data / "data"):
        if (candidate / SIDECAR).is_file():
            return candidate / SIDECAR
    return folder / SIDECAR
