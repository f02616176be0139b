"""Writes a build's kept dialogues in one of the layouts."""

from pathlib import Path
from tempfile import mkdtemp

from weft.building.layouts.weave import IMAGES, RECORDS, iterate_kept, write_weave
from weft.building.parts import read_rows
from weft.building.recipe import Recipe
from weft.store.blobs import Blobs

NEW_PREFIX = ".weave-"


def export_weave(out: Path, recipe: Recipe | None, blobs: Blobs, folder: Path | None = None) -> int:
    """Write WEAVE's files into a folder, beside the build's own unless another is given; return how many dialogues.

    They are written into a new folder first, and replace the old ones only when they are whole.
    """
    target = folder or out
    target.mkdir(parents=True, exist_ok=True)
    new = Path(mkdtemp(prefix=NEW_PREFIX, dir=target))
    try:
        count = write_weave(new, read_rows(out), blobs)
        if recipe is not None:
            recipe.write_extras(new, (row for row, _ in iterate_kept(read_rows(out))))
        _replace_files(new, target)
    finally:
        _remove_folder(new)
    return count


def _replace_files(new: Path, target: Path) -> None:
    """Move images first and records last: whoever reads the records finds their images."""
    names = sorted(path.name for path in new.iterdir() if path.name not in (IMAGES, RECORDS))
    (new / IMAGES).mkdir(exist_ok=True)
    old = target / IMAGES
    if old.exists():
        old.rename(new / ".old")
    for name in (IMAGES, *names, RECORDS):
        (new / name).replace(target / name)


def _remove_folder(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
