"""weft write"""

from typing import Annotated

import typer

from weft.cli import options as o


def write(
    text: Annotated[str, typer.Argument(help="What is to be written, as you would ask a person.")],
    model: Annotated[
        str | None,
        typer.Option(
            help="Who writes it: a model that writes words and pictures, or weaver:planner=MODEL,visualizer=MODEL."
        ),
    ] = None,
    out: Annotated[
        list[o.Path] | None,
        typer.Option("--out", "-o", help="FILE.html (one file), FILE.md (pictures beside it) or FILE.pdf. Repeatable."),
    ] = None,
    image: Annotated[list[o.Path] | None, typer.Option(help="A picture to go by. Repeatable.")] = None,
    model_opt: Annotated[
        list[str] | None,
        typer.Option(help="NAME=VALUE for the model, such as temperature=0; ROLE.NAME=VALUE for a part. Repeatable."),
    ] = None,
    concurrency: o.Concurrency = None,
    budget: o.Budget = None,
    open: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
    home: o.Home = o.Path(".weft"),
) -> None:
    """Write one document of words and pictures, and show it.

    With weaver: a planner writes the words and orders the pictures; a visualizer draws each, with what comes before it
    at hand; what does not depend on each other is drawn at the same time. Answers are kept: the same command again
    costs nothing.

    Examples:

      weft write "An illustrated guide to grafting roses in exactly 4 steps" --model
      weaver:planner=MODEL,visualizer=MODEL --out guide.html

      weft write "A picture book about this cat" --image cat.jpg --model MODEL --out book.pdf --out book.md

      weft write "Show in exactly 3 steps how to make a mint table with a red star at b2, a blue ring at c3, a green dot
      at d4." \\
        --model weaver:planner=tabletop/oracle,visualizer=tabletop/tiny --out table.html      # no key, no network
    """
    import sys

    from weft.cli.writing import write_document
    from weft.errors import UserError

    if model is None:
        raise UserError("give --model; `weft write --help` has examples, `weft models` the names")
    sys.exit(
        write_document(
            text,
            model,
            out or [o.Path("document.html")],
            image or [],
            o.pairs(model_opt, "--model-opt"),
            concurrency,
            budget,
            open,
            home,
        )
    )
