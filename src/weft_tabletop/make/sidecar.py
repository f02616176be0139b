"""The symbolic truth of a tabletop dataset, for the exact judge: `tabletop.json` beside the official files."""

import json
from pathlib import Path
from typing import Any

SIDECAR = "tabletop.json"


def write_sidecar(folder: Path, truth: dict[str, Any]) -> None:
    (folder / SIDECAR).write_text(json.dumps({"version": 1, "samples": truth}, indent=1) + "\n", encoding="utf-8")


def sidecar_of(data: Path) -> Path:
    """Where the sidecar of a dataset is, or would be."""
    folders = (data.parent if data.is_file() else data, data / "test", data / "data")
    return next((folder / SIDECAR for folder in folders if (folder / SIDECAR).is_file()), folders[0] / SIDECAR)
