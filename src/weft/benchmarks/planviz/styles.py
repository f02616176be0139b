"""A task in other words: wordings by a model or from a file, each of which must still ask for the same.

A wording is held to its task twice. By rule: what the task quotes, its numbers and its names must be in it, and it must be no copy. By the
model, which is shown each wording beside the task and its key points: nothing may be lost, nothing given away. A wording that fails is
asked for once more, with what is wrong; if that is no better it is left out, which is said. What a person wrote in a file is held to the
rule alone, and never left out for it.

    {"task": "travel_plan_gen-3f2a91bc", "style": "casual chat", "prompt": "..."}       one such object a line, or a list of them
"""

import asyncio
import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from weft.benchmarks.planviz.data import Goal
from weft.benchmarks.planviz.style_tables import AS_WRITTEN
from weft.benchmarks.prompts import Rubrics, fence, filled, object_schema
from weft.benchmarks.records import digest_of
from weft.errors import UserError, WeftError
from weft.judges.parse import Unusable, read_reply
from weft.models.baselines import STAND_IN
from weft.models.http import fields
from weft.outside import bytes_file, json_from
from weft.types import Dataset, Message, Model, Part, Place, Problem, Question, Sample, Text, Want

STYLES = {  # of language, not of pictures
    "polite request": "a courteous request to somebody one does not know well",
    "short command": "as few words as will do, in the imperative",
    "casual chat": "a message to a friend, relaxed, with contractions",
    "formal letter": "the measured, complete sentences of an official letter",
    "question": "asked as a question",
    "plain words": "short sentences and everyday words, as for somebody who is learning the language",
    "specification": "like an item of a technical specification: precise, impersonal, `shall`",
    "background first": "first one sentence why it is wanted, which adds no demand, then what is wanted",
    "spoken": "as dictated to a phone: one breath, fillers, no punctuation to speak of",
    "notes": "a list of keywords and fragments, as on a slip of paper",
}
WORDS = "zero one two three four five six seven eight nine ten eleven twelve"
NUMBERS: dict[str, str] = {  # in words, by their figures
    **{word: str(at) for at, word in enumerate(WORDS.split())},
    **{word: str(at) for at, word in enumerate("零一二三四五六七八九十")},
    "两": "2",
}
NAME = re.compile(r"(?<![.!?:\n] )(?<!^)\b[A-Z][\w&'-]*")  # a capital that no sentence begins with
QUOTED = re.compile(r'"([^"]+)"|\u201c([^\u201d]+)\u201d|\u300c([^\u300d]+)\u300d')
FIGURE = re.compile(r"[a-z]*\d+(?:[.,:]\d+)*[a-z]*")
MOST = 50


class Wording(Struct, frozen=True):
    style: str
    prompt: str


def is_file(reword: str) -> bool:
    return reword.endswith((".json", ".jsonl"))


def chosen(dataset: Dataset, count: int, seed: int) -> list[Sample]:
    """So many tasks, at random, as evenly over the sub-tasks and tasks as they are there; in the order of the dataset."""
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


def with_wordings(dataset: Dataset, tasks: Sequence[Sample], said: Mapping[str, Sequence[Wording]], problems: Sequence[Problem]) -> Dataset:
    """Each task as it is written, then in each of its wordings; all are samples of their own, which know the task they are of."""
    made: list[Sample] = []
    for sample in tasks:
        of = {**sample.groups, "of": sample.id}
        made.append(replace(sample, groups={**of, "style": AS_WRITTEN}))
        for number, wording in enumerate(said.get(sample.id, ()), start=1):
            turn = sample.turns[0]
            ask = tuple(Text(wording.prompt) if isinstance(part, Text) else part for part in turn.ask)
            other = replace(turn, ask=ask, file=turn.file.replace(".png", f"~{number}.png"))
            made.append(replace(sample, id=f"{sample.id}~{number}", turns=(other,), groups={**of, "style": wording.style}))
    return replace(dataset, samples=tuple(made), digest=digest_of(made), problems=(*dataset.problems, *problems))


def faults(prompt: str, wording: str, others: Sequence[str] = ()) -> list[str]:
    """What is wrong with a wording by rule."""
    said = _spaced(wording)
    if not said:
        return ["it is empty"]
    if said == _spaced(prompt):
        return ["it is the request itself"]
    if said in map(_spaced, others):
        return ["it is another wording once more"]
    told = [f"it lacks the quotation {quote!r}" for quote in _quoted(prompt) if _spaced(quote) not in said]
    words = set(re.findall(r"[\w&'-]+", said))
    told += [f"it lacks the name {name!r}" for name in dict.fromkeys(NAME.findall(QUOTED.sub(" ", prompt))) if name.casefold() not in words]
    there = [*_figures(wording), *(["1"] if words & {"one", "一", "single"} else [])]
    told += [f"it lacks {number}" for number in dict.fromkeys(_figures(prompt)) if number not in there]
    return told


def from_file(path: Path, dataset: Dataset, most: int) -> tuple[dict[str, list[Wording]], list[Problem]]:
    """Wordings by task. A task may be called by its id, or as its output file is (`travel_plan_gen/3`)."""
    data = bytes_file(path)
    whole = data.lstrip()[:1] == b"["
    found: Any = json_from(data, path) if whole else [json_from(line, f"{path}: line {at}") for at, line in _lines(data)]
    known = {sample.id: sample for sample in dataset.samples}
    known |= {sample.turns[0].file.removesuffix(".png"): sample for sample in dataset.samples}
    made: dict[str, list[Wording]] = {}
    problems: list[Problem] = []
    for at, one in enumerate(found):
        facts = fields(one)
        task, prompt, style = facts.get("task"), facts.get("prompt"), facts.get("style")
        if not isinstance(task, str) or not isinstance(prompt, str) or not prompt.strip() or not isinstance(style or "", str):
            raise UserError(f"{path}: entry {at}: give `task` and `prompt` as texts, and `style` if it has a name")
        if task not in known:
            problems.append(Problem("warning", path.name, f"entry {at}", "task", f"there is no task {task[:80]!r} here"))
            continue
        sample = known[task]
        some = made.setdefault(sample.id, [])
        if most and len(some) >= most:
            continue
        wrong = faults(sample.turns[0].words, prompt, [other.prompt for other in some])
        if wrong:
            problems.append(Problem("warning", path.name, f"entry {at}", "prompt", f"may not ask for the same: {'; '.join(wrong)}"))
        some.append(Wording(str(style or f"wording {len(some) + 1}"), prompt))
    if not made:
        raise UserError(f"{path} has no wording of any task of this dataset")
    return made, problems


class Reworder:
    """Has a model say tasks in other words, and look at them again."""

    def __init__(self, model: Model, rubrics: Rubrics, count: int) -> None:
        names = list(STYLES)
        self._model, self._texts = model, rubrics.texts
        self._styles = [names[at % len(names)] + ("" if at < len(names) else f" {at // len(names) + 1}") for at in range(count)]

    async def all(self, tasks: Sequence[Sample]) -> tuple[dict[str, list[Wording]], list[Problem]]:
        async with asyncio.TaskGroup() as group:
            asked = {sample.id: group.create_task(self.one(sample)) for sample in tasks}
        found = {task: done.result() for task, done in asked.items()}
        return {task: some for task, (some, _) in found.items()}, [problem for _, some in found.values() for problem in some]

    async def one(self, sample: Sample) -> tuple[list[Wording], list[Problem]]:
        good: dict[str, str] = {}
        wrong: dict[str, list[str]] = {style: [] for style in self._styles}
        for _ in range(2):
            drafts = await self._drafts(sample, wrong, list(good.values()))
            if drafts is None:  # nobody is really asked
                await self._looked_at(sample, [sample.turns[0].words] * len(self._styles))
                return [Wording(style, sample.turns[0].words) for style in self._styles], []
            checked = await self._checked(sample, drafts, list(good.values()))
            good |= {style: text for style, text in drafts.items() if style in checked and not checked[style]}
            wrong = {style: checked.get(style, ["nothing usable came back"]) for style in self._styles if style not in good}
            if not wrong:
                break
        problems = [
            Problem("warning", "", sample.id, style, f"this wording is left out: {'; '.join(why)[:300]}") for style, why in wrong.items()
        ]
        return [Wording(style, good[style]) for style in self._styles if style in good], problems

    async def _drafts(self, sample: Sample, wrong: Mapping[str, Sequence[str]], others: Sequence[str]) -> dict[str, str] | None:
        styles = list(wrong)
        listed = "\n".join(f"{at}. {style}: {STYLES[re.sub(r' [0-9]+$', '', style)]}" for at, style in enumerate(styles, start=1))
        objections = [f"{at}. {'; '.join(wrong[style])}" for at, style in enumerate(styles, start=1) if wrong[style]]
        again = [Text("\nAn earlier try was not good enough:\n"), *fence([Text("\n".join(objections))], "what was wrong with it")]
        number = {"type": "integer", "enum": list(range(1, len(styles) + 1))}
        entry = object_schema(style=number, wording={"type": "string"})
        schema = object_schema(wordings={"type": "array", "items": entry, "minItems": len(styles), "maxItems": len(styles)})
        slots: dict[str, Sequence[Part]] = {"styles": [Text(listed)], "again": again if objections else []}
        material = {"styles": tuple(map(Text, styles)), "others": tuple(map(Text, others))}
        found = await self._asked("reword", sample, schema, slots, material)
        if found is None:
            return None
        return {styles[one["style"] - 1]: str(one["wording"]).strip() for one in found.get("wordings", ())}

    async def _checked(self, sample: Sample, drafts: Mapping[str, str], others: Sequence[str]) -> dict[str, list[str]]:
        """What is wrong with each, by rule, or else by the model."""
        told: dict[str, list[str]] = {}
        seen = list(others)
        for style, text in drafts.items():
            told[style] = faults(sample.turns[0].words, text, seen)
            seen.append(text)
        left = [style for style, wrong in told.items() if not wrong]
        if not left:
            return told
        found = await self._looked_at(sample, [drafts[style] for style in left])
        said: dict[str, dict[str, Any]] = {left[one["wording"] - 1]: one for one in found.get("wordings", ())}
        for style in left:
            one = said.get(style)
            told[style] = ["nobody could say whether it asks for the same"] if one is None else []
            told[style] += [f"it lost: {what}" for what in one["lost"]] + [f"it added: {what}" for what in one["added"]] if one else []
        return told

    async def _looked_at(self, sample: Sample, wordings: Sequence[str]) -> dict[str, Any]:
        listed = Text("\n\n".join(f"{at}. {wording}" for at, wording in enumerate(wordings, start=1)))
        due = len(wordings)
        texts = {"type": "array", "items": {"type": "string"}}
        entry = object_schema(wording={"type": "integer", "enum": list(range(1, due + 1))}, lost=texts, added=texts)
        schema = object_schema(wordings={"type": "array", "items": entry, "minItems": due, "maxItems": due})
        slots: dict[str, Sequence[Part]] = {"wordings": fence([listed], "the wordings")}
        return await self._asked("kept", sample, schema, slots, {"wordings": tuple(map(Text, wordings))}) or {}

    async def _asked(
        self, name: str, sample: Sample, schema: dict[str, Any], slots: Mapping[str, Sequence[Part]], material: Mapping[str, Sequence[Part]]
    ) -> dict[str, Any] | None:
        """The reply, or an empty one if it cannot be used; None if nobody is really asked."""
        goal: Goal = sample.turns[0].gold
        prompt = sample.turns[0].words
        points = "\n".join(f"- {point}" for point in goal.points)
        task = fence([Text(f"Request: {prompt}\n\nKey points of a good picture:\n{points}")], "the request and its key points")
        messages = (Message("user", filled(self._texts[name], {"task": task, **slots})),)
        place = Place(sample.id, 0, "", "planviz")
        about = {"task": (Text(prompt),), "points": tuple(map(Text, goal.points)), **{key: tuple(some) for key, some in material.items()}}
        question = Question((name,), messages, schema, place, about)
        reply = await self._model.reply(messages, Want("text", schema, place=place, question=question))
        if reply.reason == STAND_IN:
            return None
        if reply.outcome == "failed":
            raise WeftError(
                f"{sample.id} could not be said in other words: {reply.reason}; what was answered is kept: the same command goes on"
            )
        try:
            return read_reply(reply.text, schema)
        except Unusable:
            return {}


def _quoted(text: str) -> list[str]:
    return [next(one for one in match.groups() if one is not None) for match in QUOTED.finditer(text)]


def _figures(text: str) -> list[str]:
    """Numbers, in figures or in words, and what has figures in it (`b2`). The word `one` is seldom a number."""
    said = text.casefold()
    words = [word for word in (*re.findall(r"[a-z]+", said), *said) if word in NUMBERS and word not in ("one", "一")]
    return [*FIGURE.findall(said), *(NUMBERS[word] for word in words)]


def _spaced(text: str) -> str:
    return " ".join(text.casefold().split())


def _lines(data: bytes) -> list[tuple[int, bytes]]:
    return [(at, line) for at, line in enumerate(data.splitlines(), start=1) if line.strip()]
