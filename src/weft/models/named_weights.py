"""Files of weights that a user's code or values name by their path: they count by their content."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from weft.errors import UserError
from weft.models.local.weights import digest_files

MAX_PATH_CHARS = 1024  # of a text that may be the path of a file
MAX_DEPTH = 3  # of folders below a checkpoint
CHECKPOINT_FILES = (
    "model_index.json",
    "config.json",
    "adapter_config.json",
    "modules.json",
    "params.json",
    "trainer_state.json",
)
PIPELINE_FILES = ("model_index.json", "modules.json")  # of a folder whose parts are in folders below it
WEIGHT_SUFFIXES = (
    ".safetensors",
    ".pt",
    ".pth",
    ".ckpt",
    ".bin",
    ".npz",
    ".npy",
    ".pkl",
    ".pickle",
    ".joblib",
    ".onnx",
    ".gguf",
    ".h5",
    ".keras",
    ".msgpack",
    ".distcp",
    ".pdparams",
    ".params",
    ".tflite",
    ".engine",
    ".nemo",
    ".th",
)


class NamedWeights:
    """Digests of files and folders of weights; each is read once. `memory` is the file that stores digests.

    `sampled`: nothing is read, files count by size and times."""

    def __init__(self, memory: Path | None, *, sampled: bool = False) -> None:
        self._memory = memory
        self._sampled = sampled
        self._digests: dict[Path, str] = {}

    def digest(self, text: str) -> str:
        """Return the digest of a file of weights, or of those in a folder, if the text is its path; else ""."""
        if not text or len(text) > MAX_PATH_CHARS or "\n" in text or "\0" in text:
            return ""
        path = Path(text)
        if path.suffix not in WEIGHT_SUFFIXES and "/" not in text:
            return ""
        if text.startswith("~/"):
            path = Path.home() / text.removeprefix("~/")
        if path not in self._digests:
            self._digests[path] = self._digest_files(path)
        return self._digests[path]

    def _digest_files(self, path: Path) -> str:
        files = _files_at(path)
        parts = _files_below(files, path)
        below: list[str] = []
        if any(file.name in PIPELINE_FILES for file in files):
            files += parts
        else:
            below = [_stamp(file, path) for file in parts]
        if not any(file.suffix in WEIGHT_SUFFIXES for file in files) and not below:
            return ""
        if self._sampled:
            return "\0".join(_stamp(file, path) for file in (*files, *parts))
        try:
            digests = digest_files([file.absolute() for file in files], self._memory)
        except OSError as error:
            raise UserError(f"{path} cannot be read: {error}") from None
        names = [file.relative_to(path).as_posix() if path.is_dir() else file.name for file in files]
        content = "\0".join((*names, *digests, *below))
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _files_at(path: Path) -> list[Path]:
    """Return the file of weights at a path, or the files in a folder that are weights or settings beside them.

    A path that cannot be looked at has none: nearly every text is no path.
    """
    try:
        if path.is_file():
            return [path] if path.suffix in WEIGHT_SUFFIXES else []
        suffixes = (*WEIGHT_SUFFIXES, ".json")
        return [file for file in sorted(path.iterdir()) if file.suffix in suffixes and file.is_file()]
    except OSError:
        return []


def _files_below(files: Sequence[Path], folder: Path) -> list[Path]:
    """Return the weights in the folders below a checkpoint, such as a pipeline's parts.

    A folder that is no checkpoint itself may have many below it: they are not looked at.
    """
    if not any(file.name in CHECKPOINT_FILES for file in files):
        return []
    below: list[Path] = []
    for parent, folders, names in os.walk(folder):
        place = Path(parent)
        if place == folder:
            continue
        if len(place.parts) - len(folder.parts) >= MAX_DEPTH:
            folders.clear()
        below += [place / name for name in names if Path(name).suffix in WEIGHT_SUFFIXES]
    return sorted(below)


def _stamp(file: Path, folder: Path) -> str:
    """Return what tells a file from its next version without reading it: other checkpoints of a training are large."""
    try:
        stat = file.stat()
    except OSError:
        return f"{file} cannot be read"
    return f"{file.relative_to(folder).as_posix()} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns}"
