"""A large dataset of the hub, file by file: each archive is unpacked when it has arrived, and then removed, so that the
disk holds the data and one archive. A download that was interrupted goes on where it stopped.
"""

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from weft.benchmarks.download import HUB_URL, unpack_archive
from weft.errors import UserError
from weft.secrets import scrub
from weft.store.blobs import write_file

STREAMED_DATASETS = {  # name -> its repository, and the folders and files that belong to something else
    "weave-100k": ("WeiChow/WEAVE", ("test/", "test.zip", ".gitattributes", "README.md")),
}
STATE_FILE = ".weft-download.json"  # in the dataset's folder: the archives that are unpacked
OTHER_ARCHIVES = (".tar", ".gz", ".tgz", ".7z", ".rar", ".zst")
OnFile = Callable[[int, int, str], None]  # number of the file, of how many, its name


def stream_dataset(name: str, out: Path | None, on_file: OnFile | None = None) -> tuple[Path, list[str]]:
    """Download a dataset by weft's name for it. Return its folder, and the archives that must be unpacked by hand.

    Raises UserError where the hub cannot be reached, or an archive cannot be unpacked; the same command goes on.
    """
    repository, excluded = STREAMED_DATASETS[name]
    folder = out or Path(name)
    by_hand = (
        f"by hand: download the training files of {HUB_URL}/{repository} into {folder}/, unpack them there, and give "
        "that folder as the dataset's"
    )
    hub = _import_hub(name, by_hand)
    files = [file for file in _list_files(hub, name, repository, by_hand) if not _is_excluded(file, excluded)]
    if not files:
        raise UserError(f"{name}: {HUB_URL}/{repository} has no training files; has it moved? Otherwise {by_hand}")
    unpacked = _read_state(folder)
    for number, file in enumerate(files, start=1):
        if on_file is not None:
            on_file(number, len(files), file)
        if file in unpacked:
            continue
        path = _download(hub, name, repository, file, folder, by_hand)
        if path.suffix == ".zip":
            unpack_archive(path)
            unpacked.append(file)
            _write_state(folder, unpacked)
            path.unlink()
    left = [file for file in files if file.endswith(OTHER_ARCHIVES)]
    return folder, left


def _import_hub(name: str, by_hand: str) -> Any:
    try:
        return importlib.import_module("huggingface_hub")
    except ImportError:
        raise UserError(
            f"{name}: fetching from the hub needs huggingface_hub, which is not installed; install the extra, from the "
            f"clone: pip install -e '.[hub]'; or {by_hand}"
        ) from None


def _list_files(hub: Any, name: str, repository: str, by_hand: str) -> Sequence[str]:
    try:
        return sorted(hub.list_repo_files(repository, repo_type="dataset"))
    except Exception as error:  # whatever the library raises: no network, no such dataset, no permission
        raise _unreachable(name, repository, error, by_hand) from None


def _download(hub: Any, name: str, repository: str, file: str, folder: Path, by_hand: str) -> Path:
    try:
        return Path(hub.hf_hub_download(repository, file, repo_type="dataset", local_dir=folder))
    except Exception as error:  # see _list_files; a full disk too
        raise _unreachable(name, f"{repository}: {file}", error, by_hand) from None


def _unreachable(name: str, what: str, error: Exception, by_hand: str) -> UserError:
    problem = scrub(str(error).strip().partition("\n")[0])[:300]
    return UserError(
        f"{name}: {what} could not be fetched from the hub ({type(error).__name__}: {problem}); run the same command "
        f"again, or {by_hand}"
    )


def _is_excluded(file: str, excluded: Sequence[str]) -> bool:
    """Whether a file is another dataset's, or has a name that would lead out of the folder."""
    path = PurePosixPath(file)
    if path.is_absolute() or ".." in path.parts:
        return True
    return file in excluded or any(folder.endswith("/") and file.startswith(folder) for folder in excluded)


def _read_state(folder: Path) -> list[str]:
    try:
        return msgspec.json.decode((folder / STATE_FILE).read_bytes(), type=list[str])
    except (OSError, ValueError):  # there is none yet, or it is damaged: archives are downloaded again
        return []


def _write_state(folder: Path, unpacked: Sequence[str]) -> None:
    write_file(folder / STATE_FILE, msgspec.json.encode(unpacked))
