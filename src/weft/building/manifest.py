"""What a build is: `build.json` in its folder. The same recipe, options and models go on with it; others are refused.

The number of seeds is no part of it: more seeds extend a build. Nor is the address of a model that has a version.
"""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from weft.building.parts import MAX_PARTS, MAX_SEEDS, PARTS
from weft.building.recipe import Recipe
from weft.building.terms import spread_terms
from weft.errors import UserError
from weft.evaluation.selection import parse_shard
from weft.models.endpoint import Endpoint
from weft.secrets import strip_url_secrets
from weft.store.blobs import write_file
from weft.store.records import BUILD_PREFIX
from weft.store.schema import journal_file
from weft.untrusted import read_file
from weft.workspace import read_only_journal

FILE = "build.json"
FORMAT = 1
DUPLICATES = ("exact", "images", "texts")  # kinds of duplicates, as `selection` finds them
MAX_BYTES = 16 * 1024**2
MAX_PART_SIZE = 100_000
MAX_PATH_BYTES = 4096


class BuildManifest(Struct, frozen=True):
    """What decides the content of a build."""

    recipe: str  # its name, or file.py:NAME
    version: str
    options: dict[str, Any]
    models: dict[str, dict[str, Any]]  # by role: the identity of its endpoint
    sources: str = ""  # digest of the files that seeds are made from
    test_share: float = 0.0  # of the dialogues; they are the test part
    tries: int = 1  # dialogues of one seed, until one is kept
    part_size: int = 50
    shard: str = ""  # such as 2/8, if the folder has only the parts of one shard
    seeds: int = 0  # so far
    home: str = ""  # where its calls and images are, relative to its folder; empty: in the folder itself
    names: dict[str, str] = {}  # by role: what the user called the model
    steps: tuple[str, ...] = ()
    step_groups: tuple[str, ...] = ()  # of the rows that go through each step; empty: all
    duplicates: tuple[str, ...] = DUPLICATES  # the kinds that are left out of the dataset
    licences: dict[str, str] = {}  # that models and programs have of themselves, by role
    terms: dict[str, str] = {}  # what may be done with what a role's model made, as the user states
    format: int = FORMAT

    @property
    def known_terms(self) -> dict[str, str]:
        """The terms that are known, by role, `files` or `program`: what was stated counts before a model's licence."""
        return {**self.licences, **spread_terms(self.terms, self.models)}

    @property
    def run(self) -> str:
        """The name under which its calls are journalled."""
        content = [self.recipe, self.version, self.options, self.models, self.sources]
        digest = hashlib.sha256(msgspec.json.encode(content, order="deterministic")).hexdigest()
        return f"{BUILD_PREFIX}{digest[:12]}"


def build_manifest(
    name: str,
    recipe: Recipe,
    endpoints: Mapping[str, Endpoint],
    *,
    seeds: int,
    part_size: int,
    test_share: float,
    tries: int,
    shard: str,
    duplicates: tuple[str, ...] | None,
    licences: Mapping[str, str],
    terms: Mapping[str, str],
    out: Path,
    home: Path,
) -> BuildManifest:
    """Return the manifest of a build that is about to begin."""
    models: dict[str, dict[str, Any]] = {}
    for role, endpoint in endpoints.items():
        encoded = msgspec.json.encode(dict(endpoint.identity), order="deterministic", enc_hook=str)
        models[role] = msgspec.json.decode(encoded)
    relative_home = ""
    if home != out:
        relative_home = os.path.relpath(home, out)
    steps = recipe.steps()
    return BuildManifest(
        recipe=recipe.name or name,
        version=recipe.version,
        options=msgspec.to_builtins(recipe.options),
        models=models,
        sources=recipe.source_digest(),
        test_share=test_share,
        tries=tries,
        shard=shard,
        part_size=part_size,
        seeds=seeds,
        home=relative_home,
        names={role: strip_url_secrets(endpoint.name) for role, endpoint in endpoints.items()},
        steps=tuple(step.name for step in steps),
        step_groups=tuple(step.group for step in steps),
        duplicates=DUPLICATES if duplicates is None else duplicates,
        licences=dict(licences),
        terms=dict(terms),
    )


def continue_manifest(out: Path, wanted: BuildManifest, *, duplicates: tuple[str, ...] | None = None) -> BuildManifest:
    """Return the manifest with which to go on in a folder: its own one, with as many seeds as the larger of the two.

    Raises UserError if the folder has another build, or is no build's.
    """
    if not (out / FILE).exists():
        if (out / PARTS).exists():
            raise UserError(f"{out} has parts of a build, and no {FILE}: use another --out")
        return wanted
    before = read_manifest(out)
    difference = describe_difference(before, wanted)
    if difference:
        raise UserError(
            f"{out} has another build ({difference}): use another --out; with --home {home_of(out, before)} answers "
            "that are there are not asked for again"
        )
    return msgspec.structs.replace(
        wanted,
        part_size=before.part_size,
        seeds=max(before.seeds, wanted.seeds),
        home=before.home,
        duplicates=before.duplicates if duplicates is None else duplicates,
        terms={**before.terms, **wanted.terms},
    )


def describe_difference(before: BuildManifest, wanted: BuildManifest) -> str:
    """Return the first difference that makes two builds different ones; empty if they are the same."""
    for what in ("recipe", "version", "sources"):
        old: Any = msgspec.structs.asdict(before)[what]
        new: Any = msgspec.structs.asdict(wanted)[what]
        if old != new:
            return f"its {what} is {old or 'none'}, not {new or 'none'}"
    if before.test_share != wanted.test_share:
        return f"its test part is {before.test_share:g} of the dialogues, not {wanted.test_share:g}"
    if before.shard != wanted.shard:
        return f"it is {_name_shard(before.shard)}, not {_name_shard(wanted.shard)}"
    if before.tries != wanted.tries:
        return f"each of its seeds has {before.tries} tries, not {wanted.tries}"
    for name in {**before.options, **wanted.options}:
        if before.options.get(name) != wanted.options.get(name):
            return f"its option {name} is {before.options.get(name)!r}, not {wanted.options.get(name)!r}"
    for role in {**before.models, **wanted.models}:
        if before.models.get(role) != wanted.models.get(role):
            return f"its {role} is {before.names.get(role, 'nobody')}, with other settings or another model"
    return ""


def _name_shard(shard: str) -> str:
    return f"shard {shard}" if shard else "a whole build"


def read_manifest(out: Path) -> BuildManifest:
    """Read a build's manifest. Raises UserError if there is none, or it cannot be read."""
    file = out / FILE
    try:
        manifest = msgspec.json.decode(read_file(file, MAX_BYTES), type=BuildManifest)
    except FileNotFoundError:
        raise UserError(f"{out} is no build: it has no {FILE}") from None
    except (OSError, UserError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise UserError(f"{file} cannot be read: {error}") from None
    if manifest.format != FORMAT:
        raise UserError(f"{file} was written by another weft (format {manifest.format}, this one writes {FORMAT})")
    try:
        check_home(manifest.home)
        if manifest.shard:
            parse_shard(manifest.shard)
        check_size(manifest.seeds, manifest.part_size)
    except UserError as error:
        raise UserError(f"{file} cannot be read: {error}") from None
    return manifest


def check_home(home: str) -> None:
    """Raise UserError for a home that can be no path."""
    if "\0" in home or len(os.fsencode(home)) > MAX_PATH_BYTES:
        raise UserError("its home is no path")


def check_size(seeds: int, part_size: int) -> None:
    """Raise UserError for numbers of seeds and parts that no folder can hold."""
    if not 0 < part_size <= MAX_PART_SIZE or not 0 <= seeds <= MAX_SEEDS or seeds > part_size * MAX_PARTS:
        raise UserError(
            f"{seeds:,} seeds in parts of {part_size:,}: at most {MAX_SEEDS:,} seeds in {MAX_PARTS:,} parts of "
            f"{MAX_PART_SIZE:,}"
        )


def write_manifest(out: Path, manifest: BuildManifest) -> None:
    """Write a build's manifest."""
    out.mkdir(parents=True, exist_ok=True)
    data = msgspec.json.format(msgspec.json.encode(manifest, order="sorted"), indent=1) + b"\n"
    write_file(out / FILE, data, durable=True, world_readable=True)


def home_of(out: Path, manifest: BuildManifest) -> Path:
    """Return the home that has the calls and images of a build, to read from."""
    return (out / manifest.home).absolute() if manifest.home else out.absolute()


def home_to_continue(out: Path) -> Path:
    """Return the home in which a build goes on.

    Its folder may come from anybody, so it does not say where else to write: a home elsewhere counts if its journal has
    calls of this very build. Raises UserError for any other.
    """
    manifest = read_manifest(out)
    home = home_of(out, manifest)
    if not manifest.home:
        return home
    if journal_file(home).is_file():
        with read_only_journal(home) as journal:
            if journal.totals(manifest.run):
                return home
    raise UserError(f"{out / FILE} names the home {home}, which has no call of this build: give --home PATH")
