"""weft sweep"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from weft.cli.run import BenchmarkGroup

HELP = """Run a benchmark with every combination of some models and settings: one table, one plot.

--vary NAME=V1,V2 takes an option of the benchmark or the model, strategy, prompts, judge, judge_repeats, limit, sample
or preset; judge.NAME is an option of the judge. All other options are those
of `weft run BENCHMARK`, and hold for every run. --budget is for all runs together.

One run after another; one that fails does not stop the others. The same command again makes only the calls that are
missing, and prints the table. The runs carry the sweep's name: `weft report NAME --by ...` takes it like a run.

Examples:

  weft sweep weave --data DATA --model bagel,qwen-edit --judge JUDGE \\
    --vary history=none,partial,full --name figure-6a

  weft sweep imug --data DATA --model bagel --judge JUDGE --metric points \\
    --vary strategy=none,cot,self-verify:1,self-verify:2,best-of:2,best-of:3 --name table-4

  weft sweep weave --data DATA --model MODEL --judge JUDGE \\
    --vary temperature=0.5,1,1.5 --vary seed=0,1,2 --budget 20 --dry-run

  weft report table-4 --by strategy,class --metric points --format latex

Exit code: 0 if everything is scored; 1 if something is missing; 2 for a mistake in the command; 130 if interrupted.
"""


class SweepGroup(BenchmarkGroup):
    """`weft sweep BENCHMARK`: each benchmark is a command with the options of `weft run` and those of a sweep."""

    verb = "sweep"
    replaced_fields = ("model",)

    def build_more_parameters(self) -> list[Any]:
        from weft.cli.benchmark_command import build_option

        return [
            build_option(
                "model", list[str], {"metavar": "NAMES", "help": "Models as for `weft run`, with commas. Repeatable."}
            ),
            build_option("vary", list[str], {"metavar": "NAME=V1,V2", "help": "A setting and its values. Repeatable."}),
            build_option(
                "name", str, {"metavar": "NAME", "help": "What the sweep is called. Default: what it varies."}
            ),
            build_option(
                "metric", str, {"metavar": "NAME", "help": "The metric of the table. Default: the headline score."}
            ),
            build_option(
                "baseline", str, {"metavar": "VALUE", "help": "What changes are from, as for `weft report --by`."}
            ),
        ]

    def work(self, benchmark: str, values: dict[str, Any]) -> None:
        _sweep(benchmark, values)

    def describe(self, name: str, title: str) -> str:
        return (
            f"Run {title} with every combination of some models and settings.\n\n"
            f"Examples:\n\n"
            f"  weft sweep {name} --data DATA --model A,B --judge JUDGE --vary NAME=V1,V2\n\n"
            f"`weft sweep --help` says more."
        )


app = typer.Typer(cls=SweepGroup, no_args_is_help=True, rich_markup_mode=None)


@app.callback(help=HELP)
def sweep() -> None:
    pass


def _sweep(benchmark: str, values: dict[str, Any]) -> None:
    """Plan the sweep, run what is missing of it, print its table, and end the program."""
    import sys
    from functools import partial

    from weft.cli.benchmark_command import build_config_fields
    from weft.cli.outcome import COMPLETE, INCOMPLETE, USER_MISTAKE
    from weft.cli.several import Job, run_jobs
    from weft.cli.terminal import say
    from weft.evaluation import sweep as planning
    from weft.evaluation.suite import check_names, split_models
    from weft.report.grid import find_metric
    from weft.results.sweeps import check_sweep_name

    varied = planning.read_varied(values.pop("vary") or ())
    name = values.pop("name")
    metric = values.pop("metric") or ""
    baseline = values.pop("baseline") or ""
    fields = build_config_fields(values)
    fields["benchmark"] = benchmark
    _check_required(fields, varied)
    models = split_models(fields.pop("model"))
    cells = planning.plan_sweep(fields, models, varied)
    dimensions = planning.list_dimensions(models, varied)
    _check_dimensions(benchmark, dimensions)
    find_metric(_load_benchmark(benchmark), metric)  # refuses an unknown metric before the first call is paid for
    name = name or planning.build_name(fields, dimensions, cells)
    check_sweep_name(_stored_runs(Path(cells[0].config.home)), name)
    for cell in cells:
        check_names(cell.config)
    jobs = [Job(cell.label, cell.config, partial(planning.name_session, name=name)) for cell in cells]
    dry_run = bool(values["dry_run"])
    is_complete, ids = run_jobs(jobs, fields.get("budget"), dry_run=dry_run)
    if dry_run:
        say(f"sweep {name}: {len(cells)} runs, counted one by one; what they share is paid for once")
    elif not ids:
        sys.exit(USER_MISTAKE)  # each run has said why it could not begin
    else:
        _print_grid(ids, name, dimensions, metric, baseline, Path(cells[0].config.home))
    sys.exit(COMPLETE if is_complete else INCOMPLETE)


def _check_required(fields: dict[str, Any], varied: dict[str, list[str]]) -> None:
    from weft.errors import UserError

    for option in ("data", "model", "judge"):
        if fields.get(option) is None and option not in varied:
            raise UserError(f"give --{option}; `weft sweep --help` has examples")


def _check_dimensions(benchmark: str, dimensions: Sequence[str]) -> None:
    from weft.errors import UserError
    from weft.report.grid_layout import MAX_NAMES

    if len(dimensions) > MAX_NAMES:
        raise UserError(
            f"a sweep of {benchmark} varies at most {MAX_NAMES} settings besides seeds, not {', '.join(dimensions)}: "
            "make several sweeps"
        )


def _load_benchmark(name: str) -> Any:
    from weft.benchmarks.base import load_benchmark

    return load_benchmark(name)


def _stored_runs(home: Path) -> list[Any]:
    from weft.store.schema import journal_file
    from weft.workspace import open_journal

    if not journal_file(home).exists():
        return []
    return open_journal(home).runs()


def _print_grid(
    ids: Sequence[str], name: str, dimensions: Sequence[str], metric: str, baseline: str, home: Path
) -> None:
    """Print the table of the sweep's runs, and the commands that show more."""
    from weft.cli.outcome import format_home
    from weft.cli.screen import Screen
    from weft.cli.tables import print_table
    from weft.report.grid import build_grid
    from weft.results.run import load_run
    from weft.results.sweeps import find_sweep_runs
    from weft.workspace import open_journal

    journal = open_journal(home)
    runs = [load_run(journal, run) for run in ids]
    table = build_grid(runs, dimensions, metric, baseline).table
    screen = Screen(soft_wrap=True)
    print_table(screen, table, intervals=True)
    screen.print(table.note)
    options = f" --metric {metric}" if metric else ""
    if baseline:
        options += f" --baseline {baseline}"
    if set(find_sweep_runs(journal, name)) != set(ids):
        name = " ".join(ids)  # the name has other runs as well, which need not fit into one table
    screen.print(f"with its plot: weft report {name} --by {','.join(dimensions)}{options} --open{format_home(home)}")
