"""Wordings by a model, in styles of language; each of which must still ask for the same.

A wording is held to its task twice: by rule (`wordings.faults`), and by the model, which is shown each wording beside
the task and its key points: nothing may be lost, nothing given away. A wording that fails is asked for once more, with
what is wrong; if that is no better it is left out, which is said."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any

from weft.benchmarks.planviz.data import PlanVizGold
from weft.benchmarks.planviz.wordings import Wording, find_faults
from weft.benchmarks.prompts import Rubrics, fence, fill_slots, object_schema
from weft.calls.structured_output import UnusableReply, read_reply
from weft.errors import WeftError
from weft.types import Message, Model, Part, Problem, Question, Request, Sample, Text, TurnRef

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


class Reworder:
    """Has a model say tasks in other words, and look at them again."""

    def __init__(self, model: Model, rubrics: Rubrics, count: int) -> None:
        names = list(STYLES)
        self._model = model
        self._texts = rubrics.texts
        self._styles = [
            names[at % len(names)] + ("" if at < len(names) else f" {at // len(names) + 1}") for at in range(count)
        ]

    async def reword_all(self, tasks: Sequence[Sample]) -> tuple[dict[str, list[Wording]], list[Problem]]:
        """All come back, whatever becomes of one: each may have been paid for, and is kept."""
        found = await asyncio.gather(*(self.reword(sample) for sample in tasks), return_exceptions=True)
        raised = next((one for one in found if isinstance(one, BaseException)), None)
        if raised is not None:
            raise raised
        good = [one for one in found if not isinstance(one, BaseException)]
        said = {sample.id: wordings for sample, (wordings, _) in zip(tasks, good, strict=True)}
        return said, [problem for _, some in good for problem in some]

    async def reword(self, sample: Sample) -> tuple[list[Wording], list[Problem]]:
        good: dict[str, str] = {}
        wrong: dict[str, list[str]] = {style: [] for style in self._styles}
        for _ in range(2):
            drafts = await self._drafts(sample, wrong, list(good.values()))
            if drafts is None:  # nobody is really asked
                stand_ins = [sample.turns[0].prompt_text + " " * at for at in range(1, len(self._styles) + 1)]
                await self._looked_at(sample, stand_ins)
                return [Wording(style, text) for style, text in zip(self._styles, stand_ins, strict=True)], []
            checked = await self._checked(sample, drafts, list(good.values()))
            good |= {style: text for style, text in drafts.items() if style in checked and not checked[style]}
            wrong = {
                style: checked.get(style, ["nothing usable came back"]) for style in self._styles if style not in good
            }
            if not wrong:
                break
        problems = [
            Problem("warning", "", sample.id, style, f"this wording is left out: {'; '.join(why)[:300]}")
            for style, why in wrong.items()
        ]
        return [Wording(style, good[style]) for style in self._styles if style in good], problems

    async def _drafts(
        self, sample: Sample, wrong: Mapping[str, Sequence[str]], others: Sequence[str]
    ) -> dict[str, str] | None:
        styles = list(wrong)
        listed = "\n".join(
            f"{at}. {style}: {STYLES[re.sub(r' [0-9]+$', '', style)]}" for at, style in enumerate(styles, start=1)
        )
        objections = [f"{at}. {'; '.join(wrong[style])}" for at, style in enumerate(styles, start=1) if wrong[style]]
        again = [
            Text("\nAn earlier try was not good enough:\n"),
            *fence([Text("\n".join(objections))], "what was wrong with it"),
        ]
        number = {"type": "integer", "enum": list(range(1, len(styles) + 1))}
        entry = object_schema(style=number, wording={"type": "string"})
        schema = object_schema(
            wordings={"type": "array", "items": entry, "minItems": len(styles), "maxItems": len(styles)}
        )
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
            told[style] = find_faults(sample.turns[0].prompt_text, text, seen)
            seen.append(text)
        left = [style for style, wrong in told.items() if not wrong]
        if not left:
            return told
        found = await self._looked_at(sample, [drafts[style] for style in left])
        said: dict[str, dict[str, Any]] = {left[one["wording"] - 1]: one for one in found.get("wordings", ())}
        for style in left:
            one = said.get(style)
            told[style] = ["nobody could say whether it asks for the same"] if one is None else []
            told[style] += (
                [f"it lost: {what}" for what in one["lost"]] + [f"it added: {what}" for what in one["added"]]
                if one
                else []
            )
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
        self,
        name: str,
        sample: Sample,
        schema: dict[str, Any],
        slots: Mapping[str, Sequence[Part]],
        material: Mapping[str, Sequence[Part]],
    ) -> dict[str, Any] | None:
        """The reply, or an empty one if it cannot be used; None if nobody is really asked."""
        goal: PlanVizGold = sample.turns[0].gold
        prompt = sample.turns[0].prompt_text
        points = "\n".join(f"- {point}" for point in goal.points)
        task = fence(
            [Text(f"Request: {prompt}\n\nKey points of a good picture:\n{points}")], "the request and its key points"
        )
        messages = (Message("user", fill_slots(self._texts[name], {"task": task, **slots})),)
        place = TurnRef(sample.id, 0, "", "planviz")
        about = {
            "task": (Text(prompt),),
            "points": tuple(map(Text, goal.points)),
            **{key: tuple(some) for key, some in material.items()},
        }
        question = Question((name,), messages, schema, place, about)
        reply = await self._model.reply(messages, Request("text", schema, turn_ref=place, question=question))
        if "stand-in" in reply.notes:
            return None
        if reply.outcome == "failed":
            raise WeftError(
                f"{sample.id} could not be said in other words: {reply.reason}. What was answered is kept, and the same command asks for "
                "the rest; if it is never answered, give wordings in a file (--reword FILE), or draw other tasks (--seed)"
            )
        try:
            return read_reply(reply.text, schema)
        except UnusableReply:
            return {}
