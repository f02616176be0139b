"""Writes a build's kept dialogues in one of the layouts. A folder has the old files or the new ones, whole."""

import importlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import mkdtemp

from weft.building.card import EXPORTED, CardFacts, write_card
from weft.building.card import FILE as CARD
from weft.building.counts import PublishedCounts, count_dialogues
from weft.building.draft import Row
from weft.building.layouts.weave import IMAGES, RECORDS, TEST_FOLDER, TRAINING_RECORDS, write_weave
from weft.building.manifest import BuildManifest, home_of, read_manifest
from weft.building.parts import PARTS, find_open_parts, read_rows, reopen_part
from weft.building.people import read_pass_rate
from weft.building.provenance import FILES, describe_provenance
from weft.building.recipe import Recipe, list_recipes, load_recipe, open_recipe
from weft.building.selection import DuplicateDialogue, count_kinds, find_duplicates, iterate_selected, write_left_out
from weft.building.status import read_status
from weft.building.terms import check_terms, find_parties
from weft.errors import ImageError, StoreError, UserError
from weft.store.blobs import Blobs, blobs_folder, write_file, write_folder
from weft.store.locks import lock_run
from weft.store.schema import journal_file

NEW_PREFIX = ".weave-"
PAIRS = "pairs"
MARK = ".weft-export"  # in a folder that an export wrote, and may replace
LAYOUTS = {  # name -> its function (folder, rows, blobs, describe) -> how many, and what it writes
    "weave": ("weft.building.layouts.weave:write_weave", "WEAVE's own files: test.json and imgs/"),
    "parquet": ("weft.building.layouts.plain:write_parquet", "Parquet with the images inside, for `datasets`"),
    "webdataset": ("weft.building.layouts.webdataset:write_webdataset", "tar shards"),
    "pairs": ("weft.building.layouts.pairs:write_pairs", "preference pairs from the attempts"),
}


def export(out: Path, layout: str, folder: Path, *, accept_unknown_terms: bool = False) -> int:
    """Write a build in a layout into a folder of its own, which is replaced. Return how many records it has.

    Raises UserError for an unknown layout, for a folder that has something else in it, and for dialogues of models
    whose terms are unknown.
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
    left_out = find_duplicates(read_rows(out), manifest.duplicates)
    if not accept_unknown_terms:
        _check_terms(out, layout, manifest, left_out)
    describe = describe_provenance(manifest.names, manifest.known_terms)
    counts: list[int] = []

    def fill(new: Path) -> None:
        (new / MARK).write_text(f"{layout}\n")
        counts.append(write(new, _rows_of(out, layout, left_out), blobs, describe))
        if layout == "weave" and manifest.recipe in list_recipes():
            recipe = open_recipe(load_recipe(manifest.recipe), manifest.recipe, manifest.options)
            recipe.write_extras(new, iterate_selected(read_rows(out), left_out))
        text = write_card(collect_facts(out, manifest, left_out, _find_published(manifest)), layout)
        (new / EXPORTED).write_text(text, encoding="utf-8")

    try:
        write_folder(folder, fill)
    except ImageError as error:
        raise UserError(f"an image of {out} {error}") from None
    return counts[0]


def _check_terms(out: Path, layout: str, manifest: BuildManifest, left_out: Mapping[int, DuplicateDialogue]) -> None:
    """Raise UserError if the terms of something are unknown that a layout writes. Pairs have images, requests and
    reasons of all roles, also of dialogues that were dropped."""
    parties = None if layout == PAIRS else find_parties(iterate_selected(read_rows(out), left_out))
    if parties is None:
        parties = {*manifest.names, *([FILES] if manifest.sources else [])}
    check_terms(parties, manifest.known_terms, manifest.names)


def _rows_of(out: Path, layout: str, left_out: Mapping[int, DuplicateDialogue]) -> Iterator[Row]:
    """Yield the rows that a layout writes: for pairs also those that were dropped."""
    if layout == PAIRS:
        return (row for row in read_rows(out) if row.number not in left_out)
    return iterate_selected(read_rows(out), left_out)


def collect_facts(
    out: Path, manifest: BuildManifest, left_out: Mapping[int, DuplicateDialogue], published: PublishedCounts | None
) -> CardFacts:
    """Return what a build's card shows."""
    counts = count_dialogues(iterate_selected(read_rows(out), left_out), published)
    kinds = count_kinds(left_out)
    return CardFacts(read_status(out, manifest, kinds), counts, kinds, read_pass_rate(out), published)


def _find_published(manifest: BuildManifest) -> PublishedCounts | None:
    """Return what the recipe's paper counts; None for a recipe in a file of somebody's, whose code is not loaded."""
    return load_recipe(manifest.recipe).published if manifest.recipe in list_recipes() else None


def write_dataset(out: Path, recipe: Recipe, blobs: Blobs) -> int:
    """Write WEAVE's files and the card beside a build's own; return how many dialogues.

    They are written into a new folder first, and replace the old ones only when they are whole.
    """
    for leftover in out.glob(f"{NEW_PREFIX}*"):  # of a command that was killed
        shutil.rmtree(leftover, ignore_errors=True)
    new = Path(mkdtemp(prefix=NEW_PREFIX, dir=out))
    current: list[int] = []
    manifest = read_manifest(out)
    describe = describe_provenance(manifest.names, manifest.known_terms)
    try:
        left_out = find_duplicates(read_rows(out), manifest.duplicates)
        count = write_weave(new, _note_each(iterate_selected(read_rows(out), left_out), current), blobs, describe)
        recipe.write_extras(new, iterate_selected(read_rows(out), left_out))
        write_left_out(new, left_out)
        text = write_card(collect_facts(out, manifest, left_out, recipe.published))
        (new / CARD).write_text(text, encoding="utf-8")
        _replace_files(new, out)
    except ImageError as error:
        reopen_part(out, current[-1])
        raise StoreError(
            f"seed {current[-1]}: an image {error}; run the same command again: it makes it anew"
        ) from None
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return count


def write_merged(out: Path) -> int | None:
    """Write the dataset of a build whose parts are all there; return how many dialogues.

    None for a recipe in a file of somebody's: its code is not loaded because a folder names it.
    """
    manifest = read_manifest(out)
    if manifest.recipe not in list_recipes():
        return None
    recipe = open_recipe(load_recipe(manifest.recipe), manifest.recipe, manifest.options)
    with lock_run(out, manifest.run):
        return write_dataset(out, recipe, Blobs(blobs_folder(home_of(out, manifest))))


def rewrite_card(out: Path, manifest: BuildManifest) -> bool:
    """Write the card of a build anew; False if there is no whole dataset that it would be about."""
    is_open = find_open_parts(out, manifest.seeds, manifest.part_size, manifest.shard)
    if is_open or manifest.shard or not (out / CARD).exists():
        return False
    left_out = find_duplicates(read_rows(out), manifest.duplicates)
    text = write_card(collect_facts(out, manifest, left_out, _find_published(manifest)))
    write_file(out / CARD, text.encode(), world_readable=True)
    return True


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
