"""The prompts that a judge gets about the replies of one dialogue: `await build_prompts("last", "garden-12", home)`.

They are built again from the stored replies by the benchmark's own code: nobody is asked. An image stands as a line
with its name."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from weft.errors import UserError
from weft.evaluation.config import RunConfig
from weft.evaluation.generate import group_dialogues
from weft.evaluation.session import open_run
from weft.evaluation.sources import StoredRun
from weft.judge_eval.annotation.questions import build_sample_questions
from weft.results.run import load_run
from weft.results.samples import find_sample
from weft.types import Image, Message, Question
from weft.workspace import open_journal


class JudgePrompt(Struct, frozen=True):
    """What a judge is sent to score one or several metrics of a turn."""

    metrics: tuple[str, ...]
    sample: str
    turn: int  # from 0
    variant: str  # which of several questions about one metric
    texts: tuple[tuple[str, str], ...]  # role and text of each message


async def build_prompts(
    run: str,
    sample: str,
    home: str | Path,
    *,
    turn: int | None = None,
    metrics: Sequence[str] = (),
    prompts: str = "weft",
    data: str | Path = "",
    benchmark: Any = None,
) -> list[JudgePrompt]:
    """Return the prompts about a stored dialogue in the order of its turns. `turn` counts from 1; all without it.
    `metrics`: only these. `prompts`: `weft`, or `official:DIR`, whatever the run's judge got.

    Raises UserError for a sample, a turn or a metric about which no judge is asked."""
    journal = open_journal(Path(home))
    try:
        stored = load_run(journal, run, benchmark)
    finally:
        journal.close()
    name = find_sample([record.sample for record in stored.turns], sample, stored.id)
    config = RunConfig(
        judge="constant/max", data=data, benchmark=benchmark, home=home, prompts=prompts, preflight=False
    )
    built: list[JudgePrompt] = []
    async with open_run(config, StoredRun(stored.id), dry=True) as session:
        replies = group_dialogues(stored.turns)
        for _, member in session.plan.own_samples():
            if member.id == name:
                asked = await build_sample_questions(session, member, replies.get(name, {}))
                built = [_build_prompt(one.question) for one in asked]
                break
    chosen = [prompt for prompt in built if turn in (None, prompt.turn + 1)]
    if metrics:
        chosen = [prompt for prompt in chosen if set(metrics) & set(prompt.metrics)]
    if not chosen:
        known = ", ".join(dict.fromkeys(f"{'+'.join(one.metrics)} (turn {one.turn + 1})" for one in built))
        raise UserError(f"{name}: there is no such question to a judge; there is {known or 'none at all'}")
    return chosen


def _build_prompt(question: Question) -> JudgePrompt:
    names: dict[str, str] = {}
    for name, parts in question.material.items():
        for part in parts:
            if isinstance(part, Image):
                names.setdefault(part.digest, name)
    texts = tuple((message.role, _write_message(message, names)) for message in question.messages)
    turn_ref = question.turn_ref
    return JudgePrompt(question.metrics, turn_ref.sample, turn_ref.turn, question.variant, texts)


def _write_message(message: Message, names: Mapping[str, str]) -> str:
    pieces: list[str] = []
    for part in message.parts:
        if isinstance(part, Image):
            name = names.get(part.digest, "")
            pieces.append(f"[image: {name}]" if name else "[image]")
        else:
            pieces.append(part.text.strip("\n"))
    return "\n".join(pieces)
