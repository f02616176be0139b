"""WEAVEBench's files: `test.json` (one JSON array) and `imgs/`, read into Samples.

A text answer has no file of its own in the dataset; the released scripts name it after the first picture and the turn.
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
from weft.types import MENTION, Dataset, Image, Sample, Text, Turn, find_mentions

KEY = re.compile(r"(?:(GT|Image) #(\d{1,6})|Text)")
MARKER = "<image>"


class KeyPoint(Struct, frozen=True):
    """One requirement. `source`: the dataset's picture (`GT`), the model's own earlier one (`Image`), or none
    (`Text`)."""

    source: str
    number: int | None
    text: str


def load(data: Path, blobs: Blobs) -> Dataset:
    file = find(data)
    rows = read_json_array(file)
    return WeaveRecords(file, file.parent, blobs).dataset("weave", rows)


def find(data: Path) -> Path:
    """`test.json`, given its folder or the folder above."""
    for file in (data, data / "test.json", data / "test" / "test.json"):
        if file.is_file():
            return file
    raise UserError(
        f"there is no test.json in {data} or {data / 'test'}; give the folder that test.zip was unpacked into"
    )


def output_file(images: Sequence[str], turn: int, makes: int | None) -> str:
    """The official name of a turn's output: the picture's own base name, or <stem of the first picture>_<turn>.txt."""
    if makes is not None:
        return PurePosixPath(images[makes - 1]).name
    return f"{PurePosixPath(images[0]).stem}_{turn}.txt"


class WeaveRecords(Records):
    id_field = "idx"

    def record_label(self, at: int, record: Any) -> str:
        return f"record {at}" + (f" (idx {record['idx']})" if isinstance(record, dict) and "idx" in record else "")

    def sample(self, name: str, record: dict[str, Any]) -> Sample:
        if not isinstance(record.get("idx"), (int, str)):
            self.fail(name, "idx", "is missing; every record needs its own")
        domain = str(record.get("domain"))
        if domain not in CLASS_OF:
            known = ", ".join(sorted(CLASS_OF))
            self.report_problem("error", name, "domain", f"{domain!r} is none of the 16 domains ({known})")
        paths = record.get("images")
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in cast(list[Any], paths)):
            self.fail(name, "images", "must be a list of relative paths")
        images = [self._image(name, at, path) for at, path in enumerate(cast(list[str], paths))]
        turns = tuple(self._turns(name, record.get("chats"), cast(list[str], paths), images))
        if domain not in CLASS_OF or any(image is None for image in images):
            raise UnusableRecord
        pictures = tuple(image for image in images if image is not None)
        sample = Sample(str(record["idx"]), turns, pictures, {"domain": domain, "class": CLASS_OF[domain]})
        self._check_order(name, sample)
        return sample

    def _image(self, name: str, at: int, path: str) -> Image | None:
        """One bad picture does not hide the others' problems."""
        try:
            return self.load_image(name, f"images[{at}]", path)
        except UnusableRecord:
            return None

    def _turns(self, name: str, chats: Any, paths: list[str], images: list[Image | None]) -> Iterator[Turn]:
        if not isinstance(chats, list) or not chats:
            self.fail(name, "chats", "must be a list of messages")
        messages = cast(list[Any], chats)
        if len(messages) % 2:
            self.fail(name, "chats", f"has {len(messages)} messages; they must come in pairs of user and assistant")
        if not paths:
            self.fail(name, "images", "is empty; text answers are named after the first picture")
        made: dict[int, int] = {}
        for number in range(len(messages) // 2):
            user, assistant = (self._message(name, messages, 2 * number + half, half) for half in (0, 1))
            words = user["content"]
            if assistant.get("type") == "text":
                yield Turn(
                    number,
                    (Text(words),),
                    "text",
                    (Text(assistant["content"]),),
                    None,
                    output_file(paths, number, None),
                )
                continue
            makes = self._makes(name, 2 * number + 1, assistant["content"], len(paths))
            if makes in made:
                self.fail(
                    name,
                    f"chats[{2 * number + 1}].content",
                    f"Image #{makes} is already made by turn {made[makes] + 1}",
                )
            made[makes] = number
            points = tuple(self._key_points(name, 2 * number + 1, assistant, len(paths)))
            image = images[makes - 1]
            if image is not None:
                truth = (image,)
            else:
                truth = ()
            yield Turn(number, (Text(words),), "image", truth, makes, output_file(paths, number, makes), points)

    def _message(self, name: str, messages: list[Any], at: int, half: int) -> dict[str, Any]:
        role = ("user", "assistant")[half]
        message = messages[at]
        field = f"chats[{at}]"
        if not isinstance(message, dict):
            self.fail(name, field, "must be an object")
        fields = cast(dict[str, Any], message)
        if fields.get("role") != role:
            self.fail(
                name,
                f"{field}.role",
                f"is {fields.get('role')!r}; user and assistant must take turns, so {role!r} is due",
            )
        if not isinstance(fields.get("content"), str):
            self.fail(name, f"{field}.content", "must be a string")
        if half and fields.get("type") not in ("text", "image"):
            self.fail(name, f"{field}.type", f"is {fields.get('type')!r}; it must be 'text' or 'image'")
        return fields

    def _makes(self, name: str, at: int, content: str, pictures: int) -> int:
        found = [int(number) for number in MENTION.findall(content)]
        if len(found) != 1:
            self.fail(name, f"chats[{at}].content", f"{content!r} must name the picture to make, as in 'Image #2'")
        if not 1 <= found[0] <= pictures:
            self._missing(name, f"chats[{at}].content", f"Image #{found[0]}", pictures)
        return found[0]

    def _key_points(self, name: str, at: int, assistant: dict[str, Any], pictures: int) -> Iterator[KeyPoint]:
        points = assistant.get("key_point")
        field = f"chats[{at}].key_point"
        if not isinstance(points, dict) or not points:
            self.fail(name, field, "an image turn needs at least one key point")
        for key, text in cast(dict[str, Any], points).items():
            match = KEY.fullmatch(key)
            if match is None or not isinstance(text, str):
                self.fail(name, field, f"{key!r} must be 'GT #k', 'Image #k' or 'Text', with a sentence")
            if match.group(2):
                number = int(match.group(2))
            else:
                number = None
            if number is not None and not 1 <= number <= pictures:
                self._missing(name, field, key, pictures)
            markers = text.count(MARKER)
            if markers != (number is not None):
                if number is not None:
                    due = "exactly one"
                else:
                    due = "no"
                self.fail(name, field, f'"{key}" must hold {due} {MARKER} marker; it holds {markers}')
            yield KeyPoint(match.group(1) or "Text", number, text)

    def _check_order(self, name: str, sample: Sample) -> None:
        """What is mentioned must be there, and own pictures exist before a key point refers to them or an instruction
        builds on them."""
        for turn in sample.turns:
            field = f"chats[{2 * turn.number}].content"
            for number in find_mentions(turn.prompt_text):
                if not 1 <= number <= len(sample.images):
                    self._missing(name, field, f"Image #{number}", len(sample.images))
                maker = sample.turn_of_image(number)
                if maker is not None and maker.number >= turn.number:
                    if maker is turn:
                        what = "its own answer"
                    else:
                        what = f"a picture that only turn {maker.number + 1} makes"
                    self.report_problem("warning", name, field, f"Image #{number} is {what}; it is not shown")
            field = f"chats[{2 * turn.number + 1}].key_point"
            for point in cast(tuple[KeyPoint, ...], turn.gold or ()):
                if point.source == "Image" and point.number is not None:
                    maker = sample.turn_of_image(point.number)
                    if maker is None:
                        self.report_problem(
                            "warning", name, field, f'"Image #{point.number}" is no output; its dataset picture is used'
                        )
                    elif maker.number >= turn.number:
                        self.fail(
                            name,
                            field,
                            f'"Image #{point.number}" is made by turn {maker.number + 1}, not before this one',
                        )

    def _missing(self, name: str, field: str, what: str, pictures: int) -> NoReturn:
        self.fail(name, field, f'"{what}" names an image that the record does not have (it has {pictures})')
