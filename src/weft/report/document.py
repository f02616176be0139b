"""One interleaved document to read: an HTML page that holds everything, Markdown with image files next to it, or a PDF.

Text is rendered as Markdown and nothing else: a model's HTML stays text, its image links are never fetched, and its
links lead only to the web. Images are unchanged."""

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
from weft.evaluation.writing import find_document, find_image_prompts
from weft.report.html import Html, build_page, inline_text, tag
from weft.results.run import Run
from weft.store.blobs import Blobs, write_file
from weft.store.image_metadata import remove_metadata
from weft.types import Image, Part, Text

EXTENSIONS = {"image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp", "image/gif": ".gif"}
FORMATS = {".html": "html", ".htm": "html", ".md": "md", ".markdown": "md", ".pdf": "pdf"}
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
PRINT_TIMEOUT_S = 90.0
MAX_TITLE = 100
MAX_REQUEST_CHARS = 500  # of the request that is quoted
TINY = 128  # pixels: images up to this side are enlarged without blur


class ReadableDocument(Struct, frozen=True):
    """A document with its images in place."""

    title: str
    parts: tuple[Part, ...]  # texts and images in order
    alt_texts: tuple[str, ...] = ()  # descriptions of the images, one by one, for those who cannot see them
    provenance: tuple[str, ...] = ()  # who made it from which prompt, in lines

    def images_with_alt(self) -> list[tuple[Image, str]]:
        """Return the images with their descriptions, which are empty unless there is one for each."""
        images = [part for part in self.parts if isinstance(part, Image)]
        if len(self.alt_texts) == len(images):
            return list(zip(images, self.alt_texts, strict=True))
        return [(image, "") for image in images]


def document_title(parts: Sequence[Part], prompt: str) -> str:
    """Return the document's first heading, or the prompt."""
    title = _first_heading(parts) or " ".join(prompt[:400].split())
    if len(title) > MAX_TITLE:
        return title[: MAX_TITLE - 1] + "…"
    return title


def _first_heading(parts: Sequence[Part]) -> str:
    for part in parts:
        if not isinstance(part, Text):
            continue
        for line in part.text.splitlines():
            if re.match(r"#{1,3}\s", line.strip()):
                heading = line.strip()[:400].strip("# ")
                return " ".join(re.sub(r"[*_`]", "", heading).split())
    return ""


def render_html(document: ReadableDocument, blobs: Blobs) -> str:
    """Return the document as one page, with images as data URLs."""
    render = _markdown_renderer()
    images = iter(document.images_with_alt())
    content: list[Html] = []
    for part in document.parts:
        if isinstance(part, Text) and part.text.strip():
            content.append(tag("div", Html(render(part.text.strip())), class_="prose", dir="auto"))
        elif isinstance(part, Image):
            image, alt = next(images)
            url = _data_url(image, blobs)
            element = tag("img", src=url, alt=alt or "an image", title=alt or None, class_=_size_class(image))
            content.append(tag("figure", element))
    if document.provenance:
        lines = [tag("p", inline_text(line)) for line in document.provenance]
        content.append(tag("div", lines, class_="soft small provenance"))
    return build_page(document.title, tag("article", content), kind="document", style="document.css")


def render_markdown(document: ReadableDocument, blobs: Blobs, out: Path) -> str:
    """Return the document as Markdown; write its images to a folder next to `out`."""
    folder = _image_folder(out)
    folder.mkdir(parents=True, exist_ok=True)
    images = iter(enumerate(document.images_with_alt(), start=1))
    blocks: list[str] = []
    for part in document.parts:
        if isinstance(part, Text) and part.text.strip():
            blocks.append(sanitise_markdown(part.text.strip()))
        elif isinstance(part, Image):
            number, (image, alt) = next(images)
            path = folder / f"{number}-{image.digest[:8]}{EXTENSIONS.get(image.media_type, '.png')}"
            path.write_bytes(_read_image(image, blobs))
            plain_alt = " ".join(re.sub(r"[\[\]\\<>]", " ", alt).split()) or f"image {number}"
            blocks.append(f"![{plain_alt}]({quote(folder.name)}/{path.name})")
    return "\n\n".join(blocks) + "\n"


def sanitise_markdown(text: str) -> str:
    """Return Markdown without HTML, in which no image is fetched and links lead only to the web. Safety goes before
    looks: in code, too, `<` becomes `&lt;`."""
    text = re.sub(r"<(?=[A-Za-z/!?])", "&lt;", text).replace("![", "!\\[").replace("]:", "]\\:")
    return re.sub(r"\](\s{0,4})\((?!\s{0,4}<?https?://)", r"]\1\\(", text, flags=re.IGNORECASE)


def write(document: ReadableDocument, blobs: Blobs, out: Path) -> None:
    """Write the document in the format that the file's name ends in."""
    format = format_of(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    if format == "html":
        data = render_html(document, blobs).encode()
    elif format == "md":
        data = render_markdown(document, blobs, out).encode()
    else:
        data = render_pdf(render_html(document, blobs))
    write_file(out, data, world_readable=True)


def _image_folder(out: Path) -> Path:
    return out.with_name(f"{out.stem}_files")


def format_of(out: Path) -> str:
    """Return the format of a file by its ending: html, md or pdf. Raises UserError if it cannot be written there."""
    format = FORMATS.get(out.suffix.lower())
    if format is None:
        raise UserError(f"--out {out}: name a file that ends in .html, .md or .pdf")
    if out.is_dir():
        raise UserError(f"--out {out} is a folder: name a file")
    folder = _image_folder(out)
    if format == "md" and folder.exists() and not folder.is_dir():
        raise UserError(f"--out {out}: its images go to the folder {folder}, which is a file: name another")
    if format == "pdf":
        find_browser()
    return format


def find_browser() -> str:
    """Return the browser that prints PDFs. Raises UserError if there is none."""
    if os.environ.get("WEFT_BROWSER"):
        return os.environ["WEFT_BROWSER"]
    for name in BROWSERS:
        path = shutil.which(name)
        if path:
            return path
    raise UserError(
        "a PDF needs Chromium or Chrome, and none is found: install one, name it in WEFT_BROWSER, or write .html or .md"
    )


def render_pdf(page: str) -> bytes:
    """Return a page as PDF, printed by a browser with a profile of its own."""
    with tempfile.TemporaryDirectory(prefix="weft-") as folder:
        source = Path(folder) / "document.html"
        out = Path(folder) / "document.pdf"
        source.write_text(page, encoding="utf-8")
        command = [find_browser(), "--headless", "--disable-gpu", "--no-first-run", "--no-pdf-header-footer"]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.append("--no-sandbox")  # Chromium refuses to run as root with it
        command += [f"--user-data-dir={folder}/profile", f"--print-to-pdf={out}", source.as_uri()]
        try:
            process = subprocess.run(command, capture_output=True, timeout=PRINT_TIMEOUT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UserError(f"the browser did not print: {error}") from None
        if not out.is_file():
            output = process.stderr.decode(errors="replace").strip()[-300:]
            raise UserError(f"the browser did not print: {output or 'it gave no reason'}")
        return out.read_bytes()


def _markdown_renderer() -> Callable[[str], str]:
    from markdown_it import MarkdownIt

    parser: Any = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable("table").disable("image")

    def is_web_link(url: str) -> bool:
        return re.match(r"https?://", url.strip(), re.IGNORECASE) is not None

    parser.validateLink = is_web_link
    return parser.render


def _data_url(image: Image, blobs: Blobs) -> str:
    return f"data:{image.media_type};base64,{base64.b64encode(_read_image(image, blobs)).decode()}"


def _read_image(image: Image, blobs: Blobs) -> bytes:
    try:
        return remove_metadata(blobs.read(image))
    except (ImageError, OSError) as error:
        raise UserError(f"an image of the document cannot be read: {error}") from None


def _size_class(image: Image) -> str | None:
    if max(image.width, image.height) <= TINY:
        return "tiny"
    if image.height > 1.2 * image.width:
        return "tall"
    return None


def build_document(run: Run, home: Path, request: str) -> ReadableDocument:
    """Return the document that a run wrote, with its provenance. The prompts of its images become their alternative
    texts, if every image has one."""
    reply = find_document(run)
    quoted = " ".join(request.split())
    if len(quoted) > MAX_REQUEST_CHARS:
        quoted = quoted[: MAX_REQUEST_CHARS - 1] + "…"
    provenance = (f"Written by {run.record.manifest.model.name}", f"Asked for: {quoted}")
    alt_texts = find_image_prompts(run, home)
    if len(alt_texts) != len(reply.images):
        alt_texts = ()
    title = document_title(reply.output, request)
    return ReadableDocument(title, reply.output, alt_texts, provenance)
