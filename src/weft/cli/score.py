"""weft score"""

from typing import Annotated

import typer

from weft.cli import options as o


def score(
    context: typer.Context,
    outputs: Annotated[o.Path, typer.Argument(help="The folder with the outputs, in the benchmark's own layout and file names.")],
    benchmark: Annotated[str, typer.Option(help="Which benchmark they answer.")],
    data: o.Data = None,
    judge: o.Judge = None,
    prompts: o.Prompts = "weft",
    judge_opt: o.JudgeOpt = None,
    judge_repeats: o.JudgeRepeats = 1,
    judge_batch: o.JudgeBatch = False,
    limit: o.Limit = None,
    sample: o.Sampled = None,
    seed: o.Seed = None,
    where: o.Where = None,
    concurrency: o.Concurrency = None,
    budget: o.Budget = None,
    dry_run: o.DryRun = False,
    no_probe: o.NoProbe = False,
    home: o.Home = o.Path(".weft"),
) -> None:
    """Judge pictures and texts that were made elsewhere.

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
    from weft.cli.own_options import taken
    from weft.cli.work import work
    from weft.evaluation.config import usually_probed

    work(
        benchmark,
        data=data,
        model=f"folder/{outputs}",
        judge=judge,
        own=taken(context),
        prompts=prompts,
        judge_options=o.pairs(judge_opt, "--judge-opt"),
        limit=limit,
        **o.drawn(sample, seed),
        judge_repeats=judge_repeats,
        judge_batch=judge_batch,
        where=o.pairs(where, "--where"),
        concurrency=concurrency,
        budget=budget,
        home=home,
        dry_run=dry_run,
        probe=not no_probe and usually_probed(),
    )
