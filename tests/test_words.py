"""The field's words: phrases of the private dialect that weft once spoke occur nowhere that a reader or user looks."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PHRASES = (
    "the true reply", "what was due", "main number", "answers are kept under", "judge's own words", "table of rivals",
    "first start to last end", "the deviation of", "its own chance", "front or first", "the true ones",
    "0 of them zero", "unscored by rule", "a journal's word", "the last is the latest", "beside the work",
    "may stand anywhere", "plan of the house", "what weft holds against", "a mail, a stick", "through the whole path",
    "judge's card", "ground truth", "weft beside the released",
)  # fmt: skip
FILES = [
    path
    for folder in ("src", "docs", ".")
    for path in ((ROOT / folder).rglob("*") if folder != "." else ROOT.glob("*.md"))
    if path.suffix in (".py", ".md", ".js", ".css") and "rubrics" not in path.parts  # rubrics are in cache keys
]


@pytest.mark.parametrize("phrase", PHRASES)
def test_a_phrase_of_the_dialect_is_gone(phrase: str):
    pattern = re.compile(re.escape(phrase).replace(r"\ ", r"\s+"), re.IGNORECASE)
    found = [str(path.relative_to(ROOT)) for path in FILES if pattern.search(path.read_text(encoding="utf-8"))]
    assert not found
