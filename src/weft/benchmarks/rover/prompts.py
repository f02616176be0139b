"""ROVER's own prompts, read from a checkout of its repository (`prompts.py`), and how the released code fills them."""

import ast
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from weft.benchmarks.prompts import Rubrics, build_rubrics
from weft.errors import UserError
from weft.judges.official_prompts import read_constants
from weft.untrusted import read_text_file

FILE = "prompts.py"
EVALUATOR = "evaluator.py"
NO_TEXT = "nothing said"  # under which its words for a missing text are kept
FIELD = re.compile(r"\{\{|\}\}|\{(\w+)\}")


def read_official_rubrics(
    checkout: Path, constants: Mapping[str, str], text_name: str, settings: Mapping[str, Any]
) -> Rubrics:
    found = read_constants(checkout, FILE, constants.values())
    texts = {name: found[constant] for name, constant in constants.items()}
    texts[NO_TEXT] = _nothing(checkout, text_name)
    return replace(build_rubrics(texts, f"official {FILE}"), settings=settings)


def format_prompt(text: str, slots: Mapping[str, str]) -> str:
    """As `str.format` fills a prompt: names in braces, and doubled braces for braces. What is filled in is not looked
    at again."""

    def one(match: re.Match[str]) -> str:
        if match.group(1) is None:
            return match.group()[0]
        if match.group(1) not in slots:
            raise UserError(
                f"a prompt of the checkout has a slot {match.group()!r} that weft does not know: is it another version?"
            )
        return slots[match.group(1)]

    return FIELD.sub(one, text)


def _nothing(checkout: Path, name: str) -> str:
    """What the evaluator says in place of a text that is not there: `x if x else "..."`, or `if not x: x = "..."`."""
    path = checkout / EVALUATOR
    if not path.is_file():
        raise UserError(
            f"--prompts official:{checkout}: there is no {EVALUATOR} in it; point it at a checkout of the official repository"
        )
    try:
        tree = ast.parse(read_text_file(path), filename=str(path))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UserError(f"{path} cannot be parsed: {error}") from None
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.IfExp)
            and isinstance(node.test, ast.Name)
            and node.test.id == name
            and isinstance(node.orelse, ast.Constant)
        ):
            return str(node.orelse.value)
        named = isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == name for target in node.targets
        )
        if (
            named
            and isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            return node.value.value
    raise UserError(f"{path} does not say what a judge is told where there is no text; is it the official repository?")
