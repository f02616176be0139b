"""Options that several commands share, each declared once, and how their texts are read."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

Home = Annotated[Path, typer.Option(help="Where the journal and the pictures are kept.")]
Data = Annotated[Path | None, typer.Option(help="The dataset's folder.")]
Judge = Annotated[str | None, typer.Option(help="Who judges: provider/model@url, a name from weft.toml, or file.py:NAME.")]
JudgeOpt = Annotated[list[str] | None, typer.Option(help="NAME=VALUE for the judge, such as max_tokens=1400. Repeatable.")]
Prompts = Annotated[str, typer.Option(help="'weft', or 'official:DIR' for the paper's prompts from a checkout of its repository.")]
Preset = Annotated[
    list[str] | None,
    typer.Option(help="A paper's published settings: PAPER/MODEL, or PAPER/judge for the judge (`weft models presets`). Repeatable."),
]
JudgeRepeats = Annotated[int, typer.Option(min=1, help="How often the judge is asked each question: mean, deviation and variation follow.")]
JudgeBatch = Annotated[
    bool, typer.Option("--judge-batch", help="Hand the judge's questions in as batches: half the price, within a day. OpenAI, Gemini.")
]
Limit = Annotated[int | None, typer.Option(min=0, help="Only the first N samples.")]
Where = Annotated[list[str] | None, typer.Option(help="Only samples of a group, such as domain=edit or class=Game. Repeatable.")]
Concurrency = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Most calls in flight at each endpoint. Default: found by trying, up to 64; a Python function has its own.",
    ),
]
JudgeConcurrency = Annotated[int | None, typer.Option(min=1, help="The same for the judge alone.")]
Budget = Annotated[float | None, typer.Option(min=0, help="Stop before more than this many USD are spent by this command.")]
OwnBenchmark = Annotated[
    list[str] | None,
    typer.Option(
        "--benchmark", help="file.py:NAME of a run's benchmark, if it is your own: a journal's word for it is not taken. Repeatable."
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be called and what it would cost; call nothing.")]


def pairs(texts: Sequence[str] | None, option: str) -> dict[str, Any]:
    from weft.errors import UserError

    made: dict[str, Any] = {}
    for text in texts or ():
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise UserError(f"{option} {text!r}: write NAME=VALUE")
        made[name] = value
    return made
