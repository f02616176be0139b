"""The field's words: phrases of the private dialect that weft once spoke occur nowhere that a reader or user looks."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PHRASES = (  # regular expressions; a space is any white space
    r"the true (reply|replies|answer)", r"\btruths?\b", r"what (is|was) due", r"main number", r"answers are kept",
    r"judge's own words", r"tables? of (the )?rivals", r"first start to last end", r"the deviation",
    r"its own chance", r"\bown in\b, words", r"where pictures stand", r"front or first", r"the true ones",
    r"of them zero", r"zero: the model failed", r"unscored by rule", r"journal's word", r"the last is the (latest|best)",
    r"the dearest", r"beside the work\b", r"may stand anywhere", r"\b(of|in) the house\b", r"what weft holds against",
    r"a mail, a stick", r"through the whole path", r"a judge's (own )?card", r"weft beside", r"beside released",
    r"\braters? (rated|saw|said|agree)", r"come_back", r"are nobody's", r"they do not bring", r"when they speak",
)  # fmt: skip
# Prompts, the grammar of the tabletop and a judge's schema say "picture": such texts are in cache keys, dataset digests
# and trained weights. So it is looked for where text enters none of them.
WORDS = ("picture",)
FILES = [
    path
    for folder in ("src", "docs", ".")
    for path in ((ROOT / folder).rglob("*") if folder != "." else ROOT.glob("*.md"))
    if path.suffix in (".py", ".md", ".js", ".css") and "rubrics" not in path.parts  # rubrics are in cache keys
]


@pytest.mark.parametrize("phrase", PHRASES)
def test_a_phrase_of_the_dialect_is_gone(phrase: str):
    pattern = re.compile(phrase.replace(" ", r"\s+"), re.IGNORECASE)
    found = [str(path.relative_to(ROOT)) for path in FILES if pattern.search(path.read_text(encoding="utf-8"))]
    assert not found


@pytest.mark.parametrize("word", WORDS)
def test_pages_comments_docstrings_and_names_use_the_fields_word(word: str):
    found: list[str] = []
    for path in FILES:
        if path.suffix == ".md":
            texts = [path.read_text(encoding="utf-8")]
        elif path.suffix == ".py":
            texts = [*written_for_readers(path.read_text(encoding="utf-8"))]
        else:
            continue
        found += [f"{path.relative_to(ROOT)}: {text}" for text in texts if word in text.lower()]
    assert not found


def written_for_readers(source: str) -> Iterator[str]:
    """Comments, docstrings without the prompts that they quote, and names. A keyword of a call is no name of ours: it
    may be a key of a schema, or a slot of a prompt."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield re.sub("`[^`]*`", "", ast.get_docstring(node, clean=False) or "")
        for field in ("id", "attr", "arg", "name", "asname"):
            value = getattr(node, field, None)
            if isinstance(value, str) and not isinstance(node, ast.keyword):
                yield value


SHARED_NAMES = {  # names of two classes each, for a reason
    "Row": "a row of a table; a row of a build, as the architecture calls it",
    "Run": "the run of weft.runs is the stored one with what notebooks show",
}


def test_a_class_has_a_name_of_its_own():
    modules: dict[str, list[str]] = {}
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and node.name != "Options":
                modules.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    shared = {name: paths for name, paths in modules.items() if len(paths) > 1 and name not in SHARED_NAMES}
    assert not shared
