"""The judge's questions about stored answers: which of two is better, and how good one is in seven respects.

With our rubrics what a dataset or a model wrote is fenced off. With the official prompts the message is what the released scripts send:
steps of words and pictures under bare tags, every picture squashed to 512 x 512. Material: `input`, `first`, `second` as the question shows
them, or `output`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.arena import released
from weft.arena.contest import Duel, Made
from weft.arena.tables import CRITERIA
from weft.benchmarks.base import Answered
from weft.benchmarks.documents import TOLD, Section, Sheet, laid_out
from weft.benchmarks.prompts import Rubrics, filled, object_schema, rubrics_of
from weft.store.blobs import Blobs
from weft.types import Image, Message, Part, Question, Text

BATTLE = "battle"
WINNERS = ("A", "B", "Tie(A)", "Tie(B)")
AB, BA = "order AB", "order BA"
FULL = 10


def official(checkout: Path, which: str) -> Rubrics:
    texts = {"system": released.system_prompt(checkout, which), "closing": released.closing(checkout, which)}
    return rubrics_of(texts, f"official {released.SCRIPTS[which]}")


def rivals(duel: Duel, order: str) -> tuple[Made, Made]:
    """Who stands as A, and who as B."""
    return (duel.first, duel.second) if order == AB else (duel.second, duel.first)


def battle_sections(answered: Answered, order: str) -> list[Section]:
    a, b = rivals(answered.turn.gold, order)
    return [
        Section("INPUT:", "what was asked for", answered.turn.ask),
        Section("OUTPUT_A:", "what the first model made", a.parts),
        Section("OUTPUT_B:", "what the second model made", b.parts),
    ]


def answer_sections(answered: Answered) -> list[Section]:
    duel: Duel = answered.turn.gold
    return [Section("INPUT:", "what was asked for", answered.turn.ask), Section("OUTPUT:", "what the model made", duel.first.parts)]


def about_battle(answered: Answered, order: str, sheets: Sequence[Sheet] = ()) -> Question:
    a, b = rivals(answered.turn.gold, order)
    schema = object_schema(reasoning={"type": "string"}, winner={"type": "string", "enum": list(WINNERS)})
    material = {"input": answered.turn.ask, "first": a.parts, "second": b.parts}
    messages = _ours(answered, "battle", battle_sections(answered, order), sheets)
    return Question((BATTLE,), messages, schema, answered.place, material=material, gold=answered.turn.gold, variant=order)


def about_answer(answered: Answered, sheets: Sequence[Sheet] = ()) -> Question:
    duel: Duel = answered.turn.gold
    messages = _ours(answered, "criteria", answer_sections(answered), sheets)
    material = {"input": answered.turn.ask, "output": duel.first.parts}
    return Question(
        CRITERIA, messages, criteria_schema(), answered.place, material=material, value="Score", reason="Justification", gold=duel
    )


def criteria_schema() -> dict[str, Any]:
    entry = object_schema(Justification={"type": "string"}, Score={"type": "integer", "minimum": 0, "maximum": FULL})
    return object_schema(**dict.fromkeys(CRITERIA, entry))


def _ours(answered: Answered, which: str, sections: Sequence[Section], sheets: Sequence[Sheet]) -> tuple[Message, ...]:
    system = filled(answered.rubrics.texts[which], {"sheets": [Text(TOLD if sheets else "")]})
    return Message("system", system), Message("user", tuple(laid_out(sections, sheets)))


# as the released scripts ask


def released_battle(answered: Answered, order: str, blobs: Blobs) -> Question:
    a, b = rivals(answered.turn.gold, order)
    sections = [("<INPUT>: ", answered.turn.ask), ("<OUTPUT_A>: ", a.parts), ("\n<OUTPUT_B>: ", b.parts)]
    schema = object_schema(reasoning={"type": "string"}, winner={"type": "string", "enum": list(WINNERS)})
    accepts = {**schema, "required": ["winner"]}
    material = {"input": answered.turn.ask, "first": a.parts, "second": b.parts}
    messages = _theirs(answered, sections, "\n<OUTPUT_A>:", blobs)
    gold = answered.turn.gold
    more: Mapping[str, Any] = {"material": material, "gold": gold, "variant": order, "accepts": accepts, "plain": True, "jpeg": True}
    return Question((BATTLE,), messages, schema, answered.place, **more)


def released_answer(answered: Answered, blobs: Blobs) -> Question:
    duel: Duel = answered.turn.gold
    sections = [("INPUT: ", answered.turn.ask), ("\nOUTPUT: ", duel.first.parts)]
    material = {"input": answered.turn.ask, "output": duel.first.parts}
    more: Mapping[str, Any] = {"material": material, "value": "Score", "reason": "Justification", "gold": duel, "jpeg": True}
    return Question(CRITERIA, _theirs(answered, sections, "\nOUTPUT: None", blobs), criteria_schema(), answered.place, **more)


def _theirs(answered: Answered, sections: Sequence[tuple[str, Sequence[Part]]], empty: str, blobs: Blobs) -> tuple[Message, ...]:
    parts: list[Part] = []
    number = 0
    for tag, some in sections:
        steps = steps_of(some, markers=tag.lstrip("\n").startswith(("<INPUT", "INPUT")))
        bare = empty if "OUTPUT" in tag and not tag.startswith("\n<OUTPUT_B") else tag.rstrip()
        if not steps:
            parts.append(Text(bare))
            continue
        for at, (text, image) in enumerate(steps):
            said = text
            if image is not None:
                said += f" <IMG_{number}></IMG_{number}>"
                number += 1
            parts.append(Text(said if at else tag + said if said else bare))
            parts += [blobs.put_picture(squashed(image, blobs))] if image is not None else []
    parts.append(Text(answered.rubrics.texts["closing"]))
    return Message("system", (Text(answered.rubrics.texts["system"]),)), Message("user", tuple(parts))


def steps_of(parts: Sequence[Part], *, markers: bool) -> list[tuple[str, Image | None]]:
    """Words with the picture that follows them, as OpenING keeps them; markers for places of pictures are left out."""
    steps: list[tuple[str, Image | None]] = []
    for part in parts:
        if isinstance(part, Image):
            if steps and steps[-1][1] is None:
                steps[-1] = (steps[-1][0], part)
            else:
                steps.append(("", part))
        elif isinstance(part, Text) and part.text.strip():
            said = part.text.strip().replace("<image>", "")
            steps.append((said.replace("<BEGIN>", "") if markers else said, None))
    return steps


def squashed(image: Image, blobs: Blobs) -> Any:
    with blobs.opened(image) as opened:
        return opened.convert("RGB").resize((released.SIDE, released.SIDE))
