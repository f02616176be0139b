"""PlanViz's records as Samples: one request, about a picture or about none, and the points that the picture which comes back must meet.

A task's id is stable: its own name, or its list's name and a digest of what it asks, so that tasks can be added and moved. Its place in its
list, which changes with both, is where its output file gets its name from, and nothing else.
"""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, cast

import msgspec
from msgspec import Struct

from weft.benchmarks.planviz.files import POINTS, STUDY, Listed, lists_in, root_of
from weft.benchmarks.records import Records
from weft.errors import UserError
from weft.models.http import fields
from weft.outside import json_file
from weft.store.blobs import Blobs
from weft.types import Dataset, Image, Part, Problem, Sample, Text, Turn

SUBTASKS, TASKS, ENDS = ("route", "workflow", "ui"), ("gen", "edit"), ("open", "closed")
UNMARKED = "unmarked"
ALIASES: Mapping[str, Mapping[str, str]] = {
    "task": {"generation": "gen", "generate": "gen", "editing": "edit"},
    "subtask": {
        **dict.fromkeys(("map", "routes", "route planning", "travel"), "route"),
        **dict.fromkeys(("diagram", "workflows", "workflow diagramming", "process"), "workflow"),
        **dict.fromkeys(("web", "webui", "web&ui", "web & ui", "web&ui displaying", "interface"), "ui"),
    },
    "ended": {
        **dict.fromkeys(("open-ended", "open ended", "open_ended", "true"), "open"),
        **dict.fromkeys(("closed-ended", "close-ended", "closed ended", "closed_ended", "close", "false"), "closed"),
    },
}
MARKS = ("ended", "open_ended", "question_type", "type")  # under which a record may say so
MOST_POINTS, LONGEST_NAME = 100, 120
ENDINGS = (".png", ".jpg", ".jpeg", ".webp")


class Goal(Struct, frozen=True):
    """What a judge is told of a task."""

    points: tuple[str, ...]
    subtask: str
    task: str
    source: Image | None = None
    reference: Image | None = None

    @property
    def edits(self) -> bool:
        return self.task == "edit"

    @property
    def alone(self) -> bool:
        """Whether the picture is looked at without its source: a workflow need not resemble the page that it is drawn from."""
        return not self.edits or self.subtask == "workflow"


def canonical(axis: str, name: str) -> str:
    said = name.strip().lower()
    return ALIASES.get(axis, {}).get(said, said)


def load(data: Path, blobs: Blobs) -> Dataset:
    records = TaskRecords(root_of(data), blobs)
    return records.dataset("planviz", records.rows(data))


class TaskRecords(Records):
    id_field = "task"

    def __init__(self, root: Path, blobs: Blobs) -> None:
        super().__init__(root / "lists", root, blobs)
        self._root = root

    def rows(self, data: Path) -> Iterator[Any]:
        if (self._root / STUDY).is_file():
            why = "is not read: its records do not say which sub-task they are of; --styles has wordings made, or takes them from a file"
            self.problems.append(Problem("warning", STUDY, "", "", why))
        for listed in lists_in(data):
            try:
                found: Any = json_file(self._root / listed.file)
                if not isinstance(found, list):
                    raise UserError("must be a list of tasks")
            except UserError as error:
                told = str(error).replace(f"{self._root / listed.file}: ", "")
                self.problems.append(Problem("error", listed.file, "", "", told))
                continue
            yield from ({"list": listed, "at": at, "record": record} for at, record in enumerate(cast(list[Any], found)))

    def called(self, at: int, record: Any) -> str:
        return f"{record['list'].file}: record {record['at']}"

    def say(self, severity: Any, name: str, field: str, message: str) -> None:
        self.problems.append(Problem(severity, "", name, field, message))

    def sample(self, name: str, record: dict[str, Any]) -> Sample:
        listed: Listed = record["list"]
        facts = fields(record["record"])
        if not facts:
            self.fail(name, "", "must be an object with `prompt` and `correctness_key_points`")
        prompt = self.text(name, facts, "prompt")
        points = self._points(name, facts)
        source = self._picture(name, facts, "image_path") if listed.task == "edit" else None
        if listed.task == "edit" and source is None:
            self.fail(name, "image_path", "is missing; a task of editing needs the picture that is edited")
        reference = self._picture(name, facts, "ref_image_path")
        if listed.task == "edit" and reference is None:
            self.say("warning", name, "ref_image_path", "is missing: a judge has the key points alone, and no picture of what is meant")
        if listed.task == "gen" and (facts.get("image_path") or reference):
            self.say("warning", name, "image_path", "is not shown: pictures are made from the words alone here")
        goal = Goal(points, listed.subtask, listed.task, source, reference if listed.task == "edit" else None)
        ask: tuple[Part, ...] = (*((source,) if source else ()), Text(prompt))
        turn = Turn(0, ask, "image", (reference,) if reference else (), None, f"{listed.name}/{record['at']}.png", goal)
        groups = {"task": listed.task, "subtask": listed.subtask, "ended": self._ended(name, facts)}
        return Sample(self._id(name, facts, listed, prompt, goal), (turn,), (), groups)

    def _points(self, name: str, facts: Mapping[str, Any]) -> tuple[str, ...]:
        given = [field for field in POINTS if facts.get(field) is not None]
        if not given:
            self.fail(name, POINTS[1], "is missing; a task needs the points that its picture is scored by")
        if len(given) > 1 and facts[POINTS[0]] != facts[POINTS[1]]:
            self.say("warning", name, POINTS[1], f"is not what {POINTS[0]} has; the latter counts, as in the released code")
        found = facts[given[0]]
        if not isinstance(found, list) or not found:
            self.fail(name, given[0], "must be a list of texts, one for each point, and not empty")
        some = cast(list[Any], found)
        if len(some) > MOST_POINTS:
            self.fail(name, given[0], f"has {len(some)} points, more than {MOST_POINTS}")
        points = tuple(self.text(name, {f"{given[0]}[{at}]": one}, f"{given[0]}[{at}]").strip() for at, one in enumerate(some))
        twice = [point for point in points if points.count(point) > 1]
        if twice:
            self.say("warning", name, given[0], f"has a point twice: {twice[0][:80]!r}; it counts twice")
        return points

    def _picture(self, name: str, facts: Mapping[str, Any], field: str) -> Image | None:
        path = facts.get(field)
        if path is None or path == "":
            return None
        if not isinstance(path, str):
            self.fail(name, field, f"must be a path, not {type(path).__name__}")
        return self.picture(name, field, self._found(path))

    def _found(self, path: str) -> str:
        """A path as it leads to a picture: from the folder of the lists, if it says more than that, and with the ending that the file has.
        Only the ending is another then; the released code changes every `png` in the whole path."""
        parts = PurePosixPath(path.replace("\\", "/")).parts
        tops = {listed.file.split("/")[0] for listed in lists_in(self._root)}
        inner = next((parts[at:] for at, part in enumerate(parts) if part in tops), parts)
        for some in (parts, inner):
            whole = PurePosixPath(*some) if some else PurePosixPath(path)
            for one in (whole, *(whole.with_suffix(ending) for ending in ENDINGS if whole.suffix.lower() in ENDINGS)):
                if ".." not in one.parts and "\0" not in path and not one.is_absolute() and (self._root / one).is_file():
                    return str(one)
        return path

    def _ended(self, name: str, facts: Mapping[str, Any]) -> str:
        for field in MARKS:
            found = facts.get(field)
            if found is None:
                continue
            said = canonical("ended", str(found))
            if said in ENDS:
                return said
            if field == "ended":
                self.say("warning", name, field, f"{str(found)[:40]!r} is neither open nor closed; the task is counted with neither")
        return UNMARKED

    def _id(self, name: str, facts: Mapping[str, Any], listed: Listed, prompt: str, goal: Goal) -> str:
        own = facts.get("name")
        if own is not None and own != "":
            if not isinstance(own, str) or len(own) > LONGEST_NAME or not own.isprintable() or "/" in own or own.strip() != own:
                self.fail(name, "name", f"{str(own)[:80]!r} is no name for a task: text without `/`, of at most {LONGEST_NAME} characters")
            return f"{listed.name}-{own}"
        told = [prompt, goal.points, goal.source.digest if goal.source else ""]
        return f"{listed.name}-{hashlib.sha256(msgspec.json.encode(told)).hexdigest()[:8]}"
