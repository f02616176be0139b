"""weft serve"""

from pathlib import Path
from typing import Annotated

import typer

from weft.cli import options as o


def serve(
    model: Annotated[
        str, typer.Argument(help="What is served: hf/..., diffusers/..., file.py:NAME, or a name from weft.toml.")
    ],
    replicas: Annotated[
        int, typer.Option(min=1, help="How many, each on GPUs of its own. More than one needs the extra ray.")
    ] = 1,
    gpus_each: Annotated[
        float | None,
        typer.Option(min=0, help="GPUs of a replica; a fraction shares one. Default: 1 where there are any."),
    ] = None,
    cpus_each: Annotated[float | None, typer.Option(min=0, help="CPUs that a replica reserves. Default: 1.")] = None,
    address: Annotated[
        str | None, typer.Option(help="A Ray cluster that is there already: auto, or HOST:PORT. Default: one here.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="What it is called in served/NAME@URL. Default: the end of the model's name.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="Where to listen. Any other than this machine wants a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: a free one.")] = 8000,
    model_opt: Annotated[
        list[str] | None, typer.Option(help="NAME=VALUE for the model, such as dtype=bfloat16 or batch=32. Repeatable.")
    ] = None,
    home: o.Home = Path(".weft"),
    child: Annotated[bool, typer.Option("--child", hidden=True)] = False,
) -> None:
    """Put a model behind an address that speaks OpenAI's chat completions, pictures in and out in their order: on one
    GPU, on all of a machine, or on a Ray cluster. Calls that come together are worked on together where the model can.
    Ctrl-C ends it.

    It says what it does at /v1/models, /health and /metrics. With --host other than this machine a token is wanted:
    WEFT_SERVE_TOKEN, or one that is made and printed; clients have it in WEFT_API_KEY.

    Examples:

      weft serve hf/checkpoints/step-2000

      weft serve hf/deepseek-community/Janus-Pro-7B --replicas 8

      weft serve mine.py:Model --replicas 8 --gpus-each 1

      weft serve diffusers/Qwen/Qwen-Image-Edit-2509 --replicas 16 --address auto --model-opt steps=28

      weft run weave --data DATA --model served/mine@http://127.0.0.1:8000 --judge JUDGE
    """
    import sys

    from weft.serving.start import ServePlan, serve

    plan = ServePlan(
        model=model,
        options=o.pairs(model_opt, "--model-opt"),
        replicas=replicas,
        gpus_each=gpus_each,
        cpus_each=cpus_each,
        address=address,
        name=name or "",
        host=host,
        port=port,
        home=str(home),
    )
    sys.exit(serve(plan, child=child))
