"""One document of words and pictures as something to read: a page that holds everything, Markdown with files beside it,
or a PDF.

Words are taken for Markdown, and for nothing else: markup of a model's stays text, and so do pictures and links that
lead anywhere but to the web. Pictures are as they came."""

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

from weft.errors import ImageError, UserError
from weft.report.html import Html, build_page, inline_text, tag
from weft.store.blobs import Blobs, write_file
from weft.types import Image, Part, Text

EXTENSIONS = {"image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp", "image/gif": ".gif"}
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
PATIENCE = 90.0  # seconds for a browser to print


class ReadableDocument(Struct, frozen=True):
    """`words` describe its pictures, one by one, for those who do not see them; `made` says by whom, and what
    was asked for, line by line."""

    title: str
    parts: tuple[Part, ...]
    alt_texts: tuple[str, ...] = ()
    provenance: tuple[str, ...] = ()

    def images_with_alt(self) -> list[tuple[Image, str]]:
        images = [part for part in self.parts if isinstance(part, Image)]
        if len(self.alt_texts) == len(images):
            said = self.alt_texts
        else:
            said = ("",) * len(images)
        return list(zip(images, said, strict=True))


def document_title(parts: Sequence[Part], asked: str) -> str:
    """Its first heading, or what was asked for."""
    lines = (line.strip() for part in parts if isinstance(part, Text) for line in part.text.splitlines())
    heading = next((line for line in lines if re.match(r"#{1,3}\s", line)), "")
    said = " ".join(re.sub(r"[*_`]", "", heading[:400].strip("# ")).split()) or " ".join(asked[:400].split())
    if len(said) <= 100:
        return said
    return said[:99] + "…"


def render_html(document: ReadableDocument, blobs: Blobs) -> str:
    render = _markdown()
    pictures = iter(document.images_with_alt())
    made: list[Html] = []
    for part in document.parts:
        if isinstance(part, Text) and part.text.strip():
            made.append(tag("div", Html(render(part.text.strip())), class_="prose", dir="auto"))
        elif isinstance(part, Image):
            image, said = next(pictures)
            shown = tag(
                "img", src=_data_url(image, blobs), alt=said or "a picture", title=said or None, class_=_size(image)
            )
            made.append(tag("figure", shown))
    if document.provenance:
        about = tag("div", [tag("p", inline_text(line)) for line in document.provenance], class_="soft small made")
    else:
        about = None
    return build_page(document.title, tag("article", made, about), kind="document", style="document.css")


def render_markdown(document: ReadableDocument, blobs: Blobs, out: Path) -> str:
    """The text; pictures are written beside it, in a folder of its name."""
    folder = _beside(out)
    folder.mkdir(parents=True, exist_ok=True)
    made: list[str] = []
    pictures = iter(enumerate(document.images_with_alt(), start=1))
    for part in document.parts:
        if isinstance(part, Text) and part.text.strip():
            made.append(sanitise_markdown(part.text.strip()))
        elif isinstance(part, Image):
            number, (image, said) = next(pictures)
            file = folder / f"{number}-{image.digest[:8]}{EXTENSIONS.get(image.media_type, '.png')}"
            file.write_bytes(_bytes(image, blobs))
            alt = " ".join(re.sub(r"[\[\]\\<>]", " ", said).split()) or f"picture {number}"
            made.append(f"![{alt}]({quote(folder.name)}/{file.name})")
    return "\n\n".join(made) + "\n"


def sanitise_markdown(text: str) -> str:
    """Markdown in which nothing is markup but Markdown, no picture is fetched, and links lead to the web alone. It is
    safe before it is pretty: in code, too, `<` is written as `&lt;`."""
    text = re.sub(r"<(?=[A-Za-z/!?])", "&lt;", text).replace("![", "!\\[").replace("]:", "]\\:")
    return re.sub(r"\](\s{0,4})\((?!\s{0,4}<?https?://)", r"]\1\\(", text, flags=re.IGNORECASE)


def write(document: ReadableDocument, blobs: Blobs, out: Path) -> None:
    """By the ending of the file's name."""
    kind = format_of(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    if kind == "html":
        write_file(out, render_html(document, blobs).encode(), world_readable=True)
    elif kind == "md":
        write_file(out, render_markdown(document, blobs, out).encode(), world_readable=True)
    else:
        write_file(out, render_pdf(render_html(document, blobs)), world_readable=True)


def _beside(out: Path) -> Path:
    return out.with_name(f"{out.stem}_files")


def format_of(out: Path) -> str:
    kinds = {".html": "html", ".htm": "html", ".md": "md", ".markdown": "md", ".pdf": "pdf"}
    if out.suffix.lower() not in kinds:
        raise UserError(f"--out {out}: name a file that ends in .html, .md or .pdf")
    if out.is_dir():
        raise UserError(f"--out {out} is a folder: name a file")
    beside = _beside(out)
    if kinds[out.suffix.lower()] == "md" and beside.exists() and not beside.is_dir():
        raise UserError(f"--out {out}: its pictures go to the folder {beside}, which is a file: name another")
    if kinds[out.suffix.lower()] == "pdf":
        find_browser()
    return kinds[out.suffix.lower()]


def find_browser() -> str:
    found = os.environ.get("WEFT_BROWSER") or next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if found is None:
        raise UserError(
            "a PDF needs Chromium or Chrome, and none is found: install one, name it in WEFT_BROWSER, or write .html or .md"
        )
    return found


def render_pdf(text: str) -> bytes:
    """The page, printed by a browser that reaches nothing."""
    with tempfile.TemporaryDirectory(prefix="weft-") as folder:
        source = Path(folder) / "document.html"
        out = Path(folder) / "document.pdf"
        source.write_text(text, encoding="utf-8")
        # which Chromium demands of root
        root = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        quiet = [
            "--headless",
            "--disable-gpu",
            "--no-first-run",
            "--no-pdf-header-footer",
            f"--user-data-dir={folder}/profile",
        ]
        try:
            done = subprocess.run(
                [find_browser(), *root, *quiet, f"--print-to-pdf={out}", source.as_uri()],
                capture_output=True,
                timeout=PATIENCE,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UserError(f"the browser did not print: {error}") from None
        if not out.is_file():
            raise UserError(
                f"the browser did not print: {done.stderr.decode(errors='replace').strip()[-300:] or 'it says nothing'}"
            )
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
    except (ImageError, OSError) as error:
        raise UserError(f"a picture of the document cannot be read any more: {error}") from None


def _size(image: Image) -> str | None:
    if max(image.width, image.height) <= 128:
        return "tiny"
    if image.height > 1.2 * image.width:
        return "tall"
    return None
