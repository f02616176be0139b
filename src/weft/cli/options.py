"""Options that several commands share, each declared once, and how their texts are read."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from weft.evaluation.config import help_text


def complete_run(incomplete: str) -> list[str]:
    """Runs of the journal that begin so, by tag and id, for a shell that completes."""
    import os

    from weft.workspace import open_journal

    try:
        records = open_journal(Path(os.environ.get("WEFT_HOME", ".weft"))).runs()
    except Exception:  # whatever it is, a shell that completes says nothing
        return []
    names = [
        name
        for one in reversed(records)
        for name in (one.names.get("tag", ""), one.id, one.id.rpartition("-")[2])
        if name
    ]
    return [name for name in ("last", *names) if name.startswith(incomplete)]


def complete_benchmark(incomplete: str) -> list[str]:
    from weft.benchmarks.base import list_benchmarks

    return [name for name in list_benchmarks() if name.startswith(incomplete)]


Home = Annotated[Path, typer.Option(help=help_text("home"), envvar="WEFT_HOME", show_envvar=True)]
HomeOf = Annotated[Path | None, typer.Option("--home", help=help_text("home"))]
Run = Annotated[
    str, typer.Argument(help="A run: its tag, its id, the beginning of it, or 'last'.", autocompletion=complete_run)
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Judge = Annotated[str | None, typer.Option(help=help_text("judge"))]
JudgeOpt = Annotated[list[str] | None, typer.Option(help=help_text("judge_options"))]
Prompts = Annotated[str, typer.Option(help=help_text("prompts"))]
JudgeRepeats = Annotated[int, typer.Option(min=1, help=help_text("judge_repeats"))]
JudgeBatch = Annotated[bool, typer.Option("--judge-batch", help=help_text("judge_batch"))]
Limit = Annotated[int | None, typer.Option(min=0, help=help_text("limit"))]
Sampled = Annotated[int | None, typer.Option("--sample", min=1, help=help_text("sample"))]
Seed = Annotated[int | None, typer.Option(help=help_text("seed"))]
NoProbe = Annotated[bool, typer.Option("--no-probe", help=help_text("probe"))]
Concurrency = Annotated[int | None, typer.Option(min=1, help=help_text("concurrency"))]
JudgeConcurrency = Annotated[int | None, typer.Option(min=1, help=help_text("judge_concurrency"))]
Budget = Annotated[float | None, typer.Option(min=0, help=help_text("budget"))]
OwnBenchmark = Annotated[
    list[str] | None,
    typer.Option(
        "--benchmark",
        help="file.py:NAME of a run's benchmark, if it is your own: not loaded automatically, for security. Repeatable.",
    ),
]
DRY_RUN = "Say what would be called and what it would cost; call nothing."
DryRun = Annotated[bool, typer.Option("--dry-run", help=DRY_RUN)]


def sure(yes: bool, what: str) -> None:
    """Ask, unless that was answered already. Raises UserError where nobody can be asked; ends the command where the
    answer is no."""
    import sys

    from weft.errors import UserError

    if yes:
        return
    if not sys.stdin.isatty():
        raise UserError(f"nobody can be asked here whether to {what}: give --yes")
    if input(f"{what}? [y/N] ").strip().lower() not in ("y", "yes"):
        raise typer.Exit(1)


def pairs(texts: Sequence[str] | None, option: str) -> dict[str, Any]:
    from weft.errors import UserError

    made: dict[str, Any] = {}
    for text in texts or ():
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise UserError(f"{option} {text!r}: write NAME=VALUE")
        made[name] = value
    return made
