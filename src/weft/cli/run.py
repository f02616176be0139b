"""weft run"""

from collections.abc import Iterable
from typing import Any

import typer
from typer.core import TyperGroup

from weft.cli import options as o

EXAMPLES = """Generate, judge and tabulate. Without arguments: the tiny model that ships with weft, on the tabletop, between its ceiling and
its floor; no key, no network.

Examples:

  weft run

  weft run weave --data DATA --model openai-chat/NAME@http://127.0.0.1:8000/v1 --judge openai-chat/gpt-4o-2024-08-06

  weft run weave --data DATA --model my_model.py:model --judge judge --history dialogue --limit 10

  weft run weave --data DATA --model copy --judge judge --dry-run

  weft run weave --data DATA --model gemini/gemini-3-pro-image --judge openai/gpt-4.1 --judge-batch

  weft run imug --data DATA --model infer/http://127.0.0.1:8000/infer --judge judge --strategy best-of:3 --class Hybrid

  weft run weave --data DATA --model vllm-omni/ByteDance-Seed/BAGEL-7B-MoT@URL --preset weave/bagel --judge judge

  weft run weave --data DATA --model hf/deepseek-community/Janus-Pro-7B --model-opt dtype=bfloat16 --judge judge --replicas 8

  weft run weave --data DATA --model diffusers/Qwen/Qwen-Image-Edit-2509 --model-opt steps=28 --model-opt seed=0 --judge judge

  weft run rover-tg --data DATA --model MODEL --judge judge --mode both --type jigsaw

  weft run planviz --data DATA --model MODEL --judge judge --task edit --subtask route

  weft run weave --data DATA --model MODEL --judge judge --sample 200 --seed 1

  weft run weave --data DATA --model MODEL --judge judge --shard 2/8 --home shard2      # then: weft journal merge shard2

  weft run planviz --data DATA --model MODEL --judge judge --styles 10 --sample 10 --reword openai-chat/gpt-5.1

  weft run weaverbench --data DATA --model weaver:planner=MODEL,visualizer=MODEL --judge judge

  weft run weave --data DATA --model cascade:reasoner=MODEL,painter=MODEL --judge judge --judge-repeats 3

The same command again goes on where the last one ended, and asks only for what is missing. Exit code: 0 all scored; 1 ended early,
or something is unscored; 2 a mistake in the command, the data or an address; 130 interrupted.
"""


SERVING = {  # while a run lasts
    "replicas": (
        int,
        "N",
        "Serve a local model by so many replicas while it runs, each on a GPU of its own (extra ray).",
    ),
    "gpus_each": (float, "NUMBER", "GPUs of a replica; a fraction shares one."),
    "address": (str, "TEXT", "A Ray cluster for the replicas: auto, or HOST:PORT. Default: this machine."),
}


class Runs(TyperGroup):
    """`weft run BENCHMARK`: each benchmark is a command, made from its own options when it is called for."""

    def list_commands(self, ctx: Any) -> list[str]:
        from weft.benchmarks.base import list_benchmarks

        return list(list_benchmarks())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        from weft.benchmarks.base import load_benchmark
        from weft.cli.from_config import (
            EVERYTHING,
            benchmark_defaults,
            command,
            option,
            own_parameters,
            parameters,
            without_own,
        )

        benchmark = load_benchmark(cmd_name)
        params = [*own_parameters(benchmark), *parameters(without_own(EVERYTHING, benchmark))]
        params += [
            option(name, kind, {"help": told, "metavar": metavar}) for name, (kind, metavar, told) in SERVING.items()
        ]
        params.append(option("dry_run", bool, {"help": o.DRY_RUN}, "--dry-run"))
        usual: dict[str, Any] = ctx.default_map or {}
        base = {name: value for name, value in usual.items() if name != cmd_name}
        ctx.default_map = {**base, cmd_name: benchmark_defaults(ctx, cmd_name, benchmark, base)}

        def run(**given: Any) -> None:
            _run(cmd_name, given)

        run.__doc__ = f"{benchmark.presentation.title or benchmark.name}: generate, judge and tabulate. `weft run --help` has examples."
        return command(run, cmd_name, benchmark, params)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """A run's options follow the benchmark that they are for."""
        before = _before_command(args)
        if len(before) == len(args):
            alone = {"--help", "--home"}
        else:
            alone = {"--help"}
        wrong = [
            word for word in (one.partition("=")[0] for one in before) if word.startswith("--") and word not in alone
        ]
        if wrong:
            from weft.errors import UserError

            raise UserError(f"{', '.join(wrong)} needs a benchmark before it: weft run weave {wrong[0]} ...")
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Benchmarks"):
            formatter.write_text(f"{', '.join(self.list_commands(ctx))}, or file.py:NAME.")
            formatter.write_text("Each has options of its own, beside those of every run: weft run weave --help")


def _before_command(args: Iterable[str]) -> list[str]:
    """The words before the first that is no option, and no home."""
    made: list[str] = []
    before = ""
    for word in args:
        if not word.startswith("-") and before != "--home":
            break
        made.append(word)
        before = word
    return made


app = typer.Typer(cls=Runs, invoke_without_command=True, rich_markup_mode=None)


@app.callback(invoke_without_command=True, help=EXAMPLES)
def run(context: typer.Context, home: o.Home = o.Path(".weft")) -> None:
    if context.invoked_subcommand is None:
        from weft.cli.default import default_run

        default_run(home)


def _run(benchmark: str, given: dict[str, Any]) -> None:
    from weft.cli.from_config import config_of
    from weft.cli.work import work

    config = config_of(given)
    serving = {f"--{name.replace('_', '-')}": given[name] for name in ("gpus_each", "address")}
    work(config | {"benchmark": benchmark}, dry_run=bool(given["dry_run"]), replicas=given["replicas"], serving=serving)
