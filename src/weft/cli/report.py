"""weft report, weft compare"""

from typing import Annotated

import typer

from weft.cli import options as o
from weft.cli.terminal import say

FORMATS = "html, md, latex, csv, json, or parquet"


def report(
    run: Annotated[
        list[str] | None, typer.Argument(help="Run ids, their beginnings, or 'last'. Default: last.")
    ] = None,
    format: Annotated[str, typer.Option("--format", "-f", help=f"{FORMATS}.")] = "html",
    out: Annotated[
        o.Path | None,
        typer.Option("--out", "-o", help="Where to write. Default: reports/RUN for html, else the terminal."),
    ] = None,
    open: Annotated[bool, typer.Option("--open", help="Show the page in the browser.")] = False,
    single_file: Annotated[
        bool, typer.Option("--single-file", help="html as one file with its pictures inside; for small runs.")
    ] = False,
    published: Annotated[
        str | None, typer.Option(help="No run: the published tables of this benchmark, as text.")
    ] = None,
    columns: Annotated[
        list[str] | None, typer.Option(help="Only these columns, in this order: A,B,C. Not for html and parquet.")
    ] = None,
    rows: Annotated[
        list[str] | None, typer.Option(help="Only rows with such a text in their label, or 'ours', 'published'.")
    ] = None,
    tables: Annotated[
        list[str] | None, typer.Option(help="Only these tables: numbers (1,3), or parts of their titles.")
    ] = None,
    intervals: Annotated[
        bool, typer.Option("--intervals", help="latex: 95% intervals under values; elsewhere they always are.")
    ] = False,
    over: Annotated[
        str,
        typer.Option(
            help="seed: runs that differ in their seed alone are one row, with mean and deviation; one run stands for all."
        ),
    ] = "",
    correct: Annotated[
        bool,
        typer.Option("--correct", help="Also the main number corrected by people (`weft rate`), beside the plain one."),
    ] = False,
    label: Annotated[
        str, typer.Option(help="latex: what labels begin with. Default: tab:weft, as in tab:weft-weave-1.")
    ] = "",
    benchmark: o.OwnBenchmark = None,
    home: o.Home = o.Path(".weft"),
) -> None:
    """The paper's tables with our rows beside the published ones, plots, and every dialogue. May be called while the
    run goes on.

    Examples:

      weft report last --open

      weft report weave-bagel-1a2b3c4d weave-copy-5e6f --format latex --out table.tex

      weft report last --format latex --tables 1 --rows ours,bagel --columns Avg,Science --intervals     # one table of
      a paper

      weft report last --over seed --format md          # all runs like the last one but for the seed: mean, deviation,
      interval

      weft report last --format csv --tables "by class" --rows ours

      weft report last --single-file --out mail-me.html

      weft report last --correct --format md            # what people would have said of everything, from those they
      rated

      weft report --published imug --format md

      weft report last --benchmark garden.py:Garden
    """
    from weft import api, benchmarks
    from weft.errors import UserError
    from weft.report import parquet, render, select
    from weft.results.run import find_seed_siblings, load_run
    from weft.workspace import open_journal

    if format not in (*render.FORMATS, "html", "parquet"):
        raise UserError(f"unknown format {format!r}; there are {FORMATS}")
    if published is not None and run:
        raise UserError("--published stands alone: leave out the run, or leave out --published")
    if single_file and format != "html":
        raise UserError(f"--single-file is for html, not for {format}")
    if published is not None and format == "parquet":
        raise UserError("--published has tables alone: choose md, latex, csv or json")
    if correct and (published is not None or format == "parquet"):
        raise UserError(
            "--correct is a table of a run's report: leave out "
            + ("--published" if published is not None else "--format parquet")
        )
    if published is not None and format == "html":
        kind = "md"
    else:
        kind = format
    given = {"columns": columns, "rows": rows, "tables": tables, "intervals": intervals, "label": label}
    chosen = select.parse_choices(given, kind)
    if published is not None:
        known = benchmarks.load_benchmark(published)
        _text(render.render(list(known.tables([])), [], kind, chosen, known), out)
        return
    journal = open_journal(home)
    runs = [load_run(journal, name, benchmark) for name in run or ["last"]]
    if over == "seed" and len(runs) == 1:
        runs = [load_run(journal, one, benchmark) for one in find_seed_siblings(journal, runs[0].id)]
    usual = o.Path("reports") / "+".join([runs[0].id, *(run.id.rpartition("-")[2] for run in runs[1:])])[:200]
    if format == "html":
        place = out or (usual.with_name(usual.name + ".html") if single_file else usual)
        page = api.write_report(runs, place, home=home, single_file=single_file, over=over, correct=correct)
        say(page)
        if open:
            import webbrowser

            if not webbrowser.open(page.absolute().as_uri()):
                say("no browser could be opened here: open the page yourself")
    elif format == "parquet":
        path = out or usual.with_name(usual.name + ".parquet")
        parquet.write(runs, path)
        say(path)
    else:
        _text(api.report(runs, format, over=over, correct=correct, home=home, **given), out)


def _text(text: str, out: o.Path | None) -> None:
    if out is None:
        say(text.rstrip("\n"))
    else:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")
        say(out)


def compare(
    first: Annotated[str, typer.Argument(help="A run: its id, the beginning of it, or 'last'.")],
    second: Annotated[str, typer.Argument(help="Another run of the same benchmark.")],
    most: Annotated[int, typer.Option(min=0, help="How many of the dialogues that differ most to list.")] = 10,
    over: Annotated[str, typer.Option(help="seed: each with all runs that differ from it in their seed alone.")] = "",
    format: Annotated[str, typer.Option("--format", "-f", help="text, or json.")] = "text",
    benchmark: o.OwnBenchmark = None,
    home: o.Home = o.Path(".weft"),
) -> None:
    """Two runs on the same dialogues: paired differences with 95% intervals and p-values, and where they differ most.

    Only turns that both have scored count. Intervals resample dialogues; p-values are two-sided permutation tests by
    dialogue, with Holm's correction over all rows.

    Examples:

      weft compare weave-tiny-1a2b weave-copy-5e6f

      weft report weave-tiny-1a2b weave-copy-5e6f --open      # the same dialogues side by side
    """
    import msgspec

    from weft.cli.fitting import lines
    from weft.cli.screen import Screen
    from weft.errors import UserError
    from weft.report.compare import compare as compared
    from weft.report.numbers import format_p_value, format_range
    from weft.report.scale import format_number
    from weft.report.seeds import PooledRun, group_by_seed
    from weft.results.run import describe_shared_settings, find_seed_siblings, load_run, name_runs
    from weft.untrusted import format_for_terminal
    from weft.workspace import open_journal

    if format not in ("text", "json"):
        raise UserError(f"unknown format {format!r}; there are text, json")
    journal = open_journal(home)
    runs = [load_run(journal, name, benchmark) for name in (first, second)]
    if runs[0].id != runs[1].id:
        names = list(name_runs(runs))
    else:
        names = [run.name for run in runs]
    if over not in ("", "seed"):
        raise UserError(f"--over {over}: runs are taken together over their seed alone: --over seed")
    if over:
        groups = [[load_run(journal, one, benchmark) for one in find_seed_siblings(journal, run.id)] for run in runs]
        if groups[0][0].id == groups[1][0].id:
            raise UserError(f"{first} and {second} differ in their seed alone: there is nothing to compare over it")
        runs = [PooledRun(some) if len(some) > 1 else some[0] for some in groups]
        names = list(group_by_seed([run for some in groups for run in some]))
    found = compared(runs[0], runs[1], most, (names[0], names[1]))
    if format == "json":
        say(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
        return
    console = Screen(soft_wrap=True)
    for mark, name in zip("AB", names, strict=True):
        console.print(f"{mark}: {name}")
    if common := describe_shared_settings(runs):
        console.print(f"both: {common}")
    rows = [
        (
            format_for_terminal(row.name),
            format_number(row.first, found.digits),
            format_number(row.second, found.digits),
            format_number(row.difference.value, found.digits, sign=True),
            format_range(row.difference.low, row.difference.high, found.digits),
            format_p_value(row.difference.p),
            format_p_value(row.corrected_p) + ("*" if row.corrected_p < 0.05 else " "),
            str(row.difference.pairs),
        )
        for row in found.rows
    ]
    for text in lines(
        ("", "A", "B", "A - B", "95%", "p", "p (Holm) ", "pairs"), rows, console.width, name=0, numbers=True
    ):
        console.print(text)
    console.print(f"of {found.max_score:g}; * where p (Holm) is under 0.05")
    for note in found.notes:
        console.print(f"note: {note}")
    if found.unpaired:
        console.print(f"{found.unpaired} verdicts have no partner and are left out")
    if found.gaps:
        console.print("where they differ most, by the main number:")
    for gap in found.gaps:
        console.print(
            f"  {gap.sample}: {format_number(gap.first, found.digits)} and {format_number(gap.second, found.digits)}"
        )
    if str(home) == ".weft":
        where = ""
    else:
        where = f" --home {home}"
    ids = " ".join(run.id.replace("+", " ") for run in runs)
    console.print(f"side by side: weft report {ids}{' --over seed' if over else ''} --open{where}")
