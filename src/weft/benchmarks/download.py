"""Datasets by their names on the Hugging Face hub (extra `hub`). Offline, or without the extra, what to download and
where to put it is said in full. Archives are unpacked beside themselves: plain files alone, none of them outside the
folder, none of them a bomb."""

import importlib
import shutil
import stat
import zipfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from weft.errors import UserError
from weft.secrets import scrub

PLACE = "https://huggingface.co/datasets"
HUB_DATASETS = {  # name -> where it is, and which folders of it; all are as their authors' pages have them
    "weave": ("WeiChow/WEAVE", ("test",)),
    "rover": ("cheryyunl/ROVER", ("ROVER-IG", "ROVER-TG")),
    "rover-ig": ("cheryyunl/ROVER", ("ROVER-IG",)),
    "rover-tg": ("cheryyunl/ROVER", ("ROVER-TG",)),
}
LARGEST = 50_000_000_000  # bytes that an archive may come to
RATIO = 200  # times its own size that one may come to


def download_dataset(name: str, out: Path | None) -> Path:
    """A dataset that weft knows by name, or any other as OWNER/NAME; archives in it are unpacked."""
    where, folders = HUB_DATASETS.get(name, (name, ()))
    if "/" not in where:
        raise UserError(
            f"weft does not know where {name} is on the hub (it knows {', '.join(HUB_DATASETS)}): give its name there, as in "
            f"weft data get OWNER/NAME --out {name}; or point --data at the folder that you have"
        )
    place = out or Path(name.rpartition("/")[2])
    found = download_folders(where, place, list(folders), name, any_file=name not in ("rover", "rover-ig", "rover-tg"))
    for archive in sorted(found.rglob("*.zip")):
        unpack_archive(archive)
    return found


def unpack_archive(archive: Path) -> None:
    """Beside it, what is not there yet. Raises UserError for what does not belong into a dataset."""
    with zipfile.ZipFile(archive) as opened:
        entries = opened.infolist()
        if sum(one.file_size for one in entries) > min(LARGEST, RATIO * max(archive.stat().st_size, 1_000_000)):
            raise UserError(
                f"{archive} would come to more than it can be trusted with; unpack it by hand, if you trust it"
            )
        for one in entries:
            path = PurePosixPath(one.filename)
            if (
                path.is_absolute()
                or ".." in path.parts
                or "\\" in one.filename
                or stat.S_ISLNK(one.external_attr >> 16)
            ):
                raise UserError(f"{archive}: {one.filename!r} would not be a plain file inside its folder")
            target = archive.parent / path
            if one.is_dir() or (target.is_file() and target.stat().st_size == one.file_size):
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            part = target.with_name(f".part-{target.name}")
            with opened.open(one) as source, part.open("wb") as made:
                shutil.copyfileobj(source, made)
            part.rename(target)


def download_folders(
    name: str, out: Path | None, folders: Sequence[str], called: str, *, any_file: bool = False
) -> Path:
    """The folders of a dataset, in `out`, or where the hub's own library keeps what it fetched. `called` is what weft
    calls it."""
    if any_file:
        kind = "*"
    else:
        kind = "*.parquet"
    wanted = ", ".join(f"{folder}/{kind}" for folder in folders) or "all files"
    if out:
        where = f"{out}/"
    else:
        where = "a folder"
    by_hand = f"by hand: download {wanted} from {PLACE}/{name} into {where}, keeping the folders, then give that folder as --data"
    try:
        hub: Any = importlib.import_module("huggingface_hub")
    except ImportError:
        raise UserError(
            f"{called}: fetching from the hub needs huggingface_hub, which is not here; install the extra, from the clone: "
            f"pip install -e '.[hub]'; or {by_hand}"
        ) from None
    patterns = [f"{folder}/*" for folder in folders] or None
    try:
        told = hub.snapshot_download(
            name, repo_type="dataset", allow_patterns=patterns, **({"local_dir": out} if out else {})
        )
    except KeyboardInterrupt:
        raise
    except Exception as error:  # whatever its library raises: no network, no such dataset, no permission, a full disk
        why = scrub(str(error).strip().partition("\n")[0])[:300]
        raise UserError(
            f"{called}: {name} could not be fetched from the hub ({type(error).__name__}: {why}); {by_hand}"
        ) from None
    found = Path(told)
    if not any(one.is_file() for one in found.rglob(kind)):
        raise UserError(f"{called}: {PLACE}/{name} has none of {wanted}; has it moved? Otherwise {by_hand}")
    return found
