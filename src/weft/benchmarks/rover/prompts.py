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
NO_TEXT = "nothing said"  # the rubric that holds the released text for a missing answer
SLOT = re.compile(r"\{\{|\}\}|\{(\w+)\}")


def read_official_rubrics(
    checkout: Path, constants: Mapping[str, str], text_name: str, settings: Mapping[str, Any]
) -> Rubrics:
    """Return the released prompts. `constants` maps rubrics to constants of the file; `text_name` is the evaluator's
    variable for the model's text."""
    values = read_constants(checkout, FILE, constants.values())
    texts = {name: values[constant] for name, constant in constants.items()}
    texts[NO_TEXT] = _read_text_for_missing(checkout, text_name)
    return replace(build_rubrics(texts, f"official {FILE}"), settings=settings)


def format_prompt(text: str, slots: Mapping[str, str]) -> str:
    """Fill a prompt as `str.format` does: names in braces, and doubled braces for braces. What is filled in is not
    parsed again."""

    def fill(match: re.Match[str]) -> str:
        name = match.group(1)
        if name is None:
            return match.group()[0]
        if name not in slots:
            raise UserError(
                f"a prompt of the checkout has a slot {match.group()!r} that weft does not know: is it another version?"
            )
        return slots[name]

    return SLOT.sub(fill, text)


def _read_text_for_missing(checkout: Path, name: str) -> str:
    """Return the evaluator's text in place of a missing one: `x if x else "..."`, or `if not x: x = "..."`."""
    path = checkout / EVALUATOR
    if not path.is_file():
        raise UserError(
            f"--prompts official:{checkout}: there is no {EVALUATOR} in it; point it at a checkout of the official "
            "repository"
        )
    try:
        tree = ast.parse(read_text_file(path), filename=str(path))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UserError(f"{path} cannot be parsed: {error}") from None
    for node in ast.walk(tree):
        if isinstance(node, ast.IfExp) and _is_name(node.test, name) and isinstance(node.orelse, ast.Constant):
            return str(node.orelse.value)
        if isinstance(node, ast.Assign) and any(_is_name(target, name) for target in node.targets):
            value = node.value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                return value.value
    raise UserError(f"{path} does not say what a judge is told where there is no text; is it the official repository?")


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
