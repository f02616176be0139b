"""weft judge"""

from typing import Annotated

import typer

from weft.cli import options as o


def judge(
    run: Annotated[str, typer.Argument(help="A run: its id, the beginning of it, or 'last'.")],
    judge: o.Judge = None,
    against: Annotated[str | None, typer.Option(help="A second run: questions are about both replies, where there are battles.")] = None,
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
    """Judge the stored replies of a run again: by another judge, with other prompts, or several times. No model is asked.

    It becomes the run that the same command with the other judge would have made, so that reports and comparisons take both.

    Examples:

      weft judge last --judge openai/gpt-4.1 --judge-batch

      weft judge weave-bagel-1a2b --judge judge --judge-repeats 5

      weft compare weave-bagel-1a2b last
    """
    from weft.cli.work import finish
    from weft.errors import UserError
    from weft.session import Session, StoredJob, usually_probed

    if judge is None:
        raise UserError("give --judge; `weft judge --help` has examples, `weft models` the names")
    job = StoredJob(
        run=run,
        judge=judge,
        against=against or "",
        data=data or "",
        benchmark=benchmark or None,
        prompts=prompts,
        judge_options=o.pairs(judge_opt, "--judge-opt"),
        judge_repeats=judge_repeats,
        judge_batch=judge_batch,
        concurrency=concurrency,
        budget=budget,
        home=home,
        probe=not no_probe and usually_probed(),
    )
    finish(Session.open_stored(job), dry_run=dry_run)
