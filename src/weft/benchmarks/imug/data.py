"""IMUG-Bench's files: `benchmark.jsonl`, `images/`, and if present the two reference files and the grids of `grid_gt/`.

A sample's key is (domain, subdomain, sample_id). A record that cannot be used is left out, with its problems named by
file, line and field. Without reference files the benchmark still runs: an image is judged against the most recent image
before it, a dynamic question against all earlier replies.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from weft.benchmarks.imug.classes import CLASS_OF
from weft.benchmarks.imug.mcq import LETTERS, find_options, parse_key
from weft.benchmarks.record_files import digest_file, read_json_lines
from weft.benchmarks.records import Records
from weft.errors import UserError
from weft.store.blobs import Blobs
from weft.types import Dataset, Part, Sample, Text, Turn
from weft.untrusted import dict_or_empty, parse_json, read_bytes_file

DYNAMIC = "<DYNAMIC>"
SampleKey = tuple[str, str, str]  # domain, subdomain, sample_id
Grid = tuple[tuple[str, ...], ...]  # three rows of three cells: 0, 1, r or g
UNUSABLE = (KeyError, TypeError, ValueError, OverflowError, AttributeError)  # what a malformed line raises


class ImageReference(Struct, frozen=True):
    """An image that another is judged against."""

    turn: int  # numbered from 1
    kind: str  # what the turn showed the model (`input`) or made (`output`), or the most `recent` image


class ChoiceGold(Struct, frozen=True):
    """Gold of a text turn: a multiple-choice question. A static one without a letter cannot be scored."""

    question: str
    key: str  # the letters that are certainly right
    raw: str  # the key as written
    dynamic: bool = False  # whether the judge completes the key from the replies of `looks_at`
    looks_at: tuple[int, ...] = ()  # turns, numbered from 1
    single: bool = True  # whether exactly one option is right
    listed: bool = True  # whether a reference file has `looks_at`
    first: str | None = None  # the text of the prompt's first item


class PointsGold(Struct, frozen=True):
    """Gold of an image turn."""

    points: tuple[str, ...]  # the evaluation points, as sentences
    references: tuple[ImageReference, ...]
    grid: Grid | None = None  # the expected grid, of the cubes tasks
    first: str | None = None  # the text of the prompt's first item


class ReferenceLinks(Struct, frozen=True):
    """What the files next to the benchmark say, by sample. None: there is no such file."""

    images: Mapping[SampleKey, Mapping[int, tuple[ImageReference, ...]]] | None  # by turn, from 1
    dynamic: Mapping[tuple[SampleKey, int], tuple[int, ...]] | None
    grids: Mapping[tuple[SampleKey, int], Grid]


def load(data: Path, blobs: Blobs) -> Dataset:
    """Open IMUG-Bench's files, streamed. Its digest covers the reference files and the grids."""
    folder = find(data)
    file = folder / "benchmark.jsonl"
    references = (folder / "image_references.jsonl", folder / "dynamic_references.jsonl")
    files = [path for path in references if path.is_file()]
    files += sorted((folder / "grid_gt").glob("*.jsonl"))
    digests = [f"{path.name} {digest_file(path)}" for path in files]
    records = ImugRecords(file, folder / "images", blobs, read_reference_links(folder))
    return records.dataset("imug", read_json_lines(file), digests)


def find(data: Path) -> Path:
    """Find the folder with `benchmark.jsonl`, given it or the folder above."""
    for folder in (data, data / "data"):
        if (folder / "benchmark.jsonl").is_file():
            return folder
    raise UserError(f"there is no benchmark.jsonl in {data} or {data / 'data'}")


def read_reference_links(folder: Path) -> ReferenceLinks:
    """Read the reference files and the grids. Raises UserError for a malformed line: references are not guessed."""
    images: dict[SampleKey, dict[int, tuple[ImageReference, ...]]] | None = None
    path = folder / "image_references.jsonl"
    if path.is_file():
        images = {}
        for position, line in _read_lines(path):
            try:
                images[_sample_key(line)] = _parse_image_references(line)
            except UNUSABLE as error:
                raise UserError(f"{position}: cannot be used as references: {type(error).__name__} {error}") from None
    dynamic: dict[tuple[SampleKey, int], tuple[int, ...]] | None = None
    path = folder / "dynamic_references.jsonl"
    if path.is_file():
        dynamic = {}
        for position, line in _read_lines(path):
            try:
                turns = sorted(map(int, line["ref_turn_idxs"]))
                dynamic[_sample_key(line), int(line["turn_idx"])] = tuple(turns)
            except UNUSABLE as error:
                raise UserError(f"{position}: cannot be used as references: {type(error).__name__} {error}") from None
    return ReferenceLinks(images, dynamic, _read_grids(folder / "grid_gt"))


def _parse_image_references(line: Mapping[str, Any]) -> dict[int, tuple[ImageReference, ...]]:
    references: dict[int, tuple[ImageReference, ...]] = {}
    for link in line["reference_links"]:
        turn = int(link["turn_idx"])
        references[turn] = tuple(ImageReference(int(ref["ref_turn"]), str(ref["ref_type"])) for ref in link["refs"])
    return references


def _read_grids(folder: Path) -> dict[tuple[SampleKey, int], Grid]:
    grids: dict[tuple[SampleKey, int], Grid] = {}
    if not folder.is_dir():
        return grids
    for path in sorted(folder.glob("*.jsonl")):
        names = path.stem.split("__")
        if len(names) != 3:
            raise UserError(f"{path}: a grid's file is called Domain__subdomain__sample_id.jsonl")
        domain, subdomain, sample_id = names
        for position, line in _read_lines(path):
            turn: Any = line.get("turn")
            grid: Any = line.get("grid")
            if not isinstance(grid, list) or len(cast(list[Any], grid)) != 3 or type(turn) is not int:
                raise UserError(f"{position}: a grid is three rows of three cells, with its turn")
            grids[(domain, subdomain, sample_id), turn] = tuple(
                _parse_grid_row(row, position) for row in cast(list[Any], grid)
            )
    return grids


def _parse_grid_row(row: Any, position: str) -> tuple[str, ...]:
    if isinstance(row, (list, str)):
        cells = tuple(map(str, cast(list[Any], row)))
        if len(cells) == 3 and set(cells) <= set("01rg"):
            return cells
    raise UserError(f"{position}: a grid is three rows of three cells, each 0, 1, r or g")


def _read_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each line's position, for errors, and its JSON object."""
    for number, line in enumerate(read_bytes_file(path).splitlines(), start=1):
        if line.strip():
            yield f"{path.name}: line {number}", dict_or_empty(parse_json(line, f"{path}: line {number}"))


def _sample_key(line: Mapping[str, Any]) -> SampleKey:
    return str(line["domain"]), str(line["subdomain"]), str(line["sample_id"])


class ImugRecords(Records):
    """IMUG-Bench's records: `domain`, `subdomain`, `sample_id`, `system_prompt` and `tasks`, one for each turn."""

    id_field = "sample_id"

    def __init__(self, file: Path, image_folder: Path, blobs: Blobs, links: ReferenceLinks) -> None:
        super().__init__(file, image_folder, blobs)
        self._links = links
        if links.images is None:
            message = "there is no image_references.jsonl: images are judged against the most recent one"
            self.report_problem("warning", "", "", message)
        if links.dynamic is None:
            message = "there is no dynamic_references.jsonl: dynamic questions are judged against all earlier replies"
            self.report_problem("warning", "", "", message)

    def record_label(self, index: int, record: Any) -> str:
        return f"line {index + 1}"

    def sample(self, name: str, record: dict[str, Any]) -> Sample:
        subdomain = record.get("subdomain", record.get("category"))
        sample_id: Any = record.get("sample_id")
        if type(sample_id) is int:
            sample_id = str(sample_id)
        key = (str(record.get("domain") or ""), str(subdomain or ""), str(sample_id or ""))
        for field, value in zip(("domain", "subdomain", "sample_id"), key, strict=True):
            if not value or set(value) & set("/\\") or value.startswith(".") or not value.isprintable():
                self.fail(name, field, f"{value[:80]!r} must be a plain name")
        tasks: Any = record.get("tasks")
        if not isinstance(tasks, list) or not tasks:
            self.fail(name, "tasks", "must be a list of turns")
        turns: list[Turn] = []
        for index, task in enumerate(cast(list[Any], tasks)):
            turns.append(self._turn(name, key, index, dict_or_empty(task)))
        system: Any = record.get("system_prompt")
        if not isinstance(system, str):
            system = ""
        groups = {"domain": key[0], "task": key[1], "class": CLASS_OF.get(key[0], "Unassigned")}
        if groups["class"] == "Unassigned":
            message = f"{key[0]!r} is in no class; it counts only in the overall numbers"
            self.report_problem("warning", name, "domain", message)
        return Sample("/".join(key), tuple(turns), (), groups, system)

    def _turn(self, name: str, key: SampleKey, index: int, task: dict[str, Any]) -> Turn:
        field = f"tasks[{index}]"
        number = index + 1
        if str(task.get("turn")) != str(number):
            message = f"is {task.get('turn')!r}; turns are numbered from 1 without a gap, so {number} is expected"
            self.fail(name, f"{field}.turn", message)
        prompt = tuple(self._prompt(name, f"{field}.input", task.get("input")))
        first: Any = dict_or_empty(cast(list[Any], task["input"])[0]).get("text")
        if not isinstance(first, str):
            first = None
        folder = f"{key[0]}/{key[1]}/question_{key[2]}"
        output = dict_or_empty(task.get("output"))
        if task.get("modality") == "text":
            gold = self._choice(name, f"{field}.output.answer", key, number, output.get("answer"), prompt, first)
            reference: tuple[Part, ...] = ()
            if gold.key and not gold.dynamic:
                reference = (Text(gold.key),)
            return Turn(index, prompt, "text", reference, None, f"{folder}/result.json", gold)
        if task.get("modality") != "image":
            self.fail(name, f"{field}.modality", f"is {task.get('modality')!r}; it must be 'text' or 'image'")
        gold = self._points(name, field, key, number, output.get("evaluation_points"), first)
        return Turn(index, prompt, "image", (), None, f"{folder}/turn_{number}_output.png", gold)

    def _prompt(self, name: str, field: str, items: Any) -> Iterator[Part]:
        if not isinstance(items, list) or not items:
            self.fail(name, field, "must be a list of texts and images")
        for index, item in enumerate(cast(list[Any], items)):
            item_field = f"{field}[{index}]"
            for kind, value in dict_or_empty(item).items():
                if kind == "text" and isinstance(value, str):
                    yield Text(value)
                elif kind == "image" and isinstance(value, str):
                    yield self.load_image(name, f"{item_field}.image", value)
                elif kind in ("text", "image"):
                    self.fail(name, item_field, f"{kind!r} is neither a text nor the name of an image")
                else:
                    message = f"{kind!r} is neither a text nor an image: it is not shown"
                    self.report_problem("warning", name, item_field, message)

    def _points(self, name: str, field: str, key: SampleKey, turn: int, points: Any, first: str | None) -> PointsGold:
        points_field = f"{field}.output.evaluation_points"
        if not isinstance(points, list) or not points:
            self.fail(name, points_field, "must be a list of sentences")
        if not all(isinstance(point, str) for point in cast(list[Any], points)):
            self.fail(name, points_field, "must be a list of sentences")
        references = self._references(name, field, key, turn)
        grid = self._links.grids.get((key, turn))
        if key[0] == "Geometric_Coloring" and key[1].startswith("cubes_") and grid is None:
            self.report_problem("warning", name, field, "grid_gt has no grid for it: it goes to the judge")
        return PointsGold(tuple(cast(list[str], points)), references, grid, first)

    def _choice(
        self,
        name: str,
        field: str,
        key: SampleKey,
        turn: int,
        answer: Any,
        prompt: tuple[Part, ...],
        first: str | None,
    ) -> ChoiceGold:
        if not isinstance(answer, str):
            self.fail(name, field, "an answer key is expected: option letters, or <DYNAMIC>")
        question = next((part.text for part in prompt if isinstance(part, Text)), "")
        dynamic = DYNAMIC in answer
        options = find_options(question)
        written = answer.replace(DYNAMIC, " ").strip(" +")
        letters = "".join(sorted(parse_key(written) or ()))
        is_unreadable = bool(written) and not letters
        is_unknown_option = bool(options) and not set(letters) <= set(options)
        if is_unreadable or is_unknown_option or not (written or dynamic):
            available = ", ".join(options) or LETTERS
            message = f"{answer!r} names no option of its question (it has {available}): the turn cannot be scored"
            self.report_problem("warning", name, field, message)
            letters = ""
            dynamic = False
        looks_at: tuple[int, ...] = ()
        is_listed = False
        if dynamic:
            looks_at, is_listed = self._dynamic_references(name, field, key, turn)
        single = key[:2] != ("Botany", "natural_growth") and not (dynamic and letters)
        return ChoiceGold(question, letters, answer, dynamic, looks_at, single, is_listed, first)

    def _dynamic_references(self, name: str, field: str, key: SampleKey, turn: int) -> tuple[tuple[int, ...], bool]:
        """Return the turns that a dynamic question is about, and whether a reference file lists them."""
        turns: tuple[int, ...] | None = None
        if self._links.dynamic is not None:
            turns = self._links.dynamic.get((key, turn))
            if turns is None:
                message = "dynamic_references.jsonl does not have it: it is judged against all earlier replies"
                self.report_problem("warning", name, field, message)
        is_listed = turns is not None
        if turns is None:
            turns = tuple(range(1, turn))
        if not turns or any(not 1 <= other < turn for other in turns):
            self.fail(name, field, f"its references {list(turns)} must be turns before turn {turn}")
        return turns, is_listed

    def _references(self, name: str, field: str, key: SampleKey, turn: int) -> tuple[ImageReference, ...]:
        """Return the images that the image of a turn is judged against."""
        if self._links.images is None:
            return (ImageReference(0, "recent"),)
        references = self._links.images.get(key, {}).get(turn, ())
        for reference in references:
            latest = turn
            if reference.kind != "input":
                latest = turn - 1
            if reference.kind not in ("input", "output") or not 1 <= reference.turn <= latest:
                message = f"image_references.jsonl: turn {turn} refers to the {reference.kind} of turn {reference.turn}"
                self.fail(name, field, message)
        return references
