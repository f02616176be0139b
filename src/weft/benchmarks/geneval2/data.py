"""GenEval 2's prompts as samples: one image of each, and the questions about it with their right answers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from weft.benchmarks.edits.files import find_json_file
from weft.benchmarks.record_files import read_json_records
from weft.benchmarks.records import Records
from weft.errors import UserError
from weft.store.blobs import Blobs
from weft.types import Dataset, Sample, Text, Turn
from weft.untrusted import list_or_empty

SKILLS = ("object", "attribute", "count", "position", "verb")
NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")  # a tenth has two digits
YES = "Yes"
COUNTING = "How many"  # a question about a number begins so
ATOMS = tuple(range(3, 11))  # of a prompt
MAX_QUESTIONS = 100
PUBLISHED_RECORDS = 800
OWN_DATA = "own prompts"  # the dataset's name where it is not GenEval 2
STEMS = ("geneval2_data", "geneval2")
HELP = "give geneval2_data.jsonl of a clone of facebookresearch/GenEval2 (CC BY-NC 4.0), or the folder that it is in"


class AtomQuestion(Struct, frozen=True):
    """A question about one atom of a prompt."""

    text: str
    answer: str  # a number in words, or Yes
    skill: str

    @property
    def accepted(self) -> tuple[str, ...]:
        """The words that a right answer begins with."""
        words = (self.answer.lower(), self.answer.capitalize())
        if self.answer in NUMBERS:
            return (*words, str(NUMBERS.index(self.answer) + 1))
        return words


class AtomGold(Struct, frozen=True):
    """What is asked about an image."""

    questions: tuple[AtomQuestion, ...]


def load(data: Path, blobs: Blobs) -> Dataset:
    """Return the dataset; it is called `geneval2` if it has as many records as the published one."""
    if not data.exists():
        raise UserError(f"there is no {data}: {HELP}")
    file = find_json_file(data, STEMS)
    if file is None:
        raise UserError(f"there are no prompts in {data}: {HELP}")
    dataset = AtomRecords(file, file.parent, blobs).dataset(OWN_DATA, read_json_records(file))
    if dataset.name == OWN_DATA and dataset.records == PUBLISHED_RECORDS:
        return replace(dataset, name="geneval2")
    return dataset


class AtomRecords(Records):
    """Reads one record."""

    def record_label(self, index: int, record: Any, /) -> str:
        return f"prompt {index}"

    def sample(self, name: str, record: dict[str, Any]) -> Sample:
        prompt = self.text(name, record, "prompt")
        atoms: Any = record.get("atom_count")
        if type(atoms) is not int or atoms not in ATOMS:
            self.fail(name, "atom_count", f"must be a whole number from {ATOMS[0]} to {ATOMS[-1]}")
        gold = AtomGold(self._read_questions(name, record))
        number = f"{int(name.removeprefix('prompt ')):05}"
        turn = Turn(0, (Text(prompt),), "image", (), file=f"{number}.png", gold=gold)
        return Sample(number, (turn,), groups={"atoms": str(atoms)})

    def _read_questions(self, name: str, record: Mapping[str, Any]) -> tuple[AtomQuestion, ...]:
        entries = list_or_empty(record.get("vqa_list"))
        skills = list_or_empty(record.get("skills"))
        if not 1 <= len(entries) <= MAX_QUESTIONS:
            self.fail(name, "vqa_list", f"must have from 1 to {MAX_QUESTIONS} questions with their answers")
        if len(skills) != len(entries):
            self.fail(name, "skills", f"has {len(skills)} entries for {len(entries)} questions")
        return tuple(self._read_question(name, *each) for each in zip(entries, skills, strict=True))

    def _read_question(self, name: str, entry: Any, skill: Any) -> AtomQuestion:
        pair = cast(list[Any], entry) if isinstance(entry, list) else []
        if len(pair) != 2 or not all(isinstance(part, str) and part.strip() for part in pair):
            self.fail(name, "vqa_list", "must have pairs of a question and its answer")
        text, answer = cast(list[str], pair)
        known = NUMBERS if text.startswith(COUNTING) else (YES,)
        if answer not in known:
            self.fail(name, "vqa_list", f"has the answer {answer[:40]!r} to {text[:60]!r}; there is {', '.join(known)}")
        if skill not in SKILLS:
            self.fail(name, "skills", f"has {str(skill)[:40]!r}; there is {', '.join(SKILLS)}")
        return AtomQuestion(text, answer, skill)
