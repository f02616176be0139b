"""weft write"""

from pathlib import Path
from typing import Annotated

import typer

from weft.cli.options import DEFAULT_HOME, BudgetOption, ConcurrencyOption, HomeOption, OpenOption, parse_pairs


def write(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The request, as you would write it to a person.")],
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="A model that writes text and images, or weaver:planner=MODEL,visualizer=MODEL."
        ),
    ] = None,
    out: Annotated[
        list[Path] | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="FILE.html, FILE.md (with images next to it) or FILE.pdf. Repeatable.",
        ),
    ] = None,
    image: Annotated[list[Path] | None, typer.Option(metavar="FILE", help="An input image. Repeatable.")] = None,
    model_opt: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="NAME=VALUE for the model, such as temperature=0; ROLE.NAME=VALUE for a part. Repeatable.",
        ),
    ] = None,
    concurrency: ConcurrencyOption = None,
    budget: BudgetOption = None,
    open: OpenOption = False,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Write one document of text and images.

    With weaver, a planner writes the text and the prompts of the images; a visualizer generates each image with what
    comes before it as context; independent images are generated concurrently. Replies are cached: the same command
    again costs nothing.

    Examples:

      weft write "An illustrated guide to grafting roses in exactly 4 steps" \\
        --model weaver:planner=MODEL,visualizer=MODEL --out guide.html

      weft write "A storybook about this cat" --image cat.jpg --model MODEL --out book.pdf

      weft write --model weaver:planner=tabletop/oracle,visualizer=tabletop/tiny --out table.html \\
        "Show in exactly 2 steps how to make a mint table with a red star at b2, a blue ring at c3."
    """
    import sys

    from weft.cli.write_document import write_document
    from weft.errors import UserError
    from weft.evaluation.config import RunConfig
    from weft.evaluation.writing import WritingRequest

    if model is None:
        raise UserError("give --model; `weft write --help` has examples, `weft models` the names")
    config = RunConfig(
        model=model,
        home=home,
        concurrency=concurrency,
        budget=budget,
        model_options=parse_pairs(model_opt, "--model-opt"),
        preflight=False,
    )
    request = WritingRequest(text, tuple(image or ()))
    sys.exit(write_document(config, request, out or [Path("document.html")], open_file=open))
