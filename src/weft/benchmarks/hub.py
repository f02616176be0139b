"""Datasets by their names on the Hugging Face hub (extra `hub`). Offline, or without the extra, what to download and where to put it is
said in full."""

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from weft.errors import UserError
from weft.secrets import scrub

PLACE = "https://huggingface.co/datasets"


def download(name: str, out: Path | None, folders: Sequence[str], called: str) -> Path:
    """The folders of a dataset, in `out`, or where the hub's own library keeps what it fetched. `called` is what weft calls it."""
    wanted = ", ".join(f"{folder}/*.parquet" for folder in folders)
    where = f"{out}/" if out else "a folder"
    by_hand = f"by hand: download {wanted} from {PLACE}/{name} into {where}, keeping the folders, then give that folder as --data"
    try:
        hub: Any = importlib.import_module("huggingface_hub")
    except ImportError:
        raise UserError(
            f"{called}: fetching from the hub needs huggingface_hub, which is not here; install the extra, from the clone: "
            f"pip install -e '.[hub]'; or {by_hand}"
        ) from None
    patterns = [f"{folder}/*" for folder in folders]
    try:
        told = hub.snapshot_download(name, repo_type="dataset", allow_patterns=patterns, **({"local_dir": out} if out else {}))
    except KeyboardInterrupt:
        raise
    except Exception as error:  # whatever its library raises: no network, no such dataset, no permission, a full disk
        why = scrub(str(error).strip().partition("\n")[0])[:300]
        raise UserError(f"{called}: {name} could not be fetched from the hub ({type(error).__name__}: {why}); {by_hand}") from None
    found = Path(told)
    if not any(found.rglob("*.parquet")):
        raise UserError(f"{called}: {PLACE}/{name} has none of {wanted}; has it moved? Otherwise {by_hand}")
    return found
