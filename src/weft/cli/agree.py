"""weft agree"""

from typing import Annotated

import typer

from weft.cli import options as o
from weft.cli.terminal import complain, say

FORMATS = ("text", "md", "csv", "json")
SHORT = 12  # rows of a table that has its intervals on the screen, too


def agree(
    run: o.Run = "last",
    with_: Annotated[
        str,
        typer.Option(
            "--with",
            metavar="RUN|FILE.csv",
            help="Another judge's run of the same replies, or a file of ratings by people.",
        ),
    ] = "",
    by: Annotated[
        str,
        typer.Option(metavar="AXIS", help="Groups: an axis of the benchmark, 'turn', or 'none'. Default: its first."),
    ] = "",
    format: Annotated[str, typer.Option("--format", "-f", help=f"{', '.join(FORMATS)}.")] = "text",
    out: Annotated[o.Path | None, typer.Option("--out", "-o", help="Where to write. Default: the terminal.")] = None,
    benchmark: o.OwnBenchmark = None,
    home: o.Home = o.Path(".weft"),
) -> None:
    """How far a run's judge agrees with people, and people with each other; or with another judge of the same replies.

    Correlations, mean absolute error and bias by metric and group, with 95% intervals by dialogue; Krippendorff's alpha
    among people; the paper's own table where it has one. Only what a judge judged is compared: what a rule decided is
    counted apart. A file of ratings has the columns sample,turn,metric,rater and value (a share from 0 to 1) or score
    (on the question's scale); turns count from 1.

    Examples:

      weft agree last                                          # ratings by people, from `weft rate`

      weft agree weave-bagel-1a2b --with ratings.csv --by domain

      weft judge weave-bagel-1a2b --judge openai/gpt-4.1

      weft agree weave-bagel-1a2b --with last --format md      # two judges of the same replies
    """
    import msgspec

    from weft import api
    from weft.cli.screen import Screen
    from weft.cli.show import show_table
    from weft.errors import UserError
    from weft.report.render import render
    from weft.report.select import tables_for_json

    if format not in FORMATS:
        raise UserError(f"unknown format {format!r}; there are {', '.join(FORMATS)}")
    found = api.agree(run, with_ or None, by=by, home=home, benchmark=benchmark)
    if format == "text" and out is None:
        screen = Screen(soft_wrap=True)
        for table in found.tables:
            show_table(Screen(), table, ranges=len(table.rows) <= SHORT)
            if table.note:
                screen.print(table.note)
        if any(len(table.rows) > SHORT for table in found.tables):
            screen.print("intervals of long tables: --format md")
        for note in found.notes:
            screen.print(f"note: {note}")
        return
    if format == "json":
        plain = {**msgspec.structs.asdict(found), "tables": tables_for_json(found.tables)}
        text = msgspec.json.format(msgspec.json.encode(plain, order="deterministic"), indent=2).decode() + "\n"
    elif format == "text":
        text = "\n\n".join([*(f"{table}\n{table.note}".rstrip() for table in found.tables), *found.notes]) + "\n"
    else:
        text = render(found.tables, [], format)
        if format == "md":
            text = text.partition("\n\n")[2] + "".join(f"- {note}\n" for note in found.notes)
        for note in found.notes if format == "csv" else ():
            complain(note)
    if out is None:
        say(text.rstrip("\n"))
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")
    say(out)
