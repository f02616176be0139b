"""PlanViz's files: lists of tasks under the names that the released code has for them, pictures beside them. Read here,
and written.

    map/generation/map_gen.json     diagram/generation/diagram_gen.json     UI/generation/ui_generation.json,
    ui_generation_diff.json
    map/editing/map_editing_prompts.json    diagram/editing/diagram_edit.json    UI/editing/ui_edit.json

A record has `prompt` and `correctness_key_points` (or `correctness_score_points`, which wins); for editing
`image_path`, and where there is one, `ref_image_path`. Two fields are ours: `ended` (`open` or `closed`), and `name`, a
name of the task's own. The released code knows a task by its place in its list, and names output files by that."""

import json
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from msgspec import Struct

from weft.errors import UserError
from weft.types import Problem

POINT_FIELDS = ("correctness_score_points", "correctness_key_points")  # of two the first wins
STYLE_STUDY_FILE = "random_style.json"  # the authors' own wordings; what it holds is not known
ROOTS = ("", "uni_bench", "PlanViz", "data")  # where the lists may lie in the folder that a user names


class TaskList(Struct, frozen=True):
    """One list: what the released code calls it, where it lies, and what its tasks are."""

    name: str
    file: str
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


class PlanVizTask(Struct, frozen=True):
    """A task to write. Pictures are bytes of PNG."""

    subtask: str
    task: str
    prompt: str
    points: Sequence[str]
    ended: str = ""
    name: str = ""
    source: bytes = b""
    reference: bytes = b""


def find_root(data: Path) -> Path:
    """The folder that the lists lie in. One of the lists may be named itself."""
    if data.is_file():
        for listed in TASK_LISTS:
            if data.absolute().as_posix().endswith("/" + listed.file):
                return data.absolute().parents[listed.file.count("/")]
        names = ", ".join(listed.file for listed in TASK_LISTS)
        raise UserError(f"{data} is none of PlanViz's lists ({names}); give the folder that they lie in")
    for root in ROOTS:
        if any((data / root / listed.file).is_file() for listed in TASK_LISTS):
            return data / root
    if not data.is_dir():
        raise UserError(f"there is no folder {data}; `weft data new planviz {data}` makes one to fill in")
    looked = ", ".join(listed.file for listed in TASK_LISTS)
    raise UserError(
        f"{data} has none of PlanViz's lists ({looked}); `weft data new planviz DIR` makes a folder to fill in"
    )


def find_lists(data: Path) -> list[TaskList]:
    """Those that are there; of a file that a user names, that one."""
    root = find_root(data)
    return [
        one for one in TASK_LISTS if (root / one.file).is_file() and (data.is_dir() or (root / one.file).samefile(data))
    ]


def find_unread_lists(root: Path) -> list[Problem]:
    """Lists that nobody reads, because their names are not those that the released code has."""
    known = {one.file for one in TASK_LISTS}
    others = sorted(path.relative_to(root).as_posix() for path in root.glob("*/**/*.json") if path.is_file())
    made: list[Problem] = []
    for other in [
        *others,
        *sorted(path.name for path in root.glob("*.json") if path.name not in (STYLE_STUDY_FILE, "tabletop.json")),
    ]:
        if other not in known:
            near = get_close_matches(
                other, [one for one in known if not (root / one).is_file()] or sorted(known), 1, 0.3
            )
            if near:
                hint = f"; is {near[0]} meant?"
            else:
                hint = ""
            made.append(Problem("warning", other, "", "", f"is not read: it is none of PlanViz's lists{hint}"))
    return made


def write_tasks(folder: Path, tasks: Iterable[PlanVizTask]) -> dict[str, list[Mapping[str, Any]]]:
    """Tasks in the official layout; gives the records by the name of their list."""
    made: dict[str, list[Mapping[str, Any]]] = {}
    for task in tasks:
        listed = next(one for one in TASK_LISTS if (one.subtask, one.task) == (task.subtask, task.task))
        records = made.setdefault(listed.name, [])
        record: dict[str, Any] = {"prompt": task.prompt, POINT_FIELDS[1]: list(task.points)}
        for field, inner, data in (("image_path", "imgs", task.source), ("ref_image_path", "refs", task.reference)):
            if data:
                path = Path(listed.file).parent / inner / f"{len(records)}.png"
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(data)
                record[field] = path.as_posix()
        record |= {key: value for key, value in (("ended", task.ended), ("name", task.name)) if value}
        records.append(record)
    for listed in TASK_LISTS:
        if listed.name in made:
            file = folder / listed.file
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(made[listed.name], indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return made
