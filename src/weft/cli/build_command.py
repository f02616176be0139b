"""`weft build RECIPE`, made when it is called from the recipe's roles and options."""

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand
from typer.main import get_command

from weft.cli.benchmark_command import OWN_PREFIX, build_option, build_own_option, check_values
from weft.cli.help import CONTEXT_SETTINGS, keep_examples
from weft.cli.options import DRY_RUN_HELP, parse_pairs
from weft.errors import UserError

MAX_COMMAND = 60  # characters of an example before `--out DIR --dry-run`
ROLE_PREFIX = "role_"  # of parameters that are a recipe's roles
SECTIONS = ("Roles", "Options of the recipe", "Options")
EXAMPLES = """Build a dataset with the recipe {name}: {title}.

After a crash, run the same command again to resume; more --seeds extend a finished build. The folder has WEAVE's files
(`weft run weave --data DIR` reads them), and `weft build export` writes others.

Examples:

  {command} --out DIR --dry-run

  {command} --out DIR --budget 50

  weft build status DIR
"""


class RecipeCommand(TyperCommand):
    """A command about one recipe. Its help has a section for roles, and one for the recipe's own options."""

    recipe_name = ""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        check_values(self.params, args)
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            details = vars(error)
            if "option_name" not in details or "possibilities" not in details:  # not an unknown option
                raise
            nearest = f"did you mean {' or '.join(details['possibilities'])}? " if details["possibilities"] else ""
            roles = [param.opts[0] for param in self.params if str(param.name).startswith(ROLE_PREFIX)]
            own = [param.opts[0] for param in self.params if str(param.name).startswith(OWN_PREFIX)]
            raise UserError(
                f"{self.recipe_name} has no role or option {details['option_name']}; {nearest}its roles are "
                f"{', '.join(roles)}, its options {', '.join(own) or 'none'}; `--help` lists all"
            ) from None

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {title: [] for title in SECTIONS}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None:
                continue
            title = SECTIONS[2]
            if str(param.name).startswith(ROLE_PREFIX):
                title = SECTIONS[0]
            elif str(param.name).startswith(OWN_PREFIX):
                title = SECTIONS[1]
            sections[title].append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def make_recipe_command(name: str, work: Any) -> Any:
    """Return the command of a recipe, which calls `work(name, values)`."""
    from weft.benchmarks.options import list_options
    from weft.building.recipe import load_recipe

    kind = load_recipe(name)
    parameters: list[inspect.Parameter] = []
    for role in kind.roles:
        about = f"The model that {role.about or f'makes {role.makes}s'}."
        if role.stands_in:
            about += f" [default: that of --{role.stands_in}]"
        elif role.optional:
            about += " [optional]"
        metavar = "NAME[,NAME]" if role.several else "NAME"
        parameters.append(
            build_option(ROLE_PREFIX + role.name, str, {"help": about, "metavar": metavar}, _flag(role.name))
        )
    parameters += [build_own_option(option) for option in list_options(kind.Options)]
    parameters += _common_parameters()

    def run(**values: Any) -> None:
        work(name, values)

    required = [role for role in kind.roles if not role.optional]
    command = f"weft build {name} --seeds 1000 {' '.join(f'--{role.name} MODEL' for role in required)}"
    if len(command) > MAX_COMMAND:
        words = [f"--{role.name} MODEL" for role in required]
        command = f"weft build {name} --seeds 1000 {' '.join(words[:2])} \\\n    {' '.join(words[2:])}"
    run.__doc__ = keep_examples(EXAMPLES.format(name=name, title=kind.title or kind.name, command=command))
    run.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    command_class = type("Command", (RecipeCommand,), {"recipe_name": kind.name or name})
    app.command(name, cls=command_class, context_settings=CONTEXT_SETTINGS)(run)
    return get_command(app)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _common_parameters() -> list[inspect.Parameter]:
    """Return the options that all recipes have."""
    options: list[tuple[str, Any, dict[str, Any]]] = [
        ("out", Path, {"help": "The folder of the build.", "metavar": "DIR"}),
        ("seeds", int, {"help": "How many seeds, from number 0. [default: 100]", "metavar": "N", "min": 1}),
        ("model_opt", list[str], {"help": "ROLE.NAME=VALUE for a role's model. Repeatable.", "metavar": "NAME=VALUE"}),
        ("preset", list[str], {"help": "ROLE=NAME: a preset for a role's model. Repeatable.", "metavar": "NAME=VALUE"}),
        ("budget", float, {"help": "Stop before this command has spent more.", "metavar": "USD", "min": 0}),
        (
            "concurrency",
            int,
            {"help": "Calls in flight at one model. Default: found by trying.", "metavar": "N", "min": 1},
        ),
        ("part_size", int, {"help": "Seeds of one part file. [default: 50]", "metavar": "N", "min": 1}),
        (
            "test_share",
            float,
            {"help": "Share of dialogues held out as a test part, in DIR/test. [default: 0]", "metavar": "SHARE"},
        ),
        (
            "tries",
            int,
            {
                "help": "Dialogues of one seed, until one is kept. [default: as the recipe says]",
                "metavar": "N",
                "min": 1,
            },
        ),
        (
            "duplicates",
            str,
            {
                "help": "Kinds of duplicates that are left out: exact, images, texts, or none. [default: all]",
                "metavar": "KIND[,KIND]",
            },
        ),
        (
            "terms",
            list[str],
            {
                "help": "Licence or terms of what a role's model makes; files: of your files. Repeatable.",
                "metavar": "ROLE=TEXT",
            },
        ),
        ("shard", str, {"help": "Build one shard, such as 2/8; `weft build merge` joins them.", "metavar": "K/N"}),
        ("home", Path, {"help": "Journal and images. Default: the folder of the build.", "metavar": "PATH"}),
        ("ray", str, {"help": "Workers on Ray: a number, or auto, one for each CPU.", "metavar": "N|auto"}),
        (
            "address",
            str,
            {"help": "With --ray, a running cluster: auto, or HOST:PORT. Default: a new one here.", "metavar": "TEXT"},
        ),
        ("gpus_each", float, {"help": "With --ray, GPUs of a worker. [default: 0]", "metavar": "NUMBER", "min": 0}),
    ]
    parameters = [build_option(name, kind, settings) for name, kind, settings in options]
    parameters.append(
        build_option(
            "preflight", bool, {"help": "Skip the preflight check: one small question to each model."}, "--no-preflight"
        )
    )
    parameters.append(build_option("dry_run", bool, {"help": DRY_RUN_HELP}, "--dry-run"))
    return parameters


def read_values(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a `BuildRequest` from a command's values."""
    if values["out"] is None:
        raise UserError("give --out DIR, the folder of the build")
    fields: dict[str, Any] = {
        "recipe": name,
        "models": _pop(values, ROLE_PREFIX),
        "options": _pop(values, OWN_PREFIX),
        "model_options": parse_pairs(values["model_opt"], "--model-opt"),
        "presets": parse_pairs(values["preset"], "--preset"),
    }
    for field in ("out", "seeds", "budget", "concurrency", "part_size", "test_share", "tries", "shard", "home"):
        if values[field] is not None:
            fields[field] = values[field]
    fields["ray"] = _read_ray(values)
    fields["terms"] = parse_pairs(values["terms"], "--terms")
    if values["duplicates"] is not None:
        fields["duplicates"] = parse_duplicates(values["duplicates"])
    return fields


def parse_duplicates(text: str) -> tuple[str, ...]:
    """Return the kinds of duplicates that a user names. Raises UserError for one that there is not."""
    from weft.building.selection import check_kinds

    kinds = tuple(kind.strip() for kind in text.split(",") if kind.strip())
    if kinds == ("none",):
        return ()
    check_kinds(kinds)
    return kinds


def _read_ray(values: Mapping[str, Any]) -> Any:
    """Return what the user asked of Ray; None without --ray."""
    from weft.building.request import RayRequest

    workers = values["ray"]
    if workers is None:
        for option in ("address", "gpus_each"):
            if values[option] is not None:
                raise UserError(f"{_flag(option)} is about workers on Ray: give --ray N or --ray auto as well")
        return None
    if workers != "auto" and not (workers.isdecimal() and int(workers) > 0):
        raise UserError(f"--ray {workers}: give a number of workers, or auto")
    count = None if workers == "auto" else int(workers)
    return RayRequest(count, values["address"], values["gpus_each"] or 0.0)


def _pop(values: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {
        key.removeprefix(prefix): value for key, value in values.items() if key.startswith(prefix) and value is not None
    }
