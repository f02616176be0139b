"""weft serve"""

from typing import Annotated

import typer

from weft.cli.options import DEFAULT_HOME, HomeOption, parse_pairs


def serve(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="The model: hf/..., diffusers/..., file.py:NAME, or a name from weft.toml."
        ),
    ],
    replicas: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="How many, each on its own GPUs. More than one needs the extra ray."),
    ] = 1,
    gpus_each: Annotated[
        float | None,
        typer.Option(
            min=0, metavar="NUMBER", help="GPUs of a replica; a fraction shares one. Default: 1 if there are any."
        ),
    ] = None,
    cpus_each: Annotated[
        float | None, typer.Option(min=0, metavar="NUMBER", help="CPUs that a replica reserves. Default: 1.")
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="An existing Ray cluster: auto, or HOST:PORT. Default: a new one here."),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Its name in served/NAME@URL. Default: the end of the model's name."),
    ] = None,
    host: Annotated[
        str, typer.Option(metavar="HOST", help="Address to listen on. Any other than this machine needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="PORT", help="0: a free one.")] = 8000,
    model_opt: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="NAME=VALUE for the model, such as dtype=bfloat16 or batch=32. Repeatable."
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SETTING",
            help="A setting of requests to accept and leave unused, such as temperature, where the model cannot take "
            "it. Repeatable.",
        ),
    ] = None,
    home: HomeOption = DEFAULT_HOME,
    child: Annotated[bool, typer.Option("--child", hidden=True)] = False,
) -> None:
    """Serve a model over OpenAI's chat completions API.

    On one GPU, on all of a machine, or on a Ray cluster; text and images in and out, in order. Calls that arrive
    together are batched if the model supports it. Ctrl-C ends it.

    Requests may set temperature, top_p and max_tokens where the model can take them call by call (hf/...). Any other
    setting that would change an answer is refused, unless --ignore names it; /v1/models lists both.

    /v1/models, /health and /metrics describe the server. With a --host other than this machine, clients need a token:
    WEFT_SERVE_TOKEN, or one that is generated and printed; clients have it in WEFT_API_KEY.

    Examples:

      weft serve hf/checkpoints/step-2000

      weft serve hf/deepseek-community/Janus-Pro-7B --replicas 8

      weft serve mine.py:Model --replicas 8 --gpus-each 1

      weft serve mine.py:Model --ignore temperature --ignore max_tokens

      weft serve diffusers/Qwen/Qwen-Image-Edit-2509 --replicas 16 --address auto --model-opt steps=28

      weft run weave --data DATA --model served/mine@http://127.0.0.1:8000 --judge JUDGE
    """
    import sys

    from weft.serving.start import ServePlan
    from weft.serving.start import serve as start_serving

    plan = ServePlan(
        model=model,
        options=parse_pairs(model_opt, "--model-opt"),
        replicas=replicas,
        gpus_each=gpus_each,
        cpus_each=cpus_each,
        address=address,
        name=name or "",
        host=host,
        port=port,
        home=str(home),
        ignored_settings=tuple(ignore or ()),
    )
    sys.exit(start_serving(plan, child=child))
