"""A paper's exact prompts, read from the user's own checkout of the official repository: text files as they are; Python files are parsed
with `ast` and never imported or run: only assignments of string constants at their top level are taken."""

import ast
from collections.abc import Iterable
from pathlib import Path

from weft.errors import UserError
from weft.outside import text_file


def read_constants(checkout: Path, file: str, names: Iterable[str]) -> dict[str, str]:
    """Named string constants of one file of a checkout."""
    path = _inside(checkout, file)
    try:
        tree = ast.parse(text_file(path), filename=str(path))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UserError(f"{path} cannot be parsed: {error}") from None
    found: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            found.update({target.id: node.value.value for target in node.targets if isinstance(target, ast.Name)})
    missing = [name for name in names if name not in found]
    if missing:
        raise UserError(f"{path} has no string constant {', '.join(missing)}; is it the official repository?")
    return {name: found[name] for name in names}


def read_files(checkout: Path, files: Iterable[str]) -> dict[str, str]:
    """Whole files of a checkout."""
    return {file: text_file(_inside(checkout, file)).replace("\r\n", "\n") for file in files}


def _inside(checkout: Path, file: str) -> Path:
    path = checkout / file
    if not path.is_file():
        raise UserError(f"--prompts official:{checkout}: there is no {file} in it; point it at a checkout of the official repository")
    return path
