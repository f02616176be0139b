"""PlanViz's lists: official names and fields, both spellings of the points, pictures under other endings, ids that
stay; and whatever is wrong with them, said with file, record and field."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planviz import NAMES, records, written
from server import drawn, png_header
from weft.benchmarks.planviz.data import PlanVizGold, load
from weft.benchmarks.planviz.files import PlanVizTask, write_tasks
from weft.benchmarks.planviz.template import write_template
from weft.errors import UserError
from weft.store.blobs import Blobs
from weft.types import Dataset, Image, Text


def loaded(folder: Path) -> Dataset:
    return load(folder, Blobs(folder.parent / "blobs")).load_all()


def problems(folder: Path) -> list[str]:
    return [str(problem) for problem in loaded(folder).problems]


def one(folder: Path, of: str = "travel_plan_edit", /, **fields: Any) -> Dataset:
    """A dataset of one record, with some fields changed."""
    record = {**records()[of][0], **fields}
    return loaded(written(folder, {of: [{key: value for key, value in record.items() if value is not None}]}))


def test_all_kinds(tmp_path: Path):
    found = loaded(written(tmp_path / "data"))
    assert not found.problems and found.records == 6 and found.name == "own tasks"
    groups = [(sample.groups["subtask"], sample.groups["task"], sample.groups["ended"]) for sample in found.samples]
    assert groups == [
        ("route", "gen", "open"),
        ("route", "edit", "open"),
        ("workflow", "gen", "closed"),
        ("workflow", "edit", "closed"),
        ("ui", "gen", "closed"),
        ("ui", "edit", "closed"),
    ]
    made, edited = found.samples[0].turns[0], found.samples[1].turns[0]
    assert (
        made.prompt == (Text("Plan travel_plan_gen."),) and made.file == "travel_plan_gen/0.png" and not made.reference
    )
    goal: PlanVizGold = edited.gold
    assert (
        [type(part) for part in edited.prompt] == [Image, Text]
        and edited.reference == (goal.reference,)
        and goal.source != goal.reference
    )


def test_the_second_list_of_interfaces(tmp_path: Path):
    both = {"ui_gen": records()["ui_gen"], "ui_gen_diff": [{**records()["ui_gen"][0], "prompt": "Another."}]}
    found = loaded(written(tmp_path / "data", both))
    assert [sample.turns[0].file for sample in found.samples] == ["ui_gen/0.png", "ui_gen_diff/0.png"]
    assert {sample.groups["subtask"] for sample in found.samples} == {"ui"}


def test_score_points_win_over_key_points(tmp_path: Path):
    found = one(
        tmp_path / "data", "ui_gen", correctness_score_points=["this"], correctness_key_points=["that", "and that"]
    )
    assert found.samples[0].turns[0].gold.points == ("this",)
    assert [str(problem).partition(": ")[2] for problem in found.problems] == [
        "record 0: correctness_key_points: differs from correctness_score_points; the latter counts, as in the "
        "released code"
    ]
    alone = one(tmp_path / "more", "ui_gen", correctness_score_points=["this"], correctness_key_points=None)
    assert alone.samples[0].turns[0].gold.points == ("this",) and not alone.problems


@pytest.mark.parametrize(
    ("told", "there"), [("a.png", "a.jpg"), ("a.png", "a.jpeg"), ("a.jpg", "a.png"), ("a.PNG", "a.webp")]
)
def test_a_picture_under_another_ending(told: str, there: str, tmp_path: Path):
    """The ending alone is another: folders whose names hold `png` stay what they are."""
    folder = written(
        tmp_path / "data", {"ui_edit": [{**records()["ui_edit"][0], "image_path": f"UI/editing/pngs/{told}"}]}
    )
    (folder / "UI/editing/pngs" / told).unlink()
    (folder / "UI/editing/pngs" / there).write_bytes(drawn("the other ending"))
    found = loaded(folder)
    assert not found.problems and len(found.samples) == 1


@pytest.mark.parametrize(
    "path", ["/path/to/uni_bench/UI/editing/imgs/0.png", "uni_bench/UI/editing/imgs/0.png", "UI\\editing\\imgs\\0.png"]
)
def test_paths_that_say_more_than_the_folder(path: str, tmp_path: Path):
    folder = written(tmp_path / "data", {"ui_edit": records()["ui_edit"]})
    (folder / NAMES["ui_edit"].file).write_text(json.dumps([{**records()["ui_edit"][0], "image_path": path}]))
    found = loaded(folder)
    assert len(found.samples) == 1 and not found.problems


@pytest.mark.parametrize(
    "path",
    [
        "../../secret.png",
        "/etc/passwd",
        "UI/../../secret.png",
        "UI/editing/imgs/\0.png",
        "x" * 5000,
        f"UI/{'9' * 400}/0.png",
    ],
)
def test_a_picture_outside_of_the_dataset_is_none_of_it(path: str, tmp_path: Path):
    (tmp_path / "secret.png").write_bytes(drawn("secret"))
    folder = written(tmp_path / "data", {"ui_edit": records()["ui_edit"]})
    (folder / NAMES["ui_edit"].file).write_text(json.dumps([{**records()["ui_edit"][0], "image_path": path}]))
    found = loaded(folder)
    assert not found.samples and found.problems[0].field == "image_path"


def test_a_link_out_of_the_dataset(tmp_path: Path):
    (tmp_path / "secret.png").write_bytes(drawn("secret"))
    folder = written(tmp_path / "data", {"ui_edit": records()["ui_edit"]})
    (folder / "UI/editing/imgs/0.png").unlink()
    (folder / "UI/editing/imgs/0.png").symlink_to(tmp_path / "secret.png")
    assert "leads out of the dataset" in problems(folder)[0]


@pytest.mark.parametrize(
    ("fields", "severity", "said"),
    [
        ({"prompt": None}, "error", "prompt: is missing or empty"),
        ({"prompt": " "}, "error", "prompt: is missing or empty"),
        ({"prompt": 7}, "error", "prompt: must be text, not int"),
        ({"correctness_key_points": None}, "error", "correctness_key_points: is missing"),
        ({"correctness_key_points": []}, "error", "must be a list of texts, one for each point, and not empty"),
        ({"correctness_key_points": "A route is drawn"}, "error", "is one text: put it in [ ]"),
        ({"correctness_key_points": ["A", ""]}, "error", "correctness_key_points[1]: is missing or empty"),
        ({"correctness_key_points": ["A", 3]}, "error", "correctness_key_points[1]: must be text, not int"),
        ({"correctness_key_points": ["A", "A"]}, "warning", "has a point twice: 'A'"),
        ({"correctness_key_points": ["A"] * 101}, "error", "has 101 points, more than 100"),
        ({"image_path": None}, "error", "image_path: is missing; an editing task needs the image that is edited"),
        ({"image_path": 4}, "error", "image_path: must be a path, not int"),
        ({"ref_image_path": None}, "warning", "ref_image_path: is missing: a judge has the key points alone"),
        ({"ended": "half"}, "warning", "ended: 'half' is neither open nor closed"),
        ({"name": 7}, "error", "name: must be text, not int"),
        ({"ended": True}, "warning", "ended: 'True' is neither open nor closed"),
        ({"ended": None, "endedd": "open"}, "warning", "endedd: is an unknown field; did you mean ended?"),
        ({"name": "a/b"}, "error", "name: 'a/b' is no name for a task"),
        ({"name": "a~1"}, "error", "is no name for a task: must be text without `/` and `~`"),
        ({"name": "x" * 200}, "error", "is no name for a task"),
    ],
)
def test_what_is_wrong_with_a_record(fields: dict[str, Any], severity: str, said: str, tmp_path: Path):
    found = one(tmp_path / "data", **fields)
    assert [problem.severity for problem in found.problems] == [severity]
    assert said in str(found.problems[0]) and str(found.problems[0]).startswith(
        "map/editing/map_editing_prompts.json: record 0"
    )
    assert len(found.samples) == (severity == "warning")


def test_a_bomb_is_refused(tmp_path: Path):
    folder = written(tmp_path / "data", {"ui_edit": records()["ui_edit"]})
    (folder / "UI/editing/imgs/0.png").write_bytes(png_header(100_000, 100_000))
    assert not loaded(folder).samples and "image_path" in problems(folder)[0]


@pytest.mark.parametrize(
    ("told", "ended"),
    [
        ({"ended": "Open-ended"}, "open"),
        ({"ended": "closed"}, "closed"),
        ({"ended": None, "open_ended": True}, "open"),
        ({"ended": None, "open_ended": False}, "closed"),
        ({"ended": None, "question_type": "close-ended"}, "closed"),
        ({"ended": None, "type": "map"}, "unmarked"),
        ({"ended": None}, "unmarked"),
    ],
)
def test_open_and_closed(told: dict[str, Any], ended: str, tmp_path: Path):
    assert one(tmp_path / "data", **told).samples[0].groups["ended"] == ended


def test_ids_stay_when_tasks_are_added_and_moved(tmp_path: Path):
    """The place in a list names the output file alone."""
    first, second = ({**records()["ui_gen"][0], "prompt": f"Draw panel {at}."} for at in (1, 2))
    before = loaded(written(tmp_path / "before", {"ui_gen": [first, second]}))
    after = loaded(written(tmp_path / "after", {"ui_gen": [{**first, "prompt": "New."}, second, first]}))
    ids = {sample.turns[0].prompt_text: sample.id for sample in before.samples}
    assert ids.items() <= {sample.turns[0].prompt_text: sample.id for sample in after.samples}.items()
    assert [sample.turns[0].file for sample in after.samples] == ["ui_gen/0.png", "ui_gen/1.png", "ui_gen/2.png"]
    changed = loaded(written(tmp_path / "changed", {"ui_gen": [{**first, "correctness_key_points": ["other"]}]}))
    assert changed.samples[0].id not in ids.values()  # another task: another number


def test_a_name_of_its_own_and_a_task_twice(tmp_path: Path):
    named = {**records()["ui_gen"][0], "name": "sign in"}
    found = loaded(
        written(
            tmp_path / "data",
            {"ui_gen": [named, {**named, "prompt": "Other."}, records()["ui_gen"][0], records()["ui_gen"][0]]},
        )
    )
    assert [sample.id for sample in found.samples] == ["ui_gen-sign in", found.samples[1].id]
    assert [str(problem).partition("UI/generation/ui_generation.json: ")[2][:40] for problem in found.problems] == [
        "record 1 (sign in): task: is the task of",
        "record 3: task: is the task of UI/genera",
    ]


def test_a_reference_that_shows_nothing(tmp_path: Path):
    told = one(tmp_path / "data", ref_image_path="map/editing/imgs/0.png", image_path="map/editing/imgs/0.png")
    assert len(told.samples) == 1 and "is the same image as image_path" in str(told.problems[0])


def test_as_many_tasks_as_the_paper_has_are_taken_for_its_own(tmp_path: Path):
    many = {name: [{**some[0], "prompt": f"Task {at}."} for at in range(60)] for name, some in records().items()}
    split = {**many, "ui_gen": many["ui_gen"][:40], "ui_gen_diff": many["ui_gen"][40:]}
    assert loaded(written(tmp_path / "split", split)).name == "planviz"
    assert loaded(written(tmp_path / "less", {**many, "ui_gen": many["ui_gen"][:59]})).name == "own tasks"
    assert loaded(written(tmp_path / "one kind", {"ui_gen": many["ui_gen"]})).name == "own tasks"


@pytest.mark.parametrize(
    "name", ["UI/editing/ui_editing.json", "UI/ui_edit.json", "ui_edit.json", "ui/editing/ui_edit.json"]
)
def test_a_list_under_another_name_is_not_passed_over_in_silence(name: str, tmp_path: Path):
    folder = written(tmp_path / "data")
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / NAMES["ui_edit"].file).rename(folder / name)
    told = problems(folder)
    assert told == [f"{name}: is not read: it is none of PlanViz's lists; did you mean UI/editing/ui_edit.json?"]


def test_paths_may_begin_at_the_list(tmp_path: Path):
    folder = written(tmp_path / "data", {"ui_edit": records()["ui_edit"]})
    (folder / NAMES["ui_edit"].file).write_text(json.dumps([{**records()["ui_edit"][0], "image_path": "imgs/0.png"}]))
    assert len(loaded(folder).samples) == 1


def test_a_broken_list_costs_itself_alone(tmp_path: Path):
    folder = written(tmp_path / "data")
    (folder / NAMES["ui_edit"].file).write_text('[{"prompt": "x",}]')
    (folder / NAMES["ui_gen"].file).write_text('{"prompt": "x"}')
    (folder / NAMES["process_plan_gen"].file).write_text("[null, 3, {}]")
    found = loaded(folder)
    assert len(found.samples) == 3
    told = problems(folder)
    assert any(line.startswith("UI/editing/ui_edit.json: broken JSON") and "(line 1, column" in line for line in told)
    assert "UI/generation/ui_generation.json: must be a list of tasks" in told
    assert sum("must be an object" in line for line in told) == 3


def test_a_list_larger_than_any_memory(tmp_path: Path):
    folder = written(tmp_path / "data")
    with (folder / NAMES["ui_gen"].file).open("r+b") as file:
        file.truncate(6 * 1024**3)  # a sparse file: nothing is on the disk
    assert any("more than the limit" in line for line in problems(folder)) and len(loaded(folder).samples) == 5


def test_no_list_at_all(tmp_path: Path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"has none of PlanViz's lists .*`weft data new planviz DIR`"):
        loaded(tmp_path / "empty")
    with pytest.raises(UserError, match="there is no folder"):
        loaded(tmp_path / "nowhere")
    (tmp_path / "some.json").write_text("[]")
    with pytest.raises(UserError, match="is none of PlanViz's lists"):
        loaded(tmp_path / "some.json")


def test_one_list_may_be_named_itself_and_a_folder_may_lie_in_the_other(tmp_path: Path):
    folder = written(tmp_path / "up" / "uni_bench")
    assert len(loaded(tmp_path / "up").samples) == 6
    assert [sample.groups["subtask"] for sample in loaded(folder / NAMES["ui_edit"].file).samples] == ["ui"]


def test_the_authors_wordings_are_not_taken_for_tasks(tmp_path: Path):
    folder = written(tmp_path / "data")
    (folder / "random_style.json").write_text("[]")
    assert problems(folder)[0].startswith("random_style.json: is not read")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.sampled_from([(listed.subtask, listed.task) for listed in NAMES.values()]),
            st.text(st.characters(codec="utf-8"), min_size=1, max_size=40).filter(lambda text: bool(text.strip())),
            st.lists(
                st.text(st.characters(codec="utf-8"), min_size=1, max_size=20).filter(lambda text: bool(text.strip())),
                min_size=1,
                max_size=4,
            ),
            st.sampled_from(["open", "closed", ""]),
        ),
        min_size=1,
        max_size=8,
        unique_by=lambda task: (task[0], task[1]),
    )
)
def test_what_is_written_is_read(tmp_path: Path, tasks: list[Any]):
    folder = tmp_path / "round"
    shutil.rmtree(folder, ignore_errors=True)
    picture = drawn("source", 32)
    made = [
        PlanVizTask(*kind, prompt, points, ended, "", *((picture, drawn("reference", 32)) if kind[1] == "edit" else ()))
        for kind, prompt, points, ended in tasks
    ]
    write_tasks(folder, made)
    found = loaded(folder)
    assert not [problem for problem in found.problems if "twice" not in str(problem)]
    told = {
        (s.groups["subtask"], s.groups["task"], s.turns[0].prompt_text, s.groups["ended"]): s.turns[0].gold.points
        for s in found.samples
    }
    due = {
        (*kind, prompt, ended or "unmarked"): tuple(point.strip() for point in points)
        for kind, prompt, points, ended in tasks
    }
    assert told == due


def test_the_template_is_in_order_and_holds_every_kind(tmp_path: Path):
    write_template(tmp_path / "mine")
    found = loaded(tmp_path / "mine")
    assert not found.problems
    assert {(sample.groups["subtask"], sample.groups["task"]) for sample in found.samples} == {
        (subtask, task) for subtask in ("route", "workflow", "ui") for task in ("gen", "edit")
    }
    assert {sample.groups["ended"] for sample in found.samples} == {"open", "closed"}
    how = (tmp_path / "mine" / "README.md").read_text()
    assert all(listed.file in how for listed in NAMES.values() if listed.name != "ui_gen_diff")
