"""`--config` and weft.toml's `[defaults]` on the command line: what the user gives wins, then the benchmark's section,
then the command's, then what stands for all."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from typer.core import TyperGroup

from weft.errors import UserError
from weft.evaluation.config import FIELDS

ANY = {cli.option or name for name, cli in FIELDS.items() if not cli.hidden} | {"dry_run"}
SERVED = {"replicas", "gpus_each", "address"}
# commands whose options are made for a benchmark
MADE: dict[tuple[str, ...], set[str]] = {("run",): ANY | SERVED, ("score",): ANY}
META = "weft.defaults"  # where a context keeps the sections of benchmarks
FLAG = "--config"


class App(TyperGroup):
    """All commands. `--config FILE` may stand anywhere among their words. Examples in a help are never broken: they are
    to be copied."""

    def __init__(self, **told: Any) -> None:
        super().__init__(**told)
        _keep_examples(self)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        args, named = _without_config(args)
        if named is not None:
            os.environ["WEFT_CONFIG"] = str(Path(named).absolute())
        if args and not {"-h", "--help", "--version", "--show-completion", "--install-completion"} & set(args[:1]):
            ctx.default_map = self.defaults(ctx)
        return super().parse_args(ctx, args)

    def defaults(self, ctx: Any) -> dict[str, Any]:
        """What weft.toml says, as the commands want it: by command and option."""
        from weft.models.config import find_config_file, read_config

        section: dict[str, Any] = read_config().get("defaults", {})
        if not section:
            return {}
        from weft.benchmarks.base import list_benchmarks

        commands = {path: params | MADE.get(path, set()) for path, params in _commands(self)}
        tables: dict[str, dict[str, Any]] = {name: some for name, some in section.items() if isinstance(some, dict)}
        by_benchmark = {name: some for name, some in tables.items() if name in list_benchmarks()}
        by_command = {name: _plain(some) for name, some in tables.items() if name in {first for first, *_ in commands}}
        for_all = _plain(
            {name: value for name, value in section.items() if name not in by_benchmark and name not in by_command}
        )
        known = {option for params in commands.values() for option in params}
        for name in (*for_all, *(key for some in by_command.values() for key in some)):
            if name not in known:
                raise UserError(
                    f"{find_config_file()}: [defaults] {name}: no command has such an option, and no benchmark such a name"
                )
        ctx.meta[META] = by_benchmark
        made: dict[str, Any] = {}
        for path, params in commands.items():
            chosen = {**for_all, **by_command.get(path[0], {})}
            at = made
            for word in path:
                at = at.setdefault(word, {})
            at |= {name: value for name, value in chosen.items() if name in params}
        return made


def _keep_examples(group: Any) -> None:
    for command in group.commands.values():
        parts = (command.help or "").split("\n\n")
        command.help = "\n\n".join(
            f"\b\n{part}" if part.lstrip().startswith(("weft ", "rsync ")) else part for part in parts
        )
        if hasattr(command, "commands"):
            _keep_examples(command)


def _without_config(args: list[str]) -> tuple[list[str], str | None]:
    kept = list[str]()
    named = None
    words = iter(args)
    for word in words:
        if word == "--":
            return [*kept, word, *words], named
        if word == FLAG:
            named = next(words, None)
            if named is None:
                raise UserError("--config needs a file")
        elif word.startswith(f"{FLAG}="):
            named = word.partition("=")[2]
        else:
            kept.append(word)
    return kept, named


def _commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], set[str]]]:
    """Every command under the words that call it, and the names of its options."""
    for name, command in group.commands.items():
        here = (*path, name)
        yield here, {str(param.name) for param in command.params if param.param_type_name == "option"}
        if hasattr(command, "commands"):
            yield from _commands(command, here)


def _plain(section: Mapping[str, Any]) -> dict[str, Any]:
    """Options under the names that commands have for them; a table is what NAME=VALUE is written for."""
    return {name.replace("-", "_"): _value(value) for name, value in section.items()}


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return [f"{name}={one}" for name, one in cast(dict[str, Any], value).items()]
    return value


def of_benchmark(ctx: Any, name: str) -> dict[str, Any]:
    """What weft.toml says for a benchmark."""
    found: Mapping[str, Mapping[str, Any]] = ctx.meta.get(META, {})
    return _plain(found.get(name, {}))
