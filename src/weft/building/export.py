"""Writes a build's kept dialogues in one of the layouts. A folder has the old files or the new ones, whole."""

import importlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from weft.building.draft import Row
from weft.building.layouts.weave import IMAGES, RECORDS, TEST_FOLDER, TRAINING_RECORDS, iterate_kept, write_weave
from weft.building.manifest import home_of, read_manifest
from weft.building.parts import PARTS, read_rows, reopen_part
from weft.building.recipe import Recipe, list_recipes, load_recipe, open_recipe
from weft.errors import ImageError, StoreError, UserError
from weft.store.blobs import Blobs, blobs_folder, write_folder
from weft.store.schema import journal_file

NEW_PREFIX = ".weave-"
MARK = ".weft-export"  # in a folder that an export wrote, and may replace
LAYOUTS = {  # name -> its function (folder, rows, blobs) -> how many, and what it writes
    "weave": ("weft.building.layouts.weave:write_weave", "WEAVE's own files: test.json and imgs/"),
    "parquet": ("weft.building.layouts.plain:write_parquet", "Parquet with the images inside, for `datasets`"),
    "webdataset": ("weft.building.layouts.webdataset:write_webdataset", "tar shards"),
    "pairs": ("weft.building.layouts.pairs:write_pairs", "preference pairs from the attempts"),
}


def export(out: Path, layout: str, folder: Path) -> int:
    """Write a build in a layout into a folder of its own, which is replaced. Return how many records it has.

    Raises UserError for an unknown layout, and for a folder that has something else in it.
    """
    if layout not in LAYOUTS:
        raise UserError(f"there is no layout {layout!r}; there is {', '.join(LAYOUTS)}")
    manifest = read_manifest(out)
    blobs = Blobs(blobs_folder(home_of(out, manifest)))
    if (folder / PARTS).exists() or journal_file(folder).exists():
        raise UserError(f"{folder} is a build: give --out another folder, which the export replaces")
    if folder.exists() and not (folder / MARK).exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} has something else in it: give --out a new folder, or that of an earlier export")
    target, _ = LAYOUTS[layout]
    module, _, name = target.partition(":")
    write: Callable[..., int] = vars(importlib.import_module(module))[name]
    counts: list[int] = []

    def fill(new: Path) -> None:
        (new / MARK).write_text(f"{layout}\n")
        counts.append(write(new, read_rows(out), blobs))
        if layout == "weave" and manifest.recipe in list_recipes():
            recipe = open_recipe(load_recipe(manifest.recipe), manifest.recipe, manifest.options)
            recipe.write_extras(new, (row for row, _ in iterate_kept(read_rows(out))))

    try:
        write_folder(folder, fill)
    except ImageError as error:
        raise UserError(f"an image of {out} {error}") from None
    return counts[0]


def write_dataset(out: Path, recipe: Recipe, blobs: Blobs) -> int:
    """Write WEAVE's files beside a build's own; return how many dialogues.

    They are written into a new folder first, and replace the old ones only when they are whole.
    """
    for leftover in out.glob(f"{NEW_PREFIX}*"):  # of a command that was killed
        shutil.rmtree(leftover, ignore_errors=True)
    new = Path(mkdtemp(prefix=NEW_PREFIX, dir=out))
    current: list[int] = []
    try:
        count = write_weave(new, _note_each(read_rows(out), current), blobs)
        kept: Any = (row for row, _ in iterate_kept(read_rows(out)))
        recipe.write_extras(new, kept)
        _replace_files(new, out)
    except ImageError as error:
        reopen_part(out, current[-1])
        raise StoreError(
            f"seed {current[-1]}: an image {error}; run the same command again: it makes it anew"
        ) from None
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return count


def _note_each(rows: Iterable[Row], current: list[int]) -> Iterator[Row]:
    """Yield rows, with the seed of the last one in `current`."""
    for row in rows:
        current[:] = [row.number]
        yield row


def _replace_files(new: Path, target: Path) -> None:
    """Move images first and records last: whoever reads the records finds their images. What the build no longer has,
    such as records under another name, leaves. If something cannot be moved, all is as it was."""
    (new / IMAGES).mkdir(exist_ok=True)
    written = [path.name for path in new.iterdir()]
    names = sorted(written, key=lambda name: (name in (RECORDS, TRAINING_RECORDS), name != IMAGES, name))
    leaving = sorted({TEST_FOLDER, RECORDS, TRAINING_RECORDS}.difference(written))
    aside = new / ".old"
    aside.mkdir()
    placed: list[str] = []
    try:
        for name in (*names, *leaving):
            placed.append(name)
            if os.path.lexists(target / name):
                (target / name).rename(aside / name)
            if name in written:
                (new / name).rename(target / name)
    except OSError:
        for name in placed:
            if os.path.lexists(aside / name):
                if os.path.lexists(target / name):
                    (target / name).rename(new / name)
                (aside / name).rename(target / name)
        raise
