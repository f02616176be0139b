"""The page of the papers' tables and figures: every one has a row, and every command on it can be typed."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from weft.cli.app import app

DOCS = Path(__file__).parent.parent / "docs"
WEAVE = DOCS / "reference/papers-weave.md"
OTHERS = DOCS / "reference/papers.md"
PAPERS = {  # how many tables and figures each has
    "WEAVE": (10, 39),
    "Wan-Weaver, supplement": (8, 9),
    "IMUG-Bench": (7, 9),
    "PlanViz": (5, 7),
    "ROVER": (5, 20),
}
VERDICTS = re.compile(r"(yes(, .+)?|partly: .+|no: .+)")


def read_rows() -> dict[str, list[list[str]]]:
    """The rows of each paper: number, content, command, verdict."""
    sections = {"WEAVE": WEAVE.read_text(encoding="utf-8")}
    for section in OTHERS.read_text(encoding="utf-8").split("\n## ")[1:]:
        sections[section.partition("\n")[0]] = section
    return {
        paper: [
            [cell.strip() for cell in line.strip("|").split(" | ")]
            for line in text.splitlines()
            if line.startswith(("| Table ", "| Figure "))
        ]
        for paper, text in sections.items()
    }


def commands(page: Path) -> list[str]:
    text = page.read_text(encoding="utf-8")
    blocks = "\n".join(re.findall(r"```bash\n(.*?)```", text, flags=re.DOTALL))
    return [line for line in [*blocks.splitlines(), *re.findall(r"`(weft [^`]+)`", text)] if line.startswith("weft ")]


@pytest.mark.parametrize("paper", PAPERS)
def test_every_table_and_figure_has_a_row(paper: str):
    tables, figures = PAPERS[paper]
    numbers = [re.sub(r"(\d)[a-d]$", r"\1", row[0]) for row in read_rows()[paper]]
    expected = [*(f"Table {n}" for n in range(1, tables + 1)), *(f"Figure {n}" for n in range(1, figures + 1))]
    assert list(dict.fromkeys(numbers)) == expected


def test_every_row_says_whether_weft_makes_it():
    for paper, rows in read_rows().items():
        for row in rows:
            assert len(row) == 4 and VERDICTS.fullmatch(row[3]), (paper, row)
            assert ("`weft " in row[2]) != row[3].startswith("no:"), (paper, row)


def test_the_counts_are_those_of_the_rows():
    text = OTHERS.read_text(encoding="utf-8")
    sums = [0, 0, 0]
    for paper, rows in read_rows().items():
        counts = [sum(row[3].startswith(word) for row in rows) for word in ("yes", "partly", "no:")]
        assert re.search(rf"^\| \[{paper}\]\S+ \| {counts[0]} \| {counts[1]} \| {counts[2]} \|$", text, re.MULTILINE)
        sums = [one + more for one, more in zip(sums, counts, strict=True)]
    assert f"| all | {sums[0]} | {sums[1]} | {sums[2]} |" in text


@pytest.mark.parametrize("line", sorted({*commands(WEAVE), *commands(OTHERS)}))
def test_a_command_exists_with_every_option(line: str):
    parse(shlex.split(line, comments=True)[1:])


@pytest.mark.parametrize("line", ["report A --no-such-option", "figures A", "agree A --with"])
def test_a_command_that_cannot_be_typed_is_found(line: str):
    with pytest.raises(Exception, match="(?i)no such|requires an argument"):
        parse(line.split())


def parse(words: list[str]) -> None:
    """Parse a command line as the program does, down to the last subcommand, and run nothing."""
    descend(get_command(app), "weft", words, None)


def descend(command: Any, name: str, words: list[str], parent: Any) -> None:
    context = command.make_context(name, list(words), parent=parent)
    if hasattr(command, "resolve_command"):
        inner_name, inner, rest = command.resolve_command(context, [*context._protected_args, *context.args])
        descend(inner, inner_name, rest, context)
