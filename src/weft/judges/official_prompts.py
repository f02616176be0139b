"""A paper's exact prompts, read from the user's own checkout of the official repository: text files as they are; Python
files are parsed with `ast` and never imported or run. Taken are string constants at a file's top level, and the texts
that a function puts together."""

import ast
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from weft.errors import UserError
from weft.untrusted import read_text_file


def read_constants(checkout: Path, file: str, names: Iterable[str]) -> dict[str, str]:
    """Named string constants of one file of a checkout."""
    path = _inside(checkout, file)
    found: dict[str, str] = {}
    for node in _parsed(path).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            found.update({target.id: node.value.value for target in node.targets if isinstance(target, ast.Name)})
    missing = [name for name in names if name not in found]
    if missing:
        raise UserError(f"{path} has no string constant {', '.join(missing)}; is it the official repository?")
    return {name: found[name] for name in names}


def read_files(checkout: Path, files: Iterable[str]) -> dict[str, str]:
    """Whole files of a checkout."""
    return {file: read_text_file(_inside(checkout, file)).replace("\r\n", "\n") for file in files}


class PromptFunction(Struct, frozen=True):
    """The texts of one function. A text that it puts together is known by the expressions in it, and becomes one with
    slots."""

    where: str
    body: ast.FunctionDef

    @classmethod
    def read(cls, checkout: Path, file: str, name: str) -> "PromptFunction":
        path = _inside(checkout, file)
        found = [node for node in _parsed(path).body if isinstance(node, ast.FunctionDef) and node.name == name]
        if not found:
            raise UserError(f"{path} has no function {name}; is it the official repository?")
        return cls(f"{path}, {name}", found[0])

    def find_template(self, slots: Mapping[str, str]) -> str:
        """The f-string that has exactly these expressions in it; `slots` has the name of each one's slot."""
        for node in ast.walk(self.body):
            if isinstance(node, ast.JoinedStr):
                pieces = [part.value if isinstance(part, ast.Constant) else part for part in node.values]
                inside = [ast.unparse(part.value) for part in pieces if isinstance(part, ast.FormattedValue)]
                if sorted(inside) == sorted(slots):
                    parts = [
                        f"[[{slots[ast.unparse(one.value)]}]]" if isinstance(one, ast.FormattedValue) else str(one)
                        for one in pieces
                    ]
                    return "".join(parts)
        raise self._strange(f"text with {', '.join(slots)}")

    def find_constant(self, name: str) -> str:
        """What a variable begins with."""
        for node in ast.walk(self.body):
            if isinstance(node, ast.Assign) and any(
                isinstance(target, ast.Name) and target.id == name for target in node.targets
            ):
                if isinstance(node.value, ast.BinOp):
                    value = node.value.left
                else:
                    value = node.value
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    return value.value
        raise self._strange(f"text in {name}")

    def find_default(self, key: str) -> str:
        """What stands in for a key that is not there: `.get(key, TEXT)`."""
        for node in ast.walk(self.body):
            if (
                isinstance(node, ast.Call)
                and len(node.args) == 2
                and isinstance(node.func, ast.Attribute)
                and node.func.attr == "get"
            ):
                name, value = node.args
                if isinstance(name, ast.Constant) and name.value == key and isinstance(value, ast.Constant):
                    return str(value.value)
        raise self._strange(f"text for a missing {key}")

    def find_alternatives(self, name: str) -> tuple[str, str]:
        """The two texts that a variable may have: if something is so, and if not."""
        for node in ast.walk(self.body):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.IfExp):
                then = node.value.body
                otherwise = node.value.orelse
                known = any(isinstance(target, ast.Name) and target.id == name for target in node.targets)
                if known and isinstance(then, ast.Constant) and isinstance(otherwise, ast.Constant):
                    return str(then.value), str(otherwise.value)
        raise self._strange(f"choice of {name}")

    def _strange(self, what: str) -> UserError:
        return UserError(f"{self.where} has no {what}; is it the official repository, at a version that weft knows?")


def _parsed(path: Path) -> ast.Module:
    try:
        return ast.parse(read_text_file(path), filename=str(path))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UserError(f"{path} cannot be parsed: {error}") from None


def _inside(checkout: Path, file: str) -> Path:
    path = checkout / file
    if not path.is_file():
        raise UserError(
            f"--prompts official:{checkout}: there is no {file} in it; point it at a checkout of the official repository"
        )
    return path
