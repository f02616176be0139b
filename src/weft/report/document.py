"""One document of words and pictures as something to read: a page that holds everything, Markdown with files beside it, or a PDF.

Words are taken for Markdown, and for nothing else: markup of a model's stays text, and so do pictures and links that lead anywhere but to
the web. Pictures are as they came."""

import base64
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from weft.errors import PictureError, UserError
from weft.report.html import Html, name, page, tag
from weft.store.blobs import Blobs, write_file
from weft.types import Image, Part, Text

EXTENSIONS = {"image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp", "image/gif": ".gif"}
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
PATIENCE = 90.0  # seconds for a browser to print


class Document(Struct, frozen=True):
    """`words` describe its pictures, one by one, for those who do not see them; `made` says by whom, and what
    was asked for, line by line."""

    title: str
    parts: tuple[Part, ...]
    words: tuple[str, ...] = ()
    made: tuple[str, ...] = ()

    def pictures(self) -> list[tuple[Image, str]]:
        images = [part for part in self.parts if isinstance(part, Image)]
        said = self.words if len(self.words) == len(images) else ("",) * len(images)
        return list(zip(images, said, strict=True))


def title_of(parts: Sequence[Part], asked: str) -> str:
    """Its first heading, or what was asked for."""
    lines = (line.strip() for part in parts if isinstance(part, Text) for line in part.text.splitlines())
    heading = next((line for line in lines if re.match(r"#{1,3}\s", line)), "")
    said = " ".join(re.sub(r"[*_`]", "", heading[:400].strip("# ")).split()) or " ".join(asked[:400].split())
    return said if len(said) <= 100 else said[:99] + "…"


def as_html(document: Document, blobs: Blobs) -> str:
    render = _markdown()
    pictures = iter(document.pictures())
    made: list[Html] = []
    for part in document.parts:
        if isinstance(part, Text) and part.text.strip():
            made.append(tag("div", Html(render(part.text.strip())), class_="prose", dir="auto"))
        elif isinstance(part, Image):
            image, said = next(pictures)
            shown = tag("img", src=_data_url(image, blobs), alt=said or "a picture", title=said or None, class_=_size(image))
            made.append(tag("figure", shown))
    about = tag("div", [tag("p", name(line)) for line in document.made], class_="soft small made") if document.made else None
    return page(document.title, tag("article", made, about), kind="document", style="document.css")


def as_markdown(document: Document, blobs: Blobs, out: Path) -> str:
    """The text; pictures are written beside it, in a folder of its name."""
    folder = _beside(out)
    folder.mkdir(parents=True, exist_ok=True)
    made: list[str] = []
    pictures = iter(enumerate(document.pictures(), start=1))
    for part in document.parts:
        if isinstance(part, Text) and part.text.strip():
            made.append(tame(part.text.strip()))
        elif isinstance(part, Image):
            number, (image, said) = next(pictures)
            file = folder / f"{number}-{image.digest[:8]}{EXTENSIONS.get(image.media_type, '.png')}"
            file.write_bytes(_bytes(image, blobs))
            alt = " ".join(re.sub(r"[\[\]\\<>]", " ", said).split()) or f"picture {number}"
            made.append(f"![{alt}]({quote(folder.name)}/{file.name})")
    return "\n\n".join(made) + "\n"


def tame(text: str) -> str:
    """Markdown in which nothing is markup but Markdown, no picture is fetched, and links lead to the web alone. It is safe before it is
    pretty: in code, too, `<` is written as `&lt;`."""
    text = re.sub(r"<(?=[A-Za-z/!?])", "&lt;", text).replace("![", "!\\[").replace("]:", "]\\:")
    return re.sub(r"\](\s{0,4})\((?!\s{0,4}<?https?://)", r"]\1\\(", text, flags=re.IGNORECASE)


def write(document: Document, blobs: Blobs, out: Path) -> None:
    """By the ending of the file's name."""
    kind = kind_of(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    if kind == "html":
        write_file(out, as_html(document, blobs).encode(), shown=True)
    elif kind == "md":
        write_file(out, as_markdown(document, blobs, out).encode(), shown=True)
    else:
        write_file(out, as_pdf(as_html(document, blobs)), shown=True)


def _beside(out: Path) -> Path:
    return out.with_name(f"{out.stem}_files")


def kind_of(out: Path) -> str:
    kinds = {".html": "html", ".htm": "html", ".md": "md", ".markdown": "md", ".pdf": "pdf"}
    if out.suffix.lower() not in kinds:
        raise UserError(f"--out {out}: name a file that ends in .html, .md or .pdf")
    if out.is_dir():
        raise UserError(f"--out {out} is a folder: name a file")
    beside = _beside(out)
    if kinds[out.suffix.lower()] == "md" and beside.exists() and not beside.is_dir():
        raise UserError(f"--out {out}: its pictures go to the folder {beside}, which is a file: name another")
    if kinds[out.suffix.lower()] == "pdf":
        browser()
    return kinds[out.suffix.lower()]


def browser() -> str:
    found = os.environ.get("WEFT_BROWSER") or next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        raise UserError("a PDF needs Chromium or Chrome, and none is found: install one, name it in WEFT_BROWSER, or write .html or .md")
    return found


def as_pdf(text: str) -> bytes:
    """The page, printed by a browser that reaches nothing."""
    with tempfile.TemporaryDirectory(prefix="weft-") as folder:
        source, out = Path(folder) / "document.html", Path(folder) / "document.pdf"
        source.write_text(text, encoding="utf-8")
        root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []  # which Chromium demands of root
        quiet = ["--headless", "--disable-gpu", "--no-first-run", "--no-pdf-header-footer", f"--user-data-dir={folder}/profile"]
        try:
            done = subprocess.run(
                [browser(), *root, *quiet, f"--print-to-pdf={out}", source.as_uri()], capture_output=True, timeout=PATIENCE, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UserError(f"the browser did not print: {error}") from None
        if not out.is_file():
            raise UserError(f"the browser did not print: {done.stderr.decode(errors='replace').strip()[-300:] or 'it says nothing'}")
        return out.read_bytes()


def _markdown() -> Callable[[str], str]:
    from markdown_it import MarkdownIt

    made: Any = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable("table").disable("image")

    def leads_to_the_web(url: str) -> bool:
        return re.match(r"https?://", url.strip(), re.IGNORECASE) is not None

    made.validateLink = leads_to_the_web
    return made.render


def _data_url(image: Image, blobs: Blobs) -> str:
    return f"data:{image.media_type};base64,{base64.b64encode(_bytes(image, blobs)).decode()}"


def _bytes(image: Image, blobs: Blobs) -> bytes:
    try:
        return blobs.read(image)
    except (PictureError, OSError) as error:
        raise UserError(f"a picture of the document cannot be read any more: {error}") from None


def _size(image: Image) -> str | None:
    return "tiny" if max(image.width, image.height) <= 128 else "tall" if image.height > 1.2 * image.width else None
