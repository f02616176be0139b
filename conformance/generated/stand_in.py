"""What stands in for a checkout's prompts, on both sides; and weft as the recorded comparison runs it."""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import weft
from conformance.server import Asked
from weft.calls.caller import RetryPolicy

QUICK = RetryPolicy(tries=2, base=0.001, cap=0.002)


def constants(**texts: str) -> str:
    """A Python file with these constants."""
    return "".join(f"{name} = {text!r}\n" for name, text in texts.items())


def evaluate(benchmark: str, data: Path, home: Path, model: str, judge: str, **options: Any) -> weft.Run:
    return weft.evaluate(
        benchmark, data=data, home=home, model=model, judge=judge, retry_policy=QUICK, preflight=False, **options
    )


def options_of(words: Iterable[str]) -> dict[str, Any]:
    """Keywords of `weft.evaluate` for options of the command line."""
    options: dict[str, Any] = {}
    for name, value in zip(*[iter(words)] * 2, strict=True):
        if name == "--model-opt":
            key, _, given = value.partition("=")
            options.setdefault("model_options", {})[key] = given
        else:
            options[name.removeprefix("--").replace("-", "_")] = value
    return options


def sometimes(
    judge: Callable[[Asked], str], replies: Sequence[str], every: int, salt: str = ""
) -> Callable[[Asked], str]:
    """A judge that says one of these to some questions, and says it again when weft objects."""

    def answer(asked: Asked) -> str:
        chance = random.Random(first_question(asked).seed + salt)
        return chance.choice(replies) if chance.randrange(every) == 0 else judge(asked)

    return answer


def first_question(asked: Asked) -> Asked:
    """The request without what weft objects to in the reply to it."""
    roles = [role for role, _ in asked.messages]
    return replace(asked, messages=asked.messages[: roles.index("assistant")]) if "assistant" in roles else asked
