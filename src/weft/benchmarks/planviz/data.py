"""PlanViz's records as Samples: one request, with an image to edit or without, and the key points that the image which
comes back must meet.

A task's id is stable: its own name, or its list's name and a digest of what it asks, so that tasks can be added and
moved. Its index in its list, which changes with both, only names its output file.
"""

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
FIELDS = (
    "prompt",
    *POINT_FIELDS,
    "image_path",
    "ref_image_path",
    "ended",
    "name",
    "id",
    "res_path",
    "evaluation_out",
)
QUESTION_TYPE_FIELDS = ("ended", "open_ended", "question_type", "type")  # the first that says so counts
MAX_POINTS = 100
MAX_NAME_LENGTH = 120
OFFICIAL_TASKS = 60  # of each kind in the paper
OWN_DATA = "own tasks"  # the dataset's name where it is not PlanViz's
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")


class PlanVizGold(Struct, frozen=True):
    """What a judge is told of a task."""

    points: tuple[str, ...]  # the key points
    subtask: str
    task: str
    source: Image | None = None  # the image to edit
    reference: Image | None = None  # one correct result
    padded_points: tuple[str, ...] = ()  # the key points as they are written, if any of them has spaces around it

    @property
    def written_points(self) -> tuple[str, ...]:
        """The key points as the released code shows them."""
        return self.padded_points or self.points

    @property
    def is_edit(self) -> bool:
        return self.task == "edit"

    @property
    def is_judged_without_source(self) -> bool:
        """Whether the judge sees the image without its source: a workflow need not resemble the page that it is drawn
        from."""
        return not self.is_edit or self.subtask == "workflow"


def canonical_group(axis: str, name: str) -> str:
    """Return the name of a group as samples have it, however a user spells it."""
    name = name.strip().lower()
    return ALIASES.get(axis, {}).get(name, name)


def load(data: Path, blobs: Blobs) -> Dataset:
    """Return the dataset in a folder or file; it is called `planviz` if its counts are those of the paper."""
    records = PlanVizRecords(find_root(data), blobs)
    rows = records.rows(data)
    dataset = records.dataset(OWN_DATA, rows)
    if dataset.name == OWN_DATA and rows.is_official:
        return replace(dataset, name="planviz")
    return dataset


class PlanVizRows(RecordRows):
    """The records of all lists, each with its list and its index there."""

    def __init__(self, lists: Sequence[tuple[TaskList, FileRows]]) -> None:
        self._lists = lists
        lines: list[str] = []
        images: list[str] = []
        for task_list, rows in lists:
            lines.append(f"{task_list.file} {rows.digest}")
            images += rows.images
        digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
        super().__init__(digest, sum(rows.count for _, rows in lists), images)

    def __iter__(self) -> Iterator[Any]:
        for task_list, rows in self._lists:
            for index, row in enumerate(rows):
                yield {"list": task_list, "index": index, "record": parse_json(row, task_list.file)}

    @property
    def is_official(self) -> bool:
        """Whether there are as many tasks of each kind as in the paper. Its own are not public, so nothing else tells
        them apart."""
        counts: Counter[tuple[str, str]] = Counter()
        for task_list, rows in self._lists:
            counts[task_list.task, task_list.subtask] += rows.count
        return len(counts) == len(SUBTASKS) * len(TASKS) and set(counts.values()) == {OFFICIAL_TASKS}


class PlanVizRecords(Records):
    """Reads one record of a list: a prompt with its key points and images."""

    id_field = "task"
    duplicate_message = "is the task of {first} once more, or has its name: {id}"

    def __init__(self, root: Path, blobs: Blobs) -> None:
        super().__init__(root / "lists", root, blobs)
        self._root = root

    def rows(self, data: Path) -> PlanVizRows:
        """Open the lists of a folder, or the one list that is named. A list that cannot be read is reported."""
        if (self._root / STYLE_STUDY_FILE).is_file():
            message = (
                "is not read: its records do not say which sub-task they are of; use --styles, which has a model "
                "write wordings, or reads them from a file"
            )
            self.problems.append(Problem("warning", STYLE_STUDY_FILE, "", "", message))
        if data.is_dir():
            self.problems.extend(find_unread_lists(self._root))
        lists: list[tuple[TaskList, FileRows]] = []
        for task_list in find_lists(data):
            try:
                lists.append((task_list, self._open_list(self._root / task_list.file)))
            except UserError as error:
                message = str(error).replace(f"{self._root / task_list.file}: ", "")
                self.problems.append(Problem("error", task_list.file, "", "", message))
        return PlanVizRows(lists)

    def _open_list(self, file: Path) -> FileRows:
        data = read_bytes_file(file)
        if not data or data.isspace():
            raise UserError("is empty: it must be a list of tasks, [] if there are none")
        if ARRAY.match(data) is None:
            parse_json(data, file)
            raise UserError("must be a list of tasks")
        return read_json_array(file)

    def locate(self, image: str) -> Path:
        for task_list in TASK_LISTS:
            path = PurePosixPath(self._resolve_path(image, task_list))
            if self._is_file(path):
                return self._root / path
        return self._root / image

    def record_label(self, at: int, record: Any) -> str:
        label = f"{record['list'].file}: record {record['index']}"
        task_name = dict_or_empty(record["record"]).get("name")
        if isinstance(task_name, str) and task_name:
            label += f" ({task_name[:40]})"
        return label

    def _problem(self, severity: Any, name: str, field: str, message: str) -> Problem:
        return Problem(severity, "", name, field, message)

    def _warn(self, name: str, field: str, message: str) -> None:
        self.report_problem("warning", name, field, message)

    def sample(self, name: str, record: dict[str, Any]) -> Sample:
        task_list: TaskList = record["list"]
        fields = dict_or_empty(record["record"])
        if not fields:
            self.fail(name, "", "must be an object with `prompt` and `correctness_key_points`")
        prompt_text = self.text(name, fields, "prompt")
        written = self._read_points(name, fields)
        points = tuple(point.strip() for point in written)
        source, reference_image = self._read_images(name, fields, task_list)
        padded = written if written != points else ()
        gold = PlanVizGold(points, task_list.subtask, task_list.task, source, reference_image, padded)
        self._check_field_names(name, fields)
        prompt: tuple[Part, ...] = (Text(prompt_text),)
        if gold.source is not None:
            prompt = (gold.source, Text(prompt_text))
        reference: tuple[Part, ...] = ()
        if gold.reference is not None:
            reference = (gold.reference,)
        turn = Turn(0, prompt, "image", reference, None, f"{task_list.name}/{record['index']}.png", gold)
        groups = {
            "task": task_list.task,
            "subtask": task_list.subtask,
            "ended": self._read_question_type(name, fields),
        }
        return Sample(self._read_id(name, fields, task_list, prompt_text, gold), (turn,), (), groups)

    def _read_images(
        self, name: str, fields: Mapping[str, Any], task_list: TaskList
    ) -> tuple[Image | None, Image | None]:
        """Return source and reference; neither for a task without an image to edit."""
        if task_list.task != "edit":
            for field in ("image_path", "ref_image_path"):
                if fields.get(field):
                    self._warn(name, field, "is not shown: this list is of images that are made from text alone")
            return None, None
        source = self._read_image(name, fields, "image_path", task_list)
        if source is None:
            self.fail(name, "image_path", "is missing; an editing task needs the image that is edited")
        reference = self._read_image(name, fields, "ref_image_path", task_list)
        if reference is None:
            self._warn(name, "ref_image_path", "is missing: a judge has the key points alone, and no reference image")
        elif reference.digest == source.digest:
            self._warn(name, "ref_image_path", "is the same image as image_path: a correct result would look different")
        return source, reference

    def _check_field_names(self, name: str, fields: Mapping[str, Any]) -> None:
        """Warn of a field whose name is close to one that is missing."""
        missing = [field for field in FIELDS if field not in fields]
        for field in fields:
            if field in FIELDS:
                continue
            matches = get_close_matches(field.lower(), missing, 1, 0.75)
            if matches:
                self._warn(name, field, f"is an unknown field; did you mean {matches[0]}?")

    def _read_points(self, name: str, fields: Mapping[str, Any]) -> tuple[str, ...]:
        used = [field for field in POINT_FIELDS if fields.get(field) is not None]
        if not used:
            self.fail(name, POINT_FIELDS[1], "is missing; a task needs the key points that its image is scored by")
        if len(used) > 1 and fields[POINT_FIELDS[0]] != fields[POINT_FIELDS[1]]:
            message = f"differs from {POINT_FIELDS[0]}; the latter counts, as in the released code"
            self._warn(name, POINT_FIELDS[1], message)
        field = used[0]
        entries = fields[field]
        if isinstance(entries, str):
            self.fail(name, field, "is one text: put it in [ ], and give each point a text of its own")
        if not isinstance(entries, list) or not entries:
            self.fail(name, field, "must be a list of texts, one for each point, and not empty")
        entries = cast(list[Any], entries)
        if len(entries) > MAX_POINTS:
            self.fail(name, field, f"has {len(entries)} points, more than {MAX_POINTS}")
        points: list[str] = []
        duplicates: list[str] = []
        for index, entry in enumerate(entries):
            label = f"{field}[{index}]"
            point = self.text(name, {label: entry}, label)
            if point.strip() in map(str.strip, points):
                duplicates.append(point.strip())
            points.append(point)
        if duplicates:
            stripped = list(map(str.strip, points))
            first = min(duplicates, key=stripped.index)
            self._warn(name, field, f"has a point twice: {first[:80]!r}; it counts twice")
        return tuple(points)

    def _read_image(self, name: str, fields: Mapping[str, Any], field: str, task_list: TaskList) -> Image | None:
        path = fields.get(field)
        if path is None or path == "":
            return None
        if not isinstance(path, str):
            self.fail(name, field, f"must be a path, not {type(path).__name__}")
        return self.load_image(name, field, self._resolve_path(path, task_list))

    def _resolve_path(self, path: str, task_list: TaskList) -> str:
        """Return the path of an image, relative to the folder of the lists; the path itself if there is no such file.

        The path may start above that folder, or at its list; the file may have another suffix. Only the suffix is
        replaced: the released code changes every `png` in the whole path.
        """
        parts = PurePosixPath(path.replace("\\", "/")).parts
        for candidate in self._list_candidates(parts, task_list):
            variants = [candidate]
            if candidate.suffix.lower() in IMAGE_SUFFIXES:
                variants += [candidate.with_suffix(suffix) for suffix in IMAGE_SUFFIXES]
            for variant in variants:
                if ".." not in variant.parts and not variant.is_absolute() and self._is_file(variant):
                    return str(variant)
        return path

    def _list_candidates(self, parts: Sequence[str], task_list: TaskList) -> list[PurePosixPath]:
        """Return where an image may be: as it says, from one of the lists' top folders on, or next to its list."""
        top_folders = {other.file.split("/")[0] for other in find_lists(self._root)}
        inner = parts
        for index, part in enumerate(parts):
            if part in top_folders:
                inner = parts[index:]
                break
        return [PurePosixPath(*parts), PurePosixPath(*inner), PurePosixPath(task_list.file).parent.joinpath(*parts)]

    def _is_file(self, path: PurePosixPath) -> bool:
        try:
            return (self._root / path).is_file()
        except (OSError, ValueError):  # a name that is too long, or has a NUL in it
            return False

    def _read_question_type(self, name: str, fields: Mapping[str, Any]) -> str:
        for field in QUESTION_TYPE_FIELDS:
            value = fields.get(field)
            if value is None:
                continue
            if field == "open_ended" and value is True:
                return "open"
            if field == "open_ended" and value is False:
                return "closed"
            question_type = canonical_group("ended", str(value))
            if question_type in QUESTION_TYPES:
                return question_type
            if field == "ended":
                message = f"{str(value)[:40]!r} is neither open nor closed; the task is counted with neither"
                self._warn(name, field, message)
        return UNMARKED

    def _read_id(
        self, name: str, fields: Mapping[str, Any], task_list: TaskList, prompt: str, gold: PlanVizGold
    ) -> str:
        """Return the list's name with the task's own name, or with a digest of what the task asks."""
        task_name = fields.get("name")
        if task_name is None or task_name == "":
            content = [prompt, gold.points, ""]
            if gold.source is not None:
                content[2] = gold.source.digest
            return f"{task_list.name}-{hashlib.sha256(msgspec.json.encode(content)).hexdigest()[:8]}"
        if not isinstance(task_name, str):
            self.fail(name, "name", f"must be text, not {type(task_name).__name__}")
        is_too_long = len(task_name) > MAX_NAME_LENGTH
        if is_too_long or not task_name.isprintable() or {"/", "~"} & set(task_name) or task_name.strip() != task_name:
            message = f"must be text without `/` and `~`, of at most {MAX_NAME_LENGTH} characters"
            self.fail(name, "name", f"{task_name[:80]!r} is no name for a task: {message}")
        return f"{task_list.name}-{task_name}"
