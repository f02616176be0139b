"""What a build needs before its first call: recipe, home, models and manifest. Mistakes are found here."""

from collections.abc import Mapping
from pathlib import Path

from weft.building.manifest import (
    FILE,
    BuildManifest,
    build_manifest,
    check_size,
    continue_manifest,
    home_to_continue,
)
from weft.building.parts import PARTS, split_seeds
from weft.building.recipe import Recipe, load_recipe, open_recipe
from weft.building.request import BuildRequest, open_endpoints
from weft.building.terms import check_stated, find_licences
from weft.errors import UserError
from weft.models.endpoint import Endpoint
from weft.workspace import Workspace

OWN_PREFIXES = ("journal.", "home.", "blobs", "locks", ".")  # of a home, whoever has opened it before
MAX_LISTED = 4  # names of files in a message
MAX_TRIES = 100  # dialogues of one seed


def check_folder(out: Path) -> None:
    """Raise UserError for a folder with somebody else's files in it: a build replaces `imgs/`, `test/` and others."""
    if not out.is_dir() or (out / FILE).exists():
        return
    strange = sorted(entry.name for entry in out.iterdir() if not entry.name.startswith(OWN_PREFIXES))
    if strange and not (out / PARTS).exists():
        listed = ", ".join(strange[:MAX_LISTED])
        raise UserError(f"{out} has other files in it ({listed}), and no {FILE}: --out is a new folder, or a build's")


def prepare(request: BuildRequest) -> tuple[Recipe, Workspace, Mapping[str, Endpoint], BuildManifest]:
    """Return what a build needs, without a call and without writing anything. Raises UserError for a mistake."""
    if request.seeds < 1:
        raise UserError("--seeds: give at least 1")
    check_size(request.seeds, request.part_size)
    if not 0 <= request.test_share < 1:
        raise UserError(f"--test-share {request.test_share:g}: give a share from 0 to below 1")
    if request.tries is not None and not 1 <= request.tries <= MAX_TRIES:
        raise UserError(f"--tries {request.tries}: give 1 to {MAX_TRIES}")
    if request.shard and not split_seeds(request.seeds, request.part_size, request.shard):
        raise UserError(
            f"--shard {request.shard}: of {request.seeds:,} seeds in parts of {request.part_size} none is left for it: "
            "give a smaller --part-size"
        )
    out = request.out.absolute()
    if out.is_file():
        raise UserError(f"{request.out} is a file: --out is a folder")
    check_folder(out)
    recipe = open_recipe(load_recipe(request.recipe), request.recipe, request.options)
    home = (request.home or out).absolute()
    if request.home is None and (out / FILE).exists():
        home = home_to_continue(out)
    workspace = Workspace(home)
    endpoints = open_endpoints(request, recipe, workspace)
    check_stated(request.terms, [role.name for role in recipe.roles], endpoints)
    wanted = build_manifest(
        request.recipe,
        recipe,
        endpoints,
        seeds=request.seeds,
        part_size=request.part_size,
        test_share=request.test_share,
        tries=recipe.tries if request.tries is None else request.tries,
        shard=request.shard,
        duplicates=request.duplicates,
        licences=find_licences(recipe, endpoints),
        terms=request.terms,
        out=out,
        home=home,
    )
    return recipe, workspace, endpoints, continue_manifest(out, wanted, duplicates=request.duplicates)
