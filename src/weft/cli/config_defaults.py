"""`--config` and weft.toml's `[defaults]` on the command line.

An option that the user gives wins; then the benchmark's section, then the command's, then what holds for all."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from weft.cli.help import PANELS, HelpGroup, keep_examples, keep_examples_of_commands
from weft.errors import UserError
from weft.evaluation.config import FIELDS

RUN_OPTIONS = {field.option or name for name, field in FIELDS.items() if not field.hidden} | {"dry_run"}
SERVING_OPTIONS = {"replicas", "gpus_each", "address"}
# Commands that get their options only when their benchmark is known.
LATE_OPTIONS: dict[tuple[str, ...], set[str]] = {
    ("run",): RUN_OPTIONS | SERVING_OPTIONS,
    ("sweep",): RUN_OPTIONS,
    ("score",): RUN_OPTIONS,
}
META_KEY = "weft.defaults"  # under this key the context has the sections of benchmarks
CONFIG_FLAG = "--config"
WITHOUT_CONFIG = {"-h", "--help", "--version", "--show-completion", "--install-completion"}


class RootGroup(HelpGroup):
    """All commands. `--config FILE` is accepted in any position."""

    panels = PANELS

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.help = keep_examples(self.help or "")
        keep_examples_of_commands(self)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        args, config = _split_config(args)
        if config is not None:
            os.environ["WEFT_CONFIG"] = str(Path(config).absolute())
        if args and args[0] not in WITHOUT_CONFIG:
            ctx.default_map = self.read_defaults(ctx)
        return super().parse_args(ctx, args)

    def read_defaults(self, ctx: Any) -> dict[str, Any]:
        """Return the defaults of weft.toml by command and option, and keep those of benchmarks in the context."""
        from weft.models.config import read_config

        section: dict[str, Any] = read_config().get("defaults", {})
        if not section:
            return {}
        from weft.benchmarks.base import list_benchmarks

        commands = {path: names | LATE_OPTIONS.get(path, set()) for path, names in _list_commands(self)}
        command_names = {path[0] for path in commands}
        tables: dict[str, dict[str, Any]] = {name: value for name, value in section.items() if isinstance(value, dict)}
        by_benchmark = {name: table for name, table in tables.items() if name in list_benchmarks()}
        by_command = {name: _normalize(table) for name, table in tables.items() if name in command_names}
        for_all = _normalize(
            {name: value for name, value in section.items() if name not in by_benchmark and name not in by_command}
        )
        _check_names([for_all, *by_command.values()], commands)
        ctx.meta[META_KEY] = by_benchmark
        return _nest_by_command(commands, for_all, by_command)


def _check_names(sections: list[dict[str, Any]], commands: Mapping[tuple[str, ...], set[str]]) -> None:
    """Raise UserError for a name that is an option of no command."""
    from weft.models.config import find_config_file

    known = set[str]().union(*commands.values())
    for section in sections:
        for name in section:
            if name not in known:
                raise UserError(
                    f"{find_config_file()}: [defaults] {name}: no command has such an option, "
                    "and no benchmark such a name"
                )


def _nest_by_command(
    commands: Mapping[tuple[str, ...], set[str]], for_all: dict[str, Any], by_command: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """Return the defaults of every command under the words that call it, as a context's `default_map` has them."""
    defaults: dict[str, Any] = {}
    for path, option_names in commands.items():
        values = {**for_all, **by_command.get(path[0], {})}
        level = defaults
        for word in path:
            level = level.setdefault(word, {})
        level |= {name: value for name, value in values.items() if name in option_names}
    return defaults


def _split_config(args: list[str]) -> tuple[list[str], str | None]:
    """Return the arguments without `--config FILE`, and the file."""
    others = list[str]()
    config = None
    words = iter(args)
    for word in words:
        if word == "--":
            return [*others, word, *words], config
        if word == CONFIG_FLAG:
            config = next(words, None)
            if config is None:
                raise UserError("--config needs a file")
        elif word.startswith(f"{CONFIG_FLAG}="):
            config = word.partition("=")[2]
        else:
            others.append(word)
    return others, config


def _list_commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], set[str]]]:
    """Yield every command under the words that call it, with the names of its options."""
    for name, command in group.commands.items():
        command_path = (*path, name)
        yield command_path, {str(param.name) for param in command.params if param.param_type_name == "option"}
        if hasattr(command, "commands"):
            yield from _list_commands(command, command_path)


def _normalize(section: Mapping[str, Any]) -> dict[str, Any]:
    """Return options under the names that commands have for them. A table becomes NAME=VALUE texts."""
    options: dict[str, Any] = {}
    for name, value in section.items():
        if isinstance(value, dict):
            value = [f"{key}={item}" for key, item in cast(dict[str, Any], value).items()]
        options[name.replace("-", "_")] = value
    return options


def benchmark_section(ctx: Any, name: str) -> dict[str, Any]:
    """Return what weft.toml's `[defaults]` says for a benchmark."""
    sections: Mapping[str, Mapping[str, Any]] = ctx.meta.get(META_KEY, {})
    return _normalize(sections.get(name, {}))
