"""WEAVEBench's files: `test.json` (one JSON array) and `imgs/`, read into Samples.

A text answer has no file of its own in the dataset; the released scripts name it after the first image and the turn.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn, cast

from msgspec import Struct

from weft.benchmarks.record_files import read_json_array
from weft.benchmarks.records import Records, UnusableRecord
from weft.benchmarks.weave.domains import CLASS_OF
from weft.errors import UserError
from weft.store.blobs import Blobs
from weft.types import Dataset, Image, Sample, Text, Turn, find_mentions

KEY = re.compile(r"(?:(GT|Image) #(\d{1,6})|Text)")
MARKER = "<image>"


class KeyPoint(Struct, frozen=True):
    """One requirement that an image is judged on."""

    source: str  # its image: `GT` (the dataset's), `Image` (the model's own earlier output), or `Text` (none)
    number: int | None  # of the image
    text: str  # contains `MARKER` at the image's place


def load(data: Path, blobs: Blobs) -> Dataset:
    """Open WEAVEBench's files, streamed."""
    file = find(data)
    return WeaveRecords(file, file.parent, blobs).dataset("weave", read_json_array(file))


def find(data: Path) -> Path:
    """Find `test.json`, given the file, its folder or the folder above."""
    for file in (data, data / "test.json", data / "test" / "test.json"):
        if file.is_file():
            return file
    raise UserError(
        f"there is no test.json in {data} or {data / 'test'}; give the folder that test.zip was unpacked into"
    )


def output_file(images: Sequence[str], turn: int, image_number: int | None) -> str:
    """Return the official name of a turn's output file.

    An image has its own base name; a text is <stem of the first image>_<turn>.txt.
    """
    if image_number is not None:
        return PurePosixPath(images[image_number - 1]).name
    return f"{PurePosixPath(images[0]).stem}_{turn}.txt"


class WeaveRecords(Records):
    """WEAVEBench's records: `idx`, `domain`, `images` and `chats`."""

    id_field = "idx"

    def record_label(self, index: int, record: Any) -> str:
        if isinstance(record, dict) and "idx" in record:
            return f"record {index} (idx {record['idx']})"
        return f"record {index}"

    def sample(self, name: str, record: dict[str, Any]) -> Sample:
        if not isinstance(record.get("idx"), (int, str)):
            self.fail(name, "idx", "is missing; every record needs its own")
        domain = str(record.get("domain"))
        if domain not in CLASS_OF:
            known = ", ".join(sorted(CLASS_OF))
            self.report_problem("error", name, "domain", f"{domain!r} is none of the 16 domains ({known})")
        paths = self._image_paths(name, record)
        images = [self._image_or_none(name, index, path) for index, path in enumerate(paths)]
        turns = tuple(self._turns(name, record.get("chats"), paths, images))
        if domain not in CLASS_OF or None in images:
            raise UnusableRecord
        groups = {"domain": domain, "class": CLASS_OF[domain]}
        sample = Sample(str(record["idx"]), turns, cast(tuple[Image, ...], tuple(images)), groups)
        self._check_order(name, sample)
        return sample

    def _image_paths(self, name: str, record: dict[str, Any]) -> list[str]:
        paths = record.get("images")
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in cast(list[Any], paths)):
            self.fail(name, "images", "must be a list of relative paths")
        return cast(list[str], paths)

    def _image_or_none(self, name: str, index: int, path: str) -> Image | None:
        """Load an image, or report its problem and go on, so that the others' problems are reported too."""
        try:
            return self.load_image(name, f"images[{index}]", path)
        except UnusableRecord:
            return None

    def _turns(self, name: str, chats: Any, paths: list[str], images: list[Image | None]) -> Iterator[Turn]:
        if not isinstance(chats, list) or not chats:
            self.fail(name, "chats", "must be a list of messages")
        messages = cast(list[Any], chats)
        if len(messages) % 2:
            self.fail(name, "chats", f"has {len(messages)} messages; they must come in pairs of user and assistant")
        if not paths:
            self.fail(name, "images", "is empty; text answers are named after the first image")
        turns_by_image: dict[int, int] = {}
        for number in range(len(messages) // 2):
            answer_index = 2 * number + 1
            user = self._message(name, messages, 2 * number, "user")
            assistant = self._message(name, messages, answer_index, "assistant")
            prompt = (Text(user["content"]),)
            if assistant.get("type") == "text":
                reference = (Text(assistant["content"]),)
                yield Turn(number, prompt, "text", reference, None, output_file(paths, number, None))
                continue
            image_number = self._image_number(name, answer_index, assistant["content"], len(paths))
            if image_number in turns_by_image:
                message = f"Image #{image_number} is already made by turn {turns_by_image[image_number] + 1}"
                self.fail(name, f"chats[{answer_index}].content", message)
            turns_by_image[image_number] = number
            points = tuple(self._key_points(name, answer_index, assistant, len(paths)))
            image = images[image_number - 1]
            references = () if image is None else (image,)
            file = output_file(paths, number, image_number)
            yield Turn(number, prompt, "image", references, image_number, file, points)

    def _message(self, name: str, messages: list[Any], index: int, role: str) -> dict[str, Any]:
        """Return a message of `chats` that must have this role."""
        message = messages[index]
        field = f"chats[{index}]"
        if not isinstance(message, dict):
            self.fail(name, field, "must be an object")
        fields = cast(dict[str, Any], message)
        if fields.get("role") != role:
            problem = f"is {fields.get('role')!r}; user and assistant must take turns, so {role!r} is expected"
            self.fail(name, f"{field}.role", problem)
        if not isinstance(fields.get("content"), str):
            self.fail(name, f"{field}.content", "must be a string")
        if role == "assistant" and fields.get("type") not in ("text", "image"):
            self.fail(name, f"{field}.type", f"is {fields.get('type')!r}; it must be 'text' or 'image'")
        return fields

    def _image_number(self, name: str, index: int, content: str, image_count: int) -> int:
        """Return the number of the image that an answer makes; it must be the only one that it mentions."""
        numbers = find_mentions(content)
        field = f"chats[{index}].content"
        if len(numbers) != 1:
            self.fail(name, field, f"{content!r} must name the image to make, as in 'Image #2'")
        if not 1 <= numbers[0] <= image_count:
            self._fail_missing_image(name, field, f"Image #{numbers[0]}", image_count)
        return numbers[0]

    def _key_points(self, name: str, index: int, assistant: dict[str, Any], image_count: int) -> Iterator[KeyPoint]:
        points = assistant.get("key_point")
        field = f"chats[{index}].key_point"
        if not isinstance(points, dict) or not points:
            self.fail(name, field, "an image turn needs at least one key point")
        for key, text in cast(dict[str, Any], points).items():
            match = KEY.fullmatch(key)
            if match is None or not isinstance(text, str):
                self.fail(name, field, f"{key!r} must be 'GT #k', 'Image #k' or 'Text', with a sentence")
            number: int | None = None
            expected = "no"
            if match.group(2):
                number = int(match.group(2))
                expected = "exactly one"
                if not 1 <= number <= image_count:
                    self._fail_missing_image(name, field, key, image_count)
            markers = text.count(MARKER)
            if markers != (number is not None):
                self.fail(name, field, f'"{key}" must hold {expected} {MARKER} marker; it holds {markers}')
            yield KeyPoint(match.group(1) or "Text", number, text)

    def _check_order(self, name: str, sample: Sample) -> None:
        """Check that every mentioned image exists, and is made before a turn builds on it or is judged by it."""
        for turn in sample.turns:
            field = f"chats[{2 * turn.number}].content"
            for number in find_mentions(turn.prompt_text):
                self._check_mention(name, field, sample, turn, number)
            field = f"chats[{2 * turn.number + 1}].key_point"
            for point in cast(tuple[KeyPoint, ...], turn.gold or ()):
                if point.source == "Image" and point.number is not None:
                    self._check_own_image(name, field, sample, turn, point.number)

    def _check_mention(self, name: str, field: str, sample: Sample, turn: Turn, number: int) -> None:
        if not 1 <= number <= len(sample.images):
            self._fail_missing_image(name, field, f"Image #{number}", len(sample.images))
        maker = sample.turn_of_image(number)
        if maker is None or maker.number < turn.number:
            return
        description = f"an image that only turn {maker.number + 1} makes"
        if maker is turn:
            description = "its own answer"
        self.report_problem("warning", name, field, f"Image #{number} is {description}; it is not shown")

    def _check_own_image(self, name: str, field: str, sample: Sample, turn: Turn, number: int) -> None:
        maker = sample.turn_of_image(number)
        if maker is None:
            message = f'"Image #{number}" is not an output; the dataset\'s image is used'
            self.report_problem("warning", name, field, message)
        elif maker.number >= turn.number:
            self.fail(name, field, f'"Image #{number}" is made by turn {maker.number + 1}, not before this one')

    def _fail_missing_image(self, name: str, field: str, mention: str, image_count: int) -> NoReturn:
        self.fail(name, field, f'"{mention}" names an image that the record does not have (it has {image_count})')
