"""What a reader is pointed to is there."""

import importlib.util
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import weft

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
GENERATED = "reference/cli"  # pages that are made while the site is built
LINK = re.compile(r"\]\(([^)\s]+)\)")


def links(page: Path) -> list[str]:
    """Targets of a page's links that are no web addresses; code is left out."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [target for target in LINK.findall(text) if not re.match(r"[a-z]+:", target)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_that_are_there(page: Path):
    lost = [target for target in links(page) if not is_there(page, target)]
    assert not lost


def is_there(page: Path, target: str) -> bool:
    path = page.parent / unquote(target.partition("#")[0])
    return path.exists() or GENERATED in str(path)


def test_a_page_is_short():
    too_long = [str(page) for page in PAGES if "docs" in page.parts and len(page.read_text().splitlines()) > 150]
    assert not too_long
    assert len((ROOT / "README.md").read_text().splitlines()) <= 90


RUBRICS = {
    path.relative_to(ROOT / "src/weft/benchmarks").parts[0] for path in ROOT.glob("src/weft/benchmarks/**/rubrics")
}


@pytest.mark.parametrize("benchmark", sorted(RUBRICS))
def test_a_benchmark_says_where_its_rubrics_depart_from_the_paper(benchmark: str):
    page = (ROOT / f"docs/benchmarks/{benchmark}.md").read_text()
    section = page.partition("## Where the rubric departs\n")[2].partition("\n## ")[0]
    assert section.count("\n- ") >= 2 and "before the score" in section


class Targets(HTMLParser):
    """What a page links to, what it loads, and where it can be linked to."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(page.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.anchors |= {value for value in (values.get("id"), values.get("name")) if value}
        if tag == "a" and values.get("href"):
            self.links.append(str(values["href"]))
        if tag in ("script", "img", "link") and values.get("rel") != "canonical":
            self.loaded += [str(value) for value in (values.get("src"), values.get("href")) if value]


@pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="MkDocs is not installed: make .venv/docs")
def test_the_site_builds_every_link_leads_somewhere_and_nothing_is_loaded_from_elsewhere(tmp_path: Path):
    site = tmp_path / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(site)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    pages = {page: Targets(page) for page in site.rglob("*.html") if page.name != "404.html"}
    assert len(pages) > 60 and (site / "reference" / "cli" / "run.html").is_file()
    lost: list[str] = []
    for page, targets in pages.items():
        lost += [f"{page.name} loads {url}" for url in targets.loaded if urlsplit(url).netloc]
        for link in (*targets.links, *targets.loaded):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if not path.exists() or (parts.fragment and path in pages and parts.fragment not in pages[path].anchors):
                lost.append(f"{page.relative_to(site)}: {link}")
    assert not lost, lost[:20]


def test_who_cites_weft_is_told_the_version_and_the_license_that_it_has():
    said = (ROOT / "CITATION.cff").read_text()
    fields = dict(re.findall(r"^([a-z-]+): *(.*)$", said, re.MULTILINE))
    assert (
        fields["cff-version"] == "1.2.0" and fields["version"] == weft.__version__ and fields["license"] == "Apache-2.0"
    )
    assert {"message", "title", "authors", "type"} <= set(fields) and "Apache License" in (ROOT / "LICENSE").read_text()
