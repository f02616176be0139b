"""Options that several commands share, each declared once, and how their texts are read."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer


def complete_run(incomplete: str) -> list[str]:
    """Runs of the journal that begin so, by tag and id, for a shell that completes."""
    import os

    from weft.workspace import open_journal

    try:
        records = open_journal(Path(os.environ.get("WEFT_HOME", ".weft"))).runs()
    except Exception:  # whatever it is, a shell that completes says nothing
        return []
    names = [name for one in reversed(records) for name in (one.names.get("tag", ""), one.id, one.id.rpartition("-")[2]) if name]
    return [name for name in ("last", *names) if name.startswith(incomplete)]


def complete_benchmark(incomplete: str) -> list[str]:
    from weft.benchmarks.base import names

    return [name for name in names() if name.startswith(incomplete)]


Home = Annotated[Path, typer.Option(help="Where the journal and the pictures are kept.", envvar="WEFT_HOME", show_envvar=True)]
HomeOf = Annotated[Path | None, typer.Option("--home", help="Where the journal and the pictures are kept.")]
Run = Annotated[str, typer.Argument(help="A run: its tag, its id, the beginning of it, or 'last'.", autocompletion=complete_run)]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
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
Sampled = Annotated[int | None, typer.Option("--sample", min=1, help="Only N samples drawn at random: the same ones on every machine.")]
Seed = Annotated[int | None, typer.Option(help="Which samples --sample draws. (A model's seed is --model-opt seed=N.)")]
Shard = Annotated[
    str,
    typer.Option(help="K/N: only the K-th of N parts of the run; all are one run, here or once their journals are merged.", metavar="K/N"),
]
NoProbe = Annotated[bool, typer.Option("--no-probe", help="Do not ask each endpoint one small question before the run begins.")]
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


def sure(yes: bool, what: str) -> None:
    """Ask, unless that was answered already. Raises UserError where nobody can be asked; ends the command where the answer is no."""
    import sys

    from weft.errors import UserError

    if yes:
        return
    if not sys.stdin.isatty():
        raise UserError(f"nobody can be asked here whether to {what}: give --yes")
    if input(f"{what}? [y/N] ").strip().lower() not in ("y", "yes"):
        raise typer.Exit(1)


def drawn(sample: int | None, seed: int | None) -> dict[str, Any]:
    """A seed of its own says nothing, and is meant for the model by whoever writes it."""
    from weft.errors import UserError

    if seed is not None and sample is None:
        raise UserError(f"--seed {seed} is of --sample, which samples to draw; a model's seed is --model-opt seed={seed}")
    return {"sample": sample, "seed": seed or 0}


def pairs(texts: Sequence[str] | None, option: str) -> dict[str, Any]:
    from weft.errors import UserError

    made: dict[str, Any] = {}
    for text in texts or ():
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise UserError(f"{option} {text!r}: write NAME=VALUE")
        made[name] = value
    return made
