"""Reworded tasks: which tasks, what a wording must keep, wordings from a file, and the dataset with the wordings.

By rule a wording must have what the task quotes, its numbers and its names, and be no copy. A wording that a person
wrote in a file is checked too, and reported, but never left out for it. A file has one such object a line, or a list:

    {"task": "travel_plan_gen-3f2a91bc", "style": "casual chat", "prompt": "..."}
"""

import hashlib
import itertools
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
from weft.types import LoadedDataset, Part, Problem, Sample, Text
from weft.untrusted import dict_or_empty, parse_json, read_bytes_file

NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve"
NUMBERS: dict[str, str] = {  # word -> digits
    **{word: str(number) for number, word in enumerate(NUMBER_WORDS.split())},
    **{word: str(number) for number, word in enumerate("零一二三四五六七八九十")},
    "两": "2",
}
WORD = re.compile(r"[^\W_][\w&'\u2019-]*")
CODE = re.compile(r"(?<![^\W_])[a-z]{1,2}\d+(?![^\W_])")  # a place or a size: b2, A4
DIGITS = re.compile(r"\d+(?:[.,:]\d+)*")
THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")
PRONOUNS = ("I", "I'm", "I'd", "I'll", "I've")
SENTENCE_ENDS = ".!?:;(\n\u2026\u2014-\u2022"
GERMAN_WORDS = "der die das den dem ein eine einen und im am zum zur nach mit auf von"
MAX_WORDINGS = 50  # of a task


class Wording(Struct, frozen=True):
    """A task's prompt in other words."""

    style: str
    prompt: str


def is_wordings_file(reword: str) -> bool:
    """Whether the option names a file, not a model."""
    return reword.endswith((".json", ".jsonl"))


def sample_tasks(dataset: LoadedDataset, count: int, seed: int) -> list[Sample]:
    """Draw `count` tasks at random, as evenly over pairs of task and sub-task as they allow; 0: all.

    They keep the order of the dataset.
    """
    if not count or count >= len(dataset.samples):
        return list(dataset.samples)
    generator = random.Random(f"planviz sample {seed}")
    by_pair: dict[tuple[str, str], list[Sample]] = {}
    for sample in dataset.samples:
        by_pair.setdefault((sample.groups["task"], sample.groups["subtask"]), []).append(sample)
    piles = list(by_pair.values())
    generator.shuffle(piles)
    for pile in by_pair.values():
        generator.shuffle(pile)
    drawn: list[str] = []
    for layer in itertools.zip_longest(*piles):
        drawn += [sample.id for sample in layer if sample is not None]
    selected = set(drawn[:count])
    return [sample for sample in dataset.samples if sample.id in selected]


def add_wordings(
    dataset: LoadedDataset,
    tasks: Sequence[Sample],
    wordings: Mapping[str, Sequence[Wording]],
    problems: Sequence[Problem],
) -> LoadedDataset:
    """Return a dataset of each task as it is written, followed by the task in each of its wordings.

    Each is a sample of its own; its group `of` is the id of the task.
    """
    samples: list[Sample] = []
    for sample in tasks:
        groups = {**sample.groups, "of": sample.id}
        samples.append(replace(sample, groups={**groups, "style": AS_WRITTEN}))
        samples += [_reword_sample(sample, wording, groups) for wording in wordings.get(sample.id, ())]
    digest = digest_samples(samples)
    return replace(dataset, samples=tuple(samples), digest=digest, problems=(*dataset.problems, *problems))


def _reword_sample(sample: Sample, wording: Wording, groups: Mapping[str, str]) -> Sample:
    """Return the sample with another prompt. A digest of it is in the id: the same text is the same sample in every
    run."""
    turn = sample.turns[0]
    prompt: list[Part] = []
    for part in turn.prompt:
        if isinstance(part, Text):
            prompt.append(Text(wording.prompt))
        else:
            prompt.append(part)
    digest = hashlib.sha256(wording.prompt.encode()).hexdigest()[:6]
    turn = replace(turn, prompt=tuple(prompt), file=turn.file.replace(".png", f"~{digest}.png"))
    return replace(sample, id=f"{sample.id}~{digest}", turns=(turn,), groups={**groups, "style": wording.style})


def find_faults(prompt: str, wording: str, others: Sequence[str] = ()) -> list[str]:
    """Return what is wrong with a wording by rule. The texts are part of the request for a better one."""
    normalized = _normalize(wording)
    if not normalized:
        return ["it is empty"]
    if normalized == _normalize(prompt):
        return ["it is the request itself"]
    if normalized in map(_normalize, others):
        return ["it is another wording once more"]
    quotations = [text for text in find_quotations(prompt) if _normalize(text) not in normalized]
    faults = [f"it lacks the quotation {quotation!r}" for quotation in quotations]
    words = {_strip_possessive(word) for word in WORD.findall(normalized)}
    names = [name for name in dict.fromkeys(_find_names(remove_quotations(prompt))) if name.casefold() not in words]
    faults += [f"it lacks the name {name!r}" for name in names]
    numbers = _find_numbers(wording)
    if words & {"one", "一", "single"}:
        numbers.append("1")
    missing = [number for number in dict.fromkeys(_find_numbers(prompt)) if number not in numbers]
    return faults + [f"it lacks {number}" for number in missing]


def read_wordings(
    path: Path, dataset: LoadedDataset, max_wordings: int
) -> tuple[dict[str, list[Wording]], list[Problem]]:
    """Return wordings by task, at most `max_wordings` of each (0: all), and a warning for each doubtful entry.

    A task may be named by its id, or like its output file (`travel_plan_gen/3`). Raises UserError if an entry has no
    task or prompt, or if no entry is of a task of this dataset.
    """
    samples = {sample.id: sample for sample in dataset.samples}
    for sample in dataset.samples:
        samples[sample.turns[0].file.removesuffix(".png")] = sample
    wordings: dict[str, list[Wording]] = {}
    problems: list[Problem] = []
    for index, entry in enumerate(_read_entries(path)):
        label = f"entry {index}"
        task, wording = _read_entry(entry, f"{path}: {label}")
        if task not in samples:
            problems.append(Problem("warning", path.name, label, "task", f"there is no task {task[:80]!r} here"))
            continue
        if wording.style == AS_WRITTEN:
            raise UserError(
                f"{path}: {label}: `{AS_WRITTEN}` is the style of the dataset's own prompts; give another style"
            )
        prompt = samples[task].turns[0].prompt_text
        accepted = wordings.setdefault(samples[task].id, [])
        others = [other.prompt for other in accepted]
        if wording.prompt in (prompt, *others):
            message = "is the task's own prompt, or repeats another wording"
            problems.append(Problem("warning", path.name, label, "prompt", message))
            continue
        if max_wordings and len(accepted) >= max_wordings:
            continue
        faults = find_faults(prompt, wording.prompt, others)
        if faults:
            message = f"may not ask for the same: {'; '.join(faults)}"
            problems.append(Problem("warning", path.name, label, "prompt", message))
        if not wording.style:
            wording = replace(wording, style=f"wording {len(accepted) + 1}")
        accepted.append(wording)
    if not any(wordings.values()):
        raise UserError(f"{path} has no wording of any task of this dataset")
    return {task: accepted for task, accepted in wordings.items() if accepted}, problems


def _read_entries(path: Path) -> list[Any]:
    data = read_bytes_file(path)
    if data.lstrip()[:1] == b"[":
        return parse_json(data, path)
    entries: list[Any] = []
    for number, line in enumerate(data.splitlines(), start=1):
        if line.strip():
            entries.append(parse_json(line, f"{path}: line {number}"))
    return entries


def _read_entry(entry: Any, label: str) -> tuple[str, Wording]:
    """Return the task's name and the wording, which has an empty style if the entry has none."""
    fields = dict_or_empty(entry)
    task = fields.get("task")
    prompt = fields.get("prompt")
    style = fields.get("style") or ""
    if not isinstance(task, str) or not isinstance(prompt, str) or not prompt.strip() or not isinstance(style, str):
        raise UserError(f"{label}: give `task` and `prompt` as texts, and `style` if it has a name")
    return task, Wording(style, prompt)


def _find_names(text: str) -> list[str]:
    """Return capitalised words that do not begin a sentence; none in German, where every noun is capitalised."""
    words = {word.casefold() for word in WORD.findall(text)}
    if len(words & set(GERMAN_WORDS.split())) > 1:
        return []
    names: list[str] = []
    for match in WORD.finditer(text):
        word = _strip_possessive(match.group())
        if word in PRONOUNS or not word[:1].isupper() or any(map(str.isdigit, word)):
            continue
        before = text[: match.start()].rstrip()
        gap = text[len(before) : match.start()]
        if before and before[-1] not in SENTENCE_ENDS and "\n" not in gap:
            names.append(word)
    return names


def _strip_possessive(word: str) -> str:
    return re.sub(r"['\u2019](?:s)?$", "", word)


def _find_numbers(text: str) -> list[str]:
    """Return numbers, in digits or in words, and names of letters and digits (`b2`). The word `one` is seldom a
    number."""
    text = text.casefold()
    numbers = CODE.findall(text)
    for digits in DIGITS.findall(CODE.sub(" ", text)):
        if THOUSANDS.fullmatch(digits):
            digits = digits.replace(",", "")
        numbers.append(digits)
    for word in (*re.findall(r"[a-z]+", text), *text):
        if word in NUMBERS and word not in ("one", "一"):
            numbers.append(NUMBERS[word])
    return numbers


def _normalize(text: str) -> str:
    return " ".join(text.casefold().split())
