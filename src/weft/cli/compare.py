"""weft compare"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.options import DEFAULT_HOME, HomeOption, OwnBenchmarkOption, check_format
from weft.cli.terminal import say

if TYPE_CHECKING:
    from weft.cli.screen import Screen
    from weft.report.compare import Comparison, ComparisonRow
    from weft.results.run import Run
    from weft.store.journal import Journal

COLUMNS = ("", "A", "B", "A - B", "95%", "p", "p (Holm) ", "pairs")
SIGNIFICANCE = 0.05


def compare(
    first: Annotated[str, typer.Argument(metavar="RUN", help="A run: its id, the beginning of its id, or 'last'.")],
    second: Annotated[str, typer.Argument(metavar="RUN", help="Another run of the same benchmark.")],
    most: Annotated[
        int, typer.Option(min=0, metavar="N", help="How many of the dialogues that differ most to list.")
    ] = 10,
    over: Annotated[
        str, typer.Option(metavar="seed", help="seed: each together with all runs that differ only in their seed.")
    ] = "",
    format: Annotated[str, typer.Option("--format", "-f", metavar="FORMAT", help="text or json.")] = "text",
    benchmark: OwnBenchmarkOption = None,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Compare two runs on the same dialogues.

    Paired differences with 95% intervals and p-values, and the dialogues that differ most. Only turns that are scored
    in both count. Intervals and two-sided p-values are by dialogue and agree: p is under 0.05 where 0 is outside of
    the interval. p (Holm) is corrected for the number of rows.

    Examples:

      weft compare weave-tiny-1a2b weave-copy-5e6f

      weft report weave-tiny-1a2b weave-copy-5e6f --open      # the same dialogues side by side
    """
    import msgspec

    from weft.cli.screen import Screen
    from weft.errors import UserError
    from weft.report.compare import compare as compare_runs
    from weft.results.run import load_run, name_runs
    from weft.workspace import open_journal

    check_format(format, ("text", "json"))
    journal = open_journal(home)
    runs = [load_run(journal, name, benchmark) for name in (first, second)]
    if runs[0].id == runs[1].id:
        names = [run.name for run in runs]
    else:
        names = list(name_runs(runs))
    if over not in ("", "seed"):
        raise UserError(f"--over {over}: runs can be pooled over their seed only: --over seed")
    if over:
        runs, names = _pool_by_seed(journal, runs, benchmark)
    comparison = compare_runs(runs[0], runs[1], most, (names[0], names[1]))
    if format == "json":
        say(msgspec.json.format(msgspec.json.encode(comparison.without_verdicts()), indent=2).decode())
        return
    screen = Screen(soft_wrap=True)
    _print_names(screen, runs, names)
    _print_comparison(screen, comparison)
    _print_report_command(screen, runs, home, pooled=bool(over))


def _pool_by_seed(journal: "Journal", runs: "list[Run]", benchmark: Any) -> "tuple[list[Run], list[str]]":
    """Return each run together with those that differ only in their seed, and names that tell the two groups apart."""
    from weft.errors import UserError
    from weft.report.seeds import PooledRun, group_by_seed
    from weft.results.run import find_seed_siblings, load_run

    pooled: list[Run] = []
    every: list[Run] = []
    for run in runs:
        siblings = [load_run(journal, name, benchmark) for name in find_seed_siblings(journal, run.id)]
        if every and every[0].id == siblings[0].id:
            raise UserError(f"{runs[0].id} and {run.id} differ only in their seed: there is nothing to compare")
        every += siblings
        if len(siblings) > 1:
            pooled.append(PooledRun(siblings))
        else:
            pooled.append(siblings[0])
    return pooled, list(group_by_seed(every))


def _print_names(screen: "Screen", runs: "list[Run]", names: list[str]) -> None:
    from weft.results.run import describe_shared_settings

    for letter, name in zip("AB", names, strict=True):
        screen.print(f"{letter}: {name}")
    shared = describe_shared_settings(runs)
    if shared:
        screen.print(f"both: {shared}")


def _print_comparison(screen: "Screen", comparison: "Comparison") -> None:
    from weft.cli.columns import align_rows
    from weft.rounding import format_number

    for note in comparison.notes:
        screen.print(f"warning: {note}")
    digits = comparison.digits
    rows = [_format_row(row, digits) for row in comparison.rows]
    for line in align_rows(COLUMNS, rows, screen.width, label=0, numbers=True):
        screen.print(line)
    screen.print(f"scores are out of {comparison.max_score:g}; * marks p (Holm) under {SIGNIFICANCE}")
    if comparison.remark:
        screen.print(comparison.remark)
    if comparison.gaps:
        screen.print("where they differ most, by the headline score:")
    for gap in comparison.gaps:
        screen.print(f"  {gap.sample}: {format_number(gap.first, digits)} and {format_number(gap.second, digits)}")


def _format_row(row: "ComparisonRow", digits: int) -> tuple[str, ...]:
    from weft.report.numbers import format_p_value, format_range
    from weft.rounding import format_number
    from weft.untrusted import format_for_terminal

    difference = row.difference
    star = " "
    if row.corrected_p < SIGNIFICANCE:
        star = "*"
    return (
        format_for_terminal(row.name),
        format_number(row.first, digits),
        format_number(row.second, digits),
        format_number(difference.value, digits, sign=True),
        format_range(difference.low, difference.high, digits),
        format_p_value(difference.p),
        format_p_value(row.corrected_p) + star,
        str(difference.pairs),
    )


def _print_report_command(screen: "Screen", runs: "list[Run]", home: Path, *, pooled: bool) -> None:
    from weft.cli.outcome import format_home

    ids = " ".join(run.id.replace("+", " ") for run in runs)
    over = ""
    if pooled:
        over = " --over seed"
    screen.print(f"side by side: weft report {ids}{over} --open{format_home(home)}")
