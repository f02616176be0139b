"""A paper's exact prompts, read from the user's own checkout of the official repository.

Text files are read as they are. Python files are parsed with `ast` and never imported or run: read are string constants
at a file's top level, and the texts inside a function.
"""

import ast
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from weft.errors import UserError
from weft.untrusted import read_text_file


def read_constants(checkout: Path, file: str, names: Iterable[str]) -> dict[str, str]:
    """Read named string constants of one Python file of a checkout. Raises UserError where one is missing."""
    path = _find_file(checkout, file)
    constants: dict[str, str] = {}
    for node in _parse_file(path).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            constants.update(dict.fromkeys(_target_names(node), node.value.value))
    missing = [name for name in names if name not in constants]
    if missing:
        raise UserError(f"{path} has no string constant {', '.join(missing)}; is it the official repository?")
    return {name: constants[name] for name in names}


def read_files(checkout: Path, files: Iterable[str]) -> dict[str, str]:
    """Read whole text files of a checkout, with Unix line ends."""
    return {file: read_text_file(_find_file(checkout, file)).replace("\r\n", "\n") for file in files}


class PromptFunction(Struct, frozen=True):
    """The texts inside one function of a checkout. Every method raises UserError for a text that is not there."""

    where: str  # file and function, for messages
    body: ast.FunctionDef

    @classmethod
    def read(cls, checkout: Path, file: str, name: str) -> "PromptFunction":
        path = _find_file(checkout, file)
        for node in _parse_file(path).body:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return cls(f"{path}, {name}", node)
        raise UserError(f"{path} has no function {name}; is it the official repository?")

    def find_template(self, slots: Mapping[str, str]) -> str:
        """Return the f-string with exactly these expressions, each replaced by `[[NAME]]` of its slot."""
        for node in ast.walk(self.body):
            if not isinstance(node, ast.JoinedStr):
                continue
            expressions = [ast.unparse(part.value) for part in node.values if isinstance(part, ast.FormattedValue)]
            if sorted(expressions) == sorted(slots):
                return "".join(_fill_slot(part, slots) for part in node.values)
        raise self._missing(f"text with {', '.join(slots)}")

    def find_constant(self, name: str) -> str:
        """Return the text that a variable is first assigned, or that its first value begins with."""
        for node in ast.walk(self.body):
            if not isinstance(node, ast.Assign) or name not in _target_names(node):
                continue
            value = node.value
            if isinstance(value, ast.BinOp):
                value = value.left
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                return value.value
        raise self._missing(f"text in {name}")

    def list_part_texts(self) -> list[str]:
        """Return the texts that stand in messages as they are, in order: TEXT in `{"text": TEXT}`."""
        found: list[tuple[int, int, str]] = []
        for node in ast.walk(self.body):
            if not isinstance(node, ast.Dict):
                continue
            for key, value in zip(node.keys, node.values, strict=True):
                is_text = isinstance(key, ast.Constant) and key.value == "text"
                if is_text and isinstance(value, ast.Constant) and isinstance(value.value, str):
                    found.append((value.lineno, value.col_offset, value.value))
        if not found:
            raise self._missing("texts in a message")
        return [text for *_, text in sorted(found)]

    def find_default(self, key: str) -> str:
        """Return the default for a missing key: TEXT in `.get(key, TEXT)`."""
        for node in ast.walk(self.body):
            if not isinstance(node, ast.Call) or len(node.args) != 2:
                continue
            if not isinstance(node.func, ast.Attribute) or node.func.attr != "get":
                continue
            name, value = node.args
            if isinstance(name, ast.Constant) and name.value == key and isinstance(value, ast.Constant):
                return str(value.value)
        raise self._missing(f"text for a missing {key}")

    def find_alternatives(self, name: str) -> tuple[str, str]:
        """Return both texts of a variable that is assigned by `TEXT if ... else TEXT`."""
        for node in ast.walk(self.body):
            if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.IfExp):
                continue
            first = node.value.body
            second = node.value.orelse
            if name in _target_names(node) and isinstance(first, ast.Constant) and isinstance(second, ast.Constant):
                return str(first.value), str(second.value)
        raise self._missing(f"choice of {name}")

    def _missing(self, description: str) -> UserError:
        return UserError(
            f"{self.where} has no {description}; is it the official repository, at a version that weft knows?"
        )


def _fill_slot(part: ast.expr, slots: Mapping[str, str]) -> str:
    if isinstance(part, ast.FormattedValue):
        return f"[[{slots[ast.unparse(part.value)]}]]"
    if isinstance(part, ast.Constant):
        return str(part.value)
    return str(part)


def _target_names(node: ast.Assign) -> list[str]:
    return [target.id for target in node.targets if isinstance(target, ast.Name)]


def _parse_file(path: Path) -> ast.Module:
    try:
        return ast.parse(read_text_file(path), filename=str(path))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UserError(f"{path} cannot be parsed: {error}") from None


def _find_file(checkout: Path, file: str) -> Path:
    path = checkout / file
    if not path.is_file():
        raise UserError(
            f"--prompts official:{checkout}: there is no {file} in it; "
            "point it at a checkout of the official repository"
        )
    return path
