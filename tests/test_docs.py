"""What a reader is pointed to is there."""

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

import weft

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")


def links(page: Path) -> list[str]:
    """Targets of a page's links that are no web addresses; code is left out."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [target for target in LINK.findall(text) if not re.match(r"[a-z]+:", target)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_that_are_there(page: Path):
    lost = [target for target in links(page) if not (page.parent / unquote(target.partition("#")[0])).exists()]
    assert not lost


def test_every_page_is_in_the_index_once():
    listed = [target for target in links(ROOT / "docs" / "README.md") if "/" not in target]
    pages = [page for kind in ("*.md", "*.ipynb") for page in (ROOT / "docs").glob(kind)]
    assert sorted(listed) == sorted(page.name for page in pages if page.name != "README.md")


def test_who_cites_weft_is_told_the_version_and_the_license_that_it_has():
    said = (ROOT / "CITATION.cff").read_text()
    fields = dict(re.findall(r"^([a-z-]+): *(.*)$", said, re.MULTILINE))
    assert (
        fields["cff-version"] == "1.2.0" and fields["version"] == weft.__version__ and fields["license"] == "Apache-2.0"
    )
    assert {"message", "title", "authors", "type"} <= set(fields) and "Apache License" in (ROOT / "LICENSE").read_text()
