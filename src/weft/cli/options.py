"""Options that several commands share, each declared once, and how their values are read."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from weft.evaluation.config import help_text

DEFAULT_HOME = Path(".weft")
DRY_RUN_HELP = "Print what would be called and what it would cost; call nothing."


def complete_run(incomplete: str) -> list[str]:
    """Return the tags and ids of runs that begin with `incomplete`, for a shell's completion. Never raises."""
    import os

    from weft.workspace import open_journal

    try:
        records = open_journal(Path(os.environ.get("WEFT_HOME", ".weft"))).runs()
    except Exception:  # a completion has nowhere to show an error
        return []
    names = ["last"]
    for record in reversed(records):
        names += [record.names.get("tag", ""), record.id, record.id.rpartition("-")[2]]
    return [name for name in names if name and name.startswith(incomplete)]


HomeOption = Annotated[Path, typer.Option(help=help_text("home"), metavar="PATH", envvar="WEFT_HOME", show_envvar=True)]
SubcommandHomeOption = Annotated[Path | None, typer.Option("--home", metavar="PATH", help=help_text("home"))]
RunArgument = Annotated[
    str,
    typer.Argument(
        metavar="RUN", help="A run: its tag, its id, the beginning of its id, or 'last'.", autocompletion=complete_run
    ),
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
JudgeOption = Annotated[str | None, typer.Option(metavar="NAME", help=help_text("judge"))]
JudgeOptOption = Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help=help_text("judge_options"))]
PromptsOption = Annotated[str, typer.Option(metavar="TEXT", help=help_text("prompts"))]
JudgeRepeatsOption = Annotated[int, typer.Option(min=1, metavar="N", help=help_text("judge_repeats"))]
JudgeBatchOption = Annotated[bool, typer.Option("--judge-batch", help=help_text("judge_batch"))]
LimitOption = Annotated[int | None, typer.Option(min=0, metavar="N", help=help_text("limit"))]
SampleOption = Annotated[int | None, typer.Option("--sample", min=1, metavar="N", help=help_text("sample"))]
FreshOption = Annotated[bool, typer.Option("--fresh", help=help_text("fresh"))]
FreshJudgeOption = Annotated[
    bool, typer.Option("--fresh", help="Ask the judge anew, whatever is cached: a new run beside the others.")
]
NoPreflightOption = Annotated[bool, typer.Option("--no-preflight", help=help_text("preflight"))]
ConcurrencyOption = Annotated[int | None, typer.Option(min=1, metavar="N", help=help_text("concurrency"))]
JudgeConcurrencyOption = Annotated[int | None, typer.Option(min=1, metavar="N", help=help_text("judge_concurrency"))]
BudgetOption = Annotated[float | None, typer.Option(min=0, metavar="USD", help=help_text("budget"))]
TotalBudgetOption = Annotated[
    float | None,
    typer.Option(min=0, metavar="USD", help="Stop before all runs together have spent more than this many USD."),
]
OwnBenchmarkOption = Annotated[
    list[str] | None,
    typer.Option(
        "--benchmark",
        metavar="FILE:NAME",
        help="file.py:NAME of a run's benchmark, if it is your own: not loaded automatically, for security. "
        "Repeatable.",
    ),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help=DRY_RUN_HELP)]
OpenOption = Annotated[bool, typer.Option("--open", help="Open the page in the browser.")]


def confirm(yes: bool, action: str) -> None:
    """Ask the user whether to do `action`, unless `yes`. Ends the command if the answer is no.

    Raises UserError if there is no terminal to ask at."""
    import sys

    from weft.errors import UserError

    if yes:
        return
    if not sys.stdin.isatty():
        raise UserError(f"there is no terminal to ask whether to {action}: give --yes")
    if input(f"{action}? [y/N] ").strip().lower() not in ("y", "yes"):
        raise typer.Exit(1)


def parse_pairs(texts: Sequence[str] | None, option: str) -> dict[str, Any]:
    """Read NAME=VALUE texts. `option` is named in the error about any other text."""
    from weft.errors import UserError

    values: dict[str, Any] = {}
    for text in texts or ():
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise UserError(f"{option} {text!r}: write NAME=VALUE")
        values[name] = value
    return values


def split_names(text: str) -> list[str]:
    """Split a list with commas, without empty names."""
    names = [name.strip() for name in text.split(",")]
    return [name for name in names if name]


def check_format(format: str, formats: Sequence[str]) -> None:
    """Raise UserError if `--format` is none of `formats`."""
    from weft.errors import UserError

    if format not in formats:
        raise UserError(f"unknown format {format!r}; the formats are {', '.join(formats)}")
