"""Tasks in other words: which tasks, what a wording must keep, wordings from a file, and the dataset that comes of
them.

By rule a wording must have what the task quotes, its numbers and its names, and be no copy. What a person wrote in a
file is held to that, and never left out for it.

    {"task": "travel_plan_gen-3f2a91bc", "style": "casual chat", "prompt": "..."}       one such object a line, or a
    list of them
"""

import hashlib
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from weft.benchmarks.planviz.style_tables import AS_WRITTEN
from weft.benchmarks.records import digest_samples
from weft.errors import UserError
from weft.judges.ocr import find_quotations, remove_quotations
from weft.types import LoadedDataset, Problem, Sample, Text
from weft.untrusted import dict_or_empty, parse_json, read_bytes_file

WORDS = "zero one two three four five six seven eight nine ten eleven twelve"
NUMBERS: dict[str, str] = {  # in words, by their figures
    **{word: str(at) for at, word in enumerate(WORDS.split())},
    **{word: str(at) for at, word in enumerate("零一二三四五六七八九十")},
    "两": "2",
}
WORD = re.compile(r"[^\W_][\w&'\u2019-]*")
CODE = re.compile(r"(?<![^\W_])[a-z]{1,2}\d+(?![^\W_])")  # a place or a size: b2, A4
FIGURE = re.compile(r"\d+(?:[.,:]\d+)*")
THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")
GERMAN = frozenset(
    (
        "der",
        "die",
        "das",
        "den",
        "dem",
        "ein",
        "eine",
        "einen",
        "und",
        "im",
        "am",
        "zum",
        "zur",
        "nach",
        "mit",
        "auf",
        "von",
    )
)
MAX_WORDINGS = 50  # wordings of a task


class Wording(Struct, frozen=True):
    style: str
    prompt: str


def is_wordings_file(reword: str) -> bool:
    return reword.endswith((".json", ".jsonl"))


def sample_tasks(dataset: LoadedDataset, count: int, seed: int) -> list[Sample]:
    """So many tasks, at random, as evenly over the sub-tasks and tasks as they are there; in the order of the
    dataset."""
    if not count or count >= len(dataset.samples):
        return list(dataset.samples)
    chance = random.Random(f"planviz sample {seed}")
    cells: dict[tuple[str, str], list[Sample]] = {}
    for sample in dataset.samples:
        cells.setdefault((sample.groups["task"], sample.groups["subtask"]), []).append(sample)
    heaps = list(cells.values())
    for heap in (heaps, *heaps):
        chance.shuffle(heap)  # pyright: ignore[reportArgumentType, reportUnknownArgumentType]
    order = [heap[at] for at in range(max(map(len, heaps))) for heap in heaps if at < len(heap)]
    kept = {sample.id for sample in order[:count]}
    return [sample for sample in dataset.samples if sample.id in kept]


def add_wordings(
    dataset: LoadedDataset, tasks: Sequence[Sample], said: Mapping[str, Sequence[Wording]], problems: Sequence[Problem]
) -> LoadedDataset:
    """Each task as it is written, then in each of its wordings; all are samples of their own, which know the task they
    are of."""
    made: list[Sample] = []
    for sample in tasks:
        of = {**sample.groups, "of": sample.id}
        made.append(replace(sample, groups={**of, "style": AS_WRITTEN}))
        for wording in said.get(sample.id, ()):
            turn = sample.turns[0]
            ask = tuple(Text(wording.prompt) if isinstance(part, Text) else part for part in turn.prompt)
            # the same words are the same sample in every run
            mark = hashlib.sha256(wording.prompt.encode()).hexdigest()[:6]
            other = replace(turn, prompt=ask, file=turn.file.replace(".png", f"~{mark}.png"))
            made.append(
                replace(sample, id=f"{sample.id}~{mark}", turns=(other,), groups={**of, "style": wording.style})
            )
    return replace(dataset, samples=tuple(made), digest=digest_samples(made), problems=(*dataset.problems, *problems))


def find_faults(prompt: str, wording: str, others: Sequence[str] = ()) -> list[str]:
    """What is wrong with a wording by rule."""
    said = _spaced(wording)
    if not said:
        return ["it is empty"]
    if said == _spaced(prompt):
        return ["it is the request itself"]
    if said in map(_spaced, others):
        return ["it is another wording once more"]
    told = [f"it lacks the quotation {one!r}" for one in find_quotations(prompt) if _spaced(one) not in said]
    words = {_bare(word) for word in WORD.findall(said)}
    told += [
        f"it lacks the name {name!r}"
        for name in dict.fromkeys(_names(remove_quotations(prompt)))
        if name.casefold() not in words
    ]
    there = [*_figures(wording), *(["1"] if words & {"one", "一", "single"} else [])]
    return told + [f"it lacks {number}" for number in dict.fromkeys(_figures(prompt)) if number not in there]


def read_wordings(path: Path, dataset: LoadedDataset, most: int) -> tuple[dict[str, list[Wording]], list[Problem]]:
    """Wordings by task. A task may be called by its id, or as its output file is (`travel_plan_gen/3`)."""
    data = read_bytes_file(path)
    whole = data.lstrip()[:1] == b"["
    if whole:
        found: Any = parse_json(data, path)
    else:
        found = [parse_json(line, f"{path}: line {at}") for at, line in _lines(data)]
    known = {sample.id: sample for sample in dataset.samples}
    known |= {sample.turns[0].file.removesuffix(".png"): sample for sample in dataset.samples}
    made: dict[str, list[Wording]] = {}
    problems: list[Problem] = []
    for at, one in enumerate(found):
        facts = dict_or_empty(one)
        task = facts.get("task")
        prompt = facts.get("prompt")
        style = facts.get("style")
        if (
            not isinstance(task, str)
            or not isinstance(prompt, str)
            or not prompt.strip()
            or not isinstance(style or "", str)
        ):
            raise UserError(f"{path}: entry {at}: give `task` and `prompt` as texts, and `style` if it has a name")
        if task not in known:
            problems.append(
                Problem("warning", path.name, f"entry {at}", "task", f"there is no task {task[:80]!r} here")
            )
            continue
        sample = known[task]
        some = made.setdefault(sample.id, [])
        if style == AS_WRITTEN:
            raise UserError(
                f"{path}: entry {at}: `{AS_WRITTEN}` is what the dataset's own words are called; give another style"
            )
        if prompt in (sample.turns[0].prompt_text, *(other.prompt for other in some)):
            problems.append(
                Problem(
                    "warning",
                    path.name,
                    f"entry {at}",
                    "prompt",
                    "is the task's own words, or another wording once more",
                )
            )
            continue
        if most and len(some) >= most:
            continue
        wrong = find_faults(sample.turns[0].prompt_text, prompt, [other.prompt for other in some])
        if wrong:
            problems.append(
                Problem("warning", path.name, f"entry {at}", "prompt", f"may not ask for the same: {'; '.join(wrong)}")
            )
        some.append(Wording(str(style or f"wording {len(some) + 1}"), prompt))
    if not any(made.values()):
        raise UserError(f"{path} has no wording of any task of this dataset")
    return {task: some for task, some in made.items() if some}, problems


def _names(text: str) -> list[str]:
    """Words with a capital that no sentence begins with; none in German, where every noun has one."""
    made: list[str] = []
    if len(GERMAN & {word.casefold() for word in WORD.findall(text)}) > 1:
        return made
    for match in WORD.finditer(text):
        word = _bare(match.group())
        before = text[: match.start()].rstrip()
        begins = not before or before[-1] in ".!?:;(\n\u2026\u2014-\u2022" or "\n" in text[len(before) : match.start()]
        if (
            word[:1].isupper()
            and not begins
            and not any(map(str.isdigit, word))
            and word not in ("I", "I'm", "I'd", "I'll", "I've")
        ):
            made.append(word)
    return made


def _bare(word: str) -> str:
    """Without what grammar adds."""
    return re.sub(r"['\u2019](?:s)?$", "", word)


def _figures(text: str) -> list[str]:
    """Numbers, in figures or in words, and what is called by letters and figures (`b2`). The word `one` is seldom a
    number."""
    said = text.casefold()
    words = [word for word in (*re.findall(r"[a-z]+", said), *said) if word in NUMBERS and word not in ("one", "一")]
    codes = CODE.findall(said)
    plain = [one.replace(",", "") if THOUSANDS.fullmatch(one) else one for one in FIGURE.findall(CODE.sub(" ", said))]
    return [*codes, *plain, *(NUMBERS[word] for word in words)]


def _spaced(text: str) -> str:
    return " ".join(text.casefold().split())


def _lines(data: bytes) -> list[tuple[int, bytes]]:
    return [(at, line) for at, line in enumerate(data.splitlines(), start=1) if line.strip()]
