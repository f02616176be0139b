"""Which package may import which. docs/contribute/architecture.md explains the packages."""

import ast
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.benchmarks import Benchmark

SOURCE = Path(weft.__file__).parent
ROOT = Path(__file__).parent.parent
SCRIPT: dict[str, Any] = runpy.run_path(str(ROOT / "scripts" / "packages.py"))
ORDER: tuple[str, ...] = SCRIPT["ORDER"]
LATE = {  # names that are looked up when a user gives them, and lead to a later package
    ("models", "weft.benchmarks.outputs"): "folder/DIR reads outputs in a benchmark's own layout",
    ("models", "weft.judges.ocr"): "ocr is a judge by name",
    ("models", "weft.judges.detector"): "detector is a judge by name",
    ("models", "weft.judges.logprobs"): "logprobs is a judge by name",
    ("benchmarks", "weft.arena.protocol"): "a stored arena run is reported by its own code",
    ("benchmarks", "weft.arena.criteria"): "a stored arena run is reported by its own code",
    ("benchmarks", "weft.evaluation.writing"): "a stored document is reported by its own code",
}
TARGET = re.compile(r"(weft(?:\.[a-z_]+)+)(?::\w+)?")


def package(module: str) -> str:
    """The entry of ORDER that a module belongs to."""
    parts = module.split(".")[1:]
    return next((name for name in (".".join(parts[:2]), ".".join(parts[:1])) if name in ORDER), "")


def is_module(name: str) -> bool:
    place = SOURCE.parent / Path(*name.split("."))
    return place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()


def imports(file: Path) -> Iterator[tuple[str, int, bool]]:
    """Modules of weft that a file imports, wherever in it, or names in a string; those for type checkers alone are no
    edges."""
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "weft":
            whole = [f"{node.module}.{one.name}" for one in node.names]
            yield from ((one if is_module(one) else str(node.module), node.lineno, False) for one in whole)
        elif isinstance(node, ast.Import):
            yield from ((one.name, node.lineno, False) for one in node.names if one.name.startswith("weft."))
        elif isinstance(node, ast.Constant) and (found := TARGET.fullmatch(str(node.value))) and is_module(found[1]):
            yield found[1], node.lineno, True


@pytest.mark.parametrize("file", sorted(SOURCE.rglob("*.py")), ids=lambda file: str(file.relative_to(SOURCE)))
def test_no_import_and_no_target_in_a_string_goes_against_the_order(file: Path):
    mine = package(f"weft.{'.'.join(file.relative_to(SOURCE).with_suffix('').parts)}")
    if not mine:
        return
    allowed = {"", *ORDER[: ORDER.index(mine) + 1]}
    wrong = [
        f"{file.name}:{line} names {module}"
        for module, line, late in imports(file)
        if package(module) not in allowed and not (late and (mine, module) in LATE)
    ]
    assert not wrong


def test_every_package_is_in_the_order():
    there = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()} - {
        "__init__",
        "__main__",
    }
    assert there == {name.partition(".")[0] for name in ORDER}


@pytest.mark.parametrize("benchmark", ["weave", "imug", "rover", "planviz"])
def test_shared_code_does_not_know_a_benchmark(benchmark: str):
    """Only its own folder, the registry's line, and the command line name it."""
    known = {f"benchmarks/{benchmark}", "benchmarks/base.py", "cli"}
    for file in SOURCE.rglob("*.py"):
        place = str(file.relative_to(SOURCE))
        if not any(place.startswith(one) for one in known):
            modules = [module for module, *_ in imports(file)]
            assert not any(module.startswith(f"weft.benchmarks.{benchmark}") for module in modules), place


def test_a_benchmark_has_few_members():
    """A capability that one benchmark needs goes into an object of its own, not into the class that all share."""
    members = {name for name in {**vars(Benchmark), **Benchmark.__annotations__} if not name.startswith("_")}
    assert len(members) <= 25, sorted(members)


def test_no_file_is_too_long_to_read():
    lengths = {str(file.relative_to(SOURCE)): len(file.read_text().splitlines()) for file in SOURCE.rglob("*.py")}
    assert not {name: length for name, length in lengths.items() if length > 500}


def test_the_tabletop_is_a_plug_in():
    """It is found by its entry point; only calibration and commands import it, and it imports no command."""
    users = ("judge_eval/calibration", "cli")
    for file in SOURCE.rglob("*.py"):
        tree = ast.parse(file.read_text())
        names = [one.module or "" for one in ast.walk(tree) if isinstance(one, ast.ImportFrom)]
        assert str(file.relative_to(SOURCE)).startswith(users) or not any(
            name.startswith("weft_tabletop") for name in names
        ), file
    for file in (SOURCE.parent / "weft_tabletop").rglob("*.py"):
        assert not any(module.startswith("weft.cli") for module, *_ in imports(file)), file


def test_the_table_of_packages_is_what_the_docstrings_say():
    page = (ROOT / "docs" / "contribute" / "architecture.md").read_text()
    assert SCRIPT["with_table"](page) == page, "run: python scripts/packages.py --write"


def test_every_module_says_what_it_is():
    assert not [
        file
        for file in [*SOURCE.rglob("*.py"), *(SOURCE.parent / "weft_tabletop").rglob("*.py")]
        if not SCRIPT["docstring"](file)
    ]


FOREIGN = {  # where attributes are looked up by name, of objects that are not ours
    "__init__.py": "modules, imported when they are used",
    "plugins.py": "entry points and a user's file",
    "errors.py": "a traceback that came with an exception",
    "evaluation/progress.py": "IPython's shell",
    "benchmarks/base.py": "what a user's class lacks",
    "models/declaration.py": "what a user's object declares",
    "models/function.py": "an endpoint that a user wrote",
    "models/code_digest.py": "code that is looked into",
    "models/local/run": "transformers and diffusers",
    "serving": "Ray, and a user's endpoint",
    "store/images.py": "Pillow's images",
}


def test_attributes_of_our_own_are_not_looked_up_by_name():
    for file in SOURCE.rglob("*.py"):
        place = str(file.relative_to(SOURCE))
        calls = [
            node
            for node in ast.walk(ast.parse(file.read_text()))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        ]
        assert place.startswith(tuple(FOREIGN)) or not any(call.func.id == "getattr" for call in calls), place  # type: ignore[union-attr]
