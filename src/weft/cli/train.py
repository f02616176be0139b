"""weft train"""

from pathlib import Path
from typing import Annotated

import typer

from weft.cli.help import HelpGroup
from weft.cli.terminal import say

app = typer.Typer(cls=HelpGroup, no_args_is_help=True, rich_markup_mode=None)
PARTS = ("images", "talker", "single")  # those of weft_tabletop.tiny.train, which needs torch


@app.callback()
def train() -> None:
    """Train the models that ship with weft (extra `train`: torch).

    Examples:

      weft train tiny --out weights
    """


@app.command()
def tiny(
    out: Annotated[Path, typer.Option(metavar="PATH", help="The folder for the weights.")],
    minutes: Annotated[
        float,
        typer.Option(
            min=0.05,
            metavar="NUMBER",
            help="How long to train, all parts together. The shipped weights took about 17 on one H200.",
        ),
    ] = 17.0,
    parts: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Which of images, talker and single, with commas. An existing image part is reused.",
        ),
    ] = "images,talker,single",
    workers: Annotated[int, typer.Option(min=0, metavar="N", help="Processes that generate dialogues.")] = 12,
) -> None:
    """Train the tiny model from scratch.

    Three parts: the image network, the talker, and a talker that only ever sees single turns.

    Examples:

      weft train tiny --out weights

      weft run weave --data tables --model tabletop/tiny --model-opt weights=weights \\
        --judge tabletop/exact
    """
    from weft.errors import UserError

    names = parts.split(",")
    for name in names:
        if name not in PARTS:
            raise UserError(f"--parts {parts}: the parts are images, talker and single")
    try:
        from weft_tabletop.tiny.train import train
    except ImportError as error:
        raise UserError(
            f"training needs torch, which is not installed ({error}); install the extra, from the clone: "
            "pip install -e '.[train]'"
        ) from None
    train(out, minutes=minutes, parts=tuple(names), workers=workers)
    say(out)
