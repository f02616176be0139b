"""PlanViz's records as Samples: one request, about a picture or about none, and the points that the picture which comes
back must meet.

A task's id is stable: its own name, or its list's name and a digest of what it asks, so that tasks can be added and
moved. Its place in its list, which changes with both, is where its output file gets its name from, and nothing else."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from typing import Any, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from weft.benchmarks.planviz.files import (
    POINT_FIELDS,
    STYLE_STUDY_FILE,
    TASK_LISTS,
    TaskList,
    find_lists,
    find_root,
    find_unread_lists,
)
from weft.benchmarks.record_files import ARRAY, FileRows, RecordRows, read_json_array
from weft.benchmarks.records import Records
from weft.errors import UserError
from weft.store.blobs import Blobs
from weft.types import Dataset, Image, Part, Problem, Sample, Text, Turn
from weft.untrusted import dict_or_empty, parse_json, read_bytes_file

SUBTASKS = ("route", "workflow", "ui")
TASKS = ("gen", "edit")
QUESTION_TYPES = ("open", "closed")
UNMARKED = "unmarked"
ALIASES: Mapping[str, Mapping[str, str]] = {
    "task": {"generation": "gen", "generate": "gen", "editing": "edit"},
    "subtask": {
        **dict.fromkeys(("map", "routes", "route planning", "travel"), "route"),
        **dict.fromkeys(("diagram", "workflows", "workflow diagramming", "process"), "workflow"),
        **dict.fromkeys(("web", "webui", "web&ui", "web & ui", "web&ui displaying", "interface"), "ui"),
    },
    "ended": {
        **dict.fromkeys(("open-ended", "open ended", "open_ended"), "open"),
        **dict.fromkeys(("closed-ended", "close-ended", "closed ended", "closed_ended", "close"), "closed"),
    },
}
KNOWN = ("prompt", *POINT_FIELDS, "image_path", "ref_image_path", "ended", "name", "id", "res_path", "evaluation_out")
MARKS = ("ended", "open_ended", "question_type", "type")  # under which a record may say so
MOST_POINTS = 100
LONGEST_NAME = 120
EACH = 60  # tasks of a kind in the paper
OWN = "own tasks"
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")


class PlanVizGold(Struct, frozen=True):
    """What a judge is told of a task."""

    points: tuple[str, ...]
    subtask: str
    task: str
    source: Image | None = None
    reference: Image | None = None

    @property
    def is_edit(self) -> bool:
        return self.task == "edit"

    @property
    def is_judged_without_source(self) -> bool:
        """Whether the picture is looked at without its source: a workflow need not resemble the page that it is drawn
        from."""
        return not self.is_edit or self.subtask == "workflow"


def canonical_group(axis: str, name: str) -> str:
    said = name.strip().lower()
    return ALIASES.get(axis, {}).get(said, said)


def load(data: Path, blobs: Blobs) -> Dataset:
    records = PlanVizRecords(find_root(data), blobs)
    rows = records.rows(data)
    found = records.dataset(OWN, rows)
    if found.name == OWN and rows.is_official:
        return replace(found, name="planviz")
    return found


class PlanVizRows(RecordRows):
    """The records of all lists, each with its list and its place there."""

    def __init__(self, lists: Sequence[tuple[TaskList, FileRows]]) -> None:
        self._lists = lists
        digest = hashlib.sha256(
            "\n".join(f"{listed.file} {rows.digest}" for listed, rows in lists).encode()
        ).hexdigest()
        super().__init__(
            digest, sum(rows.count for _, rows in lists), (name for _, rows in lists for name in rows.images)
        )

    def __iter__(self) -> Iterator[Any]:
        for listed, rows in self._lists:
            yield from (
                {"list": listed, "at": at, "record": parse_json(row, listed.file)} for at, row in enumerate(rows)
            )

    @property
    def is_official(self) -> bool:
        """Whether there are as many tasks of each kind as the paper has. Its own are not public, so nothing else tells
        them apart."""
        counts: Counter[tuple[str, str]] = Counter()
        for listed, rows in self._lists:
            counts[listed.task, listed.subtask] += rows.count
        return len(counts) == len(SUBTASKS) * len(TASKS) and set(counts.values()) == {EACH}


class PlanVizRecords(Records):
    id_field = "task"
    duplicate_message = "is the task of {first} once more, or has its name: {id}"

    def __init__(self, root: Path, blobs: Blobs) -> None:
        super().__init__(root / "lists", root, blobs)
        self._root = root

    def rows(self, data: Path) -> PlanVizRows:
        if (self._root / STYLE_STUDY_FILE).is_file():
            why = "is not read: its records do not say which sub-task they are of; --styles has wordings made, or takes them from a file"
            self.problems.append(Problem("warning", STYLE_STUDY_FILE, "", "", why))
        if data.is_dir():
            self.problems.extend(find_unread_lists(self._root))
        lists: list[tuple[TaskList, FileRows]] = []
        for listed in find_lists(data):
            try:
                lists.append((listed, self._list(self._root / listed.file)))
            except UserError as error:
                told = str(error).replace(f"{self._root / listed.file}: ", "")
                self.problems.append(Problem("error", listed.file, "", "", told))
        return PlanVizRows(lists)

    def _list(self, file: Path) -> FileRows:
        data = read_bytes_file(file)
        if not data or data.isspace():
            raise UserError("is empty: it must be a list of tasks, [] if there are none")
        if ARRAY.match(data) is None:
            parse_json(data, file)
            raise UserError("must be a list of tasks")
        return read_json_array(file)

    def locate(self, image: str) -> Path:
        found = (self._root / self._found(image, listed) for listed in TASK_LISTS)
        return next((path for path in found if path.is_file()), self._root / image)

    def record_label(self, at: int, record: Any) -> str:
        own = dict_or_empty(record["record"]).get("name")
        return f"{record['list'].file}: record {record['at']}" + (
            f" ({own[:40]})" if isinstance(own, str) and own else ""
        )

    def _problem(self, severity: Any, name: str, field: str, message: str) -> Problem:
        return Problem(severity, "", name, field, message)

    def sample(self, name: str, record: dict[str, Any]) -> Sample:
        listed: TaskList = record["list"]
        facts = dict_or_empty(record["record"])
        if not facts:
            self.fail(name, "", "must be an object with `prompt` and `correctness_key_points`")
        prompt = self.text(name, facts, "prompt")
        points = self._points(name, facts)
        if listed.task == "edit":
            source = self._picture(name, facts, "image_path", listed)
        else:
            source = None
        if listed.task == "edit" and source is None:
            self.fail(name, "image_path", "is missing; a task of editing needs the picture that is edited")
        if listed.task == "edit":
            reference = self._picture(name, facts, "ref_image_path", listed)
        else:
            reference = None
        if listed.task == "edit" and reference is None:
            self.report_problem(
                "warning",
                name,
                "ref_image_path",
                "is missing: a judge has the key points alone, and no picture of what is meant",
            )
        if reference is not None and source is not None and reference.digest == source.digest:
            self.report_problem(
                "warning",
                name,
                "ref_image_path",
                "is the very picture of image_path: a right result would look different",
            )
        for field in ("image_path", "ref_image_path") if listed.task == "gen" else ():
            if facts.get(field):
                self.report_problem(
                    "warning", name, field, "is not shown: this list is of pictures that are made from words alone"
                )
        self._unknown(name, facts)
        goal = PlanVizGold(points, listed.subtask, listed.task, source, reference)
        ask: tuple[Part, ...] = (*((source,) if source else ()), Text(prompt))
        turn = Turn(0, ask, "image", (reference,) if reference else (), None, f"{listed.name}/{record['at']}.png", goal)
        groups = {"task": listed.task, "subtask": listed.subtask, "ended": self._ended(name, facts)}
        return Sample(self._id(name, facts, listed, prompt, goal), (turn,), (), groups)

    def _unknown(self, name: str, facts: Mapping[str, Any]) -> None:
        """A field that is nearly one that is missing."""
        for field in facts:
            near = (
                get_close_matches(field.lower(), [one for one in KNOWN if one not in facts], 1, 0.75)
                if field not in KNOWN
                else []
            )
            if near:
                self.report_problem("warning", name, field, f"is no field that is known here; is {near[0]} meant?")

    def _points(self, name: str, facts: Mapping[str, Any]) -> tuple[str, ...]:
        given = [field for field in POINT_FIELDS if facts.get(field) is not None]
        if not given:
            self.fail(name, POINT_FIELDS[1], "is missing; a task needs the points that its picture is scored by")
        if len(given) > 1 and facts[POINT_FIELDS[0]] != facts[POINT_FIELDS[1]]:
            self.report_problem(
                "warning",
                name,
                POINT_FIELDS[1],
                f"is not what {POINT_FIELDS[0]} has; the latter counts, as in the released code",
            )
        found = facts[given[0]]
        if isinstance(found, str):
            self.fail(name, given[0], "is one text: put it in [ ], and give each point a text of its own")
        if not isinstance(found, list) or not found:
            self.fail(name, given[0], "must be a list of texts, one for each point, and not empty")
        some = cast(list[Any], found)
        if len(some) > MOST_POINTS:
            self.fail(name, given[0], f"has {len(some)} points, more than {MOST_POINTS}")
        points = tuple(
            self.text(name, {f"{given[0]}[{at}]": one}, f"{given[0]}[{at}]").strip() for at, one in enumerate(some)
        )
        twice = [point for point in points if points.count(point) > 1]
        if twice:
            self.report_problem("warning", name, given[0], f"has a point twice: {twice[0][:80]!r}; it counts twice")
        return points

    def _picture(self, name: str, facts: Mapping[str, Any], field: str, listed: TaskList) -> Image | None:
        path = facts.get(field)
        if path is None or path == "":
            return None
        if not isinstance(path, str):
            self.fail(name, field, f"must be a path, not {type(path).__name__}")
        return self.load_image(name, field, self._found(path, listed))

    def _found(self, path: str, listed: TaskList) -> str:
        """A path as it leads to a picture: from the folder of the lists, whatever more it says; else from its list;
        under any ending. Only the ending is another then; the released code changes every `png` in the whole path."""
        parts = PurePosixPath(path.replace("\\", "/")).parts
        tops = {listed.file.split("/")[0] for listed in find_lists(self._root)}
        inner = next((parts[at:] for at, part in enumerate(parts) if part in tops), parts)
        for some in (parts, inner, (*PurePosixPath(listed.file).parent.parts, *parts)):
            if some:
                whole = PurePosixPath(*some)
            else:
                whole = PurePosixPath(path)
            for one in (
                whole,
                *(whole.with_suffix(ending) for ending in IMAGE_SUFFIXES if whole.suffix.lower() in IMAGE_SUFFIXES),
            ):
                if ".." not in one.parts and not one.is_absolute() and self._is_there(one):
                    return str(one)
        return path

    def _is_there(self, path: PurePosixPath) -> bool:
        try:
            return (self._root / path).is_file()
        except (OSError, ValueError):  # a name that is too long, or has a NUL in it
            return False

    def _ended(self, name: str, facts: Mapping[str, Any]) -> str:
        for field in MARKS:
            found = facts.get(field)
            if found is None:
                continue
            said = canonical_group("ended", str(found))
            if field == "open_ended" and isinstance(found, bool):
                if found:
                    return "open"
                return "closed"
            if said in QUESTION_TYPES:
                return said
            if field == "ended":
                self.report_problem(
                    "warning",
                    name,
                    field,
                    f"{str(found)[:40]!r} is neither open nor closed; the task is counted with neither",
                )
        return UNMARKED

    def _id(self, name: str, facts: Mapping[str, Any], listed: TaskList, prompt: str, goal: PlanVizGold) -> str:
        own = facts.get("name")
        if own is not None and own != "":
            if not isinstance(own, str):
                self.fail(name, "name", f"must be text, not {type(own).__name__}")
            if len(own) > LONGEST_NAME or not own.isprintable() or {"/", "~"} & set(own) or own.strip() != own:
                self.fail(
                    name,
                    "name",
                    f"{str(own)[:80]!r} is no name for a task: text without `/` and `~`, of at most {LONGEST_NAME} characters",
                )
            return f"{listed.name}-{own}"
        told = [prompt, goal.points, goal.source.digest if goal.source else ""]
        return f"{listed.name}-{hashlib.sha256(msgspec.json.encode(told)).hexdigest()[:8]}"
