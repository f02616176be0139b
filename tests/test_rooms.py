"""Who may import whom. The plan of the house is in docs/design.md; here it is held."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import weft

SOURCE = Path(weft.__file__).parent
BASE = {"errors", "types", "secrets", "outside", "plugins"}
MODELS = BASE | {"store", "models"}
BENCHMARKS = MODELS | {"judges", "stats", "benchmarks"}
ENGINE = BENCHMARKS | {"engine"}
RUNS = ENGINE | {"run", "naming", "catalogue", "cards"}
JUDGED = {"trust", "agreeing", "rating"}
ROOMS: dict[str, set[str]] = {
    "errors": set(),
    "types": set(),
    "secrets": set(),
    "plugins": set(),
    "outside": {"errors", "secrets"},
    "store": BASE,
    "stats": BASE,
    "models": MODELS,
    "judges": MODELS,
    "benchmarks": BENCHMARKS,
    "engine": ENGINE,
    "naming": BASE,
    "cards": BASE | {"store", "stats"},
    "run": BENCHMARKS | {"naming", "cards"},
    "catalogue": BENCHMARKS | {"run", "naming"},
    "session": RUNS,
    "arena": RUNS | {"session"},
    "agreeing": RUNS | {"arena"},
    "report": BENCHMARKS | {"run", "naming"},
    "writing": RUNS | {"session"},
    "progress": RUNS | {"session"},
    "suite": RUNS | {"session", "report"},
    "rating": RUNS | {"session", "report"},
    "serving": MODELS,
    "api": RUNS | {"session", "report", "arena", "writing", "progress", "suite", "agreeing"},
    "view": BENCHMARKS | {"run", "naming", "catalogue", "report"},
    "trust": RUNS | {"session", "arena", "report", "tabletop"},
    "tabletop": RUNS | {"session", "report", "api"},  # a plug-in like any user's
    "cli": RUNS
    | {"session", "report", "api", "view", "tabletop", "arena", "writing", "serving", "progress", "suite", "trust", "agreeing", "rating"},
}


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def imports(file: Path) -> Iterator[tuple[str, int]]:
    """Modules of weft that a file imports, wherever in it; those for type checkers alone are no edges."""
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "weft":
            yield from ((f"weft.{one.name}", node.lineno) for one in node.names if not one.name.startswith("__"))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("weft."):
            yield str(node.module), node.lineno
        elif isinstance(node, ast.Import):
            yield from ((one.name, node.lineno) for one in node.names if one.name.startswith("weft."))


@pytest.mark.parametrize("file", sorted(SOURCE.rglob("*.py")), ids=lambda file: str(file.relative_to(SOURCE)))
def test_no_import_goes_against_the_plan(file: Path):
    parts = file.relative_to(SOURCE).with_suffix("").parts
    mine = parts[0]
    if mine in ("__init__", "__main__"):
        return
    allowed = ROOMS[mine] | {mine}
    wrong = [f"{file.name}:{line} imports {module}" for module, line in imports(file) if room(module) not in allowed]
    assert not wrong


def test_every_room_is_in_the_plan():
    there = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()} - {"__init__", "__main__"}
    assert there == set(ROOMS)


@pytest.mark.parametrize("benchmark", ["weave", "imug", "rover", "planviz"])
def test_shared_code_does_not_know_a_benchmark(benchmark: str):
    """Only its own folder, the registry's line, tabletop data in its format, and words on the command line name it."""
    known = {f"benchmarks/{benchmark}", "benchmarks/base.py", "tabletop", "cli"}
    for file in SOURCE.rglob("*.py"):
        place = str(file.relative_to(SOURCE))
        if not any(place.startswith(one) for one in known):
            modules = [module for module, _ in imports(file)]
            assert not any(module.startswith(f"weft.benchmarks.{benchmark}") for module in modules), place


def test_no_file_is_too_long_to_read():
    lengths = {str(file.relative_to(SOURCE)): len(file.read_text().splitlines()) for file in SOURCE.rglob("*.py")}
    assert not {name: length for name, length in lengths.items() if length > 500}
