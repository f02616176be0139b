"""One study of several models' runs: one reply a task, models and groups in balance, and nobody can tell which."""

import asyncio
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some
from msgspec.structs import replace
from test_rating_pages import filled, request

import weft
from forked import run_forked
from waiting import HANGS
from weft.errors import UserError
from weft.judge_eval.annotation.assignment import deal_dialogues, draw_stratified
from weft.judge_eval.annotation.joint import JOINT, begin_joint_study, join_studies
from weft.judge_eval.annotation.questions import StudySource, open_study_source
from weft.judge_eval.annotation.study import study_settings
from weft.store.annotations import Annotations
from weft.store.blobs import Blobs
from weft_tabletop.make import make

groups = some.dictionaries(some.integers(0, 9999).map(str), some.sampled_from("abc"), min_size=1, max_size=60)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    make("tabletop-weave", folder / "data", samples=16, seed=0)
    return folder / "home"


@pytest.fixture(scope="module")
def runs(home: Path) -> list[weft.Run]:
    """Three models that err differently."""
    made: list[weft.Run] = []
    for error in (0.2, 0.4, 0.6):
        options = {"error": error}
        made.append(
            weft.evaluate(
                "weave",
                data=home.parent / "data",
                model="tabletop/oracle",
                model_options=options,
                judge="tabletop/exact",
                home=home,
            )
        )
    return made


@pytest.fixture(scope="module")
def sources(home: Path, runs: list[weft.Run]) -> list[StudySource]:
    return [asyncio.run(open_study_source(run.id, home)) for run in runs]


@given(groups, some.integers(1, 4), some.integers(0, 3))
def test_runs_get_as_many_dialogues_of_each_group_as_one_another(of: dict[str, str], runs: int, seed: int):
    everywhere = {dialogue: range(runs) for dialogue in of}
    dealt = deal_dialogues(of, everywhere, seed)
    assert dealt.keys() == of.keys()
    for group in set(of.values()):
        counts = Counter(dealt[dialogue] for dialogue in of if of[dialogue] == group)
        assert max(counts.values()) - min(counts[run] for run in range(runs)) <= 1


@given(groups, some.integers(0, 3))
def test_a_dialogue_goes_to_a_run_that_has_it(of: dict[str, str], seed: int):
    available = {dialogue: [number % 3, 3] for number, dialogue in enumerate(of)}
    dealt = deal_dialogues(of, available, seed)
    assert all(dealt[dialogue] in available[dialogue] for dialogue in of)


@given(groups, some.integers(1, 60), some.integers(0, 3))
def test_a_sample_has_each_stratum_in_its_share(of: dict[str, str], count: int, seed: int):
    tasks = {f"{dialogue}/{number}": (dialogue, of[dialogue]) for dialogue in of for number in range(2)}
    drawn = draw_stratified(tasks, seed)
    assert sorted(drawn) == sorted(tasks)
    first = drawn[: min(count, len(of))]
    assert len({tasks[item][0] for item in first}) == len(first), "one of each dialogue before a second of any"
    sizes = Counter(of.values())
    for stratum, drawn_count in Counter(tasks[item][1] for item in first).items():
        assert abs(drawn_count - len(first) * sizes[stratum] / len(of)) < 2


def test_a_study_of_several_runs_shows_one_reply_to_each_task(home: Path, sources: list[StudySource], tmp_path: Path):
    store = Annotations(home / "journal.sqlite")
    settings = study_settings("ann,bob,cem", 30, each=2)
    study, is_new = begin_joint_study(sources, settings, store, Blobs(home / "blobs"))
    again, still_new = begin_joint_study(sources[::-1], settings, store, Blobs(home / "blobs"))
    assert is_new and not still_new and again == study, "in whatever order the runs are named"
    items = study.items(Blobs(home / "blobs"))
    shown: dict[str, set[str]] = {}
    for part, item in items.values():
        shown.setdefault(item.question.turn_ref.sample, set()).add(part.source.run.id)
    assert all(len(models) == 1 for models in shown.values()), "attention checks included"
    per_run = [part.study.settings["questions"] for part in study.parts]
    assert sum(per_run) == study.questions == 30 and max(per_run) - min(per_run) <= 3
    for order in study.orders.values():
        first = [items[item][0].source.run.id for item in order]
        assert len(set(first[:8])) > 1, "models are mixed"
    stored = [one for run in sources for one in store.studies(run.run.id)]
    (group,) = join_studies(stored)
    assert group.study.id == study.id and set(group.members) == {one.id for one in stored}
    assert group.study.settings["questions"] == 30 and len(stored) == 3 and all(JOINT in one.settings for one in stored)
    store.close()


def test_runs_that_people_cannot_rate_together_are_refused(
    home: Path, runs: list[weft.Run], sources: list[StudySource]
):
    store = Annotations(home / "journal.sqlite")

    def begin(*chosen: StudySource) -> None:
        begin_joint_study(chosen, study_settings(), store, Blobs(home / "blobs"))

    with pytest.raises(UserError, match="a run is named twice"):
        begin(sources[0], sources[0])
    other = weft.judge(runs[0], judge="constant/max", home=home)
    same = asyncio.run(open_study_source(other.id, home))
    with pytest.raises(UserError, match="have the same replies: name one of them"):
        begin(sources[0], same)
    store.close()


def test_a_joint_study_that_does_not_fit_its_runs_is_refused(home: Path, sources: list[StudySource]):
    store = Annotations(home / "journal.sqlite")
    settings = study_settings("dan", 10, seed=7)
    study, _ = begin_joint_study(sources, settings, store, Blobs(home / "blobs"))
    first = study.parts[0].study
    store.add_study(replace(first, settings={**first.settings, "orders": {"dan": ["somewhere else"]}}))
    with pytest.raises(UserError, match="is damaged: its runs do not have the questions of dan"):
        begin_joint_study(sources, settings, store, Blobs(home / "blobs"))
    store.close()


class Server:
    """`weft rate` of several runs as a process of its own."""

    def __init__(self, home: Path, runs: list[weft.Run]) -> None:
        words = ["rate", *(run.id for run in runs), "--annotators", "zoe", "--sample", "12", "--home", str(home)]
        self.process = subprocess.Popen([sys.executable, "-m", "weft", *words], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.lines: list[str] = []
        for line in self.process.stdout:
            self.lines.append(line)
            if "Ctrl-C" in line:
                break
        self.link = next(match[1] for line in self.lines if (match := re.match(r"  zoe  (http://\S+)", line)))

    def stop(self) -> None:
        self.process.kill()
        self.process.wait(HANGS)


def call(home: Path, *words: object) -> subprocess.CompletedProcess[str]:
    with pytest.MonkeyPatch.context() as wide:
        wide.setenv("COLUMNS", "250")
        return run_forked(*map(str, words), "--home", str(home), cwd=Path.cwd())


def test_people_rate_several_models_and_agreement_has_a_row_for_each(home: Path, runs: list[weft.Run], tmp_path: Path):
    server = Server(home, runs)
    try:
        assert "one reply a task" in "".join(server.lines)
        pages = 0
        for _ in range(40):
            _, text = request(server.link)
            if 'name="item"' not in text:
                break
            assert not any(run.id in text or run.name in text for run in runs) and "oracle" not in text
            status, _ = request(server.link, "POST", data=filled(text))
            assert status == 303
            pages += 1
    finally:
        server.stop()
    assert pages == 13, "12 questions and an attention check"
    names = [run.id for run in runs]
    progress = call(home, "rate", names[0], "--status").stdout
    assert "12 questions for 1 annotator" in progress and "of 3 runs together" in progress and "13 of 13" in progress
    store = Annotations(home / "journal.sqlite", readonly=True)
    counts = [sum(not one.is_attention_check for one in store.find(name)) for name in names]
    store.close()
    assert sum(counts) == 12 and min(counts) >= 3
    table = weft.agree(names, home=home).tables[0]
    assert table.cells("all models")["n"].value is not None and len(table.rows) == 4
    file = tmp_path / "all.csv"
    assert "13 annotations by 1 annotator" in call(home, "rate", *names, "--export", file).stdout
    imported = call(home, "rate", *names, "--import", file)
    assert "13 annotations, 0 new here" in imported.stdout, imported.stderr
    refused = call(home, "rate", *names, "--export", tmp_path / "tasks.json")
    assert refused.returncode == 2 and "Label Studio gets one run at a time" in refused.stderr
