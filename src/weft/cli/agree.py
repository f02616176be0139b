"""weft agree"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli.options import DEFAULT_HOME, HomeOption, OwnBenchmarkOption, RunArgument, check_format
from weft.cli.terminal import complain, print_or_write

if TYPE_CHECKING:
    from weft.judge_eval.agreement.study import AgreementStudy

FORMATS = ("text", "md", "csv", "json")
MAX_ROWS_WITH_INTERVALS = 12  # on the terminal


def agree(
    run: RunArgument = "last",
    with_: Annotated[
        str,
        typer.Option(
            "--with",
            metavar="RUN|FILE.csv",
            help="Another judge's run of the same replies, or a file of annotations.",
        ),
    ] = "",
    by: Annotated[
        str,
        typer.Option(metavar="AXIS", help="Groups: an axis of the benchmark, 'turn', or 'none'. Default: its first."),
    ] = "",
    format: Annotated[str, typer.Option("--format", "-f", metavar="FORMAT", help=f"{', '.join(FORMATS)}.")] = "text",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="PATH", help="Where to write. Default: the terminal.")
    ] = None,
    benchmark: OwnBenchmarkOption = None,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Measure a judge's agreement with annotators, or compare two judges.

    Correlations, mean absolute error and bias by metric and group, with 95% intervals by dialogue; Krippendorff's alpha
    among annotators; the paper's own table where it has one. Only verdicts of a judge are compared: those of rules are
    counted separately. A file of annotations has the columns sample, turn, metric, annotator and value (a share from
    0 to 1) or score (on the question's scale); turns count from 1.

    Examples:

      weft agree last                                          # with the annotators of `weft rate`

      weft agree weave-bagel-1a2b --with annotations.csv --by domain

      weft judge weave-bagel-1a2b --judge openai/gpt-4.1

      weft agree weave-bagel-1a2b --with last --format md      # two judges of the same replies
    """
    from weft import api

    check_format(format, FORMATS)
    study = api.agree(run, with_ or None, by=by, home=home, benchmark=benchmark)
    if format == "text" and out is None:
        _print_study(study)
        return
    if format == "csv":
        for note in study.notes:
            complain(note)
    print_or_write(_format_study(study, format), out)


def _print_study(study: "AgreementStudy") -> None:
    from weft.cli.screen import Screen
    from weft.cli.tables import print_table

    screen = Screen(soft_wrap=True)
    for table in study.tables:
        print_table(Screen(), table, intervals=len(table.rows) <= MAX_ROWS_WITH_INTERVALS)
        if table.note:
            screen.print(table.note)
    if any(len(table.rows) > MAX_ROWS_WITH_INTERVALS for table in study.tables):
        screen.print("intervals of long tables: --format md")
    for note in study.notes:
        screen.print(f"note: {note}")


def _format_study(study: "AgreementStudy", format: str) -> str:
    import msgspec

    from weft.report.render import render
    from weft.report.select import tables_for_json

    if format == "json":
        fields = {**msgspec.structs.asdict(study), "tables": tables_for_json(study.tables)}
        encoded = msgspec.json.encode(fields, order="deterministic")
        return msgspec.json.format(encoded, indent=2).decode() + "\n"
    if format == "text":
        paragraphs = [f"{table}\n{table.note}".rstrip() for table in study.tables]
        return "\n\n".join([*paragraphs, *study.notes]) + "\n"
    text = render(study.tables, [], format)
    if format == "md":
        text = text.partition("\n\n")[2]  # without the page's title
        text += "".join(f"- {note}\n" for note in study.notes)
    return text
