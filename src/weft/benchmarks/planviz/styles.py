"""Wordings by a model, in styles of language, each of which must still ask for the same.

A wording is checked against its task twice: by rule (`wordings.find_faults`), and by the model, which is shown each
wording with the task and its key points: nothing may be lost, nothing given away. A wording that fails is asked for
once more, with what is wrong; if that is no better it is left out, and reported.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any

from weft.benchmarks.planviz.data import PlanVizGold
from weft.benchmarks.planviz.rubric import name_points
from weft.benchmarks.planviz.wordings import Wording, find_faults
from weft.benchmarks.prompts import Rubrics, fence_pieces, fill_slots, object_schema
from weft.calls.structured_output import UnusableReply, read_reply
from weft.errors import WeftError
from weft.types import Message, Model, Part, Problem, Question, Request, Sample, Text, TurnRef

STYLES = {  # of language, not of images
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


class Reworder:
    """Has a model reword tasks, and check its own wordings."""

    def __init__(self, model: Model, rubrics: Rubrics, count: int) -> None:
        self._model = model
        self._texts = rubrics.texts
        self._styles = [_name_style(index) for index in range(count)]

    async def reword_all(self, tasks: Sequence[Sample]) -> tuple[dict[str, list[Wording]], list[Problem]]:
        """Return the wordings by task, and the problems.

        All tasks are awaited even if one fails: each call may have been paid for, and its reply is cached.
        """
        results = await asyncio.gather(*(self.reword(sample) for sample in tasks), return_exceptions=True)
        wordings_by_task: dict[str, list[Wording]] = {}
        problems: list[Problem] = []
        for sample, result in zip(tasks, results, strict=True):
            if isinstance(result, BaseException):
                raise result
            wordings_by_task[sample.id] = result[0]
            problems += result[1]
        return wordings_by_task, problems

    async def reword(self, sample: Sample) -> tuple[list[Wording], list[Problem]]:
        """Return the wordings of a task in the order of the styles, and a problem for each style without one."""
        accepted: dict[str, str] = {}
        faults_by_style: dict[str, list[str]] = {style: [] for style in self._styles}
        for _ in range(2):
            drafts = await self._write_drafts(sample, faults_by_style, list(accepted.values()))
            if drafts is None:  # in a dry run no model is called
                return await self._build_stand_ins(sample), []
            checked = await self._check_drafts(sample, drafts, list(accepted.values()))
            accepted |= {style: draft for style, draft in drafts.items() if not checked[style]}
            missing = [style for style in self._styles if style not in accepted]
            faults_by_style = {style: checked.get(style, ["nothing usable came back"]) for style in missing}
            if not faults_by_style:
                break
        problems: list[Problem] = []
        for style, faults in faults_by_style.items():
            message = f"this wording is left out: {'; '.join(faults)[:300]}"
            problems.append(Problem("warning", "", sample.id, style, message))
        return [Wording(style, accepted[style]) for style in self._styles if style in accepted], problems

    async def _build_stand_ins(self, sample: Sample) -> list[Wording]:
        """Return distinct copies of the task, so that a dry run counts the calls of a real one."""
        texts = [sample.turns[0].prompt_text + " " * index for index in range(1, len(self._styles) + 1)]
        await self._ask_for_check(sample, texts)
        return [Wording(style, text) for style, text in zip(self._styles, texts, strict=True)]

    async def _write_drafts(
        self, sample: Sample, faults_by_style: Mapping[str, Sequence[str]], others: Sequence[str]
    ) -> dict[str, str] | None:
        """Return a wording for each style; None if no model was really called."""
        styles = list(faults_by_style)
        count = len(styles)
        lines: list[str] = []
        objections: list[tuple[str, Sequence[Part]]] = []
        for number, style in enumerate(styles, start=1):
            lines.append(f"{number}. {style}: {STYLES[re.sub(r' [0-9]+$', '', style)]}")
            if faults_by_style[style]:
                objections.append((f"Style {number}", [Text("; ".join(faults_by_style[style]))]))
        slots: dict[str, Sequence[Part]] = {"styles": [Text("\n".join(lines))], "again": []}
        if objections:
            slots["again"] = [
                Text("\nAn earlier try was not good enough:\n"),
                *fence_pieces(objections, "what was wrong with it"),
            ]
        entry = object_schema(style={"type": "integer", "enum": list(range(1, count + 1))}, wording={"type": "string"})
        schema = object_schema(wordings={"type": "array", "items": entry, "minItems": count, "maxItems": count})
        material = {"styles": tuple(map(Text, styles)), "others": tuple(map(Text, others))}
        reply = await self._ask("reword", sample, schema, slots, material)
        if reply is None:
            return None
        drafts: dict[str, str] = {}
        for wording in reply.get("wordings", ()):
            drafts[styles[wording["style"] - 1]] = str(wording["wording"]).strip()
        return drafts

    async def _check_drafts(
        self, sample: Sample, drafts: Mapping[str, str], others: Sequence[str]
    ) -> dict[str, list[str]]:
        """Return the faults of each draft: those found by rule, or else those that the model finds."""
        faults_by_style: dict[str, list[str]] = {}
        earlier = list(others)
        for style, text in drafts.items():
            faults_by_style[style] = find_faults(sample.turns[0].prompt_text, text, earlier)
            earlier.append(text)
        unchecked = [style for style, faults in faults_by_style.items() if not faults]
        if not unchecked:
            return faults_by_style
        reply = await self._ask_for_check(sample, [drafts[style] for style in unchecked])
        for style in unchecked:
            faults_by_style[style] = ["nobody could say whether it asks for the same"]
        for entry in reply.get("wordings", ()):
            faults = [f"it lost: {text}" for text in entry["lost"]]
            faults += [f"it added: {text}" for text in entry["added"]]
            faults_by_style[unchecked[entry["wording"] - 1]] = faults
        return faults_by_style

    async def _ask_for_check(self, sample: Sample, wordings: Sequence[str]) -> dict[str, Any]:
        count = len(wordings)
        numbered = [(f"Wording {number}", [Text(wording)]) for number, wording in enumerate(wordings, start=1)]
        texts = {"type": "array", "items": {"type": "string"}}
        number = {"type": "integer", "enum": list(range(1, count + 1))}
        entry = object_schema(wording=number, lost=texts, added=texts)
        schema = object_schema(wordings={"type": "array", "items": entry, "minItems": count, "maxItems": count})
        slots: dict[str, Sequence[Part]] = {"wordings": fence_pieces(numbered, "the wordings")}
        return await self._ask("kept", sample, schema, slots, {"wordings": tuple(map(Text, wordings))}) or {}

    async def _ask(
        self,
        rubric: str,
        sample: Sample,
        schema: dict[str, Any],
        slots: Mapping[str, Sequence[Part]],
        material: Mapping[str, tuple[Part, ...]],
    ) -> dict[str, Any] | None:
        """Return the reply, an empty one if it cannot be used; None if no model was really called.

        Raises WeftError if the call failed.
        """
        gold: PlanVizGold = sample.turns[0].gold
        prompt = sample.turns[0].prompt_text
        task = fence_pieces(name_points(prompt, gold), "a request and the key points of a good picture")
        messages = (Message("user", fill_slots(self._texts[rubric], {"task": task, **slots})),)
        turn_ref = TurnRef(sample.id, 0, "", "planviz")
        task_material = {"task": (Text(prompt),), "points": tuple(map(Text, gold.points))}
        question = Question((rubric,), messages, schema, turn_ref, {**task_material, **material})
        reply = await self._model.reply(messages, Request("text", schema, turn_ref=turn_ref, question=question))
        if "stand-in" in reply.notes:
            return None
        if reply.outcome == "failed":
            raise WeftError(
                f"{sample.id} could not be reworded: {reply.reason}. What was answered is cached, and the same command "
                "asks for the rest; if it is never answered, give wordings in a file (--reword FILE), or draw other "
                "tasks (--seed)"
            )
        try:
            return read_reply(reply.text, schema)
        except UnusableReply:
            return {}


def _name_style(index: int) -> str:
    """Return the name of a style; after the last the first follows, as `polite request 2`."""
    names = list(STYLES)
    name = names[index % len(names)]
    if index < len(names):
        return name
    return f"{name} {index // len(names) + 1}"
