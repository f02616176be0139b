"""weft agree"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.options import DEFAULT_HOME, HomeOption, OwnBenchmarkOption, check_format, complete_run
from weft.cli.terminal import complain, print_or_write, say

if TYPE_CHECKING:
    from weft.judge_eval.agreement.study import AgreementStudy
    from weft.report.select import Choices

FORMATS = ("text", "md", "latex", "csv", "json")
MAX_ROWS_WITH_INTERVALS = 12  # on the terminal


def agree(
    run: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN...",
            help="Runs or sweeps, as in `weft report`: of several models, one judge. Default: last.",
            autocompletion=complete_run,
        ),
    ] = None,
    with_: Annotated[
        str,
        typer.Option(
            "--with",
            metavar="RUN|JUDGE|FILE.csv",
            help="Another judge's run of the same replies, the name of a second judge, or a file of annotations.",
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
    charts: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Write bar charts of correlations, errors and means, each as PNG, SVG and PDF."
        ),
    ] = None,
    tables: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="Only these tables: their numbers or parts of their titles."),
    ] = None,
    rows: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="Only rows whose label has one of these texts.")
    ] = None,
    columns: Annotated[
        list[str] | None, typer.Option(metavar="NAMES", help="Only these columns, in this order.")
    ] = None,
    intervals: Annotated[bool, typer.Option("--intervals", help="latex: print 95% intervals.")] = False,
    caption: Annotated[
        str, typer.Option(metavar="TEXT", help="latex: caption of the one table that is shown, written in LaTeX.")
    ] = "",
    label: Annotated[
        str, typer.Option(metavar="TEXT", help="latex: label of the one table that is shown, or how labels begin.")
    ] = "",
    benchmark: OwnBenchmarkOption = None,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Measure a judge's agreement with annotators, or compare two judges.

    Correlations, mean absolute error and bias by metric and group, with 95% intervals by dialogue; Krippendorff's alpha
    among annotators; the paper's own table where it has one. Several runs get a row each and one for all models
    together; a second judge is compared with people and with the first, on the verdicts that all of them gave. Only
    verdicts of a judge are compared: those of rules are counted separately. A file of annotations has the columns
    sample, turn, metric, annotator and value (a share from 0 to 1) or score (on the question's scale), and for several
    runs their ids in the column run; turns count from 1.

    Examples:

      weft agree last                                          # with the annotators of `weft rate`

      weft agree weave-bagel-1a2b --with annotations.csv --by domain

      weft judge weave-bagel-1a2b --judge openai/gpt-4.1

      weft agree weave-bagel-1a2b --with last --format md      # two judges of the same replies

      weft agree bagel gpt nano                                # a row for each model, one for all

      weft agree bagel gpt nano --with openai/gpt-4.1 --charts figures

      weft agree bagel gpt nano --format latex --tables "Table 7" --out table7.tex
    """
    from msgspec.structs import replace

    from weft import api
    from weft.report.select import parse_choices, select_tables
    from weft.results.sweeps import expand_names_in

    check_format(format, FORMATS)
    selection: dict[str, Any] = {
        "tables": tables,
        "rows": rows,
        "columns": columns,
        "intervals": intervals,
        "caption": caption,
        "label": label,
    }
    choices = parse_choices(selection, "md" if format == "text" else format)
    study = api.agree(expand_names_in(home, run or ["last"]), with_ or None, by=by, home=home, benchmark=benchmark)
    study = replace(study, tables=tuple(select_tables(study.tables, choices).values()))
    if charts is not None:
        _write_charts(study, charts)
        if out is None and format == "text":
            return
    if format == "text" and out is None:
        _print_study(study)
        return
    if format in ("csv", "latex"):
        for note in study.notes:
            complain(note)
    print_or_write(_format_study(study, format, choices), out)


def _write_charts(study: "AgreementStudy", folder: Path) -> None:
    from weft.benchmarks.paired_verdicts import MIN_VERDICTS
    from weft.report import plots
    from weft.report.agreement_charts import build_agreement_charts

    built = build_agreement_charts(study.charted)
    for plot in built:
        for path in plots.save(plot.chart, folder / plot.name):
            say(path)
    if not built:
        complain(f"nothing to draw: no correlation is defined ({MIN_VERDICTS} verdicts that differ are the least)")


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


def _format_study(study: "AgreementStudy", format: str, choices: "Choices") -> str:
    import msgspec
    from msgspec.structs import replace

    from weft.report.render import render, without_page_title
    from weft.report.select import tables_for_json

    if format == "json":
        fields = {**msgspec.structs.asdict(study), "tables": tables_for_json(study.tables)}
        del fields["charted"]
        encoded = msgspec.json.encode(fields, order="deterministic")
        return msgspec.json.format(encoded, indent=2).decode() + "\n"
    if format == "text":
        paragraphs = [f"{table}\n{table.note}".rstrip() for table in study.tables]
        return "\n\n".join([*paragraphs, *study.notes]) + "\n"
    if format == "latex":
        choices = replace(choices, tables=(), rows=(), columns=())  # they are selected already
        return render(study.tables, [], format, choices)
    text = render(study.tables, [], format)
    if format == "md":
        text = without_page_title(text)
        text += "".join(f"- {note}\n" for note in study.notes)
    return text
