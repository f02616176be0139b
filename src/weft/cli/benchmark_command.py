"""Commands built from data: the options of `RunConfig`, and those of a benchmark.

`weft run BENCHMARK` is built when it is called, from the benchmark's `Options` and axes: `--history full` is an option
of its own, `--class Game` selects the samples of that class. Its help has a section for each subject, and the error
about an unknown option names the nearest one."""

import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand
from typer.main import get_command

from weft.cli.config_defaults import SERVING_OPTIONS, benchmark_section
from weft.cli.help import CONTEXT_SETTINGS, keep_examples
from weft.errors import UserError
from weft.evaluation.config import FIELDS, SHAREABLE_NAMES, CliField, fields_for

if TYPE_CHECKING:
    from weft.benchmarks.options import Option

OWN_PREFIX = "own_"  # of parameters that are a benchmark's options
AXIS_PREFIX = "where_"  # of parameters that select a group of a benchmark's axis
SECTIONS = {"model": "Model", "judge": "Judge", "data": "Data and selection", "calls": "Limits"}
ARGUMENTS_SECTION = "Arguments"
OTHER_SECTION = "Other options"
INTEGERS = ("limit", "sample", "seed", "judge_repeats", "concurrency", "judge_concurrency")
TYPES: dict[str, Any] = {"data": Path, "home": Path, "budget": float, **dict.fromkeys(INTEGERS, int)}
MAX_METAVAR = 44  # characters; a longer one would leave no room for the description at 80 columns
METAVARS = {int: "N", float: "NUMBER", Path: "PATH", str: "TEXT"}
FLAGS = ("crop_rows", "judge_batch", "preflight", "fresh")
ALL_FIELDS = tuple(FIELDS)
JUDGING_FIELDS = (  # where stored outputs are judged, and no model is called
    "data",
    *fields_for("judge"),
    "limit",
    "sample",
    "seed",
    "where",
    "concurrency",
    "budget",
    "preflight",
    "fresh",
    "home",
)


def build_parameters(names: Iterable[str]) -> list[inspect.Parameter]:
    """Return fields of `RunConfig` as parameters of a command. A parameter that is not given is None."""
    return [_build_parameter(name, FIELDS[name]) for name in names if not FIELDS[name].hidden]


def _build_parameter(name: str, field: CliField) -> inspect.Parameter:
    option_name = field.option or name
    if name in FLAGS:
        flag = f"--{option_name.replace('_', '-')}"
        return build_option(option_name, bool, {"help": field.help, "show_default": False}, flag)
    kind = TYPES.get(name, str)
    settings: dict[str, Any] = {"help": field.help, "show_default": False, "metavar": field.metavar or METAVARS[kind]}
    if name == "home":
        settings |= {"envvar": "WEFT_HOME", "show_envvar": True}
    if field.pairs:
        settings["metavar"] = "NAME=VALUE"
        return build_option(option_name, list[str], settings)
    if field.repeatable:
        settings["metavar"] = "TEXT"
        return build_option(option_name, list[str], settings)
    if field.minimum is not None and kind is int:
        settings["min"] = int(field.minimum)
    elif field.minimum is not None:
        settings["min"] = field.minimum
    return build_option(name, kind, settings)


def build_option(name: str, kind: Any, settings: Mapping[str, Any], *flags: str) -> inspect.Parameter:
    """Return an option as a parameter whose default is None. Without `flags`, its flag follows from its name."""
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[kind | None, typer.Option(*flags, **settings)],
    )


def build_own_parameters(benchmark: Any) -> list[inspect.Parameter]:
    """Return a benchmark's own options, and one option for each of its axes, which selects the samples of a group."""
    from weft.benchmarks.options import list_options

    options = list_options(benchmark.Options)
    parameters: list[inspect.Parameter] = []
    parameters += [build_own_option(option) for option in options]
    option_names = {option.name for option in options}
    groups: Mapping[str, tuple[str, ...]] = benchmark.presentation.axis_names
    for axis in benchmark.axes:
        if axis not in option_names:
            metavar, listed = _describe_choices(groups.get(axis, ()), "TEXT")
            settings: dict[str, Any] = {"help": f"Only samples of this group.{listed}", "metavar": metavar}
            settings |= _build_completion(groups.get(axis, ()))
            parameters.append(build_option(AXIS_PREFIX + axis, str, settings, f"--{axis}"))
    return parameters


def build_own_option(option: "Option") -> inspect.Parameter:
    """Return an option of a benchmark or of a recipe, from the field that declares it."""
    flag = option.name.replace("_", "-")
    name = OWN_PREFIX + option.name
    if option.kind is bool:
        return build_option(name, bool, {"help": option.help, "show_default": False}, f"--{flag}/--no-{flag}")
    metavar, listed = _describe_choices(option.choices, METAVARS.get(option.kind, "TEXT"))
    text = f"{option.help}{listed}"
    if option.default not in ("", None):
        text += f" [default: {option.default}]"
    settings = {"help": text, "metavar": metavar, "show_default": False, **_build_completion(option.choices)}
    return build_option(name, option.kind, settings, f"--{flag}")


def _describe_choices(choices: Sequence[str], metavar: str) -> tuple[str, str]:
    """Return an option's metavar, and a sentence with its choices if they are too many for the metavar."""
    joined = "|".join(choices)
    if len(joined) > MAX_METAVAR:
        return "NAME", f" One of {', '.join(choices)}."
    return joined or metavar, ""


def _build_completion(choices: Sequence[str]) -> dict[str, Any]:
    """Return what a shell offers. It is no restriction: the benchmark itself refuses other values."""
    if choices:
        return {"autocompletion": lambda: list(choices)}
    return {}


def check_values(params: Iterable[object], args: Sequence[str]) -> None:
    """Raise UserError where an option that needs a value is followed by another option, or by nothing."""
    flags_with_value: set[str] = set()
    for param in params:
        settings = vars(param)
        if not settings.get("is_flag"):
            flags_with_value.update(settings["opts"])
    for word, value in itertools.pairwise([*args, "--"]):
        if word in flags_with_value and value.startswith("--") and word.startswith("--"):
            raise UserError(f"{word} needs a value")


class BenchmarkCommand(TyperCommand):
    """A command about one benchmark. Its help has a section for each subject."""

    benchmark_name = ""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        check_values(self.params, args)
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            details = vars(error)
            if "option_name" not in details or "possibilities" not in details:  # not an unknown option
                raise
            raise self._unknown_option(details["option_name"], details["possibilities"]) from None

    def _unknown_option(self, name: str, nearest: list[str]) -> UserError:
        suggestion = ""
        if nearest:
            suggestion = f"did you mean {' or '.join(nearest)}? "
        own = [param.opts[0] for param in self.params if str(param.name).startswith((OWN_PREFIX, AXIS_PREFIX))]
        return UserError(
            f"{self.benchmark_name} has no option {name}; {suggestion}its own are {', '.join(own) or 'none'}; "
            "`--help` lists all"
        )

    def format_options(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for title in (ARGUMENTS_SECTION, *SECTIONS.values(), self._own_section(), OTHER_SECTION):
            sections[title] = []
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record and param.param_type_name == "argument":
                sections[ARGUMENTS_SECTION].append(record)
            elif record:
                sections[self._find_section(str(param.name))].append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def _own_section(self) -> str:
        return f"Options of {self.benchmark_name}"

    def _find_section(self, parameter: str) -> str:
        if parameter.startswith((OWN_PREFIX, AXIS_PREFIX)):
            return self._own_section()
        if parameter in SERVING_OPTIONS:
            return SECTIONS["model"]
        for name, field in FIELDS.items():
            if parameter in (name, field.option):
                return SECTIONS.get(field.stage, OTHER_SECTION)
        return OTHER_SECTION


def build_command(work: Callable[..., None], name: str, benchmark: Any, parameters: Iterable[inspect.Parameter]) -> Any:
    """Return a command that calls `work` with the values of the parameters. Its help is the docstring of `work`."""

    def run(**values: Any) -> None:
        work(**values)

    run.__doc__ = keep_examples(inspect.getdoc(work) or "")
    run.__signature__ = inspect.Signature(list(parameters))  # pyright: ignore[reportFunctionMemberAccess]
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    command_class = type("Command", (BenchmarkCommand,), {"benchmark_name": benchmark.name})
    app.command(name, cls=command_class, context_settings=CONTEXT_SETTINGS)(run)
    return get_command(app)


def without_own_fields(names: Iterable[str], benchmark: Any) -> list[str]:
    """Return the fields of a run, but for those that the benchmark replaces by options of its own."""
    own = benchmark.Options.__struct_fields__
    fields: list[str] = []
    for name in names:
        replaced = name in SHAREABLE_NAMES and (name in own or "sample" in own)
        if not replaced:
            fields.append(name)
    return fields


def read_benchmark_defaults(ctx: Any, name: str, benchmark: Any, base: Mapping[str, Any]) -> dict[str, Any]:
    """Return the defaults of weft.toml under the names of the parameters: those for all commands (`base`), then those
    for the benchmark. Raises UserError for a name that the benchmark does not have."""
    own = benchmark.Options.__struct_fields__
    shared = {field.option or field_name for field_name, field in FIELDS.items()} | SERVING_OPTIONS | {"dry_run"}
    defaults: dict[str, Any] = {}
    for option, value in base.items():
        if option in own:
            defaults[OWN_PREFIX + option] = value
        else:
            defaults[option] = value
    for option, value in benchmark_section(ctx, name).items():
        if option in own:
            defaults[OWN_PREFIX + option] = value
        elif option in benchmark.axes:
            defaults[AXIS_PREFIX + option] = str(value)
        elif option in shared:
            defaults[option] = value
        else:
            raise UserError(f"weft.toml: [defaults.{benchmark.name}] {option}: {benchmark.name} has no such option")
    return defaults


def build_config_fields(values: dict[str, Any]) -> dict[str, Any]:
    """Take the fields of a `RunConfig` out of a command's values. What is left in `values` is the command's own."""
    from weft.cli.options import parse_pairs
    from weft.evaluation.config import default_preflight

    own = _pop_prefixed(values, OWN_PREFIX)
    groups = _pop_prefixed(values, AXIS_PREFIX)
    fields: dict[str, Any] = {}
    for name, field in FIELDS.items():
        option = field.option or name
        value = values.pop(option, None)
        if field.pairs:
            value = parse_pairs(value, f"--{option.replace('_', '-')}")
        if value is not None:
            fields[name] = value
    fields["where"] = {**fields["where"], **groups}
    fields["preset"] = tuple(fields.get("preset", ()))
    fields["preflight"] = not fields.get("preflight") and default_preflight()
    fields["options"] = own
    seed = fields.get("seed")
    if seed is not None and fields.get("sample") is None:
        raise UserError(
            f"--seed {seed} chooses the samples of --sample, which is missing; a model's seed is "
            f"--model-opt seed={seed}"
        )
    return fields


def _pop_prefixed(values: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Remove the values whose names begin with a prefix, and return those that were given, without it."""
    popped: dict[str, Any] = {}
    for name in list(values):
        if name.startswith(prefix):
            value = values.pop(name)
            if value is not None:
                popped[name.removeprefix(prefix)] = value
    return popped
