"""Datasets from the Hugging Face hub (extra `hub`), by their names.

Offline, or without the extra, the error says what to download by hand and where to put it. Archives are unpacked next
to themselves: only regular files inside the dataset's folder, and never more bytes than an archive may expand to.
"""

import importlib
import shutil
import stat
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from weft.errors import UserError
from weft.secrets import scrub
from weft.untrusted import open_file

HUB_URL = "https://huggingface.co/datasets"
HUB_DATASETS = {  # name -> its repository and the folders to download, as the authors' pages give them
    "weave": ("WeiChow/WEAVE", ("test",)),
    "rover": ("cheryyunl/ROVER", ("ROVER-IG", "ROVER-TG")),
    "rover-ig": ("cheryyunl/ROVER", ("ROVER-IG",)),
    "rover-tg": ("cheryyunl/ROVER", ("ROVER-TG",)),
}
PARQUET_DATASETS = ("rover", "rover-ig", "rover-tg")  # without a .parquet file their download is incomplete
MAX_ARCHIVE_BYTES = 2_000_000_000_000
MAX_UNPACKED_BYTES = 50_000_000_000
MAX_UNPACKED_RATIO = 200  # an archive may expand to so many times its size
PLAIN_RATIO = 3  # and beyond MAX_UNPACKED_BYTES to so many times: images hardly shrink in an archive
# what zipfile raises for an archive that is damaged, encrypted or compressed by a method that it does not know
BROKEN_ARCHIVE = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError, OSError)
MIN_ARCHIVE_SIZE = 1_000_000  # smaller archives may expand as far as one of this size


def download_dataset(name: str, out: Path | None) -> Path:
    """Download a dataset by weft's name for it, or by OWNER/NAME, unpack its archives, and return its folder."""
    repository, folders = HUB_DATASETS.get(name, (name, ()))
    if "/" not in repository:
        raise UserError(
            f"weft does not know where {name} is on the hub (it knows {', '.join(HUB_DATASETS)}): give its name there, "
            f"as in weft data get OWNER/NAME --out {name}; or point --data at the folder that you have"
        )
    folder = download_folders(
        repository, out or Path(name.rpartition("/")[2]), folders, name, any_file=name not in PARQUET_DATASETS
    )
    for archive in sorted(folder.rglob("*.zip")):
        unpack_archive(archive)
    return folder


def unpack_archive(archive: Path) -> None:
    """Unpack an archive into its own folder, except for files that are there already.

    Raises UserError for an entry that is no regular file inside the folder, or if the archive expands too far.
    """
    size = archive.stat().st_size
    limit = max(min(MAX_UNPACKED_BYTES, MAX_UNPACKED_RATIO * max(size, MIN_ARCHIVE_SIZE)), PLAIN_RATIO * size)
    try:
        with zipfile.ZipFile(open_file(archive, MAX_ARCHIVE_BYTES, UserError)) as opened:
            entries = opened.infolist()
            size = sum(entry.file_size for entry in entries)
            if size > limit:
                raise UserError(
                    f"{archive} would expand to {size:,} bytes, more than the limit of {limit:,}; "
                    "unpack it by hand, if you trust it"
                )
            for entry in entries:
                _unpack_entry(opened, entry, archive)
    except BROKEN_ARCHIVE as error:
        raise UserError(f"{archive} cannot be unpacked: {error}; download it again, or unpack it by hand") from None


def _unpack_entry(opened: zipfile.ZipFile, entry: zipfile.ZipInfo, archive: Path) -> None:
    path = PurePosixPath(entry.filename)
    leads_out = not path.parts or path.is_absolute() or ".." in path.parts or "\\" in entry.filename
    if leads_out or stat.S_ISLNK(entry.external_attr >> 16):
        raise UserError(f"{archive}: {entry.filename!r} would not be a plain file inside its folder")
    target = archive.parent / path
    if entry.is_dir() or (target.is_file() and target.stat().st_size == entry.file_size):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".part-{target.name}")
    try:
        with opened.open(entry) as source, partial.open("wb") as destination:
            shutil.copyfileobj(source, destination)
        partial.rename(target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def download_folders(
    repository: str, out: Path | None, folders: Sequence[str], name: str, *, any_file: bool = False
) -> Path:
    """Download folders of a hub dataset into `out`, or into the hub library's cache, and return where they are.

    `name` is what weft calls the dataset. Unless `any_file`, at least one .parquet file must have come.
    """
    pattern = "*" if any_file else "*.parquet"
    wanted = ", ".join(f"{folder}/{pattern}" for folder in folders) or "all files"
    by_hand = (
        f"by hand: download {wanted} from {HUB_URL}/{repository} into {f'{out}/' if out else 'a folder'}, "
        "keeping the folders, then give that folder as --data"
    )
    try:
        hub: Any = importlib.import_module("huggingface_hub")
    except ImportError:
        raise UserError(
            f"{name}: fetching from the hub needs huggingface_hub, which is not installed; install the extra, from the "
            f"clone: pip install -e '.[hub]'; or {by_hand}"
        ) from None
    options: dict[str, Any] = {}
    if folders:
        options["allow_patterns"] = [f"{folder}/*" for folder in folders]
    if out:
        options["local_dir"] = out
    try:
        folder = Path(hub.snapshot_download(repository, repo_type="dataset", **options))
    except KeyboardInterrupt:
        raise
    except Exception as error:  # whatever the library raises: no network, no such dataset, no permission, a full disk
        problem = scrub(str(error).strip().partition("\n")[0])[:300]
        raise UserError(
            f"{name}: {repository} could not be fetched from the hub ({type(error).__name__}: {problem}); {by_hand}"
        ) from None
    if not any(path.is_file() for path in folder.rglob(pattern)):
        raise UserError(f"{name}: {HUB_URL}/{repository} has none of {wanted}; has it moved? Otherwise {by_hand}")
    return folder
