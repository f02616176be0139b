"""A dataset's images stay as they are in the store; what leaves weft shows them without what they say."""

import base64
import random
import re
from pathlib import Path

import weft
from fuzz.images import SAID, image
from weft.report.export import export_run

SUFFIXES = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP", ".gif": "GIF"}


def speaking_dataset(folder: Path) -> int:
    """Give every image of a dataset words that nobody needs to see; return how many there are."""
    chance = random.Random(3)
    paths = [path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES]
    for path in paths:
        path.write_bytes(image(SUFFIXES[path.suffix.lower()], chance))
    return len(paths)


def texts_in(folder: Path) -> list[Path]:
    """The files that have the words, as they are or inside a data URL."""
    found: list[Path] = []
    for path in filter(Path.is_file, folder.rglob("*")):
        data = path.read_bytes()
        inside = [base64.b64decode(match) for match in re.findall(rb"base64,([A-Za-z0-9+/=]+)", data)]
        if any(SAID in piece for piece in (data, *inside)):
            found.append(path)
    return found


def test_reports_and_exports_show_a_datasets_images_without_what_they_say(toy: Path, tmp_path: Path):
    assert speaking_dataset(toy)
    home, out = tmp_path / "home", tmp_path / "out"
    run = weft.evaluate("weave", data=toy, model="copy", judge="constant/5", home=home)
    weft.api.write_report([run], out / "pages", home=home)
    weft.api.write_report([run], out / "one.html", home=home, single_file=True)
    counts = export_run(run, home, out / "export")
    assert counts["images"] and texts_in(home / "blobs"), "the dataset's bytes stay as they are"
    assert list(out.rglob("img/*")) and b"base64," in (out / "one.html").read_bytes()
    assert not texts_in(out)
