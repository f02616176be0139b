"""weft run"""

from collections.abc import Sequence
from typing import Any

import typer

from weft.cli.help import HelpGroup
from weft.cli.options import DEFAULT_HOME, DRY_RUN_HELP, HomeOption

HELP = """Generate replies, judge them, and print the tables.

Without a benchmark: evaluate the small model that ships with weft on the tabletop, between an upper and a lower bound;
no key, no network.

Examples:

  weft run

  weft run weave --data DATA --model openai-chat/NAME@http://127.0.0.1:8000/v1 \\
    --judge openai-chat/gpt-4o-2024-08-06

  weft run weave --data DATA --model my_model.py:model --judge JUDGE --limit 10 --dry-run

  weft run weave --data DATA --model gemini/gemini-3-pro-image --judge openai/gpt-4.1 \\
    --judge-batch --budget 20

  weft run weave --data DATA --model hf/deepseek-community/Janus-Pro-7B --judge JUDGE \\
    --model-opt dtype=bfloat16 --replicas 8

  weft run imug --data DATA --model MODEL --judge JUDGE --strategy best-of:3 --class Hybrid

  weft run weave --data DATA --model MODEL --judge JUDGE --sample 200 --seed 1

  weft run weave --data DATA --model MODEL --judge JUDGE --shard 2/8 --home shard2
  weft journal merge shard2

The same command resumes a run that ended early: it makes only the calls that are missing. Exit code: 0 if everything is
scored; 1 if the run ended early or something is unscored; 2 for a mistake in the command, the data or an address; 130
if interrupted.
"""

SERVING = {  # option -> type, metavar, help
    "replicas": (int, "N", "Serve a local model by N replicas during the run, each on its own GPU (extra ray)."),
    "gpus_each": (float, "NUMBER", "GPUs of a replica; a fraction shares one."),
    "address": (str, "TEXT", "A Ray cluster for the replicas: auto, or HOST:PORT. Default: this machine."),
}


class BenchmarkGroup(HelpGroup):
    """`weft run BENCHMARK`: each benchmark is a command, built from its own options when it is called.

    A subclass is another command of this kind, with its own `verb`, `build_more_parameters`, `work` and `describe`."""

    verb = "run"
    replaced_fields: Sequence[str] = ()  # fields of a run that `build_more_parameters` has in another form

    def build_more_parameters(self) -> list[Any]:
        """Return the parameters that are no fields of a run."""
        from weft.cli.benchmark_command import build_option

        parameters: list[Any] = []
        for name, (kind, metavar, help_text) in SERVING.items():
            parameters.append(build_option(name, kind, {"help": help_text, "metavar": metavar}))
        return parameters

    def work(self, benchmark: str, values: dict[str, Any]) -> None:
        """Do what the command does, with the values of its parameters."""
        _run(benchmark, values)

    def describe(self, name: str, title: str) -> str:
        """Return the help of the command for one benchmark."""
        return _build_help(name, title)

    def list_commands(self, ctx: Any) -> list[str]:
        from weft.benchmarks.base import list_benchmarks

        return list(list_benchmarks())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        from weft.benchmarks.base import load_benchmark
        from weft.cli import benchmark_command as builder

        benchmark = load_benchmark(cmd_name)
        parameters = builder.build_own_parameters(benchmark)
        fields = [name for name in builder.ALL_FIELDS if name not in self.replaced_fields]
        parameters += builder.build_parameters(builder.without_own_fields(fields, benchmark))
        parameters += self.build_more_parameters()
        parameters.append(builder.build_option("dry_run", bool, {"help": DRY_RUN_HELP}, "--dry-run"))
        defaults: dict[str, Any] = dict(ctx.default_map or {})
        defaults.pop(cmd_name, None)
        own_defaults = builder.read_benchmark_defaults(ctx, cmd_name, benchmark, defaults)
        ctx.default_map = {**defaults, cmd_name: own_defaults}

        def run(**values: Any) -> None:
            self.work(cmd_name, values)

        run.__doc__ = self.describe(cmd_name, benchmark.presentation.title or benchmark.name)
        return builder.build_command(run, cmd_name, benchmark, parameters)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse options before the benchmark's name: they belong to the benchmark that follows."""
        leading = _leading_options(args)
        accepted = {"--help"}
        if len(leading) == len(args):  # there is no benchmark
            accepted.add("--home")
        misplaced: list[str] = []
        for word in leading:
            flag = word.partition("=")[0]
            if flag.startswith("--") and flag not in accepted:
                misplaced.append(flag)
        if misplaced:
            from weft.errors import UserError

            raise UserError(
                f"{', '.join(misplaced)} needs a benchmark before it: weft {self.verb} weave {misplaced[0]} ..."
            )
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Benchmarks"):
            formatter.write_text(f"{', '.join(self.list_commands(ctx))}, or file.py:NAME.")
            formatter.write_text(
                f"`weft {self.verb} BENCHMARK --help` lists the options of a run, and the benchmark's own."
            )


def _build_help(name: str, title: str) -> str:
    return (
        f"Evaluate a model on {title}: generate replies, judge them, and print the tables.\n\n"
        f"Examples:\n\n"
        f"  weft run {name} --data DATA --model MODEL --judge JUDGE\n\n"
        f"  weft run {name} --data DATA --model MODEL --judge JUDGE --limit 10 --dry-run\n\n"
        f"`weft run --help` has more examples, `weft models` the names of models and judges."
    )


def _leading_options(args: Sequence[str]) -> list[str]:
    """Return the words before the first that is neither an option nor the value of --home."""
    leading: list[str] = []
    for word in args:
        is_home_value = leading[-1:] == ["--home"]
        if not word.startswith("-") and not is_home_value:
            break
        leading.append(word)
    return leading


app = typer.Typer(cls=BenchmarkGroup, invoke_without_command=True, rich_markup_mode=None)


@app.callback(invoke_without_command=True, help=HELP)
def run(context: typer.Context, home: HomeOption = DEFAULT_HOME) -> None:
    if context.invoked_subcommand is None:
        from weft.cli.quickstart import run_quickstart

        run_quickstart(home)


def _run(benchmark: str, values: dict[str, Any]) -> None:
    from weft.cli.benchmark_command import build_config_fields
    from weft.cli.execute import execute_run

    fields = build_config_fields(values)
    fields["benchmark"] = benchmark
    serving = {"--gpus-each": values["gpus_each"], "--address": values["address"]}
    execute_run(fields, dry_run=bool(values["dry_run"]), replicas=values["replicas"], serving=serving)
