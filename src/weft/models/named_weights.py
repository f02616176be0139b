"""Files of weights that a user's code or values name by their path: they count by their content."""

import hashlib
from pathlib import Path

from weft.errors import UserError
from weft.models.local.weights import digest_files

MAX_PATH_CHARS = 1024  # of a text that may be the path of a file
WEIGHT_SUFFIXES = (
    ".safetensors",
    ".pt",
    ".pth",
    ".ckpt",
    ".bin",
    ".npz",
    ".npy",
    ".pkl",
    ".onnx",
    ".gguf",
    ".h5",
    ".msgpack",
)


class NamedWeights:
    """Digests of files and folders of weights; each is read once. `memory` is the file that stores digests."""

    def __init__(self, memory: Path | None) -> None:
        self._memory = memory
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
        try:
            if path.is_file():
                files = [path] if path.suffix in WEIGHT_SUFFIXES else []
            elif path.is_dir():
                files = _files_of_model(path)
            else:
                return ""
            digests = digest_files([file.absolute() for file in files], self._memory)
        except OSError as error:
            raise UserError(f"{path} cannot be read: {error}") from None
        if not digests:
            return ""
        content = "\0".join((*(file.name for file in files), *digests))
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _files_of_model(folder: Path) -> list[Path]:
    """Return the files of weights in a folder, with the settings beside them; none if there are no weights."""
    files = [file for file in sorted(folder.iterdir()) if file.suffix in (*WEIGHT_SUFFIXES, ".json") and file.is_file()]
    if any(file.suffix in WEIGHT_SUFFIXES for file in files):
        return files
    return []
