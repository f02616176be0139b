"""weft rate"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.options import DEFAULT_HOME, HomeOption, OwnBenchmarkOption, PromptsOption, RunArgument
from weft.cli.terminal import complain, say

if TYPE_CHECKING:
    from weft.judge_eval.annotation.questions import StudySource
    from weft.judge_eval.annotation.study import StudySettings

FILE_SUFFIXES = (".csv", ".json")
DEFAULT_ATTENTION = 0.1


def rate(
    run: RunArgument,
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
    """Let people annotate a run: the judge's questions, on a page.

    Annotators do not see the model and the judge. Needs no key and no network. Prints a link for each annotator. Every
    answer is saved before the next question is shown. The same command continues the same study with the same links;
    other settings are another study. Ctrl-C ends it.

    Examples:

      weft rate last --annotators ann,bob --sample 50

      weft rate last --annotators 6 --each 2

      weft rate last --status

      weft rate last --export annotations.csv

      weft rate last --import labelled.json
    """
    import asyncio
    import contextlib

    from weft.judge_eval.annotation.study import DEFAULT_STUDY, study_settings

    _check_files(status, export, import_)
    if status:
        _print_status(run, home)
        return
    is_specified = any(option is not None for option in (annotators, sample, seed, each, attention))
    if sample is None:
        sample = DEFAULT_STUDY
    if attention is None:
        attention = DEFAULT_ATTENTION
    settings = study_settings(annotators or "1", sample, seed or 0, each, attention)
    if export is not None and export.suffix.lower() == ".csv":
        _export_csv(run, home, export)
        return

    async def work() -> None:
        source = await _open_source(run, home, data, prompts, benchmark)
        if import_ is not None:
            _import(source, home, import_)
        elif export is not None:
            _export_tasks(source, home, settings, export, new_study=is_specified)
        else:
            await _serve(source, home, settings, port, host)

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


async def _open_source(run: str, home: Path, data: Path | None, prompts: str, benchmark: Any) -> "StudySource":
    from weft.judge_eval.annotation.questions import open_study_source

    source = await open_study_source(run, home, data=data or "", prompts=prompts, benchmark=benchmark or None)
    if source.warning:
        complain(f"warning: {source.warning}")
    return source


async def _serve(source: "StudySource", home: Path, settings: "StudySettings", port: int | None, host: str) -> None:
    """Serve the study until Ctrl-C."""
    import asyncio

    from weft.judge_eval.annotation import links
    from weft.judge_eval.annotation.server import LOOPBACK, AnnotationServer
    from weft.judge_eval.annotation.study import begin_study
    from weft.store.locks import lock_run
    from weft.workspace import open_annotations, open_blobs

    annotations = open_annotations(home, write=True)
    study, is_new = begin_study(source, settings, annotations, open_blobs(home))
    stored = links.tokens_of(home, study.id, list(study.settings["orders"]))
    if port is None:
        port = stored.port
    with lock_run(home, study.id):
        server = AnnotationServer(home, source, study, stored.tokens, annotations)
        runner, actual_port = await server.start(port, host)
        links.keep(home, study.id, links.AnnotatorLinks(actual_port, stored.tokens))
        if host not in LOOPBACK:
            complain(
                f"warning: whoever can reach this machine at {host} and has a link can read its questions and answer "
                "them; links go over the network without encryption: use a network that you trust, or ssh -L"
            )
        say(_describe_study(study, is_new))
        for name, link in server.links(actual_port).items():
            say(f"  {name}  {link}")
        say(
            "one link for each annotator; every answer is saved at once. Ctrl-C ends it, the same command continues.",
            flush=True,
        )
        try:
            await asyncio.Event().wait()
        finally:
            await runner.cleanup()
            annotations.close()


def _describe_study(study: Any, is_new: bool) -> str:
    line = study.id
    if not is_new:
        line += ", continued"
    line += f": {study.settings['questions']} questions"
    checks = len(study.settings["known"])
    if checks:
        line += f" and {checks} with known answers"
    return line


def _print_status(run: str, home: Path) -> None:
    from weft.judge_eval.annotation.status import describe_progress
    from weft.results.run import find_run
    from weft.workspace import open_annotations, open_journal

    run_id = find_run(open_journal(home), run).id
    annotations = open_annotations(home)
    studies = annotations.studies(run_id)
    for study in studies:
        for line in describe_progress(study, annotations.find(run_id, study.id)):
            say(line)
    if not studies:
        say(f"{run_id} has no annotation study yet: weft rate {run} --annotators NAMES")


def _export_csv(run: str, home: Path, file: Path) -> None:
    from weft.cli.outcome import format_count
    from weft.errors import UserError
    from weft.report.annotations import format_csv
    from weft.results.run import find_run
    from weft.store.blobs import write_file
    from weft.workspace import open_annotations, open_journal

    run_id = find_run(open_journal(home), run).id
    annotations = open_annotations(home).find(run_id)
    if not annotations:
        raise UserError(f"nobody has annotated {run_id} yet: there is nothing to write")
    write_file(file, format_csv(annotations).encode(), world_readable=True)
    names = {annotation.annotator for annotation in annotations}
    say(f"{file}: {format_count(len(annotations), 'annotation')} by {format_count(len(names), 'annotator')}")


def _export_tasks(source: "StudySource", home: Path, settings: "StudySettings", file: Path, *, new_study: bool) -> None:
    """Write a study as tasks for Label Studio: the last study of the run, unless settings for a new one were given."""
    from weft.judge_eval.annotation import label_studio
    from weft.judge_eval.annotation.study import begin_study, items_of
    from weft.workspace import open_annotations, open_blobs

    annotations = open_annotations(home, write=True)
    blobs = open_blobs(home)
    studies = [study for study in annotations.studies(source.run.id) if "orders" in study.settings]
    if studies and not new_study:
        study = studies[-1]
    else:
        study = begin_study(source, settings, annotations, blobs)[0]
    items = items_of(source, study, blobs)
    config = label_studio.write(file, study, items, annotations.find(source.run.id, study.id), home)
    say(f"{file}: {len(items)} tasks of {study.id}; {config}: the labelling interface")


def _import(source: "StudySource", home: Path, file: Path) -> None:
    from weft.judge_eval.annotation import exchange, label_studio
    from weft.workspace import open_annotations, open_blobs

    known = exchange.KnownItems(source, open_blobs(home))
    if file.suffix.lower() == ".json":
        annotations = label_studio.read(file, known)
    else:
        annotations = exchange.read_csv(file, known)
    result = exchange.import_annotations(known, open_annotations(home, write=True), annotations)
    line = f"{file}: {result.found} annotations, {result.new} new here"
    if result.changed:
        line += f", {result.changed} changed"
    say(line)
