"""weft rate"""

from typing import TYPE_CHECKING, Annotated

import typer

from weft.cli import options as o
from weft.cli.terminal import complain, say

if TYPE_CHECKING:
    from weft.judge_eval.annotation.questions import StudySource
    from weft.judge_eval.annotation.study import StudySettings


def rate(
    run: o.Run,
    raters: Annotated[
        str | None, typer.Option(help="How many people, or their names with commas between them. Default: 1.")
    ] = None,
    sample: Annotated[
        int | None, typer.Option(min=1, help="So many questions at random, the same on every machine. Default: 100.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Which questions --sample draws, and in which orders they come. Default: 0.")
    ] = None,
    each: Annotated[
        int | None, typer.Option(min=1, help="How many people get each question. Default: all of them.")
    ] = None,
    attention: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=0.5,
            help="The share of questions with known answers, which are in no number. Default: 0.1; 0: none.",
        ),
    ] = None,
    status: Annotated[bool, typer.Option("--status", help="How far everybody is, and whose answers to doubt.")] = False,
    export: Annotated[
        o.Path | None,
        typer.Option(
            "--export", metavar="FILE", help="All ratings as FILE.csv, or the study as FILE.json for Label Studio."
        ),
    ] = None,
    import_: Annotated[
        o.Path | None,
        typer.Option(
            "--import", metavar="FILE", help="Ratings from FILE.csv, or FILE.json as Label Studio exports it."
        ),
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Where to listen. Default: a free port, then always that.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="Which address to listen on; any but 127.0.0.1 lets others in.")
    ] = "127.0.0.1",
    data: Annotated[o.Path | None, typer.Option(help="The dataset's folder, if it is not where it was.")] = None,
    prompts: o.Prompts = "weft",
    benchmark: o.OwnBenchmark = None,
    home: o.Home = o.Path(".weft"),
) -> None:
    """People rate what a judge rated: the same questions, on a page, blind to model and judge. Needs no key and no
    network.

    Prints a link for each rater. Every answer is saved before the next question is shown; the same command goes on with
    the same study and the same links, other settings are another study. Ctrl-C ends it.

    Examples:

      weft rate last --raters ann,bob --sample 50

      weft rate last --raters 6 --each 2

      weft rate last --status

      weft rate last --export ratings.csv

      weft rate last --import labelled.json
    """
    import asyncio
    import contextlib

    from weft.errors import UserError
    from weft.judge_eval.annotation.study import DEFAULT_STUDY, study_settings

    asked = [status, export is not None, import_ is not None]
    if sum(asked) > 1:
        raise UserError("give one of --status, --export, --import")
    if status:
        _status(run, home)
        return
    given = any(one is not None for one in (raters, sample, seed, each, attention))
    want = study_settings(
        raters or "1",
        DEFAULT_STUDY if sample is None else sample,
        seed or 0,
        each,
        0.1 if attention is None else attention,
    )
    if export is not None and export.suffix.lower() == ".csv":
        _export_csv(run, home, export)
        return
    for file in (export, import_):
        if file is not None and file.suffix.lower() not in (".csv", ".json"):
            raise UserError(f"{file}: give a file that ends in .csv, or in .json for Label Studio")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_work(run, home, want, given, export, import_, port, host, data, prompts, benchmark))


async def _work(
    run: str,
    home: o.Path,
    want: "StudySettings",
    given: bool,
    export: o.Path | None,
    import_: o.Path | None,
    port: int | None,
    host: str,
    data: o.Path | None,
    prompts: str,
    benchmark: list[str] | None,
) -> None:
    from weft.judge_eval.annotation.questions import open_study_source

    source = await open_study_source(run, home, data=data or "", prompts=prompts, benchmark=benchmark or None)
    if source.warning:
        complain(f"warning: {source.warning}")
    if import_ is not None:
        _import(source, home, import_)
    elif export is not None:
        _export_tasks(source, home, want, export, given=given)
    else:
        await _serve(source, home, want, port, host)


async def _serve(source: "StudySource", home: o.Path, want: "StudySettings", port: int | None, host: str) -> None:
    import asyncio

    from weft.judge_eval.annotation import links
    from weft.judge_eval.annotation.server import LOOPBACK, AnnotationServer
    from weft.judge_eval.annotation.study import begin_study
    from weft.store.locks import lock_run
    from weft.workspace import open_annotations, open_blobs

    ratings = open_annotations(home, write=True)
    study, new = begin_study(source, want, ratings, open_blobs(home))
    found = links.tokens_of(home, study.id, list(study.settings["orders"]))
    with lock_run(home, study.id):
        desk = AnnotationServer(home, source, study, found.tokens, ratings)
        runner, bound = await desk.start(found.port if port is None else port, host)
        links.keep(home, study.id, links.AnnotatorLinks(bound, found.tokens))
        if host not in LOOPBACK:
            complain(
                f"warning: whoever can reach this machine at {host} and has a link can read its questions and answer them; links go over "
                "the network without encryption: use a network that you trust, or ssh -L"
            )
        count = study.settings["questions"]
        known = len(study.settings["known"])
        say(
            f"{study.id}{'' if new else ', gone on with'}: {count} questions{f' and {known} with known answers' if known else ''}"
        )
        for name, link in desk.links(bound).items():
            say(f"  {name}  {link}")
        say(
            "a link each, for that person alone; every answer is saved at once. Ctrl-C ends it, the same command goes on.",
            flush=True,
        )
        try:
            await asyncio.Event().wait()
        finally:
            await runner.cleanup()
            ratings.close()


def _status(run: str, home: o.Path) -> None:
    from weft.judge_eval.annotation.status import describe_progress
    from weft.results.run import find_run
    from weft.workspace import open_annotations, open_journal

    found = find_run(open_journal(home), run).id
    ratings = open_annotations(home)
    studies = ratings.studies(found)
    for study in studies:
        for line in describe_progress(study, ratings.find(found, study.id)):
            say(line)
    if not studies:
        say(f"nobody was asked to rate {found} yet: weft rate {run} --raters NAMES")


def _export_csv(run: str, home: o.Path, file: o.Path) -> None:
    from weft.errors import UserError
    from weft.report.annotations import format_csv
    from weft.results.run import find_run
    from weft.store.blobs import write_file
    from weft.workspace import open_annotations, open_journal

    found = find_run(open_journal(home), run).id
    ratings = open_annotations(home).find(found)
    if not ratings:
        raise UserError(f"nobody has rated {found} yet: there is nothing to write")
    write_file(file, format_csv(ratings).encode(), world_readable=True)
    say(f"{file}: {len(ratings)} ratings by {len({one.annotator for one in ratings})} people")


def _export_tasks(source: "StudySource", home: o.Path, want: "StudySettings", file: o.Path, *, given: bool) -> None:
    from weft.judge_eval.annotation import label_studio
    from weft.judge_eval.annotation.study import begin_study, items_of
    from weft.workspace import open_annotations, open_blobs

    ratings = open_annotations(home, write=True)
    blobs = open_blobs(home)
    there = [study for study in ratings.studies(source.run.id) if "orders" in study.settings]
    if there and not given:
        study = there[-1]
    else:
        study = begin_study(source, want, ratings, blobs)[0]
    items = items_of(source, study, blobs)
    config = label_studio.write(file, study, items, ratings.find(source.run.id, study.id), home)
    say(f"{file}: {len(items)} tasks of {study.id}; {config}: the labelling interface")


def _import(source: "StudySource", home: o.Path, file: o.Path) -> None:
    from weft.judge_eval.annotation import exchange, label_studio
    from weft.workspace import open_annotations, open_blobs

    known = exchange.KnownItems(source, open_blobs(home))
    if file.suffix.lower() == ".json":
        read = label_studio.read(file, known)
    else:
        read = exchange.read_csv(file, known)
    taken = exchange.import_annotations(known, open_annotations(home, write=True), read)
    if taken.changed:
        changed = f", {taken.changed} changed"
    else:
        changed = ""
    say(f"{file}: {taken.found} ratings, {taken.new} new here{changed}")
