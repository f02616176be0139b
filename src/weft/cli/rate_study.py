"""What `weft rate` does: serves a study, shows its progress, and exchanges files."""

import asyncio
from pathlib import Path
from typing import Any

from weft.cli.outcome import format_count
from weft.cli.terminal import complain, say
from weft.errors import UserError
from weft.judge_eval.annotation import exchange, label_studio, links
from weft.judge_eval.annotation.joint import JointStudy, begin_joint_study, join_studies, joint_of
from weft.judge_eval.annotation.questions import StudySource, open_study_source
from weft.judge_eval.annotation.server import LOOPBACK, AnnotationServer
from weft.judge_eval.annotation.status import describe_progress
from weft.judge_eval.annotation.study import StudySettings, begin_study, items_of
from weft.report.annotations import format_annotations
from weft.results.run import find_run
from weft.store.blobs import write_file
from weft.store.locks import lock_run
from weft.workspace import open_annotations, open_blobs, open_journal


def _find_ids(names: list[str], home: Path) -> list[str]:
    journal = open_journal(home)
    try:
        return list(dict.fromkeys(find_run(journal, name).id for name in names))
    finally:
        journal.close()


async def open_source(run: str, home: Path, data: Path | None, prompts: str, benchmark: Any) -> StudySource:
    source = await open_study_source(run, home, data=data or "", prompts=prompts, benchmark=benchmark or None)
    if source.warning:
        complain(f"warning: {source.warning}")
    return source


async def serve(sources: list[StudySource], home: Path, settings: StudySettings, port: int | None, host: str) -> None:
    """Serve the study of these runs until Ctrl-C."""
    annotations = open_annotations(home, write=True)
    study, is_new = begin_joint_study(sources, settings, annotations, open_blobs(home))
    stored = links.tokens_of(home, study.id, list(study.orders))
    if port is None:
        port = stored.port
    with lock_run(home, study.id):
        server = AnnotationServer(home, study, stored.tokens, annotations)
        runner, actual_port = await server.start(port, host)
        links.keep(home, study.id, links.AnnotatorLinks(actual_port, stored.tokens))
        if host not in LOOPBACK:
            complain(
                f"warning: whoever can reach this machine at {host} and has a link can read its questions and answer "
                "them; links go over the network without encryption: use a network that you trust, or ssh -L"
            )
        for line in _describe_study(study, is_new):
            say(line)
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


def _describe_study(study: JointStudy, is_new: bool) -> list[str]:
    line = study.id
    if not is_new:
        line += ", continued"
    line += f": {study.questions} questions"
    if study.checks:
        line += f" and {study.checks} with known answers"
    lines = [line]
    if len(study.parts) > 1:
        shares = [f"{part.source.run.id} {part.study.settings['questions']}" for part in study.parts]
        lines.append(f"  one reply a task; questions about {', '.join(shares)}")
    return lines


def print_status(names: list[str], home: Path) -> None:
    """Print the progress of all studies of these runs; a joint study is shown as a whole."""
    ids = _find_ids(names, home)
    annotations = open_annotations(home)
    for run_id in ids:
        if not annotations.studies(run_id):
            say(f"{run_id} has no annotation study yet: weft rate {run_id} --annotators NAMES")
    for run_id in list(ids):
        for study in annotations.studies(run_id):
            ids += [other for other in joint_of(study).get("runs", []) if other not in ids]
    studies = {study.id: study for run_id in ids for study in annotations.studies(run_id)}
    given = [annotation for run_id in ids for annotation in annotations.find(run_id)]
    asked = {study.id for run_id in _find_ids(names, home) for study in annotations.studies(run_id)}
    for group in join_studies(list(studies.values())):
        if asked & set(group.members):
            own = [annotation for annotation in given if annotation.study in group.members]
            for line in describe_progress(group.study, own):
                say(line)


def export_csv(names: list[str], home: Path, file: Path) -> None:
    ids = _find_ids(names, home)
    store = open_annotations(home)
    annotations = [annotation for run_id in ids for annotation in store.find(run_id)]
    if not annotations:
        raise UserError(f"nobody has annotated {', '.join(ids)} yet: there is nothing to write")
    write_file(file, format_annotations(annotations).encode(), world_readable=True)
    annotators = {annotation.annotator for annotation in annotations}
    say(f"{file}: {format_count(len(annotations), 'annotation')} by {format_count(len(annotators), 'annotator')}")


def export_tasks(source: StudySource, home: Path, settings: StudySettings, file: Path, *, new_study: bool) -> None:
    """Write a study as tasks for Label Studio: the last study of the run, unless settings for a new one were given."""
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


def import_file(sources: list[StudySource], home: Path, file: Path) -> None:
    """Import annotations: all of a file or, if one line is wrong, none."""
    blobs = open_blobs(home)
    known = [exchange.KnownItems(source, blobs) for source in sources]
    if file.suffix.lower() == ".json":
        annotations = [label_studio.read(file, known[0])]
    else:
        annotations = exchange.read_csv_of_runs(file, known)
    store = open_annotations(home, write=True)
    results = [
        exchange.import_annotations(items, store, own) for items, own in zip(known, annotations, strict=True) if own
    ]
    changed = sum(result.changed for result in results)
    line = f"{file}: {sum(result.found for result in results)} annotations, "
    line += f"{sum(result.new for result in results)} new here"
    if changed:
        line += f", {changed} changed"
    say(line)
