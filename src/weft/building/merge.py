"""Shards of one build become the whole: `weft build merge DIR SHARD...`.

Parts, calls and images of each shard are copied into one folder. What is there stays; every row and image is checked,
since a shard comes from another machine. Killed at any point, the same command goes on.
"""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from weft.building.draft import Row
from weft.building.manifest import (
    FILE,
    BuildManifest,
    describe_difference,
    home_to_continue,
    read_manifest,
    write_manifest,
)
from weft.building.parts import Part, find_open_parts, is_done, read_rows, split_seeds, write_part
from weft.building.preparation import check_folder
from weft.errors import UserError
from weft.evaluation.selection import parse_shard
from weft.store.locks import lock_run
from weft.store.merge import Tell, merge_journal
from weft.store.schema import journal_file


class MergedBuild(Struct, frozen=True):
    """What the folder has after a merge."""

    manifest: BuildManifest
    new_parts: int
    parts: int
    open_parts: int
    missing_shards: tuple[str, ...]  # of whose parts some are not there


def merge_builds(out: Path, shards: Sequence[Path], tell: Tell | None = None) -> MergedBuild:
    """Copy shards into a folder, which need not exist. Raises UserError for shards of different builds."""
    manifests = [read_manifest(shard) for shard in shards]
    whole = _join_manifests(out, shards, manifests)
    check_folder(out.absolute())
    for shard in shards:
        if shard.resolve() == out.resolve():
            raise UserError(f"{shard} is the folder that the shards are to be merged into")
    target = out
    if (out / FILE).exists():
        target = home_to_continue(out)
    for shard in shards:
        home = home_to_continue(shard)
        if journal_file(home).exists() and home.resolve() != target.resolve():
            merge_journal(target, home, tell)
    new_parts = 0
    out.mkdir(parents=True, exist_ok=True)
    with lock_run(out, whole.run):
        write_manifest(out, whole)
        for shard in shards:
            new_parts += _copy_parts(out, shard, whole)
    open_parts = find_open_parts(out, whole.seeds, whole.part_size)
    return MergedBuild(
        whole,
        new_parts,
        len(split_seeds(whole.seeds, whole.part_size)),
        len(open_parts),
        _name_missing(open_parts, manifests),
    )


def _join_manifests(out: Path, shards: Sequence[Path], manifests: Sequence[BuildManifest]) -> BuildManifest:
    """Return the manifest of the whole. Raises UserError where two of them are of different builds."""
    first = replace(manifests[0], shard="", home="")
    named = list(zip(shards, manifests, strict=True))
    if (out / FILE).exists():
        named.append((out, read_manifest(out)))
    for path, manifest in named:
        one = replace(manifest, shard="", home="")
        difference = describe_difference(first, one)
        if not difference and one.part_size != first.part_size:
            difference = f"its parts have {first.part_size} seeds, not {one.part_size}"
        if difference:
            raise UserError(f"{shards[0]} is another build than {path} ({difference})")
    terms: dict[str, str] = {}
    for _, manifest in reversed(named):  # what is here already counts first
        terms = {**manifest.terms, **terms}
    _, last = named[-1]
    here = last if (out / FILE).exists() else first
    seeds = max(manifest.seeds for _, manifest in named)
    return replace(first, seeds=seeds, terms=terms, home=here.home, duplicates=here.duplicates)


def _copy_parts(out: Path, shard: Path, whole: BuildManifest) -> int:
    """Copy the parts that are not done here, each as a whole. Return how many."""
    parts = {part.number: part for part in split_seeds(whole.seeds, whole.part_size)}
    rows: dict[int, list[Row]] = {}
    copied = 0

    def copy(part: Part) -> None:
        nonlocal copied
        gathered = rows.pop(part.number)
        if len(gathered) == len(part.seeds) and not is_done(out, part):
            write_part(out, part, gathered)
            copied += not any(row.outcome == "failed" for row in gathered)

    previous: int | None = None
    for row in read_rows(shard):
        number = row.number // whole.part_size
        if number not in parts:
            raise UserError(f"{shard} has the seed {row.number}, and the build has {whole.seeds}")
        if previous is not None and previous != number:
            copy(parts[previous])
        rows.setdefault(number, []).append(row)
        previous = number
    if previous is not None:
        copy(parts[previous])
    return copied


def _name_missing(open_parts: Sequence[Part], manifests: Sequence[BuildManifest]) -> tuple[str, ...]:
    """Return the shards that the open parts belong to, as they are divided by the first shard there is."""
    shards = [parse_shard(manifest.shard) for manifest in manifests if manifest.shard]
    if not shards:
        return ()
    count = shards[0].count
    numbers = sorted({part.number % count + 1 for part in open_parts})
    return tuple(f"{number}/{count}" for number in numbers)
