"""Runs of every benchmark on the tabletop, judged by the exact judge, in one home; and a desk that serves a study of
one."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import weft
from waiting import HANGS
from weft.judge_eval.annotation.joint import single_study
from weft.judge_eval.annotation.questions import StudySource, open_study_source
from weft.judge_eval.annotation.server import AnnotationServer
from weft.judge_eval.annotation.study import StudySettings, begin_study, study_settings
from weft.store.annotations import Annotations, Study
from weft.store.blobs import Blobs
from weft.store.journal import Journal
from weft_tabletop.make import make

BENCHMARKS = {
    "weave": "tabletop-weave",
    "imug": "tabletop-imug",
    "rover-ig": "tabletop-rover",
    "rover-tg": "tabletop-rover",
    "planviz": "tabletop-planviz",
    "gedit": "tabletop-gedit",
    "risebench": "tabletop-risebench",
    "imgedit": "tabletop-imgedit",
    "weaverbench": "tabletop-weaver",
    "mmvet": "tabletop-mmvet",
}


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a run of each."""
    folder = tmp_path_factory.mktemp("rating")
    for benchmark, name in BENCHMARKS.items():
        if not (folder / name).exists():
            make(name, folder / name, samples=6, seed=0)
        ways: dict[str, Any] = {"model": "tabletop/oracle", "model_options": {"error": 0.3}, "judge": "tabletop/exact"}
        weft.evaluate(benchmark, data=folder / name, home=folder / "home", **ways)
    return folder / "home"


@pytest.fixture(scope="session")
def sources(house: Path) -> dict[str, StudySource]:
    journal = Journal(house / "journal.sqlite", readonly=True)
    found = {record.manifest.benchmark.name: record.id for record in journal.runs()}
    journal.close()
    return {name: asyncio.run(open_study_source(found[name], house)) for name in BENCHMARKS}


class Served:
    """A study that is served; `links` by rater."""

    def __init__(self, source: StudySource, study: Study, ratings: Annotations, links: dict[str, str]) -> None:
        self.source, self.study, self.ratings, self.links = source, study, ratings, links


Serving = Callable[..., Served]


@pytest.fixture
def serving() -> Iterator[Serving]:
    """Desks that stand until the test is over, in a thread with a loop of their own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    closing = contextlib.ExitStack()

    def start(home: Path, source: StudySource, want: StudySettings | None = None) -> Served:
        ratings = Annotations(home / "journal.sqlite")
        study, _ = begin_study(source, want or study_settings("ann,bob", 12, share=0.0), ratings, Blobs(home / "blobs"))
        tokens = {name: f"token-of-{name}" for name in study.settings["orders"]}
        desk = AnnotationServer(home, single_study(source, study), tokens, ratings)
        runner, port = asyncio.run_coroutine_threadsafe(desk.start(), loop).result(HANGS)
        closing.callback(ratings.close)
        closing.callback(lambda: asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(HANGS))
        return Served(source, study, ratings, desk.links(port))

    yield start
    closing.close()
    loop.call_soon_threadsafe(loop.stop)
    thread.join(HANGS)
    loop.close()
