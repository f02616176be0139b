"""Commands made from data: the options of `RunConfig`, and those that a benchmark has of its own.

`weft run BENCHMARK` is a command that is made when it is called for, from the benchmark's `Options` and axes:
`--history full` is an option of its own, `--class Game` keeps the samples of that class. Its help has them in a
section, and a typo is told what is near it."""

import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand
from typer.main import get_command

from weft.cli.defaults import of_benchmark
from weft.errors import UserError
from weft.evaluation.config import FIELDS, SHAREABLE_NAMES, CliField, fields_for

# what parameters begin with that are a benchmark's options, or its groups
OWN = "own_"
GROUP = "where_"
TITLES = {"data": "Data", "model": "Model", "judge": "Judge", "calls": "Calls", "home": "Where results are kept"}
INTEGERS = ("limit", "sample", "seed", "judge_repeats", "concurrency", "judge_concurrency")
KINDS: dict[str, Any] = {"data": Path, "home": Path, "budget": float, **dict.fromkeys(INTEGERS, int)}
SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 120}
METAVARS = {int: "N", float: "NUMBER", Path: "PATH", str: "TEXT"}


def parameters(names: Iterable[str]) -> list[inspect.Parameter]:
    """Fields of `RunConfig` as parameters of a command. What is not given is None."""
    return [_parameter(name, FIELDS[name]) for name in names if not FIELDS[name].hidden]


def _parameter(name: str, cli: CliField) -> inspect.Parameter:
    kind = KINDS.get(name, str)
    more: dict[str, Any] = {"help": cli.help, "show_default": False, "metavar": cli.metavar or METAVARS[kind]}
    if name == "home":
        more |= {"envvar": "WEFT_HOME", "show_envvar": True}
    if cli.pairs or cli.repeatable:
        if cli.pairs:
            more["metavar"] = "NAME=VALUE"
        else:
            more["metavar"] = "TEXT"
        return option(cli.option or name, list[str], more)
    if name in ("judge_batch", "probe"):
        flag = cli.option or name
        return option(flag, bool, {"help": cli.help, "show_default": False}, f"--{flag.replace('_', '-')}")
    if cli.minimum is not None:
        if kind is int:
            more["min"] = int(cli.minimum)
        else:
            more["min"] = cli.minimum
    return option(name, kind, more)


def option(name: str, kind: Any, more: Mapping[str, Any], *words: str) -> inspect.Parameter:
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[kind | None, typer.Option(*words, **more)],
    )


def own_parameters(benchmark: Any) -> list[inspect.Parameter]:
    """A benchmark's own options, and its axes: those that keep samples of a group."""
    from weft.benchmarks.options import list_options

    made: list[inspect.Parameter] = []
    known = list_options(benchmark.Options)
    for one in known:
        word = f"--{one.name.replace('_', '-')}"
        if one.kind is bool:
            made.append(
                option(OWN + one.name, bool, {"help": one.help, "show_default": False}, f"{word}/--no-{word[2:]}")
            )
            continue
        metavar = "|".join(one.choices) or METAVARS.get(one.kind, "TEXT")
        told = {
            "help": f"{one.help} [default: {one.default}]",
            "metavar": metavar,
            "show_default": False,
            **_completed(one.choices),
        }
        made.append(option(OWN + one.name, one.kind, told, word))
    names: Mapping[str, tuple[str, ...]] = benchmark.presentation.axis_names
    for axis in benchmark.axes:
        if axis not in {one.name for one in known}:
            metavar = "|".join(names.get(axis, ())) or "TEXT"
            made.append(
                option(GROUP + axis, str, {"help": f"Only samples of this {axis}.", "metavar": metavar}, f"--{axis}")
            )
    return made


def _completed(choices: tuple[str, ...]) -> dict[str, Any]:
    """What a shell offers. The benchmark itself says what there is, where another is given."""
    if choices:
        return {"autocompletion": lambda: list(choices)}
    return {}


class BenchmarkCommand(TyperCommand):
    """A command about one benchmark. Its help has a section for each thing that options are about."""

    about = ""  # the benchmark's name

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        valued = {word for param in self.params if not vars(param).get("is_flag") for word in param.opts}
        for word, value in itertools.pairwise([*args, "--"]):
            if word in valued and value.startswith("--") and word.startswith("--"):
                raise UserError(f"{word} needs a value")
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            told = vars(error)
            if "option_name" not in told or "possibilities" not in told:  # it is not about an option that there is not
                raise
            if told["possibilities"]:
                near = f"did you mean {' or '.join(told['possibilities'])}? "
            else:
                near = ""
            own = [param.opts[0] for param in self.params if str(param.name).startswith((OWN, GROUP))]
            raise UserError(
                f"{self.about} has no option {told['option_name']}; {near}its own are {', '.join(own) or 'none'}; `--help` lists all"
            ) from None

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if record := param.get_help_record(ctx):
                sections.setdefault(self._section(str(param.name)), []).append(record)
        first = [title for title in (f"Options of {self.about}", *TITLES.values()) if title in sections]
        for title in dict.fromkeys((*first, *sections)):
            with formatter.section(title):
                formatter.write_dl(sections[title])

    def _section(self, name: str) -> str:
        if name.startswith((OWN, GROUP)):
            return f"Options of {self.about}"
        field = next((field for field, cli in FIELDS.items() if name in (field, cli.option)), "")
        if field:
            return TITLES[FIELDS[field].stage]
        return "Other options"


def command(work: Callable[..., None], name: str, about: Any, params: Iterable[inspect.Parameter]) -> Any:
    """A command that calls `work` with what was given, under the names of the parameters; `about` is the benchmark."""

    def run(**given: Any) -> None:
        work(**given)

    run.__doc__ = inspect.getdoc(work)
    run.__signature__ = inspect.Signature(list(params))  # pyright: ignore[reportFunctionMemberAccess]
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command(name, cls=type("Command", (BenchmarkCommand,), {"about": about.name}), context_settings=SETTINGS)(run)
    return get_command(app)


def without_own(names: Iterable[str], benchmark: Any) -> list[str]:
    """Fields of every run, but for those that a benchmark has of its own."""
    own = benchmark.Options.__struct_fields__
    return [name for name in names if not (name in SHAREABLE_NAMES and (name in own or "sample" in own))]


def defaults(section: Mapping[str, Any], base: Mapping[str, Any], benchmark: Any) -> dict[str, Any]:
    """What weft.toml says, under the names of the parameters: for all commands, then for the benchmark."""
    made = {OWN + name if name in benchmark.Options.__struct_fields__ else name: value for name, value in base.items()}
    known = {cli.option or field for field, cli in FIELDS.items()}
    for name, value in section.items():
        if name in benchmark.Options.__struct_fields__:
            made[OWN + name] = value
        elif name in benchmark.axes:
            made[GROUP + name] = str(value)
        elif name in known or name in ("dry_run", "replicas", "gpus_each", "address"):
            made[name] = value
        else:
            raise UserError(f"weft.toml: [defaults.{benchmark.name}] {name}: {benchmark.name} has no such option")
    return made


def benchmark_defaults(ctx: Any, name: str, benchmark: Any, base: Mapping[str, Any]) -> dict[str, Any]:
    return defaults(of_benchmark(ctx, name), base, benchmark)


def config_of(given: dict[str, Any]) -> dict[str, Any]:
    """The fields of a `RunConfig`, out of what was given on the command line. What is left in `given` is the command's
    own."""
    from weft.cli.options import pairs
    from weft.evaluation.config import default_probe

    made: dict[str, Any] = {}
    own = {name.removeprefix(OWN): given.pop(name) for name in list(given) if name.startswith(OWN)}
    groups = {name.removeprefix(GROUP): given.pop(name) for name in list(given) if name.startswith(GROUP)}
    for name, cli in FIELDS.items():
        value = given.pop(cli.option or name, None)
        if cli.pairs:
            value = pairs(value, f"--{(cli.option or name).replace('_', '-')}")
        if value is not None:
            made[name] = value
    made["where"] = {**made["where"], **{axis: name for axis, name in groups.items() if name is not None}}
    made["preset"] = tuple(made.get("preset", ()))
    made["probe"] = not made.get("probe") and default_probe()
    made["options"] = {name: value for name, value in own.items() if value is not None}
    if made.get("seed") is not None and made.get("sample") is None:
        seed = made["seed"]
        raise UserError(
            f"--seed {seed} is of --sample, which samples to draw; a model's seed is --model-opt seed={seed}"
        )
    return made


JUDGING = (
    "data",
    *fields_for("judge"),
    "limit",
    "sample",
    "seed",
    "where",
    "concurrency",
    "budget",
    "probe",
    "home",
)  # where nobody is asked
EVERYTHING = tuple(FIELDS)
