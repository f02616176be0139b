"""Do the tests notice? One token of a module is changed at a time (a comparison, a sign, a number, a word of logic),
and its tests are run.

    python bench/mutation.py [calls/prices calls/limiter ...] [--each 40] [--seed 0] [--jobs 2]

Prints the share of changes that some test noticed, and every change that none did. Changes that cannot matter are named
below, with the reason why; they are not counted. Goal: 90% of each module."""

import argparse
import ast
import concurrent.futures
import os
import random
import shutil
import subprocess
import sys
import tempfile
import tokenize
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).parent.parent
STATS = ["tests/test_stats.py", "tests/test_stats_exact.py", "tests/report/test_numbers.py"]
CALL = [
    "calls/test_call",
    "calls/test_calling",
    "hostile/test_wire",
    "hostile/test_money",
    "models/test_compose",
    "hostile/test_models",
]
JOURNAL = ["store/test_journal", "store/test_rows", "evaluation/test_endings", "hostile/test_models"]
MODULES = {
    "calls/prices": ["tests/calls/test_prices.py", "tests/calls/test_call.py", "tests/hostile/test_money.py"],
    "calls/limiter": [
        "tests/calls/test_limits.py",
        "tests/calls/test_pace.py",
        "tests/calls/test_call.py",
        "tests/calls/test_calling.py",
    ],
    "calls/caller": [f"tests/{name}.py" for name in CALL],
    "calls/sending": [f"tests/{name}.py" for name in CALL],
    "store/journal": [f"tests/{name}.py" for name in JOURNAL],
    "stats/intervals": STATS,
    "stats/paired": STATS,
    "stats/repeats": [*STATS, "tests/benchmarks/test_made_up.py"],
}
SWAPS = {
    "<": ["<=", ">"], "<=": ["<", ">="], ">": [">=", "<"], ">=": [">", "<="], "==": ["!="], "!=": ["=="],
    "+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "//": ["*"], "**": ["*"], "%": ["*"], "+=": ["-="], "-=": ["+="],
    "and": ["or"], "or": ["and"], "not": [""], "is": ["is not"], "in": ["not in"], "True": ["False"], "False": ["True"],
    "min": ["max"], "max": ["min"], "any": ["all"], "all": ["any"],
}  # fmt: skip
PRODUCTS = "stats/intervals: products.append(sum((x - x0) * (y - y0) for x, y in pairs)) -> products.append(sum("
AXES = "stats/intervals: x0, y0 = (sum(axis) / len(pairs) for axis in zip(*pairs, strict="
TERMS = "stats/paired: sum(weight * sum(clusters.get(name, ())) / total for (weight, clusters), total in zip(terms, totals, strict="
FAR = "stats/paired: return float((np.abs(signs @ values) >= found).mean())"
FAR_TOO = "stats/paired: as_far += int((np.abs(signs @ values) >= found).sum())"
TILES = "calls/prices: tiles = 258 * math.ceil(image.width / 768) * math.ceil(image.height / 768) -> "
TILES += "tiles = 258 * math.ceil(image.width / 768) "
HELD = "calls/limiter: while (hold := self._held_until - time.monotonic()) > 0:  # noqa: ASYNC110 (it is a time that is waited for, "
HELD += "and it may move) -> while (hold := self._held_until - time.monotonic()) "
CHECKED = "sent = await asyncio.to_thread(self._valid, sent) if len(sent.raw) "
THREAD = f"calls/sending: {CHECKED}> LONG else self._valid(sent) -> {CHECKED}"
LETTERS = "LONG = 200_000  # characters of a reply that are checked in a thread, not in the event loop"
LETTERS = f"calls/sending: {LETTERS} -> {LETTERS}"
BATCH = "store/journal: while not self._queue.empty() and len(batch) < 4096:"
ZIPPED = (
    "return [msgspec.convert(dict(zip(Totals.__struct_fields__, row, strict=True)), Totals) for row in rows]",
    "return msgspec.convert(dict(zip(RunRecord.__struct_fields__, read, strict=True)), RunRecord)",
)
FREE = "return Reservation(None, Usage(), None, 0.0)"
ARGS = "error.args = (clean(error), *error.args[1:])"
HARMLESS: dict[str, str] = {  # "module: line as it stands -> as it is changed": why nobody can notice
    PRODUCTS + "(x + x0) * (y - y0) for x, y in "
    "pairs))": "deviations add up to nothing: what is added to each other factor does not count",
    PRODUCTS + "(x - x0) * (y + y0) for x, y in pairs))": "the same",
    TERMS + "True)) -> " + TERMS.partition(": ")[2] + "False))": "there is a total for each term",
    FAR + " -> return float((np.abs(signs @ values) > "
    "found).mean())": "`found` is a little under the sum: nothing is equal to it",
    FAR_TOO + " -> as_far += int((np.abs(signs @ values) > found).sum())": "the same",
    "stats/paired: corrected = [1.0] * len(values) -> corrected = [2.0] * len(values)": "each is set anew",
    TILES + "/ math.ceil(image.height / 768)": "where there are tiles both ways, the rule by pixels has more",
    HELD + ">= 0:  # noqa: ASYNC110 (it is a time that is waited for, and it may move)": "a wait of no time",
    "calls/limiter: self._held_until = 0.0 -> self._held_until = 1.0": "a time long ago as well",
    "calls/limiter: self._decreased_at = 0.0 -> self._decreased_at = 1.0": "a time long ago as well",
    THREAD + "< LONG else self._valid(sent)": "where it is looked through changes nothing of what is found",
    THREAD + ">= LONG else self._valid(sent)": "the same",
    LETTERS.replace("-> LONG = 200_000", "-> LONG = 200001"): "the same",
    LETTERS.replace("-> LONG = 200_000", "-> LONG = 0"): "the same",
    "calls/sending: os._exit(0) -> os._exit(1)": "nobody waits for a process that should not be",
    BATCH
    + " -> "
    + BATCH.partition(": ")[2].replace(
        "4096", "4097"
    ): "how many are written together changes nothing of what is written",
    **{
        f"store/journal: {line} -> {line.replace('strict=True', 'strict=False')}": "as many fields as columns"
        for line in ZIPPED
    },
    f"calls/sending: {ARGS} -> {ARGS.replace('[1:]', '[2:]')}": "it has one alone",
    f"calls/prices: {FREE} -> {FREE.replace('0.0', '1.0')}": "without a price there is no limit to keep",
    AXES + "True)) -> x0, y0 = (sum(axis) / len(pairs) for axis in zip(*pairs, "
    "strict=False))": "pairs are as long as each other",
}


def changes(source: str) -> list[tuple[int, int, str, str]]:
    """(line, column, token, what becomes of it), for code alone: not in imports, annotations, texts or decorators."""
    skipped = _skipped(source)
    found: list[tuple[int, int, str, str]] = []
    tokens = list(tokenize.tokenize(BytesIO(source.encode()).readline))
    for at, token in enumerate(tokens):
        (line, column), text = token.start, token.string
        if line in skipped or (line, column) in skipped:
            continue
        if token.type == tokenize.NUMBER:
            number = ast.literal_eval(text)
            found.append((line, column, text, str(number + 1)))
            if number not in (0, 1):
                found.append((line, column, text, "0"))
        elif text in SWAPS and token.type in (tokenize.OP, tokenize.NAME):
            before = tokens[at - 1].string
            if (
                text in "*-+"
                and before in ("(", ",", "=", "[", "{", "return", ":", "==", "<", ">", "in", "if", "lambda")
                and text != "-"
            ):
                continue  # of a call's arguments, not of arithmetic
            if text == "**" and before in ("(", ",", "{"):
                continue
            if text in ("is", "not", "in") and (
                tokens[at + 1].string in ("not", "in") or before in ("is", "not", "for")
            ):
                continue
            if text == "in" and _of_a_loop(tokens, at):
                continue
            found += [(line, column, text, other) for other in SWAPS[text]]
    return found


def _of_a_loop(tokens: list[tokenize.TokenInfo], at: int) -> bool:
    for token in reversed(tokens[:at]):
        if token.string == "for":
            return True
        if (
            token.string in ("if", "and", "or", "not", "return", "=", ":", "while", "else")
            or token.type == tokenize.NEWLINE
        ):
            return False
    return False


def _skipped(source: str) -> set[object]:
    """Lines, and places, that are no behaviour: imports, decorators, annotations, docstrings."""
    skipped: set[object] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            skipped |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        notes = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        for note in [*notes, *getattr(node, "decorator_list", [])]:
            if note is not None:
                for line in range(note.lineno, note.end_lineno + 1):
                    skipped |= {(line, column) for column in range(note.col_offset if line == note.lineno else 0, 200)}
                    if line == note.end_lineno:
                        skipped -= {(line, column) for column in range(note.end_col_offset, 200)}
    return skipped


def changed(source: str, change: tuple[int, int, str, str]) -> str:
    line, column, token, other = change
    lines = source.splitlines(keepends=True)
    text = lines[line - 1]
    lines[line - 1] = text[:column] + other + text[column + len(token) :]
    return "".join(lines)


def noticed(module: str, change: tuple[int, int, str, str], tests: list[str]) -> bool:
    """Whether a test fails with it: the quickest files first."""
    source = (ROOT / "src" / "weft" / f"{module}.py").read_text()
    mutant = changed(source, change)
    try:
        ast.parse(mutant)
    except SyntaxError:
        return True
    with tempfile.TemporaryDirectory(prefix="weft-mutant-") as folder:
        shutil.copytree(ROOT / "src", Path(folder) / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        (Path(folder) / "src" / "weft" / f"{module}.py").write_text(mutant)
        environment = {**os.environ, "PYTHONPATH": str(Path(folder) / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        for test in tests:
            if not (ROOT / test).exists():
                continue
            words = [sys.executable, "-m", "pytest", "-x", "-q", "-n0", "-p", "no:cacheprovider", "--no-header", test]
            try:
                done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, timeout=60)
            except subprocess.TimeoutExpired:
                return True  # it hangs: none of these files takes a quarter of that by itself
            if done.returncode:
                return True
    return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*")
    parser.add_argument("--each", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    chosen = parser.parse_args()
    print(f"seed {chosen.seed}, {chosen.each} changes of each module at the most", flush=True)
    missed = False
    for module in chosen.modules or MODULES:
        source = (ROOT / "src" / "weft" / f"{module}.py").read_text()
        lines = source.splitlines()
        everything = changes(source)
        random.Random(chosen.seed).shuffle(everything)
        picked = everything[: chosen.each]
        with concurrent.futures.ThreadPoolExecutor(chosen.jobs) as pool:
            seen = list(pool.map(noticed, [module] * len(picked), picked, [MODULES[module]] * len(picked)))
        harmless, survived = 0, []
        for change, found in zip(picked, seen, strict=True):
            if not found:
                line, _, token, other = change
                told = (
                    f"{module}: {lines[line - 1].strip()} -> {changed(source, change).splitlines()[line - 1].strip()}"
                )
                if told in HARMLESS:
                    harmless += 1
                else:
                    survived.append(
                        f"  {module}.py:{line}: {token} -> {other or '(nothing)'}: {lines[line - 1].strip()}"
                    )
        counted = len(picked) - harmless
        share = (counted - len(survived)) / max(counted, 1)
        missed = missed or share < 0.9
        print(
            f"{module}: {counted - len(survived)} of {counted} noticed ({share:.0%}), {harmless} harmless, of "
            f"{len(everything)} possible"
        )
        print("\n".join(survived), end="\n" if survived else "", flush=True)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
