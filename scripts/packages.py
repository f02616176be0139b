"""The packages of weft and their modules, from their docstrings.

python scripts/packages.py             # every module with the first line of its docstring
python scripts/packages.py --write     # the table of packages in docs/contribute/architecture.md
"""

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "weft"
PAGE = ROOT / "docs" / "contribute" / "architecture.md"
BEGIN, END = "<!-- packages: python scripts/packages.py --write -->", "<!-- end of packages -->"
ORDER = (  # each may import those before it, and itself; tests/test_packages.py holds it
    *(
        "errors",
        "rounding",
        "secrets",
        "untrusted",
        "plain_tables",
        "types",
        "plugins",
        "ray_cluster",
        "store",
        "models",
        "calls",
        "workspace",
        "stats",
        "judges",
        "training",
        "benchmarks",
    ),
    *(
        "datasets",
        "results",
        "evaluation",
        "building",
        "arena",
        "report",
        "judge_eval.agreement",
        "judge_eval.annotation",
        "serving",
        "api",
    ),
    *("sweep_api", "judge_eval.calibration", "cli"),
)
PLUG_INS = ("weft_recipes", "weft_tabletop")  # beside weft, found by their entry points


def docstring(file: Path) -> str:
    return " ".join((ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").split("\n\n")[0].split())


def modules(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*.py") if file.name != "__init__.py")


def row(name: str, place: Path) -> str:
    if place.with_suffix(".py").is_file():
        return f"| `{name}.py` | {docstring(place.with_suffix('.py'))} | |"
    inner = ", ".join(f"`{file.relative_to(place).with_suffix('')}`" for file in modules(place))
    return f"| `{name}/` | {docstring(place / '__init__.py')} | {inner} |"


def table() -> str:
    rows = [row(name.replace(".", "/"), SOURCE / name.replace(".", "/")) for name in ORDER]
    rows += [row(name, SOURCE.parent / name) for name in PLUG_INS]
    return "\n".join(["| package | what it does | modules |", "| --- | --- | --- |", *rows])


def with_table(page: str) -> str:
    """The page with its table made anew."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


def main() -> None:
    if "--write" in sys.argv[1:]:
        PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        return
    for folder in (SOURCE, *(SOURCE.parent / name for name in PLUG_INS)):
        for file in modules(folder):
            print(f"{file.relative_to(SOURCE.parent)!s:<48} {docstring(file)}")


if __name__ == "__main__":
    main()
