"""weft train"""

from typing import Annotated

import typer

from weft.cli import options as o
from weft.cli.terminal import say

app = typer.Typer(no_args_is_help=True, help="Train the models that ship with weft.", rich_markup_mode=None)


@app.callback()
def train() -> None:
    """Train the models that ship with weft (needs the extra `train`: torch)."""


@app.command()
def tiny(
    out: Annotated[o.Path, typer.Option(help="Where the weights go.")],
    minutes: Annotated[
        float,
        typer.Option(
            min=0.05, help="How long to train, all parts together. The shipped weights took about 17 on one H200."
        ),
    ] = 17.0,
    parts: Annotated[
        str, typer.Option(help="Which of pictures, talker and single, with commas. Pictures that are there are used.")
    ] = "pictures,talker,single",
    workers: Annotated[int, typer.Option(min=0, help="Processes that make dialogues.")] = 12,
) -> None:
    """From nothing to weights: the picture network, the talker, and a talker that only ever saw single turns.

    Examples:

      weft train tiny --out weights

      weft run weave --data tables --model tabletop/tiny --model-opt weights=weights --judge tabletop/exact
    """
    from weft.errors import UserError

    chosen = tuple(parts.split(","))
    if set(chosen) - {"pictures", "talker", "single"}:
        raise UserError(f"--parts {parts}: there are pictures, talker and single")
    try:
        from weft_tabletop.tiny.train import train
    except ImportError as error:
        raise UserError(
            f"training needs torch, which is not here ({error}); install the extra, from the clone: pip install -e '.[train]'"
        ) from None
    train(out, minutes=minutes, parts=chosen, workers=workers)
    say(out)
