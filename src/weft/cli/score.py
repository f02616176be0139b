"""weft score"""

import inspect
import itertools
from pathlib import Path
from typing import Annotated, Any

import typer

from weft.cli import benchmark_command as builder
from weft.cli.help import keep_examples
from weft.cli.options import DRY_RUN_HELP
from weft.errors import UserError

HELP = """Judge images and texts that were generated elsewhere.

Examples:

  weft score result/bagel --benchmark weave --data DATA --judge openai-chat/gpt-4o-2024-08-06

  weft score outputs/model_outputs/bagel --benchmark imug --data DATA --judge JUDGE

  weft score gen_banana --benchmark rover-ig --data rover --judge JUDGE

File names are those of each benchmark's released scripts: `weft score FOLDER --benchmark NAME --help` tells them, and
lists the benchmark's own options. A missing file scores 0; a file that cannot be read stays unscored.
"""
FOLDER_HELP = """Judge images and texts that were generated elsewhere, on {title}.

Example:

  weft score FOLDER --benchmark {name} --data DATA --judge JUDGE

Files that are looked for in the folder: {file_names}. A missing file scores 0; a file that cannot be read stays
unscored.
"""


class ScoreCommand(builder.BenchmarkCommand):
    """`weft score`. Its options are those of the benchmark that `--benchmark` names: it is rebuilt from them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        name = _find_benchmark(args)
        if name:
            self._rebuild(ctx, name)
        elif not {"-h", "--help"} & set(args):
            raise UserError("give --benchmark: which benchmark the outputs answer; `weft score --help` has examples")
        return super().parse_args(ctx, args)

    def _rebuild(self, ctx: Any, name: str) -> None:
        from weft.benchmarks.base import load_benchmark

        benchmark = load_benchmark(name)
        parameters = list(inspect.signature(score, eval_str=True).parameters.values())
        parameters += builder.build_own_parameters(benchmark)
        parameters += builder.build_parameters(builder.without_own_fields(builder.JUDGING_FIELDS, benchmark))
        parameters.append(builder.build_option("dry_run", bool, {"help": DRY_RUN_HELP}, "--dry-run"))
        command = builder.build_command(_score, "score", benchmark, parameters)
        self.benchmark_name = benchmark.name
        self.help = _build_help(benchmark)
        self.params = command.params
        self.callback = command.callback
        ctx.default_map = builder.read_benchmark_defaults(ctx, name, benchmark, ctx.default_map or {})


def _build_help(benchmark: Any) -> str:
    file_names = benchmark.preparation.outputs.file_names
    title = benchmark.presentation.title or benchmark.name
    return keep_examples(FOLDER_HELP.format(title=title, name=benchmark.name, file_names=file_names))


def _find_benchmark(args: list[str]) -> str:
    """Return the value of `--benchmark`, or an empty text."""
    for word in args:
        if word.startswith("--benchmark="):
            return word.partition("=")[2]
    for option, value in itertools.pairwise(args):
        if option == "--benchmark":
            return value
    return ""


def score(
    outputs: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="The folder with the outputs, in the benchmark's own layout and file names."
        ),
    ],
    benchmark: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Which benchmark they answer. Its own options: weft score DIR --benchmark weave --help",
        ),
    ],
) -> None:
    _score(outputs=outputs, benchmark=benchmark)


def _score(**values: Any) -> None:
    from weft.cli.execute import execute_run

    fields = builder.build_config_fields(values)
    fields["model"] = f"folder/{values['outputs']}"
    execute_run(fields, dry_run=bool(values.get("dry_run")))
