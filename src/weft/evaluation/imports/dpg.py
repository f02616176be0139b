"""Results of DPG-Bench's released script: `NAME_results.txt`, with `NAME_results_detail.txt` beside it.

The script takes the first row of its questions for a heading: the first item lacks a question, and drops out if another
depends on it. Its category scores are of each item's last image alone, and count what depends on a "no". With the
answers beside the results, and `dpg_bench.csv` in the same folder, both are mended: a second score leaves out the first
item, which was never asked whole, and its notes have the categories over all images.
"""

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from weft.errors import UserError
from weft.evaluation.imports.dpg_questions import QUESTIONS_FILE, Item, list_categories, read_questions
from weft.evaluation.imports.score import ImportedScore, SampleScore, combine
from weft.evaluation.imports.texts import find_files, text_of
from weft.untrusted import read_text_file

TOOL = "ELLA's dpg_bench"
TASK = "DPG-Bench"
MENDED = "DPG-Bench, mended"
JUDGE = "mPLUG-large"
ENDING = "_results.txt"
DETAIL_ENDING = "_results_detail.txt"
PUBLISHED_ITEMS = 1065
FULL = 100.0
NEAR = 1e-6
TOTAL = re.compile(r"^DPG-Bench score: (\S+)$", re.MULTILINE)
MODEL = re.compile(r"^Model: (.*)$", re.MULTILINE)
CATEGORY = re.compile(r"^\t([^:\n]+): (\S+)$", re.MULTILINE)
ANSWER = re.compile(r"^(?P<image>.*?), (?P<place>\(\d+, \d+, \d+, \d+\)), (?P<question>.*), (?P<answer>[^,]*)$")
Answers = Mapping[str, Sequence[Sequence[tuple[str, bool]]]]  # item -> image -> (question, whether it is yes)


class Results(Struct, frozen=True):
    """What the script wrote."""

    model: str
    printed: float
    scores: Mapping[str, tuple[float, ...]]  # item -> its images' scores, from 0 to 1
    categories: Mapping[str, float]  # as printed, broad and detailed


def find_results(path: Path) -> Path | None:
    """Return the file of results: the path itself, or the latest in a folder; None if there is none."""
    if path.is_file():
        return path if path.name.endswith(ENDING) else None
    return max(find_files(path, f"*{ENDING}"), key=lambda file: file.name, default=None)


def read(path: Path, model: str) -> list[ImportedScore]:
    """Return the score as printed, and the mended one where the answers and the questions are there."""
    results = parse_results(path)
    questions_file = path.parent / QUESTIONS_FILE
    detail_file = path.with_name(path.name.removesuffix(ENDING) + DETAIL_ENDING)
    items: Sequence[Item] = ()
    if questions_file.is_file():
        items = read_questions(questions_file)
    expected = len(items) or PUBLISHED_ITEMS
    notes = ["the script's category scores are of each item's last image alone"]
    scores = [_build_score(results, model, TASK, results.printed, results.scores, expected, notes)]
    missing = [file.name for file in (questions_file, detail_file) if not file.is_file()]
    if missing:
        note = f"not mended: there is no {' and no '.join(missing)} beside it"
        return [_build_score(results, model, TASK, results.printed, results.scores, expected, [*notes, note])]
    return [*scores, _mend(path, results, model, items, parse_answers(detail_file))]


def parse_results(path: Path) -> Results:
    """Read a file of results. Raises UserError for one that is cut off, or no such file."""
    text = read_text_file(path)
    total = TOTAL.search(text)
    if total is None:
        raise UserError(f"{path}: it has no line `DPG-Bench score`: the script has not finished")
    printed = _read_number(path, total[1])
    head, _, tail = text.partition("\nModel: ")
    scores: dict[str, tuple[float, ...]] = {}
    for number, line in enumerate(head.splitlines(), start=1):
        item, own = _parse_line(f"{path}, line {number}", line)
        if item in scores:
            raise UserError(f"{path}, line {number}: {item} stands there twice: two runs wrote into one file")
        scores[item] = own
    if not scores:
        raise UserError(f"{path}: it has no item")
    served = MODEL.search(text)
    categories = {name: _read_number(path, value) for name, value in CATEGORY.findall(tail)}
    return Results(text_of(served[1]) if served else "", printed, scores, categories)


def _parse_line(where: str, line: str) -> tuple[str, tuple[float, ...]]:
    """Read `IMAGE, score, ..., mean`."""
    words = line.split(", ")
    numbers: list[float] = []
    while len(words) > 1 and (number := _number_or_none(words[-1])) is not None:
        numbers.insert(0, number)
        words.pop()
    if len(numbers) < 2 or any(not 0 <= number <= 1 for number in numbers):
        raise UserError(f"{where}: must be an image, its scores from 0 to 1, and their mean")
    *scores, mean = numbers
    if abs(math.fsum(scores) / len(scores) - mean) > NEAR:
        raise UserError(f"{where}: its last number is not the mean of the others")
    return _name_item(", ".join(words)), tuple(scores)


def _name_item(image: str) -> str:
    """Return the item of an image, as the script finds it: the file's name up to the first dot."""
    return image.replace("\\", "/").rpartition("/")[2].split(".")[0]


def _number_or_none(word: str) -> float | None:
    try:
        number = float(word)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _read_number(path: Path, word: str) -> float:
    number = _number_or_none(word)
    if number is None or not 0 <= number <= FULL:
        raise UserError(f"{path}: {word[:40]!r} is no number from 0 to 100")
    return number


def parse_answers(path: Path) -> Answers:
    """Read the answers to every question about every image, in the order of the file."""
    answers: dict[str, dict[str, list[tuple[str, bool]]]] = {}
    for number, line in enumerate(read_text_file(path).splitlines(), start=1):
        found = ANSWER.match(line)
        if found is None:
            raise UserError(f"{path}, line {number}: must be an image, a place, a question and an answer")
        of_item = answers.setdefault(_name_item(found["image"]), {})
        of_item.setdefault(found["place"], []).append((found["question"], found["answer"] == "yes"))
    return {item: list(images.values()) for item, images in answers.items()}


def _mend(path: Path, results: Results, model: str, items: Sequence[Item], answers: Answers) -> ImportedScore:
    """Return the score over the items that were asked whole, with categories over all of their images."""
    scores: dict[str, tuple[float, ...]] = {}
    by_category: dict[str, list[bool]] = {}
    for item in items[1:]:  # the first lacks a question
        printed = results.scores.get(item.name)
        images = answers.get(item.name, ())
        if printed is None or len(images) != len(printed):
            continue
        shares: list[float] = []
        for asked in images:
            if [question for question, _ in asked] != [question.text for question in item.questions]:
                raise UserError(f"{path}: the answers about {item.name} are to other questions than {QUESTIONS_FILE}'s")
            fulfilled = item.zero_dependents([is_yes for _, is_yes in asked])
            shares.append(sum(fulfilled) / len(fulfilled))
            for category, is_fulfilled in zip(list_categories(item), fulfilled, strict=True):
                by_category.setdefault(category, []).append(is_fulfilled)
        if any(abs(share - own) > NEAR for share, own in zip(shares, printed, strict=True)):
            raise UserError(f"{path}: the scores of {item.name} do not follow from its answers")
        scores[item.name] = tuple(shares)
    notes = [f"without {items[0].name}, of which the script never asks the first question"]
    for category, fulfilled in by_category.items():
        printed_score = results.categories.get(category)
        beside = "" if printed_score is None else f" (printed {printed_score:.2f})"
        notes.append(f"{category} {FULL * sum(fulfilled) / len(fulfilled):.2f}{beside}")
    values = [math.fsum(own) / len(own) for own in scores.values()]
    if not values:
        raise UserError(f"{path}: none of its items is in {QUESTIONS_FILE} with all of its answers")
    printed = FULL * math.fsum(values) / len(values)
    return _build_score(results, model, MENDED, printed, scores, len(items), notes)


def _build_score(
    results: Results,
    model: str,
    task: str,
    printed: float,
    scores: Mapping[str, tuple[float, ...]],
    expected: int,
    notes: Sequence[str],
) -> ImportedScore:
    samples = [SampleScore(item, FULL * math.fsum(own) / len(own), failed=False) for item, own in scores.items()]
    outcome = combine(printed, samples, FULL, expected)
    return ImportedScore(
        model=model,
        served_model=results.model,
        tool=TOOL,
        version="",
        task=task,
        metric="score",
        judge=JUDGE,
        value=outcome.value,
        scored=outcome.scored,
        expected=outcome.expected,
        printed=printed,
        low=outcome.low,
        high=outcome.high,
        notes=(*outcome.notes, *notes),
    )
