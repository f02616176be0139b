"""Labels in words and in images: what counts as one, what differs, and that it is a count and no score."""

import importlib.util
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pil
from PIL import ImageDraw, ImageFont
from typer.testing import CliRunner

from server import Provider, data_url
from weaver import evaluate, prompt, written
from weft.cli.app import app
from weft.report.labels import DocumentLabels, RunLabels, build_label_tables, compare_labels

Serve = Callable[..., Provider]
reads = pytest.mark.skipif(importlib.util.find_spec("rapidocr") is None, reason="rapidocr is an extra (ocr)")


@pytest.mark.parametrize(
    ("text", "lines", "both", "only_words", "only_images"),
    [
        ("In triangle ABC, D lies on BC.", ["A", "B C", "D"], "ABCD", "", ""),
        ("In triangle ABC, D lies on BC.", ["A", "B", "E", "D"], "ABD", "C", "E"),
        ("A line. I see point A and B.", ["A", "B"], "AB", "", ""),
        ("A red cup, which I like.", ["A"], "", "", "A"),
        ("Made in the USA, as NASA says.", [], "", "", ""),
        ("Join P1 and B'.", ["P1", "B\u2019"], ("B'", "P1"), "", ""),
        ("The segment from O to Q.", ["0", "Q"], "OQ", "", ""),
        ("Points K, L and M.", ["KL", "M4"], "KLM", "", ""),
        ('The sign says "Way out".', ["WAY", "OUT"], ('"Way out"',), "", ""),
        ('The sign says "Way out".', ["Way in"], "", ('"Way out"',), ""),
        ("A harbour at dawn.", ["MENU", "12 EUR"], "", "", ""),
    ],
)
def test_labels_that_differ(text: str, lines: list[str], both: Any, only_words: Any, only_images: Any):
    assert compare_labels(text, lines) == (tuple(both), tuple(only_words), tuple(only_images))


def test_tables_count_and_do_not_score():
    same = DocumentLabels("same", 0, ("A",))
    words = DocumentLabels("words", 0, (), ("C", "D"))
    images = DocumentLabels("images", 1, ("A",), (), ("E",))
    plain = DocumentLabels("plain", 0)
    counts, documents = build_label_tables({"run": RunLabels((same, words, images, plain), 1)})
    assert [cell.value for cell in counts.rows[0].cells.values()] == [5, 3, 2, 2, 1, 1]
    assert all(cell.count and not cell.expected for cell in counts.rows[0].cells.values())
    assert [row.name for row in documents.rows] == ["images, turn 2", "words"], "labels in images alone come first"
    assert documents.rows[0].cells["in images only"].text == "E"


def figure(labels: str) -> dict[str, Any]:
    page = Pil.new("RGB", (640, 640), "white")
    pen, font = ImageDraw.Draw(page), ImageFont.load_default(60)
    for place, label in zip(((60, 60), (480, 60), (270, 480)), labels, strict=True):
        pen.text(place, label, fill="black", font=font)
    file = io.BytesIO()
    page.save(file, "PNG")
    return {"type": "image_url", "image_url": {"url": data_url(file.getvalue())}}


@reads
def test_a_wrong_label_of_a_run_is_counted_by_the_command(tmp_path: Path, serve: Serve):
    figures = {"right": "KNR", "wrong": "KNW"}

    def answer(seen: Any) -> dict[str, Any]:
        text = {"type": "text", "text": "In triangle KNR the side KN is short."}
        return {"role": "assistant", "content": [text, figure(figures[seen.texts[-1]])]}

    data = written(tmp_path / "data", [prompt(name, name, 1) for name in figures])
    run = evaluate(serve(answer=answer), data, tmp_path / "home", judge="constant/max")
    before = run.gist
    done = CliRunner().invoke(app, ["labels", run.id, "--home", str(tmp_path / "home"), "--format", "md"])
    assert done.exit_code == 0, done.output
    assert "| **openai-chat/model** | 2 | 2 | 5 | 1 | 1 | 0 |" in done.output
    assert "| **wrong** | K, N | R | W |" in done.output and run.gist == before, "scores stay as they are"
