"""weft judge"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.help import HelpGroup
from weft.cli.options import (
    DEFAULT_HOME,
    BudgetOption,
    ConcurrencyOption,
    DryRunOption,
    FreshJudgeOption,
    HomeOption,
    JudgeBatchOption,
    JudgeOption,
    JudgeOptOption,
    JudgeRepeatsOption,
    NoPreflightOption,
    OpenOption,
    OwnBenchmarkOption,
    PromptsOption,
    RunArgument,
    SampleOption,
    TotalBudgetOption,
    complete_run,
    parse_pairs,
    split_names,
)
from weft.cli.terminal import say

if TYPE_CHECKING:
    from weft.evaluation.config import RunConfig

DEFAULT_COMMAND = "again"  # `weft judge RUN` is short for `weft judge again RUN`


class JudgeGroup(HelpGroup):
    """`weft judge RUN ...` judges a run again; the other commands about judges have names of their own."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        first = next((word for word in args if not word.startswith("-")), "")
        if args and first not in self.commands and args[0] not in ("-h", "--help"):
            args = [DEFAULT_COMMAND, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=JudgeGroup, no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def judges() -> None:
    """Judge a stored run again, or calibrate a judge.

    Examples:

      weft judge last --judge openai/gpt-4.1 --judge-batch

      weft judge check --judge openai/gpt-4.1 --questions 200

      weft judge cards

      weft judge prompt last garden-12
    """


@app.command(DEFAULT_COMMAND)
def judge_again(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...",
            help="Runs or sweeps: tags, ids, their beginnings, or 'last'.",
            autocompletion=complete_run,
        ),
    ],
    judge: JudgeOption = None,
    data: Annotated[
        Path | None, typer.Option(metavar="PATH", help="The dataset's folder, if it was moved since the run.")
    ] = None,
    prompts: PromptsOption = "weft",
    judge_opt: JudgeOptOption = None,
    judge_repeats: JudgeRepeatsOption = 1,
    judge_batch: JudgeBatchOption = False,
    sample: SampleOption = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Which samples --sample draws. Default: 0, or the run's own.")
    ] = None,
    concurrency: ConcurrencyOption = None,
    budget: BudgetOption = None,
    fresh: FreshJudgeOption = False,
    dry_run: DryRunOption = False,
    no_preflight: NoPreflightOption = False,
    benchmark: OwnBenchmarkOption = None,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Judge the stored replies of a run again.

    By another judge, with other prompts, or several times; the model is never called. The result is the run that the
    same command with the other judge would have made, so that reports and comparisons accept both. --sample judges
    some of the samples, the same ones for every run of the dataset: enough to compare two judges. Several runs follow
    one another; --budget is for all of them together.

    Examples:

      weft judge last --judge openai/gpt-4.1 --judge-batch

      weft judge weave-bagel-1a2b --judge JUDGE --judge-repeats 5

      weft judge weave-bagel-1a2b --judge openai/gpt-4.1 --sample 50 --dry-run

      weft judge bagel gpt nano --judge openai/gpt-4.1 --sample 50

      weft compare weave-bagel-1a2b last
    """
    from weft.cli.execute import finish_session
    from weft.errors import UserError
    from weft.evaluation.config import RunConfig, default_preflight
    from weft.evaluation.session import open_run
    from weft.evaluation.sources import StoredRun
    from weft.results.sweeps import expand_names_in

    if judge is None:
        raise UserError("give --judge; `weft judge --help` has examples, `weft models` the names")
    config = RunConfig(
        judge=judge,
        data=data or "",
        benchmark=benchmark or None,
        prompts=prompts,
        judge_options=parse_pairs(judge_opt, "--judge-opt"),
        judge_repeats=judge_repeats,
        judge_batch=judge_batch,
        sample=sample,
        seed=seed,
        concurrency=concurrency,
        budget=budget,
        fresh=fresh,
        home=home,
        preflight=not no_preflight and default_preflight(),
    )
    names = expand_names_in(home, runs)
    if len(names) > 1:
        _judge_several(config, names, dry_run=dry_run)
    finish_session(open_run(config, StoredRun(names[0]), dry=dry_run), dry_run=dry_run)


def _judge_several(config: "RunConfig", names: Sequence[str], *, dry_run: bool) -> None:
    """Judge stored runs one after another, and end the program. Raises UserError for a name that is no run's, before
    any call is paid for."""
    import sys

    from weft.cli.outcome import COMPLETE, INCOMPLETE, USER_MISTAKE, format_home
    from weft.cli.several import Job, run_jobs
    from weft.evaluation.sources import StoredRun
    from weft.results.run import find_run
    from weft.workspace import open_journal

    journal = open_journal(config.home)
    runs = list(dict.fromkeys(find_run(journal, name).id for name in names))  # `last` is another run after the first
    journal.close()
    jobs = [Job(run, config, lambda session: None, StoredRun(run)) for run in runs]
    is_complete, ids = run_jobs(jobs, config.budget, dry_run=dry_run)
    if dry_run:
        sys.exit(COMPLETE)
    if not ids:
        sys.exit(USER_MISTAKE)  # each run has said why it could not begin
    if len(ids) == len(runs):
        say(f"compare: weft agree {' '.join(runs)} --with {','.join(ids)}{format_home(Path(config.home))}")
    sys.exit(COMPLETE if is_complete else INCOMPLETE)


@app.command()
def check(
    judge: JudgeOption = None,
    benchmarks: Annotated[
        str,
        typer.Option(metavar="NAMES", help="Whose questions, with commas: weave, imug, rover, planviz, weaver."),
    ] = "",
    questions: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="About so many for each benchmark, before repeats, injections and battles."
        ),
    ] = 200,
    sides: Annotated[
        str, typer.Option(metavar="PIXELS", help="Side lengths of the images, with commas: multiples of 64.")
    ] = "256,512,1024",
    prompts: PromptsOption = "weft",
    judge_opt: JudgeOptOption = None,
    concurrency: ConcurrencyOption = None,
    budget: TotalBudgetOption = None,
    dry_run: DryRunOption = False,
    no_preflight: NoPreflightOption = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="The page. Default: reports/judge-NAME.html."),
    ] = None,
    open: OpenOption = False,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Calibrate a judge with answers whose faults are known exactly.

    The judge is asked each benchmark's own questions. Its calibration card has correlations and errors by metric, its
    consistency, the effects of order, length and style, whether it obeys a text that asks for the maximum, and what it
    costs. The card is stored in HOME/cards: reports of runs with this judge refer to it. The same command resumes.

    Examples:

      weft judge check --judge openai/gpt-4.1 --benchmarks weave,imug --questions 100 --dry-run

      weft judge check --judge openai-chat/qwen@http://gpu7:8000/v1

      weft judge check --judge tabletop/erring --judge-opt lenient=0.1 --benchmarks weave --sides 128
    """
    from weft.cli.judge_check import check_judge
    from weft.errors import UserError
    from weft.evaluation.config import default_preflight
    from weft.judge_eval.calibration.exam import PAPERS, Exam

    if judge is None:
        raise UserError("give --judge; `weft models` has the names")
    names = tuple(split_names(benchmarks)) or tuple(PAPERS)
    options = parse_pairs(judge_opt, "--judge-opt")
    preflight = not no_preflight and default_preflight()
    exam = Exam(judge, home, names, questions, _parse_sides(sides), options, prompts, concurrency, preflight=preflight)
    check_judge(exam, out=out, budget=budget, dry_run=dry_run, open_page=open)


def _parse_sides(text: str) -> tuple[int, ...]:
    """Read side lengths with commas between them, each once, in their order."""
    from weft.errors import UserError

    try:
        sides = [int(side) for side in text.split(",")]
    except ValueError:
        raise UserError(f"--sides {text!r}: give numbers of pixels with commas between them, such as 256,512") from None
    return tuple(dict.fromkeys(sides))


@app.command()
def prompt(
    run: RunArgument,
    sample: Annotated[str, typer.Argument(metavar="SAMPLE", help="A sample of it, or the beginning of its name.")],
    turn: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Only this turn, counted from 1. Default: all.")
    ] = None,
    metrics: Annotated[str, typer.Option(metavar="NAMES", help="Only the questions about these metrics: A,B.")] = "",
    prompts: PromptsOption = "weft",
    data: Annotated[
        Path | None, typer.Option(metavar="PATH", help="The dataset's folder, if it was moved since the run.")
    ] = None,
    format: Annotated[str, typer.Option("--format", "-f", metavar="FORMAT", help="text, md, or latex.")] = "text",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Where to write. Default: the terminal.")
    ] = None,
    benchmark: OwnBenchmarkOption = None,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Print what a judge is asked about one dialogue.

    The prompts are built from the stored replies, as `weft run` builds them; nobody is asked. --prompts shows the
    paper's own, whatever the run's judge got. An image stands as a line with its name.

    Examples:

      weft judge prompt last garden-12 --turn 1

      weft judge prompt last garden-12 --prompts official:WEAVE --format latex --out prompt.tex
    """
    import asyncio

    from weft.cli.options import check_format
    from weft.cli.terminal import print_or_write
    from weft.judge_eval.prompts import build_prompts
    from weft.report.judge_prompts import render_prompts

    check_format(format, ("text", "md", "latex"))
    found = asyncio.run(
        build_prompts(
            run,
            sample,
            home,
            turn=turn,
            metrics=split_names(metrics),
            prompts=prompts,
            data=data or "",
            benchmark=benchmark or None,
        )
    )
    print_or_write(render_prompts(found, format), out)


@app.command()
def cards(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The judge, or a part of its name. Default: all.")] = "",
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """List the calibration cards of judges, with their findings.

    Examples:

      weft judge cards

      weft judge cards gpt-4.1
    """
    from weft.cli.judge_check import print_cards

    print_cards(home, name)
