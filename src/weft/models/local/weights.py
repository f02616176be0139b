"""Where weights are, and what they are known by.

A folder is taken as it lies, with no network; a name is a repository on the Hugging Face hub, or in its cache. What
answers are kept under is the commit of a repository, or a digest of all files of a folder: weights that were trained
further in the same folder are other weights. Digests are remembered by size and time of each file, so that they are
taken once. Only safetensors are fetched and read: other formats can hold programs."""

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
SHORT = re.compile(r"[\w.-]+/[\w.-]+|[\w.-]+")
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
# what a model is made of; no optimizer's state, no log
COUNT = (".safetensors", ".json", ".jinja", ".txt", ".model", ".tiktoken", ".py")
PIECE = 1 << 22
ReportProgress = Callable[[str], None]


class Weights(Struct, frozen=True):
    """`known_by` is what of them is part of a model's identity: a commit, a digest, or the version that the user
    gave."""

    name: str
    folder: Path | None  # none while they are still to be fetched
    repository: str
    commit: str
    identity: Mapping[str, str]
    config: Mapping[str, Any]

    def ensure_local(self, tell: ReportProgress) -> Path:
        """The folder that they are in, once they are there."""
        if self.folder is not None:
            return self.folder
        try:
            parts = component_folders(self.config)
            wanted = {"allow_patterns": ["model_index.json", *(f"{part}/*" for part in parts)]} if parts else {}
            left_out = [*OTHER_FORMATS, *(["*.fp16.*", "*.non_ema.*"] if parts else ["*/*"])]
            told = import_hub().snapshot_download(
                self.repository,
                revision=self.commit,
                ignore_patterns=left_out,
                tqdm_class=_bar(self.name, tell),
                **wanted,
            )
        except Exception as error:
            raise UserError(_unreachable(self.repository, error)) from None
        return Path(told)


def import_hub() -> Any:
    return import_extra("huggingface_hub")


def import_extra(module: str, extra: str = "local") -> Any:
    """A library of an extra. Raises UserError with what to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UserError(
            f"{module} is needed ({error}); install the extra, from the clone: pip install -e '.[{extra}]'"
        ) from None


def library_versions(*names: str) -> dict[str, str]:
    return {name: importlib.metadata.version(name) for name in names}


def locate_weights(name: str, file: str, blobs: Blobs, *, revision: str = "", version: str = "") -> Weights:
    """The weights that a name means, with what `file` in them says (config.json, model_index.json). Raises
    UserError."""
    place = Path(name).expanduser()
    if place.is_dir():
        if revision:
            raise UserError(f"{name} is a folder: revision={revision} is for a repository's name")
        place = place.resolve()
        snapshot = SNAPSHOT.search(place.as_posix())
        config = _config(place / file, name)
        if version:
            known = {"version": version}
        elif snapshot:
            known = {"commit": snapshot[1]}
        else:
            known = {"weights": weights_digest(place, component_folders(config), blobs.root.parent / "weights.json")}
        return Weights(name, place, "", snapshot[1] if snapshot else "", known, config)
    if name.startswith(("/", "~", ".")) or SHORT.fullmatch(name) is None:
        raise UserError(f"{name}: there is no such folder")
    if place.parent != Path() and place.parent.is_dir():
        there = sorted(one.name for one in place.parent.iterdir() if one.is_dir())[:10]
        raise UserError(
            f"{name}: there is no such folder in {place.parent}" + (f" (there is {', '.join(there)})" if there else "")
        )
    library = import_hub()
    try:
        at = Path(library.hf_hub_download(name, file, revision=revision or None))
    except Exception as error:
        raise UserError(_unreachable(name, error, file)) from None
    commit = at.parent.name
    return Weights(name, None, name, commit, {"version": version} if version else {"commit": commit}, _config(at, name))


def _config(path: Path, name: str) -> Mapping[str, Any]:
    if not path.is_file():
        if path.name == "config.json":
            there = "model_index.json"
        else:
            there = "config.json"
        kind = {"config.json": "hf/", "model_index.json": "diffusers/"}
        if (path.parent / there).is_file():
            hint = f"; it has {there}, so write {kind[there]}{name}"
        else:
            hint = ""
        raise UserError(f"{name} has no {path.name}: it is no folder of {kind[path.name]} weights{hint}")
    try:
        return dict_or_empty(msgspec.json.decode(read_text_file(path)))
    except (msgspec.DecodeError, RecursionError) as error:
        raise UserError(f"{path}: {error}") from None


def _unreachable(name: str, error: Exception, file: str = "") -> str:
    """Why a repository cannot be had, and what to do."""
    kind = type(error).__name__
    if kind == "EntryNotFoundError" or kind == "RemoteEntryNotFoundError":
        other = {"config.json": "diffusers/", "model_index.json": "hf/"}.get(file, "")
        return f"{name} has no {file}" + (f"; if it is of the other kind, write {other}{name}" if other else "")
    if kind == "GatedRepoError":
        return f"{name} wants its terms to be accepted on the hub, and a token: set HF_TOKEN"
    if kind == "RevisionNotFoundError":
        return f"{name} has no such revision"
    why = {
        "RepositoryNotFoundError": "there is no such folder here, and no such repository on the hub (or it is private: set HF_TOKEN)",
        "LocalEntryNotFoundError": "there is no such folder here, the hub cannot be reached, and it is not in the hub's cache",
        "OfflineModeIsEnabled": "there is no such folder here, and the hub is switched off (HF_HUB_OFFLINE)",
    }.get(
        kind,
        f"it could not be had from the hub ({kind}: {str(error).strip().splitlines()[0] if str(error).strip() else ''})",
    )
    return f"{name}: {why}. Fetch it where there is a network (hf download {name} --local-dir DIR), and give the folder: DIR"


def weights_digest(folder: Path, parts: Sequence[str], memory: Path) -> str:
    """Of the names and bytes of all files that a model is made of: in its folder, and in the `parts` below it. `memory`
    is where digests of single files are remembered, by size and time."""
    places = [folder, *(folder / part for part in parts if (folder / part).is_dir())]
    files = [
        path
        for place in places
        for path in sorted(place.iterdir())
        if path.suffix in COUNT and path.is_file() and path.name[0] != "."
    ]
    known: dict[str, str] = {}
    with suppress(OSError, msgspec.DecodeError, ValueError):
        known = msgspec.json.decode(memory.read_bytes(), type=dict[str, str])
    with ThreadPoolExecutor(min(8, (os.cpu_count() or 1) + 1)) as pool:
        found = list(pool.map(functools.partial(_remembered, known), files))
    fresh = {stamp: digest for stamp, digest in found if stamp and stamp not in known}
    if fresh:
        with suppress(OSError):
            memory.parent.mkdir(parents=True, exist_ok=True)
            write_file(memory, msgspec.json.encode({**known, **fresh}))
    told = "\n".join(
        f"{path.relative_to(folder).as_posix()} {digest}" for path, (_, digest) in zip(files, found, strict=True)
    )
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def _remembered(known: Mapping[str, str], path: Path) -> tuple[str, str]:
    """What a file is remembered by, and its digest; nothing to remember it by if it changed meanwhile."""
    before = _stamp(path)
    if before in known:
        return before, known[before]
    digest = _digest(path)
    return (before if _stamp(path) == before else ""), digest


def _stamp(path: Path) -> str:
    about = path.stat()
    return f"{path} {about.st_size} {about.st_mtime_ns} {about.st_ino}"


def _digest(path: Path) -> str:
    made = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            made.update(piece)
    return made.hexdigest()


def _bar(name: str, tell: ReportProgress) -> Any:
    """What the hub's library shows its progress by: it tells us instead of writing to the screen."""
    tqdm: Any = importlib.import_module("tqdm").tqdm

    def display(bar: Any, *_: Any, **__: Any) -> None:
        if bar.total:
            if bar.unit == "B":
                size = f"{bar.n / 1e9:.2f} of {bar.total / 1e9:.2f} GB"
            else:
                size = f"{bar.n} of {bar.total} files"
            tell(f"fetching {name}: {size}")

    def begin(bar: Any, *given: Any, **named: Any) -> None:
        tqdm.__init__(bar, *given, **{**named, "disable": False, "file": _Nowhere()})

    return type("Bar", (tqdm,), {"__init__": begin, "display": display})


class _Nowhere:
    def write(self, _: str) -> None: ...

    def flush(self) -> None: ...


def component_folders(config: Mapping[str, Any]) -> list[str]:
    """The folders that a pipeline's parts are in; none for a model that is all in one."""
    return sorted(
        name for name in config if not name.startswith("_") and "_class_name" in config and Path(name).name == name
    )


def architecture_of(config: Mapping[str, Any]) -> str:
    """The class that weights are of."""
    named: Any = config.get("architectures")
    if isinstance(named, list) and named:
        return str(cast(list[Any], named)[0])
    return ""
