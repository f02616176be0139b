"""What the user asked to be built, and the models by role that follow from it. Mistakes are found before any call."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from weft.building.recipe import Recipe, Role, is_player
from weft.calls.roles import Limits
from weft.calls.sending import RetryPolicy
from weft.errors import UserError
from weft.models.endpoint import Endpoint
from weft.workspace import Workspace

DEFAULT_PART_SIZE = 50
SEPARATOR = re.compile(r",(?!https?://)")  # between models; not between the addresses of one


class RayRequest(Struct, frozen=True):
    """Workers of Ray that make the rows."""

    workers: int | None = None  # None: one for each CPU
    address: str | None = None  # of a running cluster, or `auto`; None: Ray is started on this machine
    gpus_each: float = 0.0  # of a worker, for models that are programs


class BuildRequest(Struct, frozen=True):
    """One build, as the command line or a program names it."""

    recipe: str  # its name, or file.py:NAME
    out: Path
    models: Mapping[str, Any]  # by role: a name, an object, or several; names with commas are several as well
    seeds: int = 100
    options: Mapping[str, Any] = {}
    model_options: Mapping[str, Any] = {}  # `painter.steps`, `painter-2.steps`
    presets: Mapping[str, str] = {}  # by role
    home: Path | None = None  # the folder `out` unless set
    budget: float | None = None  # in USD, of one command
    concurrency: int | None = None
    part_size: int = DEFAULT_PART_SIZE
    test_share: float = 0.0  # of the dialogues, held out as a test part
    tries: int | None = None  # dialogues of one seed, until one is kept; None: as many as the recipe says
    duplicates: tuple[str, ...] | None = None  # the kinds that are left out; None: as before, at first all
    terms: Mapping[str, str] = {}  # by role, `files` or `program`: what may be done with what comes from there
    shard: str = ""  # such as 2/8: only the parts of this shard are built
    rows_in_flight: int | None = None
    preflight: bool = False
    retry_policy: RetryPolicy = RetryPolicy()
    ray: RayRequest | None = None


def limits_of(request: BuildRequest) -> Limits:
    """Return how much a build may spend, and how many of its calls may be in flight."""
    return Limits(
        budget=request.budget,
        concurrency=request.concurrency,
        retry_policy=request.retry_policy,
        preflight=request.preflight,
    )


def assign_models(recipe: Recipe, models: Mapping[str, Any]) -> dict[str, Any]:
    """Return models by player: a role, or NAME-2, NAME-3 where several play one.

    A role without a model is played by the one that stands in for it. Raises UserError for a role that the recipe does
    not have, or that has no model.
    """
    roles = {role.name: role for role in recipe.roles}
    for name in models:
        if name not in roles:
            raise UserError(f"{recipe.name} has no role {name!r}; its roles are {', '.join(roles)}")
    players: dict[str, Any] = {}
    for role in recipe.roles:
        names = split_models(models.get(role.name))
        if not names and role.stands_in in models:
            names = split_models(models[role.stands_in])[:1]
        if not names and not role.optional:
            raise UserError(f"{recipe.name} needs a model for the role {role.name} ({role.about}): --{role.name} NAME")
        if len(names) > 1 and not role.several:
            raise UserError(f"--{role.name} {models[role.name]}: one model plays the {role.name}")
        for index, name in enumerate(names, start=1):
            players[role.name if index == 1 else f"{role.name}-{index}"] = name
    return players


def split_models(given: Any) -> list[Any]:
    """Return the models that a user gave for one role."""
    if given is None:
        return []
    if isinstance(given, (list, tuple)):
        return list(cast(Sequence[Any], given))
    if not isinstance(given, str):
        return [given]
    return [name.strip() for name in SEPARATOR.split(given) if name.strip()]


def open_endpoints(request: BuildRequest, recipe: Recipe, workspace: Workspace) -> dict[str, Endpoint]:
    """Return an endpoint for each player. Raises UserError for one that cannot do what its role needs."""
    players = assign_models(recipe, request.models)
    options = divide_options(request.model_options, players)
    unknown = [role for role in request.presets if role not in players]
    if unknown:
        raise UserError(f"--preset {unknown[0]}=...: there is no such role; there is {', '.join(players)}")
    endpoints: dict[str, Endpoint] = {}
    for player, model in players.items():
        role = find_role(recipe.roles, player)
        other = "" if role.name in request.models else role.stands_in  # whose model it is, with its settings
        preset = request.presets.get(player) or request.presets.get(other, "")
        more = {"preset": preset} if preset else {}
        endpoint = workspace.endpoint(model, {**options.get(other, {}), **options.get(player, {})}, **more)
        reason = endpoint.gives.unsupported_reason(role.makes)
        if reason:
            raise UserError(f"{endpoint.name} cannot be the {role.name}: {reason}")
        if endpoint.takes.for_modality(role.makes).images == "none" and role.sees:
            raise UserError(f"{endpoint.name} cannot be the {role.name}: it takes no images")
        endpoints[player] = endpoint
    recipe.check({role.name: [name for name in players if is_player(name, role.name)] for role in recipe.roles})
    return endpoints


def divide_options(options: Mapping[str, Any], players: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the options of models by player, from `painter.steps=28`."""
    divided: dict[str, dict[str, Any]] = {}
    for name, value in options.items():
        player, dot, option = name.partition(".")
        if not dot or player not in players:
            example = f"{next(iter(players), 'ROLE')}.{option or name}"
            raise UserError(f"--model-opt {name}: say whose it is, as in {example}={value}")
        divided.setdefault(player, {})[option] = value
    return divided


def find_role(roles: Sequence[Role], player: str) -> Role:
    """Return the role that a player plays."""
    return next(role for role in roles if is_player(player, role.name))
