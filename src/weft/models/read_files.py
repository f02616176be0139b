"""What a user's code may read when it is called, so that its answers can change while it stays the same.

No digest covers it: it is named in a note.
"""

import builtins
from pathlib import Path
from types import CodeType
from typing import Any

from weft.models.code_digest import is_installed, names_in
from weft.models.named_weights import MAX_PATH_CHARS

# Names of functions that read files, settings, servers or a registry when they are called.
READERS = frozenset(
    {"open", "load", "load_file", "from_pretrained", "from_single_file", "read_bytes", "read_text", "memmap"}
    | {"safe_load", "loadtxt", "genfromtxt", "fromfile", "imread", "read_csv", "read_json", "read_parquet"}
    | {"safe_open", "load_model", "load_weights", "load_checkpoint", "load_from_checkpoint", "load_dataset"}
    | {"FileIO", "ZipFile", "TarFile", "NpzFile", "InferenceSession", "from_file", "getline", "get_data"}
    | {"listdir", "scandir", "iterdir", "glob", "rglob", "getcwd", "urlretrieve", "snapshot_download"}
    | {"environ", "getenv", "urlopen", "request", "post", "create", "import_module", "hf_hub_download"}
    | {"requests", "httpx", "subprocess", "socket", "connect", "popen", "Popen", "globals", "eval", "exec"}
    | {"__import__", "parse_args", "stdin", "input", "__subclasses__"}
)
READER_FUNCTIONS: tuple[Any, ...] = (builtins.open, builtins.input)  # whatever a user calls them


def readers_in(code: CodeType) -> list[str]:
    """Return the names of functions that code calls and that may read something."""
    return sorted(names_in(code) & READERS)


def named_file(text: str) -> str:
    """Return a text that is the path of a file, "" for any other. Code counts by itself, and a file of an installed
    package does not change."""
    if not 0 < len(text) <= MAX_PATH_CHARS or "\n" in text or "\0" in text or not ("/" in text or Path(text).suffix):
        return ""
    if Path(text).suffix == ".py":
        return ""
    try:
        is_file = Path(text).expanduser().is_file()
    except (OSError, RuntimeError):
        return ""
    if is_file and not is_installed("", str(Path(text).absolute())):
        return text
    return ""
