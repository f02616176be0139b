"""Options that a benchmark has of its own, on the command line: `weft run weave --history full`, `weft run weave --help`.

They are taken out of a command's words before the command reads the rest. The groups that a benchmark sorts its samples by are options as
well: `--class Game` keeps the samples of that class.
"""

import itertools
from collections.abc import Mapping
from typing import Any

import typer
from typer.core import TyperCommand

from weft.cli.defaults import of_benchmark
from weft.errors import UserError

META = "weft.own"


class WithOwnOptions(TyperCommand):
    """A command with a benchmark: as its first word, or after `--benchmark`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        flags = {word for param in self.params for word in param.opts if getattr(param, "is_flag", False)}
        known = {word for param in self.params for word in (*param.opts, *param.secondary_opts)} | {"-h", "--help", "--"}
        name = _named(args) if "--benchmark" in known else _first_word(args, known - flags)
        ctx.meta[META] = taken = Taken(name)
        if name:
            ctx.default_map = {**(ctx.default_map or {}), **taken.usual(of_benchmark(ctx, name), known)}
        return super().parse_args(ctx, taken.take(args, known) if name else args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        super().format_options(ctx, formatter)
        taken: Taken | None = ctx.meta.get(META)
        if taken is None or not taken.name:
            with formatter.section("Options of a benchmark"):
                formatter.write_text("Each has its own: name it and ask again, as in `weft run weave --help`.")
            return
        rows = taken.help()
        if rows:
            with formatter.section(f"Options of {taken.name}"):
                formatter.write_dl(rows)


class Taken:
    """What was given for a benchmark: its options, and the groups to keep."""

    def __init__(self, name: str) -> None:
        from weft import benchmarks
        from weft.benchmarks.base import listed

        self.name = name
        self.options: dict[str, Any] = {}
        self.where: dict[str, str] = {}
        found = benchmarks.resolve(name) if name else None
        self._known = {option.name: option for option in listed(found.Options)} if found else {}
        self._names: Mapping[str, tuple[str, ...]] = found.presentation.axis_names if found else {}
        self._axes = [axis for axis in found.axes if axis not in self._known] if found else []

    def take(self, args: list[str], known: set[str]) -> list[str]:
        """The words that are left."""
        left: list[str] = []
        words = iter(args)
        for word in words:
            option, sign, value = word.partition("=")
            key = option[2:].replace("-", "_")
            if not word.startswith("--") or (option in known and key not in self._known):
                left.append(word)
            elif key in self._known and self._known[key].kind is bool:
                self.options[key] = {"yes": True, "no": False}.get(value, value) if sign else True
            elif key.startswith("no_") and key[3:] in self._known and self._known[key[3:]].kind is bool:
                self.options[key[3:]] = False
            elif key in self._known or key in self._axes:
                given = value if sign else next(words, None)
                if given is None or (not sign and given.startswith("--")):
                    raise UserError(f"{option} needs a value")
                (self.options if key in self._known else self.where)[key] = given
            else:
                has = ", ".join(f"--{name.replace('_', '-')}" for name in (*self._known, *self._axes))
                raise UserError(f"{self.name} has no option {option}; its own are {has or 'none'}; `--help` lists all")
        return left

    def usual(self, section: Mapping[str, Any], known: set[str]) -> dict[str, Any]:
        """What weft.toml says for the benchmark: its own options and groups are taken, the command's are given back."""
        from weft.evaluation.config import RESERVED, SHARED

        kept: dict[str, Any] = {}
        for name, value in section.items():
            if name in self._known:
                self.options[name] = value
            elif name in self._axes:
                self.where[name] = str(value)
            elif f"--{name.replace('_', '-')}" in known:
                kept[name] = value
            elif name not in RESERVED and name not in SHARED:
                raise UserError(f"weft.toml: [defaults.{self.name}] {name}: {self.name} has no such option")
        return kept

    def help(self) -> list[tuple[str, str]]:
        rows: list[tuple[str, str]] = []
        for option in self._known.values():
            values = "" if option.kind is bool else f" {'|'.join(option.choices) or option.kind.__name__.upper()}"
            usual = "" if option.kind is bool else f" [default: {option.usual}]"
            rows.append((f"--{option.name.replace('_', '-')}{values}", f"{option.help}{usual}"))
        values = {axis: "|".join(self._names.get(axis, ())) or "TEXT" for axis in self._axes}
        return rows + [(f"--{axis} {some}", f"Only samples of this {axis}.") for axis, some in values.items()]


def taken(context: typer.Context) -> Taken:
    return context.meta[META]


def _named(args: list[str]) -> str:
    """What follows `--benchmark`."""
    after = next((word for before, word in itertools.pairwise(args) if before == "--benchmark"), "")
    return next((word.partition("=")[2] for word in args if word.startswith("--benchmark=")), after)


def _first_word(args: list[str], with_value: set[str]) -> str:
    """The benchmark that a command is about: the first word that is neither an option nor its value. A benchmark's own options may stand
    before it, so a known name wins over a word that may be a value."""
    from weft import benchmarks

    free = [
        word
        for before, word in zip(("", *args), args, strict=False)
        if not word.startswith("-") and before not in with_value - {"-h", "--help", "--"}
    ]
    known = benchmarks.names()
    return next((word for word in free if word in known or ".py:" in word), free[0] if free and args[0] == free[0] else "")
