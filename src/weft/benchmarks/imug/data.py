"""IMUG-Bench's files: `benchmark.jsonl`, `images/`, and where they are there the two reference files and the grid
truth.

A sample's key is (domain, subdomain, sample_id). A record that cannot be used is left out, with its problems named by
file, line and field. Without reference files the benchmark still runs: a picture is judged beside the most recent one
before it, a dynamic question beside all earlier replies."""

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
Key = tuple[str, str, str]


class ImageReference(Struct, frozen=True):
    """A picture beside which another is judged: what turn `turn` (1-based) was given (`input`) or made (`output`)."""

    turn: int
    kind: str


class ChoiceGold(Struct, frozen=True):
    """Gold of a text turn: `key` are the letters that are certain, `raw` the key as written; a dynamic one is completed
    from the replies of `looks_at` (1-based turns), which a reference file lists, or nobody does. A static one without a
    letter cannot be scored."""

    question: str
    key: str
    raw: str
    dynamic: bool = False
    looks_at: tuple[int, ...] = ()
    single: bool = True
    listed: bool = True
    first: str | None = None  # the words of the request's first item


class PointsGold(Struct, frozen=True):
    """Gold of an image turn: evaluation points, what the picture is judged beside, and the true grid where there is
    one."""

    points: tuple[str, ...]
    references: tuple[ImageReference, ...]
    grid: tuple[tuple[str, ...], ...] | None = None
    first: str | None = None


class ReferenceLinks(Struct, frozen=True):
    """What the files beside the benchmark say, by sample; None where a file is not there."""

    images: Mapping[Key, Mapping[int, tuple[ImageReference, ...]]] | None
    dynamic: Mapping[tuple[Key, int], tuple[int, ...]] | None
    grids: Mapping[tuple[Key, int], tuple[tuple[str, ...], ...]]


def load(data: Path, blobs: Blobs) -> Dataset:
    folder = find(data)
    file = folder / "benchmark.jsonl"
    beside = [
        path for path in (folder / "image_references.jsonl", folder / "dynamic_references.jsonl") if path.is_file()
    ]
    grids = sorted((folder / "grid_gt").glob("*.jsonl"))
    digests = [f"{path.name} {digest_file(path)}" for path in (*beside, *grids)]
    return ImugRecords(file, folder / "images", blobs, read_reference_links(folder)).dataset(
        "imug", read_json_lines(file), digests
    )


def find(data: Path) -> Path:
    for folder in (data, data / "data"):
        if (folder / "benchmark.jsonl").is_file():
            return folder
    raise UserError(f"there is no benchmark.jsonl in {data} or {data / 'data'}")


def read_reference_links(folder: Path) -> ReferenceLinks:
    """The reference files and the grid truth. A line that cannot be read is an error of the user's: references are not
    guessed."""
    images: dict[Key, dict[int, tuple[ImageReference, ...]]] | None = None
    path = folder / "image_references.jsonl"
    if path.is_file():
        images = {}
        for where, line in _lines(path):
            try:
                turns = {
                    int(link["turn_idx"]): tuple(
                        ImageReference(int(ref["ref_turn"]), str(ref["ref_type"])) for ref in link["refs"]
                    )
                    for link in line["reference_links"]
                }
                images[_key(line)] = turns
            except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
                raise UserError(f"{where}: cannot be used as references: {type(error).__name__} {error}") from None
    dynamic: dict[tuple[Key, int], tuple[int, ...]] | None = None
    path = folder / "dynamic_references.jsonl"
    if path.is_file():
        dynamic = {}
        for where, line in _lines(path):
            try:
                dynamic[_key(line), int(line["turn_idx"])] = tuple(sorted(int(turn) for turn in line["ref_turn_idxs"]))
            except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
                raise UserError(f"{where}: cannot be used as references: {type(error).__name__} {error}") from None
    return ReferenceLinks(images, dynamic, _grids(folder / "grid_gt"))


def _grids(folder: Path) -> dict[tuple[Key, int], tuple[tuple[str, ...], ...]]:
    made: dict[tuple[Key, int], tuple[tuple[str, ...], ...]] = {}
    for path in sorted(folder.glob("*.jsonl")) if folder.is_dir() else ():
        named = path.stem.split("__")
        if len(named) != 3:
            raise UserError(f"{path}: a grid's file is called Domain__subdomain__sample_id.jsonl")
        domain, subdomain, sample = named
        for where, line in _lines(path):
            grid: Any = line.get("grid")
            if not isinstance(grid, list) or len(cast(list[Any], grid)) != 3 or type(line.get("turn")) is not int:
                raise UserError(f"{where}: a grid is three rows of three cells, with its turn")
            rows = tuple(
                tuple(str(cell) for cell in cast(list[Any], row))
                for row in cast(list[Any], grid)
                if isinstance(row, (list, str))
            )
            if len(rows) != 3 or any(len(row) != 3 or set(row) - set("01rg") for row in rows):
                raise UserError(f"{where}: a grid is three rows of three cells, each 0, 1, r or g")
            made[(domain, subdomain, sample), int(line["turn"])] = rows
    return made


def _lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in enumerate(read_bytes_file(path).splitlines(), start=1):
        if line.strip():
            yield f"{path.name}: line {number}", dict_or_empty(parse_json(line, f"{path}: line {number}"))


def _key(line: Mapping[str, Any]) -> Key:
    return str(line["domain"]), str(line["subdomain"]), str(line["sample_id"])


class ImugRecords(Records):
    id_field = "sample_id"

    def __init__(self, file: Path, pictures: Path, blobs: Blobs, links: ReferenceLinks) -> None:
        super().__init__(file, pictures, blobs)
        self._links = links
        if links.images is None:
            self.report_problem(
                "warning", "", "", "there is no image_references.jsonl: pictures are judged beside the most recent one"
            )
        if links.dynamic is None:
            self.report_problem(
                "warning",
                "",
                "",
                "there is no dynamic_references.jsonl: dynamic questions are judged beside all earlier replies",
            )

    def record_label(self, at: int, record: Any) -> str:
        return f"line {at + 1}"

    def sample(self, name: str, record: dict[str, Any]) -> Sample:
        task = record.get("subdomain", record.get("category"))
        key = (str(record.get("domain") or ""), str(task or ""), str(record.get("sample_id") or ""))
        for field, value in zip(("domain", "subdomain", "sample_id"), key, strict=True):
            if not value or any(char in value for char in "/\\") or value.startswith(".") or not value.isprintable():
                self.fail(name, field, f"{value[:80]!r} must be a plain name")
        tasks: Any = record.get("tasks")
        if not isinstance(tasks, list) or not tasks:
            self.fail(name, "tasks", "must be a list of turns")
        turns = tuple(self._turn(name, key, at, dict_or_empty(one)) for at, one in enumerate(cast(list[Any], tasks)))
        system: Any = record.get("system_prompt")
        groups = {"domain": key[0], "task": key[1], "class": CLASS_OF.get(key[0], "Unassigned")}
        if groups["class"] == "Unassigned":
            self.report_problem(
                "warning", name, "domain", f"{key[0]!r} is in no class; it counts in the overall numbers alone"
            )
        return Sample("/".join(key), turns, (), groups, system if isinstance(system, str) else "")

    def _turn(self, name: str, key: Key, at: int, task: dict[str, Any]) -> Turn:
        field = f"tasks[{at}]"
        if str(task.get("turn")) != str(at + 1):
            self.fail(
                name,
                f"{field}.turn",
                f"is {task.get('turn')!r}; turns are numbered from 1 without a gap, so {at + 1} is due",
            )
        ask = tuple(self._ask(name, f"{field}.input", task.get("input")))
        words: Any = dict_or_empty(cast(list[Any], task["input"])[0]).get("text")
        if isinstance(words, str):
            first = words
        else:
            first = None
        folder = f"{key[0]}/{key[1]}/question_{key[2]}"
        output = dict_or_empty(task.get("output"))
        if task.get("modality") == "text":
            gold = self._choice(name, f"{field}.output.answer", key, at + 1, output.get("answer"), ask, first)
            if gold.dynamic or not gold.key:
                truth = ()
            else:
                truth = (Text(gold.key),)
            return Turn(at, ask, "text", truth, None, f"{folder}/result.json", gold)
        if task.get("modality") != "image":
            self.fail(name, f"{field}.modality", f"is {task.get('modality')!r}; it must be 'text' or 'image'")
        points: Any = output.get("evaluation_points")
        if (
            not isinstance(points, list)
            or not points
            or not all(isinstance(point, str) for point in cast(list[Any], points))
        ):
            self.fail(name, f"{field}.output.evaluation_points", "must be a list of sentences")
        references = self._references(name, field, key, at + 1)
        grid = self._links.grids.get((key, at + 1))
        if key[0] == "Geometric_Coloring" and key[1].startswith("cubes_") and grid is None:
            self.report_problem("warning", name, field, "grid_gt has no grid for it: it goes to the judge")
        gold = PointsGold(tuple(cast(list[str], points)), references, grid, first)
        return Turn(at, ask, "image", (), None, f"{folder}/turn_{at + 1}_output.png", gold)

    def _ask(self, name: str, field: str, items: Any) -> Iterator[Part]:
        if not isinstance(items, list) or not items:
            self.fail(name, field, "must be a list of texts and pictures")
        for at, item in enumerate(cast(list[Any], items)):
            for kind, value in dict_or_empty(item).items():
                if kind == "text" and isinstance(value, str):
                    yield Text(value)
                elif kind == "image" and isinstance(value, str):
                    yield self.load_image(name, f"{field}[{at}].image", value)
                elif kind in ("text", "image"):
                    self.fail(name, f"{field}[{at}]", f"{kind!r} is neither a text nor the name of a picture")
                else:
                    self.report_problem(
                        "warning", name, f"{field}[{at}]", f"{kind!r} is neither a text nor a picture: it is not shown"
                    )

    def _choice(
        self, name: str, field: str, key: Key, turn: int, answer: Any, ask: tuple[Part, ...], first: str | None
    ) -> ChoiceGold:
        if not isinstance(answer, str):
            self.fail(name, field, "an answer key is due: option letters, or <DYNAMIC>")
        question = next((part.text for part in ask if isinstance(part, Text)), "")
        dynamic = DYNAMIC in answer
        offered = find_options(question)
        certain = answer.replace(DYNAMIC, " ").strip(" +")
        sure = "".join(sorted(parse_key(certain) or ()))
        strange = [letter for letter in sure if letter not in offered] if offered else []
        if (certain and not sure) or strange or not (certain or dynamic):
            has = ", ".join(offered) or LETTERS
            self.report_problem(
                "warning",
                name,
                field,
                f"{answer!r} names no option of its question (it has {has}): the turn cannot be scored",
            )
            sure = ""
            dynamic = False
        looks_at: tuple[int, ...] = ()
        found: tuple[int, ...] | None = None
        if dynamic:
            if self._links.dynamic is not None:
                found = self._links.dynamic.get((key, turn))
            else:
                found = None
            if found is not None:
                looks_at = found
            else:
                looks_at = tuple(range(1, turn))
            if found is None and self._links.dynamic is not None:
                self.report_problem(
                    "warning",
                    name,
                    field,
                    "dynamic_references.jsonl does not have it: it is judged beside all earlier replies",
                )
            if any(not 1 <= other < turn for other in looks_at) or not looks_at:
                self.fail(name, field, f"its references {list(looks_at)} must be turns before turn {turn}")
        single = key[:2] != ("Botany", "natural_growth") and not (dynamic and sure)
        return ChoiceGold(question, sure, answer, dynamic, looks_at, single, found is not None, first)

    def _references(self, name: str, field: str, key: Key, turn: int) -> tuple[ImageReference, ...]:
        if self._links.images is None:
            return (ImageReference(0, "recent"),)
        found = self._links.images.get(key, {}).get(turn, ())
        for reference in found:
            if reference.kind == "input":
                latest = turn
            else:
                latest = turn - 1
            if reference.kind not in ("input", "output") or not 1 <= reference.turn <= latest:
                self.fail(
                    name,
                    field,
                    f"image_references.jsonl: turn {turn} refers to the {reference.kind} of turn {reference.turn}",
                )
        return found
