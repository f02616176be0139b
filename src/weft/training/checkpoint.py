"""The folder of a training run: a manifest of everything that can change its weights, the state to go on from, a log of
losses, and the weights, which are a model for `weft run`.

Guarantee: a folder never holds the weights of one run with the manifest of another.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

from weft.errors import UserError
from weft.untrusted import parse_json, read_file

MANIFEST_FILE = "training.json"
STATE_FILE = "state.pt"  # the trainer's own: weights and optimizer at the last checkpoint
LOG_FILE = "losses.jsonl"
MAX_MANIFEST_BYTES = 1 << 20


class Checkpoint(Struct, frozen=True):
    folder: Path
    step: int  # as far as training got
    manifest: Mapping[str, Any]  # what was asked for
    seen: Mapping[str, int] = {}  # rows really seen, by source
    done: bool = False

    @property
    def digest(self) -> str:
        return digest_manifest(self.manifest)


class StoredCheckpoint(Struct, frozen=True):
    """The manifest's file."""

    manifest: dict[str, Any]
    step: int
    seen: dict[str, int]
    done: bool


def digest_manifest(manifest: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()[:16]


def read_checkpoint(folder: Path) -> Checkpoint | None:
    """Return what a folder holds; None if nothing was trained there. Raises UserError for a broken manifest."""
    file = folder / MANIFEST_FILE
    try:
        data = read_file(file, MAX_MANIFEST_BYTES)
    except FileNotFoundError:
        return None
    stored = parse_json(data, f"{file}: this is no training manifest", StoredCheckpoint)
    return Checkpoint(folder, stored.step, stored.manifest, stored.seen, stored.done)


def open_checkpoint(folder: Path, manifest: Mapping[str, Any]) -> Checkpoint:
    """Return where to go on: at step 0 in a new folder, else at the folder's last checkpoint.

    Raises UserError if the folder holds another run, and says in what they differ.
    """
    stored = read_checkpoint(folder)
    if stored is None:
        return Checkpoint(folder, 0, manifest)
    for name in sorted({*stored.manifest, *manifest}):
        before = stored.manifest.get(name)
        now = manifest.get(name)
        if before != now:
            raise UserError(
                f"{folder} holds another training run: its {name} is {before!r}, not {now!r}; give another --out"
            )
    return stored


def write_checkpoint(checkpoint: Checkpoint) -> None:
    """Write the manifest, whole or not at all."""
    checkpoint.folder.mkdir(parents=True, exist_ok=True)
    content = {
        "manifest": checkpoint.manifest,
        "step": checkpoint.step,
        "seen": checkpoint.seen,
        "done": checkpoint.done,
    }
    replace_file(checkpoint.folder / MANIFEST_FILE, (json.dumps(content, indent=1) + "\n").encode())


@contextmanager
def hold_folder(folder: Path) -> Generator[None]:
    """Keep other processes from training into a folder. Raises UserError if one does."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)  # the folder itself is locked: nothing is left in it
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"{folder}: another process is training into it; wait for it, or give another --out"
            raise UserError(message) from None
        yield
    finally:
        os.close(handle)


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file at once: a reader, or a kill, never meets half of it."""
    part = path.with_name(f".{path.name}.part")
    with part.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
