"""Records of WEAVE-100k as Samples. Key points are optional, other names of fields and roles are accepted, and a last
message without an answer is left out.

What is not understood is named with its field and value. Of problems that many records share, the first few are
listed, and one line counts the others: a file of another shape gives a page, not 100,000 lines.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, cast

import msgspec
from msgspec import Struct

from weft.benchmarks.joined_rows import JoinedRows
from weft.benchmarks.records import Records
from weft.benchmarks.weave.data import KEY, KeyPoint, output_file
from weft.benchmarks.weave.domains import CLASS_OF
from weft.benchmarks.weave.training_names import UNNAMED, find_domain, find_type, split_name
from weft.store.blobs import Blobs
from weft.types import Image, Modality, Part, Problem, Sample, Text, Turn, find_mentions
from weft.untrusted import dict_or_empty

ID_FIELDS = ("idx", "id", "index")
DOMAIN_FIELDS = ("domain",)
TYPE_FIELDS = (
    *("type", "sub_domain", "subdomain", "sub-domain", "domain_type"),
    *("category", "sub_category", "subcategory"),
)
CHAT_FIELDS = ("chats", "conversations", "messages")
ROLE_FIELDS = ("role", "from")
CONTENT_FIELDS = ("content", "value", "text")
ROLES = {"user": "user", "human": "user", "assistant": "assistant", "gpt": "assistant", "model": "assistant"}
RECORD_FIELDS = (*ID_FIELDS, *DOMAIN_FIELDS, *TYPE_FIELDS, *CHAT_FIELDS, "images")
MESSAGE_FIELDS = (*ROLE_FIELDS, *CONTENT_FIELDS, "type", "key_point")
IMAGE_FOLDERS = ("", "train", "test", "data")
MAX_ALIKE = 3  # problems of one kind that are listed one by one
NUMBERED = re.compile(r"\S*[\d/\\]\S*")  # the words of a message in which records differ
INDEX = re.compile(r"\[\d+\]")


class TrainingMessage(Struct, frozen=True):
    """One message of a dialogue."""

    index: int  # in the record
    role: str
    text: str
    kind: str  # what the record says that it is: text, image, or nothing
    key_points: Any = None


class TrainingRecords(Records):
    """Reads one record of one of the files."""

    id_field = "idx"

    def __init__(self, files: Sequence[Path], root: Path, rows: JoinedRows, blobs: Blobs) -> None:
        super().__init__(files[0], root, blobs)
        self._joined_rows = rows
        self._several_files = len(files) > 1
        self._root = root
        self._record_folder = files[0].parent.absolute().relative_to(root.absolute())
        self._counts: Counter[tuple[str, str, str]] = Counter()  # of problems of one kind
        self._folded = 0  # problems at the beginning of the list that have been counted

    def __iter__(self) -> Iterator[Sample]:
        for sample in super().__iter__():
            self._fold_problems()
            yield sample
        self._fold_problems()
        self._add_totals()

    def _fold_problems(self) -> None:
        """Keep the first problems of each kind in the list, and count the others."""
        new = self.problems[self._folded :]
        if not new:
            return
        del self.problems[self._folded :]
        for problem in new:
            kind = _kind_of(problem)
            self._counts[kind] += 1
            if self._counts[kind] <= MAX_ALIKE:
                self.problems.append(problem)
        self._folded = len(self.problems)

    def _add_totals(self) -> None:
        for (severity, field, message), count in self._counts.items():
            if count > MAX_ALIKE:
                text = f"{count - MAX_ALIKE:,} more records have this problem: {message}"
                self.problems.append(Problem(cast(Any, severity), "", "", field, text))
        self._counts.clear()
        self._folded = len(self.problems)

    def record_label(self, index: int, record: Any) -> str:
        file, position = self._joined_rows.locate(index)
        label = f"record {position}"
        if self._several_files:
            label = f"{file}: {label}"
        idx = dict_or_empty(record).get("idx")
        if isinstance(idx, (int, str)):
            label += f" (idx {str(idx)[:40]})"
        return label

    def _problem(self, severity: Any, name: str, field: str, message: str) -> Problem:
        if self._several_files:
            return Problem(severity, "", name, field, message)
        return super()._problem(severity, name, field, message)

    def _warn(self, name: str, field: str, message: str) -> None:
        self.report_problem("warning", name, field, message)

    def sample(self, name: str, record: dict[str, Any]) -> Sample:
        for field in record:
            if field not in RECORD_FIELDS:
                self._warn(name, field, "is a field that weft does not know; it is not read")
        groups = self._read_groups(name, record)
        paths = self._read_paths(name, record)
        images = tuple(self.load_image(name, f"images[{index}]", path) for index, path in enumerate(paths))
        messages = list(self._read_messages(name, record))
        system = "\n".join(message.text for message in messages if message.role == "system")
        turns = tuple(self._read_turns(name, messages, paths, images))
        if not turns:
            self.fail(name, "chats", "has no request with an answer")
        return Sample(self._read_id(name, record), turns, images, groups, system)

    def _read_id(self, name: str, record: Mapping[str, Any]) -> str:
        """Return the record's id, with its file where there are several; or a digest of the record."""
        _, value = _first_field(record, ID_FIELDS)
        if isinstance(value, (int, str)) and str(value):
            if self._several_files:
                return f"{PurePosixPath(name.partition(': ')[0]).stem}-{value}"
            return str(value)
        return hashlib.sha256(msgspec.json.encode(record)).hexdigest()[:12]

    def _read_groups(self, name: str, record: Mapping[str, Any]) -> dict[str, str]:
        field, value = _first_field(record, DOMAIN_FIELDS)
        domain_text = str(value or "").strip()
        type_field, type_value = _first_field(record, TYPE_FIELDS)
        type_text = str(type_value or "").strip()
        pair = split_name(domain_text)
        if pair is not None and not type_text:
            return {"domain": pair[0], "type": pair[1]}
        domain = find_domain(domain_text)
        if domain is None:
            domain = domain_text or UNNAMED
            if not domain_text:
                self._warn(name, field, "is missing; the dialogue is counted under None")
            elif domain_text not in CLASS_OF:
                self._warn(name, field, f"{_quote(domain_text)} is no domain of WEAVE; it is kept as it is")
        kind = find_type(type_text)
        if kind is None:
            kind = type_text
            self._warn(name, type_field, f"{_quote(type_text)} is no type of WEAVE-100k; it is kept as it is")
        return {"domain": domain, "type": kind}

    def _read_paths(self, name: str, record: Mapping[str, Any]) -> list[str]:
        """Return the images' paths, relative to the dataset's folder."""
        entries: Any = record.get("images")
        if isinstance(entries, str):
            entries = [entries]
        if not isinstance(entries, list) or not entries:
            self.fail(name, "images", "must be a list of paths, and not empty")
        paths: list[str] = []
        for index, entry in enumerate(cast(list[Any], entries)):
            path = entry
            if isinstance(entry, dict):
                path = dict_or_empty(entry).get("path")
            if not isinstance(path, str) or not path:
                self.fail(name, f"images[{index}]", f"is no path of an image: {_quote(entry)}")
            paths.append(self._resolve_path(path))
        return paths

    def _resolve_path(self, path: str) -> str:
        """Return where an image is: next to its record, or in one of the dataset's folders."""
        parts = PurePosixPath(path.replace("\\", "/"))
        candidates = [PurePosixPath(self._record_folder) / parts]
        candidates += [PurePosixPath(folder) / parts for folder in IMAGE_FOLDERS]
        for candidate in candidates:
            if self._is_file(candidate):
                return str(candidate)
        return str(candidates[0])

    def _is_file(self, path: PurePosixPath) -> bool:
        if ".." in path.parts or path.is_absolute():
            return False
        try:
            return (self._root / path).is_file()
        except (OSError, ValueError):  # a name that is too long, or has a NUL in it
            return False

    def locate(self, image: str) -> Path:
        return self._root / self._resolve_path(image)

    def _read_messages(self, name: str, record: Mapping[str, Any]) -> Iterator[TrainingMessage]:
        chat_field, entries = _first_field(record, CHAT_FIELDS)
        if not isinstance(entries, list) or not entries:
            self.fail(name, chat_field, "must be a list of messages")
        for index, entry in enumerate(cast(list[Any], entries)):
            field = f"{chat_field}[{index}]"
            fields = dict_or_empty(entry)
            if not fields:
                self.fail(name, field, "must be an object")
            for key in fields:
                if key not in MESSAGE_FIELDS:
                    self._warn(name, f"{field}.{key}", "is a field that weft does not know; it is not read")
            role_field, role = _first_field(fields, ROLE_FIELDS)
            if not isinstance(role, str) or (role != "system" and role not in ROLES):
                self.fail(name, f"{field}.{role_field}", f"{_quote(role)} is none of system, user and assistant")
            content_field, text = _first_field(fields, CONTENT_FIELDS)
            if not isinstance(text, str):
                self.fail(name, f"{field}.{content_field}", f"must be a text, not {type(text).__name__}")
            kind: Any = fields.get("type")
            if kind not in ("text", "image", None):
                self._warn(name, f"{field}.type", f"{_quote(kind)} is neither text nor image; the content decides")
                kind = None
            yield TrainingMessage(index, ROLES.get(role, role), text, kind or "", fields.get("key_point"))

    def _read_turns(
        self, name: str, messages: Sequence[TrainingMessage], paths: Sequence[str], images: Sequence[Image]
    ) -> Iterator[Turn]:
        """Yield a turn for each answer. Requests that follow each other are one; so are answers."""
        prompt: list[TrainingMessage] = []
        answers: list[TrainingMessage] = []
        number = 0
        for message in messages:
            if message.role == "system":
                continue
            if message.role == "assistant":
                answers.append(message)
                continue
            if answers:
                yield self._turn(name, number, prompt, answers, paths, images)
                number += 1
                prompt = []
                answers = []
            prompt.append(message)
        if answers:
            yield self._turn(name, number, prompt, answers, paths, images)
        elif prompt:
            self._warn(name, f"chats[{prompt[0].index}]", "is a request without an answer; it is left out")

    def _turn(
        self,
        name: str,
        number: int,
        prompt: Sequence[TrainingMessage],
        answers: Sequence[TrainingMessage],
        paths: Sequence[str],
        images: Sequence[Image],
    ) -> Turn:
        first = answers[0]
        if not prompt:
            self.fail(name, f"chats[{first.index}].role", "is an answer without a request before it")
        for message in prompt:
            for mentioned in find_mentions(message.text):
                if not 1 <= mentioned <= len(images):
                    text = f"mentions Image #{mentioned}, which the record does not have (it has {len(images)})"
                    self._warn(name, f"chats[{message.index}].content", text)
        reference: list[Part] = []
        made: list[int] = []
        points: list[KeyPoint] = []
        for answer in answers:
            numbers = self._image_numbers(name, answer, len(images))
            if not numbers or _has_words(answer.text):
                reference.append(Text(answer.text))
            reference += [images[k - 1] for k in numbers]
            made += numbers
            points += self._key_points(name, answer)
        modality: Modality = "text"
        image_number = None
        if len(made) == 1 and len(reference) == 1:
            modality = "image"
            image_number = made[0]
        elif made:
            modality = "interleaved"
        parts = tuple(Text(message.text) for message in prompt)
        file = output_file(paths, number, image_number)
        return Turn(number, parts, modality, tuple(reference), image_number, file, tuple(points) or None)

    def _image_numbers(self, name: str, answer: TrainingMessage, image_count: int) -> list[int]:
        """Return the images that an answer makes: those that it names, if it is an image or has no other words."""
        numbers = find_mentions(answer.text)
        field = f"chats[{answer.index}].content"
        if answer.kind == "image" and not numbers:
            self.fail(name, field, f"{_quote(answer.text)} must name the image to make, as in 'Image #2'")
        if answer.kind == "text" or (not answer.kind and _has_words(answer.text)):
            return []
        for number in numbers:
            if not 1 <= number <= image_count:
                message = f"names Image #{number}, which the record does not have (it has {image_count})"
                self.fail(name, field, message)
        return numbers

    def _key_points(self, name: str, answer: TrainingMessage) -> Iterator[KeyPoint]:
        """Yield the key points of an answer, where there are some: the training data have none."""
        if answer.key_points is None:
            return
        field = f"chats[{answer.index}].key_point"
        points = dict_or_empty(answer.key_points)
        if not points:
            self._warn(name, field, "is no object of key points; it is not read")
        for key, text in points.items():
            match = KEY.fullmatch(key)
            if match is None or not isinstance(text, str):
                self._warn(name, field, f"{_quote(key)} is no 'GT #k', 'Image #k' or 'Text'; it is not read")
                continue
            number = int(match.group(2)) if match.group(2) else None
            yield KeyPoint(match.group(1) or "Text", number, text)


def _first_field(record: Mapping[str, Any], fields: Sequence[str]) -> tuple[str, Any]:
    """Return the first of several fields that a record has, with its value; the first name if it has none."""
    for field in fields:
        if record.get(field) is not None:
            return field, record[field]
    return fields[0], None


def _has_words(text: str) -> bool:
    """Whether a text says more than which image it stands for."""
    return re.sub(r"Image #\d+|[\s.,:;]", "", text) != ""


def _quote(value: Any) -> str:
    return repr(value)[:80]


def _kind_of(problem: Problem) -> tuple[str, str, str]:
    """Return what problems of several records have in common: all but numbers and paths."""
    return problem.severity, INDEX.sub("[]", problem.field), NUMBERED.sub("…", problem.message)
