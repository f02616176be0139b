"""Where local weights are, and what identifies them.

A folder is used as it is, without a network; a name is a repository on the Hugging Face hub, or in its cache. Cache
keys contain the commit of a repository, or a digest of all files of a folder: weights that were trained further in the
same folder are other weights. Digests are stored by size and times of each file, so that each is computed once. Only
safetensors are downloaded and read: other formats can contain programs.
"""

import functools
import hashlib
import importlib
import importlib.metadata
import os
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct

from weft.errors import UserError
from weft.store.blobs import Blobs, write_file
from weft.untrusted import dict_or_empty, read_text_file

SNAPSHOT = re.compile(r"/snapshots/([0-9a-f]{40})/?$")
CARD = "README.md"  # a repository's model card
CARD_HEADER = re.compile(r"---\s*\n(.*?)\n---", re.DOTALL)
LICENCE_LINE = re.compile(r"^(license|license_name):[ \t]*([\w.'\"-]{1,100})[ \t]*$", re.MULTILINE)
REPOSITORY_NAME = re.compile(r"[\w.-]+/[\w.-]+|[\w.-]+")
OTHER_FORMATS = (
    "*.bin",
    "*.pt",
    "*.pth",
    "*.ckpt",
    "*.h5",
    "*.msgpack",
    "*.onnx",
    "*.gguf",
    "*.pkl",
    "*.pickle",
    "*.md",
    "original/*",
)
# the files that a model consists of: no optimizer states, no logs
MODEL_SUFFIXES = (".safetensors", ".json", ".jinja", ".txt", ".model", ".tiktoken", ".py")
CHUNK_BYTES = 1 << 22
PROVIDER_BY_FILE = {"config.json": "hf/", "model_index.json": "diffusers/"}
OTHER_FILE = {"config.json": "model_index.json", "model_index.json": "config.json"}
ReportProgress = Callable[[str], None]


class Weights(Struct, frozen=True):
    """Weights in a folder or on the hub."""

    name: str  # as the user wrote it
    folder: Path | None  # None while they are not downloaded
    repository: str  # "" for a folder
    commit: str
    identity: Mapping[str, str]  # their part of a model's identity: a commit, a digest, or the user's version
    config: Mapping[str, Any]
    licence: str = ""  # as their model card says

    def ensure_local(self, tell: ReportProgress) -> Path:
        """Return the folder of the weights; they are downloaded if need be. Raises UserError."""
        if self.folder is not None:
            return self.folder
        components = component_folders(self.config)
        filters: dict[str, Any] = {"ignore_patterns": [*OTHER_FORMATS, "*/*"]}
        if components:
            filters = {
                "allow_patterns": ["model_index.json", *(f"{component}/*" for component in components)],
                "ignore_patterns": [*OTHER_FORMATS, "*.fp16.*", "*.non_ema.*"],
            }
        try:
            folder = import_hub().snapshot_download(
                self.repository, revision=self.commit, tqdm_class=_progress_bar(self.name, tell), **filters
            )
        except Exception as error:
            raise UserError(_explain_hub_error(self.repository, error)) from None
        return Path(folder)


def import_hub() -> Any:
    return import_extra("huggingface_hub")


def import_extra(module: str, extra: str = "local") -> Any:
    """Import a library of an extra. Raises UserError with what to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UserError(
            f"{module} is needed ({error}); install the extra, from the clone: pip install -e '.[{extra}]'"
        ) from None


def library_versions(*names: str) -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in names}


def locate_weights(name: str, file: str, blobs: Blobs, *, revision: str = "", version: str = "") -> Weights:
    """Return the weights that a name means, with the content of their `file` (config.json, model_index.json).

    Raises UserError if there is no such folder or repository.
    """
    folder = Path(name).expanduser()
    if folder.is_dir():
        if revision:
            raise UserError(f"{name} is a folder: revision={revision} is for a repository's name")
        return _weights_in_folder(name, folder.resolve(), file, blobs, version)
    if name.startswith(("/", "~", ".")) or REPOSITORY_NAME.fullmatch(name) is None:
        raise UserError(f"{name}: there is no such folder")
    if folder.parent != Path() and folder.parent.is_dir():
        siblings = sorted(path.name for path in folder.parent.iterdir() if path.is_dir())[:10]
        hint = f" (there is {', '.join(siblings)})" if siblings else ""
        raise UserError(f"{name}: there is no such folder in {folder.parent}{hint}")
    hub = import_hub()
    try:
        path = Path(hub.hf_hub_download(name, file, revision=revision or None))
    except Exception as error:
        raise UserError(_explain_hub_error(name, error, file)) from None
    commit = path.parent.name
    identity = {"version": version} if version else {"commit": commit}
    return Weights(name, None, name, commit, identity, _read_config(path, name), read_licence(path.parent))


def _weights_in_folder(name: str, folder: Path, file: str, blobs: Blobs, version: str) -> Weights:
    snapshot = SNAPSHOT.search(folder.as_posix())
    commit = snapshot[1] if snapshot else ""
    config = _read_config(folder / file, name)
    if version:
        identity = {"version": version}
    elif commit:
        identity = {"commit": commit}
    else:
        digest = weights_digest(folder, component_folders(config), blobs.root.parent / "weights.json")
        identity = {"weights": digest}
    return Weights(name, folder, "", commit, identity, config, read_licence(folder))


def read_licence(folder: Path) -> str:
    """Return the licence that the header of a model card names; empty if there is no card, or it names none."""
    try:
        text = read_text_file(folder / CARD)
    except (OSError, UserError):
        return ""
    header = CARD_HEADER.match(text)
    if header is None:
        return ""
    lines = dict(LICENCE_LINE.findall(header[1]))
    licence = lines.get("license", "").strip("'\"")
    return lines.get("license_name", "").strip("'\"") or licence if licence == "other" else licence


def _read_config(path: Path, name: str) -> Mapping[str, Any]:
    if not path.is_file():
        other = OTHER_FILE[path.name]
        hint = ""
        if (path.parent / other).is_file():
            hint = f"; it has {other}, so write {PROVIDER_BY_FILE[other]}{name}"
        raise UserError(f"{name} has no {path.name}: it is no folder of {PROVIDER_BY_FILE[path.name]} weights{hint}")
    try:
        return dict_or_empty(msgspec.json.decode(read_text_file(path)))
    except (msgspec.DecodeError, RecursionError) as error:
        raise UserError(f"{path}: {error}") from None


def _explain_hub_error(name: str, error: Exception, file: str = "") -> str:
    """Return why a repository cannot be downloaded, and what to do."""
    kind = type(error).__name__
    if kind in ("EntryNotFoundError", "RemoteEntryNotFoundError"):
        message = f"{name} has no {file}"
        if file in OTHER_FILE:
            message += f"; if it is of the other kind, write {PROVIDER_BY_FILE[OTHER_FILE[file]]}{name}"
        return message
    if kind == "GatedRepoError":
        return f"{name} wants its terms to be accepted on the hub, and a token: set HF_TOKEN"
    if kind == "RevisionNotFoundError":
        return f"{name} has no such revision"
    reasons = {
        "RepositoryNotFoundError": (
            "there is no such folder here, and no such repository on the hub (or it is private: set HF_TOKEN)"
        ),
        "LocalEntryNotFoundError": (
            "there is no such folder here, the hub cannot be reached, and it is not in the hub's cache"
        ),
        "OfflineModeIsEnabled": "there is no such folder here, and the hub is switched off (HF_HUB_OFFLINE)",
    }
    first_line = (str(error).strip().splitlines() or [""])[0]
    reason = reasons.get(kind, f"it could not be downloaded from the hub ({kind}: {first_line})")
    return (
        f"{name}: {reason}. Fetch it where there is a network (hf download {name} --local-dir DIR), "
        "and give the folder: DIR"
    )


def weights_digest(folder: Path, components: Sequence[str], memory: Path) -> str:
    """Return a digest of names and bytes of all files of a model, in its folder and in the `components` below it.

    `memory` is the file that stores digests of single files, by size and times.
    """
    files = _model_files(folder, components)
    lines: list[str] = []
    for path, digest in zip(files, digest_files(files, memory), strict=True):
        lines.append(f"{path.relative_to(folder).as_posix()} {digest}")
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def digest_files(files: Sequence[Path], memory: Path | None) -> list[str]:
    """Return the digests of all bytes of files. `memory` is the file that stores them by size and times."""
    known: dict[str, str] = {}
    if memory is not None:
        with suppress(OSError, msgspec.DecodeError, ValueError):
            known = msgspec.json.decode(memory.read_bytes(), type=dict[str, str])
    with ThreadPoolExecutor(min(8, (os.cpu_count() or 1) + 1)) as pool:
        digests = list(pool.map(functools.partial(_stamp_and_digest, known), files))
    new = {stamp: digest for stamp, digest in digests if stamp and stamp not in known}
    if new and memory is not None:
        with suppress(OSError):
            memory.parent.mkdir(parents=True, exist_ok=True)
            write_file(memory, msgspec.json.encode({**known, **new}))
    return [digest for _, digest in digests]


def _model_files(folder: Path, components: Sequence[str]) -> list[Path]:
    """Return the files that a model consists of, in a fixed order."""
    files: list[Path] = []
    for place in (folder, *(folder / component for component in components)):
        if place.is_dir():
            files += [path for path in sorted(place.iterdir()) if _is_model_file(path)]
    return files


def _is_model_file(path: Path) -> bool:
    return path.suffix in MODEL_SUFFIXES and path.is_file() and path.name[0] != "."


def _stamp_and_digest(known: Mapping[str, str], path: Path) -> tuple[str, str]:
    """Return the stamp under which a file's digest is stored, and the digest; no stamp if the file changed
    meanwhile."""
    stamp = _stamp(path)
    if stamp in known:
        return stamp, known[stamp]
    digest = _digest_file(path)
    if _stamp(path) != stamp:
        return "", digest
    return stamp, digest


def _stamp(path: Path) -> str:
    stat = path.stat()
    # the time of the last change as well: nobody can set it, and copying a file can keep the other times
    return f"{path} {stat.st_size} {stat.st_mtime_ns} {stat.st_ino} {stat.st_ctime_ns}"


def _digest_file(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _progress_bar(name: str, tell: ReportProgress) -> Any:
    """Return a class of progress bars for the hub's library, which report to `tell` instead of the screen."""
    tqdm: Any = importlib.import_module("tqdm").tqdm

    def display(bar: Any, *_: Any, **__: Any) -> None:
        if not bar.total:
            return
        progress = f"{bar.n} of {bar.total} files"
        if bar.unit == "B":
            progress = f"{bar.n / 1e9:.2f} of {bar.total / 1e9:.2f} GB"
        tell(f"fetching {name}: {progress}")

    def init(bar: Any, *arguments: Any, **named: Any) -> None:
        tqdm.__init__(bar, *arguments, **{**named, "disable": False, "file": _NullFile()})

    return type("Bar", (tqdm,), {"__init__": init, "display": display})


class _NullFile:
    def write(self, _: str) -> None: ...

    def flush(self) -> None: ...


def component_folders(config: Mapping[str, Any]) -> list[str]:
    """Return the folders of a pipeline's components; none for a model that has no components."""
    if "_class_name" not in config:
        return []
    return sorted(name for name in config if not name.startswith("_") and Path(name).name == name)


def architecture_of(config: Mapping[str, Any]) -> str:
    """Return the class of the weights; "" if they name none."""
    architectures: Any = config.get("architectures")
    if isinstance(architectures, list) and architectures:
        return str(cast(list[Any], architectures)[0])
    return ""
