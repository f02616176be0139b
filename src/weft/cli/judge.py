"""weft judge"""

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from weft.cli import options as o

AGAIN = "again"  # what `weft judge RUN` is short for


class Judges(TyperGroup):
    """`weft judge RUN ...` judges a run again; whatever else can be done with judges has a word of its own."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        first = next((word for word in args if not word.startswith("-")), "")
        if args and first not in self.commands and args[0] not in ("-h", "--help"):
            args = [AGAIN, *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=Judges, no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def judges() -> None:
    """Judge a stored run again (weft judge RUN --judge JUDGE), or find out how far a judge can be trusted (weft judge
    check).

    Examples:

      weft judge last --judge openai/gpt-4.1 --judge-batch

      weft judge check --judge openai/gpt-4.1 --questions 200

      weft judge cards
    """


@app.command(AGAIN)
def judge(
    run: Annotated[str, typer.Argument(help="A run: its id, the beginning of it, or 'last'.")],
    judge: o.Judge = None,
    data: Annotated[o.Path | None, typer.Option(help="The dataset's folder, if it is not where it was.")] = None,
    prompts: o.Prompts = "weft",
    judge_opt: o.JudgeOpt = None,
    judge_repeats: o.JudgeRepeats = 1,
    judge_batch: o.JudgeBatch = False,
    concurrency: o.Concurrency = None,
    budget: o.Budget = None,
    dry_run: o.DryRun = False,
    no_probe: o.NoProbe = False,
    benchmark: o.OwnBenchmark = None,
    home: o.Home = o.Path(".weft"),
) -> None:
    """Judge the stored replies of a run again: by another judge, with other prompts, or several times. No model is
    asked.

    It becomes the run that the same command with the other judge would have made, so that reports and comparisons take
    both.

    Examples:

      weft judge last --judge openai/gpt-4.1 --judge-batch

      weft judge weave-bagel-1a2b --judge judge --judge-repeats 5

      weft compare weave-bagel-1a2b last
    """
    from weft.cli.work import finish
    from weft.errors import UserError
    from weft.evaluation.config import RunConfig, default_probe
    from weft.evaluation.session import open_run
    from weft.evaluation.sources import StoredRun

    if judge is None:
        raise UserError("give --judge; `weft judge --help` has examples, `weft models` the names")
    config = RunConfig(
        judge=judge,
        data=data or "",
        benchmark=benchmark or None,
        prompts=prompts,
        judge_options=o.pairs(judge_opt, "--judge-opt"),
        judge_repeats=judge_repeats,
        judge_batch=judge_batch,
        concurrency=concurrency,
        budget=budget,
        home=home,
        probe=not no_probe and default_probe(),
    )
    finish(open_run(config, StoredRun(run), dry=dry_run), dry_run=dry_run)


@app.command()
def check(
    judge: o.Judge = None,
    benchmarks: Annotated[
        str, typer.Option(help="About whose questions, with commas: weave, imug, rover, planviz, weaver.")
    ] = "",
    questions: Annotated[
        int, typer.Option(min=1, help="About so many for each benchmark, before repeats, pleas and battles.")
    ] = 200,
    sides: Annotated[
        str, typer.Option(help="How large the pictures are, in pixels, with commas: multiples of 64.")
    ] = "256,512,1024",
    prompts: o.Prompts = "weft",
    judge_opt: o.JudgeOpt = None,
    concurrency: o.Concurrency = None,
    budget: Annotated[
        float | None, typer.Option(min=0, help="Stop before more than this many USD are spent by all of it.")
    ] = None,
    dry_run: o.DryRun = False,
    no_probe: o.NoProbe = False,
    out: Annotated[
        o.Path | None, typer.Option("--out", "-o", help="The page. Default: reports/judge-NAME.html.")
    ] = None,
    open: Annotated[bool, typer.Option("--open", help="Show the page in the browser.")] = False,
    home: o.Home = o.Path(".weft"),
) -> None:
    """Find out how far a judge can be trusted: it is asked each benchmark's own questions about answers whose faults
    are known exactly.

    Its card has correlations and errors by metric, how steady it is, what order, length and style do to it, whether it
    obeys a text that asks for full marks, and what it costs. The card is kept in HOME/cards: a report whose judge has
    one says so. Run again to go on.

    Examples:

      weft judge check --judge openai/gpt-4.1 --benchmarks weave,imug --questions 100 --dry-run

      weft judge check --judge openai-chat/qwen@http://gpu7:8000/v1

      weft judge check --judge tabletop/erring --judge-opt lenient=0.1 --benchmarks weave --sides 128
    """
    from weft.cli.checking import check_judge
    from weft.errors import UserError
    from weft.evaluation.config import default_probe
    from weft.judge_eval.calibration.exam import PAPERS, Exam

    if judge is None:
        raise UserError("give --judge; `weft models` has the names")
    wanted = tuple(name.strip() for name in benchmarks.split(",") if name.strip()) or tuple(PAPERS)
    try:
        sizes = tuple(dict.fromkeys(int(side) for side in sides.split(",")))
    except ValueError:
        raise UserError(
            f"--sides {sides!r}: give numbers of pixels with commas between them, such as 256,512"
        ) from None
    options = o.pairs(judge_opt, "--judge-opt")
    probe = not no_probe and default_probe()
    exam = Exam(judge, home, wanted, questions, sizes, options, prompts, concurrency, probe=probe)
    check_judge(exam, out=out, budget=budget, dry_run=dry_run, show=open)


@app.command()
def cards(
    name: Annotated[str, typer.Argument(help="The judge, or a part of its name. Default: all that are kept.")] = "",
    home: o.Home = o.Path(".weft"),
) -> None:
    """The cards that are kept: of which judge, how it was asked, and what must be known of it.

    Examples:

      weft judge cards

      weft judge cards gpt-4.1
    """
    from weft.cli.checking import show_cards

    show_cards(home, name)
