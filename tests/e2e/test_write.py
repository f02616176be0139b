"""weft write: a document as a page that holds everything, as Markdown with files, as a PDF; what models write stays
text; a stranger's mistakes; the same again costs nothing."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from browser import browser as chromium
from server import Provider, data_url, drawn
from waiting import HANGS, comes_to_an_end
from weft.report.document import ReadableDocument, document_title, render_html, render_markdown, sanitise_markdown
from weft.store.blobs import Blobs
from weft.types import Text

Serve = Callable[..., Provider]
WEFT = Path(sys.executable).with_name("weft")
TABLE = (
    "Show in exactly 3 steps how to make a mint table with a red star at b2, a blue ring at c3, a green square at d4."
)
WOVEN = "weaver:planner=tabletop/oracle,visualizer=tabletop/tiny"


def weft(cwd: Path, *arguments: object, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([WEFT, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, timeout=HANGS, **more)


def test_a_page_and_markdown_without_network(tmp_path: Path):
    done = weft(tmp_path, "write", TABLE, "--model", WOVEN, "--out", "table.html", "--out", "table.md")
    assert done.returncode == 0 and done.stdout.split() == ["table.html", "table.md"], done.stderr
    assert re.search(r"24 words, 3 images, \d+\.\d s", done.stderr)
    page = (tmp_path / "table.html").read_text()
    assert page.count("data:image/png;base64,") == 3 and "http" not in page.replace("http-equiv", "")
    assert (
        page.index("Step 1: add a red star at b2.") < page.index("Step 3: add a green square at d4.")
        and "Asked for:" in page
    )
    assert 'alt="Draw a mint table with a red star at b2."' in page
    text = (tmp_path / "table.md").read_text()
    files = re.findall(r"\((table_files/(\d)-\w{8}\.png)\)", text)
    assert [number for _, number in files] == ["1", "2", "3"] and all((tmp_path / name).is_file() for name, _ in files)
    assert (tmp_path / "table.html").stat().st_mode & 0o777 == 0o644
    listed = weft(tmp_path, "runs").stdout
    assert "write  weaver:planner=" in listed and weft(tmp_path, "report", "last").returncode == 0


def test_the_page_in_a_browser(tmp_path: Path):
    """Nothing is loaded from anywhere, and every picture is shown."""
    assert weft(tmp_path, "write", TABLE, "--model", WOVEN, "--out", "table.html").returncode == 0
    with chromium() as opened:
        page = opened.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto((tmp_path / "table.html").as_uri())
        sizes = page.evaluate(
            "[...document.images].map(image => [image.naturalWidth, image.getBoundingClientRect().width > 100])"
        )
        assert sizes == [[64, True]] * 3
        assert all(url.startswith(("file:", "data:")) for url in asked)


def test_a_pdf_where_there_is_a_browser(tmp_path: Path):
    from weft.errors import UserError
    from weft.report.document import find_browser

    try:
        find_browser()
    except UserError as error:
        pytest.skip(str(error))
    done = weft(tmp_path, "write", TABLE, "--model", WOVEN, "--out", "table.pdf")
    assert done.returncode == 0 and (tmp_path / "table.pdf").read_bytes().startswith(b"%PDF"), done.stderr
    without = weft(
        tmp_path, "write", TABLE, "--model", WOVEN, "--out", "b.pdf", env={"PATH": "/nowhere", "HOME": str(tmp_path)}
    )
    assert without.returncode == 2 and "a PDF needs Chromium or Chrome" in without.stderr


def test_a_strangers_mistakes_cost_nothing(tmp_path: Path):
    (tmp_path / "x_files").write_text("")
    for arguments, told in (
        (["hi"], "give --model"),
        (["hi", "--model", "copy", "--out", "x.doc"], "ends in .html, .md or .pdf"),
        (["hi", "--model", "copy", "--out", "x.md"], "which is a file"),
        (["hi", "--model", "copy", "--out", "."], "name a file"),
        (["hi", "--model", "nobody/x"], "unknown model"),
        (["hi", "--model", "weaver:planner=copy"], "weaver has the roles planner, visualizer"),
        (["hi", "--model", "copy", "--image", "nowhere.png"], "nowhere.png cannot be read"),
        (["  ", "--model", "copy"], "the prompt for the document is empty"),
        (["hi", "--model", WOVEN, "--model-opt", "planner.plan=odd"], "give one of dense, steps"),
    ):
        done = weft(tmp_path, "write", *arguments)
        assert done.returncode == 2 and told in done.stderr and "Traceback" not in done.stderr, (arguments, done.stderr)
    empty = weft(tmp_path, "write", "hi", "--model", "copy")
    assert empty.returncode == 1 and "empty" in empty.stderr and not (tmp_path / "document.html").exists()


HOSTILE = """# Title <script>alert(1)</script>

<img src=x onerror=alert(1)> [click](javascript:alert(1)) [file](file:///etc/passwd) ![t](http://evil.example/t.png) [web](https://a.example)

[ref]: javascript:alert(1)

<javascript:alert(2)> and a < b, **bold**
"""


def test_what_models_write_stays_text(tmp_path: Path):
    blobs = Blobs(tmp_path / "blobs")
    picture = blobs.put(drawn("x"))
    made = ReadableDocument(
        document_title((Text(HOSTILE),), "asked"),
        (Text(HOSTILE), picture),
        ('"><script>alert(3)</script>',),
        ("by <b>x</b>",),
    )
    page = render_html(made, blobs)
    inside = page[page.index("<article") :]
    assert (
        "<script" not in inside
        and "<img src=x" not in inside
        and "<b>x" not in inside
        and "onerror=alert(1)&gt;" in inside
    )
    links = re.findall(r'href="([^"]*)"', inside)
    assert links == ["http://evil.example/t.png", "https://a.example"] and len(re.findall("<img ", inside)) == 1, (
        "nothing is fetched"
    )
    assert "<strong>bold</strong>" in inside and made.title.startswith("Title")
    text = render_markdown(made, blobs, tmp_path / "x.md")
    assert "<script" not in text and "<img" not in text and "<javascript" not in text and "a < b" in text
    assert (
        "](javascript:" not in text
        and "](file:" not in text
        and "![t]" not in text
        and "[web](https://a.example)" in text
    )
    assert "[ref]\\: javascript" in text and sanitise_markdown("**b** [x](http://y)") == "**b** [x](http://y)"
    assert (
        "]:" not in sanitise_markdown("* [r]: javascript:alert(1)\n\n[a\nb]: javascript:x")
        and sanitise_markdown("[x] (javascript:y)") == "[x] \\(javascript:y)"
    )
    odd = render_markdown(made, blobs, tmp_path / "a#b c.md")
    assert "](a%23b%20c_files/1-" in odd


def test_the_same_from_python(tmp_path: Path):
    import weft as package

    run = package.write(TABLE, model=WOVEN, out=[tmp_path / "a.html", tmp_path / "a.md"], home=tmp_path / "home")
    assert (
        len(run.turns[0].reply.images) == 3
        and (tmp_path / "a.html").is_file()
        and len(list((tmp_path / "a_files").iterdir())) == 3
    )
    file = tmp_path / "own.py"
    file.write_text("def model(messages, want):\n    raise OSError('disk')\n")
    with pytest.raises(package.api.WeftError, match="nothing was written: failed"):
        package.write("x", model=f"{file}:model", out=tmp_path / "b.html", home=tmp_path / "home")
    assert not (tmp_path / "b.html").exists()


def test_titles():
    assert (
        document_title((Text("## *Roses* ##\nx"),), "asked") == "Roses"
        and document_title((Text("x"),), " a  b ") == "a b"
    )
    with comes_to_an_end("a title that takes hours, were it found in cubic time"):
        assert len(document_title((Text("# a" + " " * 100_000 + "b"),), "x" * 10_000)) <= 100


def woven(seen: Any) -> dict[str, Any]:
    if "modalities" not in seen.body:
        return {
            "role": "assistant",
            "content": '# Roses\n\n<imagine uses="none">a</imagine>Two.<imagine uses="none">no</imagine>',
        }
    if "no" in seen.texts[-1].splitlines()[-1]:
        return {"role": "assistant", "content": "", "refusal": "not that"}
    return {"role": "assistant", "content": "", "images": [{"image_url": {"url": data_url(drawn(seen.digest, 200))}}]}


def test_what_is_missing_is_told_and_the_rest_is_written(tmp_path: Path, serve: Serve):
    provider = serve(answer=woven)
    (tmp_path / "cat.png").write_bytes(drawn("cat", 64))
    model = f"weaver:planner=openai-chat/p@{provider.url},visualizer=openai-chat/v@{provider.url}"
    arguments = ["write", "Roses, like this cat", "--image", "cat.png", "--model", model, "--out", "r.html"]
    done = weft(tmp_path, *arguments)
    assert (
        done.returncode == 1
        and "image 2 is missing (refused: not that)" in done.stderr
        and (tmp_path / "r.html").is_file()
    )
    assert provider.seen[0].pictures and "<title>Roses</title>" in (tmp_path / "r.html").read_text()
    assert provider.count == 3
    weft(tmp_path, *arguments)
    assert provider.count == 3, "the same again costs nothing"
    drawings = [seen for seen in provider.seen if "modalities" in seen.body]
    assert (
        all(len(seen.pictures) == 1 for seen in drawings)
        and json.dumps(drawings[0].body).count("A document was asked for:") == 1
    )


def test_progress_is_told_where_there_is_no_terminal(tmp_path: Path, serve: Serve):
    slow = serve(answer=woven, allowed=0)
    model = f"weaver:planner=openai-chat/p@{slow.url},visualizer=openai-chat/v@{slow.url}"
    words = [WEFT, "write", "Roses", "--model", model, "--out", "r.html"]
    process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert any("writing" in line for line in process.stderr), "while nothing has come back yet"
    slow.allowed = None
    process.communicate(timeout=HANGS)
