"""weft rate"""

from pathlib import Path
from typing import Annotated

import typer

from weft.cli.options import DEFAULT_HOME, HomeOption, OwnBenchmarkOption, PromptsOption, complete_run

FILE_SUFFIXES = (".csv", ".json")
DEFAULT_ATTENTION = 0.1


def rate(
    run: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...",
            help="Runs or sweeps: of several models, annotators get one reply to each task.",
            autocompletion=complete_run,
        ),
    ],
    annotators: Annotated[
        str | None,
        typer.Option(metavar="N|NAMES", help="How many annotators, or their names with commas. Default: 1."),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="N questions at random, the same on every machine. Default: 100."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Which questions --sample draws, and their orders. Default: 0.")
    ] = None,
    each: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="How many annotators get each question. Default: all of them."),
    ] = None,
    attention: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=0.5,
            metavar="SHARE",
            help="Share of attention checks: questions with known answers, which count for no score. "
            "Default: 0.1; 0: none.",
        ),
    ] = None,
    status: Annotated[
        bool, typer.Option("--status", help="How far each annotator is, and whose answers are doubtful.")
    ] = False,
    export: Annotated[
        Path | None,
        typer.Option(
            "--export", metavar="FILE", help="All annotations as FILE.csv, or the study as FILE.json for Label Studio."
        ),
    ] = None,
    import_: Annotated[
        Path | None,
        typer.Option(
            "--import", metavar="FILE", help="Annotations from FILE.csv, or FILE.json as Label Studio exports it."
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, metavar="PORT", help="Port to listen on. Default: a free one, then always the same."
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(metavar="HOST", help="Address to listen on; any but 127.0.0.1 lets others in.")
    ] = "127.0.0.1",
    data: Annotated[
        Path | None, typer.Option(metavar="PATH", help="The dataset's folder, if it was moved since the run.")
    ] = None,
    prompts: PromptsOption = "weft",
    benchmark: OwnBenchmarkOption = None,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Let people annotate runs: the judge's questions, on a page.

    Annotators do not see the model and the judge. Needs no key and no network. Prints a link for each annotator. Every
    answer is saved before the next question is shown. The same command continues the same study with the same links;
    other settings are another study. Ctrl-C ends it.

    Of several models' runs, each dialogue is shown with one model's reply: all models get as many in each group of the
    benchmark's first axis, in random order. `weft agree RUN...` compares the judge with the answers.

    Examples:

      weft rate last --annotators ann,bob --sample 50

      weft rate last --annotators 6 --each 2

      weft rate bagel gpt nano --annotators ann,bob --sample 150

      weft rate last --status

      weft rate last --export annotations.csv

      weft rate last --import labelled.json
    """
    import asyncio
    import contextlib

    from weft.cli import rate_study
    from weft.errors import UserError
    from weft.judge_eval.annotation.study import DEFAULT_STUDY, study_settings
    from weft.results.sweeps import expand_names_in

    _check_files(status, export, import_)
    names = expand_names_in(home, run)
    if status:
        rate_study.print_status(names, home)
        return
    is_specified = any(option is not None for option in (annotators, sample, seed, each, attention))
    if sample is None:
        sample = DEFAULT_STUDY
    if attention is None:
        attention = DEFAULT_ATTENTION
    settings = study_settings(annotators or "1", sample, seed or 0, each, attention)
    if export is not None and export.suffix.lower() == ".csv":
        rate_study.export_csv(names, home, export)
        return
    if len(names) > 1 and any(file is not None and file.suffix.lower() == ".json" for file in (export, import_)):
        raise UserError("Label Studio gets one run at a time: name one run, or use FILE.csv")

    async def work() -> None:
        sources = [await rate_study.open_source(name, home, data, prompts, benchmark) for name in names]
        if import_ is not None:
            rate_study.import_file(sources, home, import_)
        elif export is not None:
            rate_study.export_tasks(sources[0], home, settings, export, new_study=is_specified)
        else:
            await rate_study.serve(sources, home, settings, port, host)

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(work())


def _check_files(status: bool, export: Path | None, import_: Path | None) -> None:
    """Raise UserError for actions that exclude each other, and for files of an unknown kind."""
    from weft.errors import UserError

    actions = [status, export is not None, import_ is not None]
    if sum(actions) > 1:
        raise UserError("give one of --status, --export, --import")
    for file in (export, import_):
        if file is not None and file.suffix.lower() not in FILE_SUFFIXES:
            raise UserError(f"{file}: give a file that ends in .csv, or in .json for Label Studio")
