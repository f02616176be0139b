"""weft score"""

import inspect
import itertools
from typing import Annotated, Any

import typer

from weft.cli import options as o
from weft.cli.from_config import (
    JUDGING,
    BenchmarkCommand,
    benchmark_defaults,
    command,
    config_of,
    option,
    own_parameters,
    parameters,
    without_own,
)
from weft.errors import UserError

HELP = """Judge pictures and texts that were made elsewhere.

Examples:

  weft score result/bagel --benchmark weave --data DATA --judge openai-chat/gpt-4o-2024-08-06

  weft score outputs/model_outputs/bagel --benchmark imug --data DATA --judge judge

  weft score gen_banana --benchmark rover-ig --data rover --judge judge

  weft score results/bagel --benchmark planviz --data DATA --judge judge

WEAVE's names: an image turn has the base name of the dataset's picture, a text turn is <stem of the first picture>_<turn>.txt.
IMUG's: <domain>/<subdomain>/question_<id>/result.json beside turn_<n>_output.png.
ROVER's: gen_<id>.png beside gen_<id>.txt, which has the thinking (rover-ig) or the whole answer (rover-tg); answers to rover-tg in
words alone (--mode text, --mode both) are gen_<id>.text.txt, or gen_<id>.txt in a folder without pictures.
PlanViz's: <list>/<index>.png, as in results/<model>/travel_plan_gen/0.png; or <id>.png, the task's id as reports have it.
"""


class ScoreCommand(BenchmarkCommand):
    """The options of the benchmark that `--benchmark` names are its own: the command is made anew from them."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        name = _named(args)
        if name:
            from weft.benchmarks.base import load_benchmark

            found = load_benchmark(name)
            always = list(inspect.signature(score, eval_str=True).parameters.values())
            params = [*always, *own_parameters(found), *parameters(without_own(JUDGING, found))]
            made = command(_score, "score", found, [*params, option("dry_run", bool, {"help": o.DRY_RUN}, "--dry-run")])
            self.about, self.params, self.callback = found.name, made.params, made.callback
            ctx.default_map = benchmark_defaults(ctx, name, found, ctx.default_map or {})
        elif not {"-h", "--help"} & set(args):
            raise UserError("give --benchmark: which benchmark the outputs answer; `weft score --help` has examples")
        return super().parse_args(ctx, args)


def _named(args: list[str]) -> str:
    """What follows `--benchmark`."""
    after = next((word for before, word in itertools.pairwise(args) if before == "--benchmark"), "")
    return next((word.partition("=")[2] for word in args if word.startswith("--benchmark=")), after)


def score(
    outputs: Annotated[
        o.Path, typer.Argument(help="The folder with the outputs, in the benchmark's own layout and file names.")
    ],
    benchmark: Annotated[
        str, typer.Option(help="Which benchmark they answer. Its own options: weft score DIR --benchmark weave --help")
    ],
) -> None:
    _score(outputs=outputs, benchmark=benchmark)


def _score(**given: Any) -> None:
    from weft.cli.work import work

    config = config_of(given)
    config |= {"model": f"folder/{given['outputs']}"}
    work(config, dry_run=bool(given.get("dry_run")))
