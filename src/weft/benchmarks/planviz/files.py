"""PlanViz's files: lists of tasks under the names of the released code, with their images in the same folders.

    map/generation/map_gen.json     diagram/generation/diagram_gen.json     UI/generation/ui_generation.json,
    map/editing/map_editing_prompts.json    diagram/editing/diagram_edit.json    ui_generation_diff.json
    UI/editing/ui_edit.json

A record has `prompt` and `correctness_key_points` (or `correctness_score_points`, which wins); for editing `image_path`
and, where there is one, `ref_image_path`. Two fields are ours: `ended` (`open` or `closed`), and `name`, the task's own
name. The released code knows a task by its index in its list, and names output files by that.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from msgspec import Struct

from weft.errors import UserError
from weft.types import Problem

POINT_FIELDS = ("correctness_score_points", "correctness_key_points")  # of two the first wins
STYLE_STUDY_FILE = "random_style.json"  # the authors' own wordings; its format is not published
ROOTS = ("", "uni_bench", "PlanViz", "data")  # where the lists may be in the folder that a user names
OTHER_FILES = (STYLE_STUDY_FILE, "tabletop.json")  # in the root, and known


class TaskList(Struct, frozen=True):
    """A list of tasks."""

    name: str  # in the released code
    file: str  # its path from the root
    subtask: str
    task: str


TASK_LISTS = (
    TaskList("travel_plan_gen", "map/generation/map_gen.json", "route", "gen"),
    TaskList("travel_plan_edit", "map/editing/map_editing_prompts.json", "route", "edit"),
    TaskList("process_plan_gen", "diagram/generation/diagram_gen.json", "workflow", "gen"),
    TaskList("process_plan_edit", "diagram/editing/diagram_edit.json", "workflow", "edit"),
    TaskList("ui_gen", "UI/generation/ui_generation.json", "ui", "gen"),
    TaskList("ui_gen_diff", "UI/generation/ui_generation_diff.json", "ui", "gen"),
    TaskList("ui_edit", "UI/editing/ui_edit.json", "ui", "edit"),
)
LIST_FILES = ", ".join(task_list.file for task_list in TASK_LISTS)


class PlanVizTask(Struct, frozen=True):
    """A task to write into a list."""

    subtask: str
    task: str
    prompt: str
    points: Sequence[str]
    ended: str = ""
    name: str = ""
    source: bytes = b""  # PNG
    reference: bytes = b""  # PNG


def find_root(data: Path) -> Path:
    """Return the folder of the lists, given that folder, one above it, or one of the lists. Raises UserError if there
    is no list."""
    if data.is_file():
        for task_list in TASK_LISTS:
            if data.absolute().as_posix().endswith("/" + task_list.file):
                return data.absolute().parents[task_list.file.count("/")]
        raise UserError(f"{data} is none of PlanViz's lists ({LIST_FILES}); give the folder that they are in")
    for root in ROOTS:
        if any((data / root / task_list.file).is_file() for task_list in TASK_LISTS):
            return data / root
    if not data.is_dir():
        raise UserError(f"there is no folder {data}; `weft data new planviz {data}` makes one to fill in")
    raise UserError(
        f"{data} has none of PlanViz's lists ({LIST_FILES}); `weft data new planviz DIR` makes a folder to fill in"
    )


def find_lists(data: Path) -> list[TaskList]:
    """Return the lists in a folder, or the one list that is named."""
    root = find_root(data)
    lists: list[TaskList] = []
    for task_list in TASK_LISTS:
        path = root / task_list.file
        if path.is_file() and (data.is_dir() or path.samefile(data)):
            lists.append(task_list)
    return lists


def find_unread_lists(root: Path) -> list[Problem]:
    """Return a warning for each JSON file that is not read, because its name is none of the released code's."""
    expected = [task_list.file for task_list in TASK_LISTS]
    missing = [file for file in expected if not (root / file).is_file()]
    inner = sorted(path.relative_to(root).as_posix() for path in root.glob("*/**/*.json") if path.is_file())
    outer = sorted(path.name for path in root.glob("*.json") if path.name not in OTHER_FILES)
    problems: list[Problem] = []
    for file in (*inner, *outer):
        if file in expected:
            continue
        message = "is not read: it is none of PlanViz's lists"
        matches = get_close_matches(file, missing or sorted(expected), 1, 0.3)
        if matches:
            message += f"; did you mean {matches[0]}?"
        problems.append(Problem("warning", file, "", "", message))
    return problems


def _find_list_for(task: PlanVizTask) -> TaskList:
    for task_list in TASK_LISTS:
        if (task_list.subtask, task_list.task) == (task.subtask, task.task):
            return task_list
    raise ValueError(f"there is no list for {task.subtask} {task.task}")


def write_tasks(folder: Path, tasks: Iterable[PlanVizTask]) -> dict[str, list[Mapping[str, Any]]]:
    """Write tasks in the official layout. Returns the records by the name of their list."""
    records_by_list: dict[str, list[Mapping[str, Any]]] = {}
    for task in tasks:
        task_list = _find_list_for(task)
        records = records_by_list.setdefault(task_list.name, [])
        record: dict[str, Any] = {"prompt": task.prompt, POINT_FIELDS[1]: list(task.points)}
        for field, subfolder, data in (("image_path", "imgs", task.source), ("ref_image_path", "refs", task.reference)):
            if data:
                path = Path(task_list.file).parent / subfolder / f"{len(records)}.png"
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(data)
                record[field] = path.as_posix()
        if task.ended:
            record["ended"] = task.ended
        if task.name:
            record["name"] = task.name
        records.append(record)
    for task_list in TASK_LISTS:
        if task_list.name in records_by_list:
            file = folder / task_list.file
            file.parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps(records_by_list[task_list.name], indent=1, ensure_ascii=False)
            file.write_text(text + "\n", encoding="utf-8")
    return records_by_list
