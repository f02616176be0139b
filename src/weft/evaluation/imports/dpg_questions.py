"""DPG-Bench's questions: `dpg_bench.csv`, one row a question, with the questions that each depends on."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from weft.errors import UserError
from weft.untrusted import read_text_file

QUESTIONS_FILE = "dpg_bench.csv"
COLUMNS = ("item_id", "proposition_id", "dependency", "tuple", "question_natural_language")
MAX_CATEGORIES = 12


class AskedQuestion(Struct, frozen=True):
    """One question about an image."""

    number: int
    text: str
    category: str  # the broad one
    depends_on: tuple[int, ...]  # numbers of questions of the same item


class Item(Struct, frozen=True):
    """A prompt, and the questions about its images."""

    name: str
    questions: tuple[AskedQuestion, ...]

    def zero_dependents(self, answers: Sequence[bool]) -> list[bool]:
        """Return which questions are fulfilled: one that depends on another that is not is not either."""
        numbers = [question.number for question in self.questions]
        fulfilled = dict(zip(numbers, answers, strict=True))
        for question in self.questions:
            if not all(fulfilled[number] for number in question.depends_on):
                fulfilled[question.number] = False
        return [fulfilled[number] for number in numbers]


def list_categories(item: Item) -> list[str]:
    """Return the broad category of each question."""
    return [question.category for question in item.questions]


def read_questions(path: Path) -> list[Item]:
    """Read the questions, in the order of the file. Raises UserError for a file that is something else."""
    by_item: dict[str, list[AskedQuestion]] = {}
    for where, row in _read_rows(path):
        by_item.setdefault(str(row["item_id"]), []).append(_read_question(where, row))
    items = [Item(name, tuple(questions)) for name, questions in by_item.items()]
    if not items:
        raise UserError(f"{path}: it has no question")
    if len({question.category for item in items for question in item.questions}) > MAX_CATEGORIES:
        raise UserError(f"{path}: it has more than {MAX_CATEGORIES} broad categories: is it another file?")
    for item in items:
        _check_dependencies(path, item)
    return items


def _read_rows(path: Path) -> Iterator[tuple[str, Mapping[str, str | None]]]:
    """Yield where each row stands, and the row. Raises UserError."""
    rows = csv.DictReader(io.StringIO(read_text_file(path), newline=""))
    try:
        missing = [column for column in COLUMNS if column not in (rows.fieldnames or ())]
        if missing:
            raise UserError(f"{path}: it has no column {', '.join(missing)}")
        for row in rows:
            yield f"{path}, line {rows.line_num}", row
    except csv.Error as error:
        raise UserError(f"{path}, line {rows.line_num}: {error}") from None


def _read_question(where: str, row: Mapping[str, str | None]) -> AskedQuestion:
    try:
        number = int(row["proposition_id"] or "")
        parents = tuple(int(word) for word in (row["dependency"] or "").split(","))
    except ValueError:
        raise UserError(f"{where}: proposition_id and dependency must be whole numbers") from None
    category = (row["tuple"] or "").split("(")[0].split("-")[0].strip()[:80]
    text = row["question_natural_language"] or ""
    return AskedQuestion(number, text, category, tuple(parent for parent in parents if parent))


def _check_dependencies(path: Path, item: Item) -> None:
    known = [question.number for question in item.questions]
    if len(set(known)) < len(known):
        raise UserError(f"{path}: {item.name} has two questions of one number")
    unknown = {number for question in item.questions for number in question.depends_on} - set(known)
    if unknown:
        raise UserError(f"{path}: {item.name}: a question depends on {min(unknown)}, which is none")
