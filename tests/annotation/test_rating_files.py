"""Ratings that go out to files and come back; and that journals keep them: merged, mended, shrunk, exported, removed
with their run."""

import csv
import io
import json
import shutil
import sqlite3
import subprocess
import xml.etree.ElementTree as Xml
from pathlib import Path
from typing import Any

import pytest

from forked import run_forked
from weft.errors import UserError
from weft.judge_eval.annotation import collect_scores, label_studio
from weft.judge_eval.annotation.exchange import KnownItems, import_annotations, read_csv
from weft.judge_eval.annotation.form import parse_answer
from weft.judge_eval.annotation.questions import StudySource
from weft.judge_eval.annotation.status import describe_progress, measure_progress
from weft.judge_eval.annotation.study import AnnotationItem, annotation_of, begin_study, items_of, study_settings
from weft.report.annotations import format_annotations
from weft.report.export import export_run
from weft.results.run import load_run
from weft.store.annotations import Annotation, Annotations, Study
from weft.store.blobs import Blobs
from weft.store.journal import Journal
from weft.store.merge import merge_journal
from weft.store.prune import find_unused, remove_unused
from weft.store.recover import check_journal


def some_answer(item: AnnotationItem, wish: int) -> dict[str, Any]:
    given: dict[str, str] = {}
    for at, field in enumerate(item.form.fields):
        words = f"=1+1 because {wish}" if field.is_text else "0"
        given[f"f{at}"] = words if field.is_text or field.kind == "number" else str((wish + at) % len(field.options))
    return parse_answer(item.form, given)


@pytest.fixture
def copied(house: Path, tmp_path: Path) -> Path:
    """A home with the runs and without anything that people said."""
    shutil.copytree(house, tmp_path / "home")
    db = sqlite3.connect(tmp_path / "home" / "journal.sqlite")
    db.execute("DELETE FROM ratings")
    db.execute("DELETE FROM studies")
    db.commit()
    db.close()
    return tmp_path / "home"


def rate(home: Path, source: StudySource, raters: str = "ann,bob", sample: int = 20, done: int = 99) -> Study:
    ratings, blobs = Annotations(home / "journal.sqlite"), Blobs(home / "blobs")
    study, _ = begin_study(source, study_settings(raters, sample), ratings, blobs)
    items = items_of(source, study, blobs)
    for rater, order in study.settings["orders"].items():
        for number, name in enumerate(order[:done]):
            answer = some_answer(items[name], number + len(rater))
            ratings.add(annotation_of(source, study.id, items[name], rater, answer, seconds=number + 1.5))
    ratings.close()
    return study


def said(home: Path, run: str) -> list[Annotation]:
    ratings = Annotations(home / "journal.sqlite", readonly=True)
    try:
        return sorted(ratings.find(run), key=lambda one: (one.study, one.item, one.annotator))
    finally:
        ratings.close()


def brought(home: Path, source: StudySource, file: Path) -> Any:
    known, ratings = KnownItems(source, Blobs(home / "blobs")), Annotations(home / "journal.sqlite")
    try:
        return import_annotations(
            known, ratings, (label_studio.read if file.suffix == ".json" else read_csv)(file, known)
        )
    finally:
        ratings.close()


@pytest.mark.parametrize(
    "benchmark",
    ["weave", "imug", "rover-ig", "rover-tg", "planviz", "weaverbench", "gedit", "risebench", "imgedit", "mmvet"],
)
def test_a_table_goes_out_and_comes_back_the_same(
    benchmark: str, copied: Path, sources: dict[str, StudySource], tmp_path: Path
):
    source = sources[benchmark]
    other = tmp_path / "other"
    shutil.copytree(copied, other)
    rate(copied, source)
    mine = said(copied, source.run.id)
    (tmp_path / "out.csv").write_text(format_annotations(mine), newline="")
    taken = brought(other, source, tmp_path / "out.csv")
    assert (taken.found, taken.new, taken.changed) == (len(mine), len(mine), 0) and said(other, source.run.id) == mine
    assert collect_scores(said(other, source.run.id)) == collect_scores(mine)
    again = brought(other, source, tmp_path / "out.csv")
    assert (again.new, again.changed) == (0, 0) and said(other, source.run.id) == mine, "twice is once"
    ratings = [Annotations(home / "journal.sqlite", readonly=True) for home in (copied, other)]
    passed = [
        [
            (one.annotator, one.checks_passed, one.checks_answered)
            for one in measure_progress(some.studies(source.run.id)[0], mine)
        ]
        for some in ratings
    ]
    assert sorted(passed[0]) == sorted(passed[1]), "questions with known answers are known there as well"


def test_no_cell_of_a_table_is_a_formula(copied: Path, sources: dict[str, StudySource]):
    rate(copied, sources["weave"])
    rows = list(csv.DictReader(io.StringIO(format_annotations(said(copied, sources["weave"].run.id)))))
    assert rows and all(cell[:1] not in ("=", "+", "-", "@") for row in rows for cell in row.values())
    assert all(row["reason"].startswith("'=1+1") for row in rows)


@pytest.mark.parametrize("benchmark", ["weave", "imug", "planviz", "weaverbench"])
def test_label_studio_gets_tasks_and_gives_them_back(
    benchmark: str, copied: Path, sources: dict[str, StudySource], tmp_path: Path
):
    source = sources[benchmark]
    other = tmp_path / "other"
    shutil.copytree(copied, other)
    study = rate(copied, source)
    items, mine = items_of(source, study, Blobs(copied / "blobs")), said(copied, source.run.id)
    config = label_studio.write(tmp_path / "tasks.json", study, items, mine, copied)
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    assert len(tasks) == len(items) and sum(len(task["annotations"]) for task in tasks) == len(mine)
    text = (tmp_path / "tasks.json").read_text() + config.read_text()
    for secret in (source.run.id, "oracle", "tabletop"):
        assert secret not in text
    shown = {one.get("name") for one in Xml.fromstring(config.read_text()).iter() if one.get("name")}
    asked = {one["from_name"] for task in tasks for annotation in task["annotations"] for one in annotation["result"]}
    values = {one.get("value", "").removeprefix("$") for one in Xml.fromstring(config.read_text()).iter("Choices")}
    assert asked <= shown and {name for task in tasks for name in task["data"] if name.startswith("choices_")} == values
    assert all('src="data:image/' in task["data"]["html"] for task in tasks if "<img" in task["data"]["html"])
    taken = brought(other, source, tmp_path / "tasks.json")
    back = said(other, source.run.id)
    assert taken.new == len(mine) and [
        (one.verdicts, one.answer, one.is_attention_check, one.seconds) for one in back
    ] == [(one.verdicts, one.answer, one.is_attention_check, one.seconds) for one in mine]
    assert brought(other, source, tmp_path / "tasks.json").new == 0


def test_what_label_studio_exports_itself_is_read(copied: Path, sources: dict[str, StudySource], tmp_path: Path):
    source = sources["weave"]
    study = rate(copied, source, done=0)
    items = items_of(source, study, Blobs(copied / "blobs"))
    label_studio.write(tmp_path / "tasks.json", study, items, [], copied)
    tasks = json.loads((tmp_path / "tasks.json").read_text())[:3]

    def by(who: Any, choice: str, **more: Any) -> dict[str, Any]:
        result = {
            "id": "x1",
            "from_name": "choice_1",
            "to_name": "question",
            "type": "choices",
            "origin": "manual",
            "value": {"choices": [choice]},
        }
        return {
            "id": 7,
            "completed_by": who,
            "result": [result],
            "lead_time": 3.5,
            "created_at": "2026-01-02T03:04:05.000000Z",
            **more,
        }

    for task in tasks:
        task["annotations"] = [
            by(4, "0"),
            by({"id": 5, "email": "cem@example.org"}, "10"),
            by(6, "5", was_cancelled=True),
        ]
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    assert brought(copied, source, tmp_path / "export.json").new == 6
    found = said(copied, source.run.id)
    assert {one.annotator for one in found} == {"labeller-4", "cem@example.org"} and {one.seconds for one in found} == {
        3.5
    }
    assert {one.verdicts[0].value for one in found if one.annotator == "labeller-4"} == {0.0}
    tasks[2]["annotations"][0]["result"][0]["value"]["choices"] = ["11"]
    (tmp_path / "wrong.json").write_text(json.dumps(tasks))
    with pytest.raises(UserError, match=r"task 3, annotation 1: '11' is not a choice"):
        brought(copied, source, tmp_path / "wrong.json")


@pytest.mark.parametrize("odd", [5, "x", {"a": 1}, True])
@pytest.mark.parametrize("place", ["annotations", "result"])
def test_a_list_that_is_none_is_told_with_its_task(
    place: str, odd: Any, copied: Path, sources: dict[str, StudySource], tmp_path: Path
):
    source = sources["weave"]
    study = rate(copied, source)
    items = items_of(source, study, Blobs(copied / "blobs"))
    label_studio.write(tmp_path / "tasks.json", study, items, said(copied, source.run.id), copied)
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    holder = tasks[0] if place == "annotations" else tasks[0]["annotations"][0]
    holder[place] = odd
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    with pytest.raises(UserError, match=f"task 1.*'{place}' are not a list"):
        brought(copied, source, tmp_path / "tasks.json")


@pytest.mark.parametrize("time", ["9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00", "9000-01-01T00:00:00+00:00"])
def test_a_time_that_no_clock_shows_counts_as_now(
    time: str, copied: Path, sources: dict[str, StudySource], tmp_path: Path
):
    source = sources["weave"]
    other = tmp_path / "other"
    shutil.copytree(copied, other)
    study = rate(copied, source)
    items = items_of(source, study, Blobs(copied / "blobs"))
    label_studio.write(tmp_path / "tasks.json", study, items, said(copied, source.run.id), copied)
    tasks = json.loads((tmp_path / "tasks.json").read_text())
    for task in tasks:
        for annotation in task["annotations"]:
            annotation["created_at"] = time
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    assert brought(other, source, tmp_path / "tasks.json").new
    assert not check_journal(other / "journal.sqlite", save=False).problems


def test_a_table_made_elsewhere_needs_five_columns(copied: Path, sources: dict[str, StudySource], tmp_path: Path):
    source = sources["weave"]
    places = [one.question for one in source.questions if one.question.metrics == ("key_point",)][:3]
    lines = [
        f"{one.turn_ref.sample},{one.turn_ref.turn + 1},key_point,ann,{number + 2.5}"
        for number, one in enumerate(places)
    ]
    (tmp_path / "in.csv").write_text("\n".join(["Sample,Turn,Metric,Annotator,Score", *lines]))
    taken = brought(copied, source, tmp_path / "in.csv")
    assert (taken.new, taken.changed) == (3, 0) and brought(copied, source, tmp_path / "in.csv").new == 0
    found = collect_scores(said(copied, source.run.id))
    assert [found[one.turn_ref.sample, one.turn_ref.turn, "key_point"] for one in places] == [
        {"ann": 0.25},
        {"ann": 0.35},
        {"ann": 0.45},
    ]
    (tmp_path / "in.csv").write_text(
        "\n".join(["sample,turn,metric,annotator,value", *(line.rpartition(",")[0] + ",1" for line in lines)])
    )
    assert brought(copied, source, tmp_path / "in.csv").changed == 3
    assert (
        describe_progress(Study("s", "r", 0.0, {"imported": True}), said(copied, source.run.id))[0]
        == "s: imported from a file"
    )


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        ("nobody,{turn},key_point,ann,5", "sample 'nobody' has no question"),
        ("{sample},99,key_point,ann,5", "no question about turn '99'"),
        ("{sample},{turn},beauty,ann,5", "has no metric 'beauty'"),
        ("{sample},{turn},key_point,ann,11", "score 11 is not on the scale of key_point, from 0 to 10"),
        ("{sample},{turn},key_point,ann,-1", "score -1 is not on the scale"),
        ("{sample},{turn},key_point,ann,good", "score 'good' is not a number"),
        ("{sample},{turn},key_point,ann,nan", "score 'nan' is not a number"),
        ("{sample},{turn},key_point,ann,", "neither value nor score"),
        ("{sample},{turn},key_point,,5", "it has no annotator"),
        ("{sample},{turn},key_point", "the number of cells is not the number of columns"),
        ("{sample},{turn},key_point,bob,5", "bob has annotated key_point"),
    ],
)
def test_nothing_of_a_wrong_table_is_taken_and_its_line_is_told(
    cells: str, why: str, copied: Path, sources: dict[str, StudySource], tmp_path: Path
):
    source = sources["weave"]
    first, second = [one.question.turn_ref for one in source.questions if one.question.metrics == ("key_point",)][:2]
    good = f"{first.sample},{first.turn + 1},key_point,bob,5"
    same = cells.format(
        sample=first.sample if "bob" in cells else second.sample, turn=(first if "bob" in cells else second).turn + 1
    )
    (tmp_path / "in.csv").write_text(f"sample,turn,metric,annotator,score\n{good}\n{same}\n")
    with pytest.raises(UserError) as wrong:
        brought(copied, source, tmp_path / "in.csv")
    assert f"in.csv: line 3: {''}" in str(wrong.value) and why in str(wrong.value)
    assert said(copied, source.run.id) == []


def test_ratings_of_another_run_are_refused(copied: Path, sources: dict[str, StudySource], tmp_path: Path):
    rate(copied, sources["rover-ig"], "ann")
    text = format_annotations(said(copied, sources["rover-ig"].run.id))
    (tmp_path / "in.csv").write_text(text, newline="")
    with pytest.raises(UserError, match="line 2: it is of the run rover-ig"):
        brought(copied, sources["weave"], tmp_path / "in.csv")
    (tmp_path / "in.csv").write_text(text.replace(sources["rover-ig"].run.id, sources["weave"].run.id), newline="")
    with pytest.raises(UserError, match="is it of another run"):
        brought(copied, sources["weave"], tmp_path / "in.csv")


# journals


def test_merging_brings_what_people_said_and_the_later_of_two_counts(
    copied: Path, sources: dict[str, StudySource], tmp_path: Path
):
    source = sources["weave"]
    other = tmp_path / "other"
    shutil.copytree(copied, other)
    rate(copied, source, done=4)
    study = rate(other, source, done=9)
    later = said(other, source.run.id)
    made = merge_journal(copied, other)
    assert made.annotations == 18 and made.new_annotations == 18, "all are later than those here"
    assert said(copied, source.run.id) == later and merge_journal(copied, other).new_annotations == 0
    assert [one.id for one in Annotations(copied / "journal.sqlite").studies(source.run.id)] == [study.id]
    assert all(Blobs(copied / "blobs").path(digest).is_file() for digest in study.settings["images"])
    empty = tmp_path / "empty"
    merge_journal(empty, other)
    assert said(empty, source.run.id) == later, "with the run, into a home that had nothing"


def test_a_study_that_was_only_read_in_becomes_whole_by_merging(
    copied: Path, sources: dict[str, StudySource], tmp_path: Path
):
    source = sources["weave"]
    other = tmp_path / "other"
    shutil.copytree(copied, other)
    study = rate(other, source)
    (tmp_path / "out.csv").write_text(format_annotations(said(other, source.run.id)), newline="")
    brought(copied, source, tmp_path / "out.csv")
    assert "orders" not in Annotations(copied / "journal.sqlite").studies(source.run.id)[0].settings
    merge_journal(copied, other)
    assert Annotations(copied / "journal.sqlite").studies(source.run.id)[0].settings == study.settings


def test_a_damaged_journal_is_mended_with_what_people_said(copied: Path, sources: dict[str, StudySource]):
    source = sources["weave"]
    study = rate(copied, source)
    before = said(copied, source.run.id)
    assert check_journal(copied / "journal.sqlite").problems == []
    db = sqlite3.connect(copied / "journal.sqlite")
    db.execute("UPDATE ratings SET verdicts = '[{' WHERE item = ? AND rater = 'ann'", (before[0].item,))
    db.commit()
    db.close()
    with pytest.raises(UserError, match="weft journal check"):
        said(copied, source.run.id)
    health = check_journal(copied / "journal.sqlite")
    assert health.problems == ["1 rows of ratings cannot be read"] and health.recovered["studies"] == 1
    assert said(copied, source.run.id) == [
        one for one in before if (one.item, one.annotator) != (before[0].item, "ann")
    ]
    assert Annotations(copied / "journal.sqlite").studies(source.run.id) == [study]


def test_pruning_keeps_what_people_said_and_the_pictures_that_they_see(copied: Path, sources: dict[str, StudySource]):
    source = sources["weave"]
    study = rate(copied, source)
    blobs, before = Blobs(copied / "blobs"), said(copied, source.run.id)
    needed = {blobs.path(digest) for digest in study.settings["images"]}
    db = sqlite3.connect(copied / "journal.sqlite")
    for table in ("calls", "replies", "verdicts"):
        db.execute(f"DELETE FROM {table}")
    db.commit()
    db.close()
    found = find_unused(copied)
    assert found.images and not needed & set(found.images)
    remove_unused(copied, found)
    assert said(copied, source.run.id) == before and all(path.is_file() for path in needed)


def test_an_export_has_what_people_said(copied: Path, sources: dict[str, StudySource], tmp_path: Path):
    source = sources["imug"]
    run = load_run(Journal(copied / "journal.sqlite", readonly=True), source.run.id)
    assert (
        "annotations" not in export_run(run, copied, tmp_path / "before")
        and not (tmp_path / "before" / "annotations.csv").exists()
    )
    rate(copied, source)
    counts = export_run(run, copied, tmp_path / "after")
    assert counts["annotations"] == len(said(copied, source.run.id))
    assert (tmp_path / "after" / "annotations.csv").read_text() == format_annotations(
        Annotations(copied / "journal.sqlite", readonly=True).find(source.run.id)
    )
    assert "annotations.csv" in json.loads((tmp_path / "after" / "manifest.json").read_text())["files"]


# the command


def weft(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run_forked(*words, "--home", str(home), cwd=Path.cwd())


def test_the_command_tells_how_far_everybody_is_and_whom_to_doubt(
    copied: Path, sources: dict[str, StudySource], tmp_path: Path
):
    source = sources["weave"]
    run = source.run.id
    assert "has no annotation study yet" in weft(copied, "rate", run, "--status").stdout
    nothing = weft(copied, "rate", run, "--export", str(tmp_path / "r.csv"))
    assert nothing.returncode == 2 and "nobody has annotated" in nothing.stderr and not (tmp_path / "r.csv").exists()
    study = rate(copied, source, done=0)
    ratings, blobs = Annotations(copied / "journal.sqlite"), Blobs(copied / "blobs")
    items = items_of(source, study, blobs)
    for name in study.settings["orders"]["ann"]:
        if items[name].is_attention_check:
            best = parse_answer(
                items[name].form,
                {f"f{at}": str(len(field.options) - 1) for at, field in enumerate(items[name].form.fields)},
            )
            ratings.add(annotation_of(source, study.id, items[name], "ann", best, seconds=2.0))
    ratings.close()
    status = weft(copied, "rate", run, "--status").stdout
    assert "20 questions for 2 annotators, seed 0, 2 attention checks in addition" in status
    assert [line.split() for line in status.splitlines()[2:4]] == [
        ["ann", "2", "of", "22", "0", "of", "2", "2.0"],
        ["bob", "0", "of", "22", "-", "-"],
    ]
    assert "warning: ann failed 2 of 2 attention checks" in status
    done = weft(copied, "rate", run, "--export", str(tmp_path / "r.csv"))
    assert done.returncode == 0 and "2 annotations by 1 annotator" in done.stdout
    assert "2 annotations, 0 new here" in weft(copied, "rate", run, "--import", str(tmp_path / "r.csv")).stdout
    tasks = weft(copied, "rate", run, "--export", str(tmp_path / "tasks.json"))
    assert f"22 tasks of {study.id}" in tasks.stdout and (tmp_path / "tasks.xml").is_file()
    wrong = weft(copied, "rate", run, "--export", str(tmp_path / "r.txt"))
    assert wrong.returncode == 2 and "ends in .csv" in wrong.stderr
    help_ = weft(copied, "rate", "--help").stdout
    assert "weft rate last --annotators" in help_.split("Example")[1]


def test_a_run_goes_with_what_people_said_of_it_and_says_so_before(copied: Path, sources: dict[str, StudySource]):
    source = sources["weave"]
    rate(copied, source)
    asked = weft(copied, "runs", "rm", source.run.id)
    assert asked.returncode == 2 and "40 annotations by 2 annotators, which are removed for good" in asked.stdout
    assert len(said(copied, source.run.id)) == 44
    assert weft(copied, "runs", "rm", source.run.id, "--yes").returncode == 0 and said(copied, source.run.id) == []


def test_the_page_of_a_run_says_how_many_people_rated_it(copied: Path, sources: dict[str, StudySource]):
    from weft.report.site import build_numbers
    from weft.report.view.library import Library

    source = sources["weave"]
    library = Library(copied)
    before = library.stamp((source.run.id,))
    assert "by 2 people" not in build_numbers(library.contents((source.run.id,)), [], "", "")
    rate(copied, source)
    assert library.stamp((source.run.id,)) != before
    assert "40 by 2 annotators" in build_numbers(library.contents((source.run.id,)), [], "", "")
