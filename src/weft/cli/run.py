"""weft run"""

from typing import Annotated

import typer

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


def run(
    context: typer.Context,
    benchmark: Annotated[
        str | None,
        typer.Argument(help="weave, imug, rover-ig, rover-tg, planviz, weaverbench, opening, or file.py:NAME. Default: the tabletop."),
    ] = None,
    data: o.Data = None,
    model: Annotated[
        str | None,
        typer.Option(help="What is evaluated: provider/model@url, a name from weft.toml, file.py:NAME, or NAME:role=MODEL,role=MODEL."),
    ] = None,
    judge: o.Judge = None,
    strategy: Annotated[str, typer.Option(help="Test-time strategy: none, cot, self-verify:N, best-of:N.")] = "none",
    prompts: o.Prompts = "weft",
    model_opt: Annotated[
        list[str] | None,
        typer.Option(help="NAME=VALUE for the model, such as temperature=0; ROLE.NAME=VALUE for a part. Repeatable."),
    ] = None,
    judge_opt: o.JudgeOpt = None,
    preset: o.Preset = None,
    judge_repeats: o.JudgeRepeats = 1,
    judge_batch: o.JudgeBatch = False,
    limit: o.Limit = None,
    sample: o.Sampled = None,
    seed: o.Seed = None,
    shard: o.Shard = "",
    where: o.Where = None,
    concurrency: o.Concurrency = None,
    judge_concurrency: o.JudgeConcurrency = None,
    budget: o.Budget = None,
    replicas: Annotated[
        int | None,
        typer.Option(min=1, help="Serve a local model by so many replicas while it runs, each on a GPU of its own (extra ray)."),
    ] = None,
    gpus_each: Annotated[float | None, typer.Option(min=0, help="GPUs of a replica; a fraction shares one.")] = None,
    address: Annotated[str | None, typer.Option(help="A Ray cluster for the replicas: auto, or HOST:PORT. Default: this machine.")] = None,
    dry_run: o.DryRun = False,
    no_probe: o.NoProbe = False,
    home: o.Home = o.Path(".weft"),
) -> None:
    if benchmark is None:
        from weft.cli.default import default_run

        given = [
            name
            for name in context.params
            if name not in ("benchmark", "home") and str(getattr(context.get_parameter_source(name), "name", "")) == "COMMANDLINE"
        ]
        return default_run(home, [f"--{name.rstrip('_').replace('_', '-')}" for name in given])
    from weft.cli.own_options import taken
    from weft.cli.work import work
    from weft.evaluation.config import usually_probed

    work(
        benchmark,
        own=taken(context),
        data=data,
        model=model,
        judge=judge,
        strategy=strategy,
        prompts=prompts,
        model_options=o.pairs(model_opt, "--model-opt"),
        judge_options=o.pairs(judge_opt, "--judge-opt"),
        preset=tuple(preset or ()),
        judge_repeats=judge_repeats,
        judge_batch=judge_batch,
        limit=limit,
        **o.drawn(sample, seed),
        shard=shard,
        where=o.pairs(where, "--where"),
        concurrency=concurrency,
        judge_concurrency=judge_concurrency,
        budget=budget,
        home=home,
        dry_run=dry_run,
        probe=not no_probe and usually_probed(),
        replicas=replicas,
        serving={"--gpus-each": gpus_each, "--address": address},
    )


run.__doc__ = EXAMPLES
