"""How dense the code is: constructs per 1,000 lines that are not blank, for weft and for any other checkout.

    python bench/density.py                                  # src/weft by package
    python bench/density.py src ../inspect_ai/src/inspect_ai ../lmms-eval/lmms_eval

Counted: conditional expressions, nested ones, comprehensions, those with two `for`s, parallel assignments
(`a, b = 1, 2`), assignment expressions, comment lines and the median length of a file.
"""

import argparse
import ast
import io
import statistics
import tokenize
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent.parent / "src" / "weft"
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
COLUMNS = ("conditional", "nested", "comprehension", "two fors", "parallel", "walrus", "comment lines")


def count_file(text: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    counts["lines"] = sum(1 for line in text.splitlines() if line.strip())
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.IfExp):
            counts["conditional"] += 1
            inner = [part for part in ast.walk(node) if isinstance(part, ast.IfExp)]
            counts["nested"] += len(inner) > 1
        elif isinstance(node, COMPREHENSIONS):
            counts["comprehension"] += 1
            counts["two fors"] += len(node.generators) > 1
        elif isinstance(node, ast.NamedExpr):
            counts["walrus"] += 1
        elif isinstance(node, ast.Assign):
            is_tuple = isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple)
            counts["parallel"] += is_tuple
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        counts["comment lines"] += token.type == tokenize.COMMENT
    return counts


def measure(folder: Path) -> str:
    total: Counter[str] = Counter()
    lengths: list[int] = []
    for path in sorted(folder.rglob("*.py")):
        try:
            counts = count_file(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError, tokenize.TokenError):
            continue
        total += counts
        lengths.append(counts["lines"])
    if not lengths:
        return f"{folder}: no Python files"
    cells = [f"{1000 * total[name] / total['lines']:13.1f}" for name in COLUMNS]
    return f"{folder.name:16}{total['lines']:8,}{statistics.median(lengths):8.0f}{''.join(cells)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    folders = parser.parse_args().folders
    if not folders:
        folders = [HERE, *sorted(folder for folder in HERE.iterdir() if (folder / "__init__.py").is_file())]
    print(f"{'':16}{'lines':>8}{'median':>8}{''.join(f'{name:>13}' for name in COLUMNS)}")
    for folder in folders:
        print(measure(folder))


if __name__ == "__main__":
    main()
