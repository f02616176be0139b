"""IMUG-Bench: outputs that are not what their names say, and a result.json with holes. Where both sides can have the same
number they must; the rest is in docs/reference/errata.md."""

import json
import random
from pathlib import Path
from typing import Any

from aiohttp import web

from conformance.server import Asked
from server import drawn_as

FORMS = ("BMP", "TIFF", "GIF", "cut")
EMPTY: tuple[Any, ...] = (None, "", [], False, 0, {})


def refuse_broken(answer: Any) -> Any:
    """A judge that takes no image that nothing can open, as real ones do."""

    def judge(asked: Asked) -> str:
        if any(picture.startswith("pixels:none") for picture in asked.pictures):
            raise web.HTTPBadRequest(text="not an image")
        return answer(asked)

    return judge


def change_results(records: list[dict[str, Any]], outputs: Path, chance: random.Random) -> None:
    """Some results are broken or gone, with images missing beside them; some names and answers are none."""
    for path in sorted(outputs.rglob("result.json")):
        found = json.loads(path.read_text())
        for task in found["tasks"]:
            image = path.parent / f"turn_{task['turn']}_output.png"
            if task["modality"] == "text" and chance.random() < 0.25:
                task["model_response"] = chance.choice(EMPTY)
            elif task["modality"] == "image" and chance.random() < 0.3:
                image.unlink()
                task["model_response"] = chance.choice((None, "", "gone.png", "ERROR: out of memory"))
        text = json.dumps(found)
        path.write_text(chance.choice((text, text, text, text[:-3], "", " ")))
        if chance.random() < 0.1:
            path.unlink()


def change_forms(records: list[dict[str, Any]], outputs: Path, chance: random.Random) -> None:
    """Some images have another form than their name says. OpenCV, which reads grids, opens all but a PNG without its
    end."""
    for path in sorted(outputs.rglob("turn_*_output.png")):
        form = chance.choice(FORMS)
        if chance.random() < 0.4 and not (form == "cut" and "cubes_" in str(path)):
            path.write_bytes(drawn_as(form, str(path.relative_to(outputs)), 64))


def break_images(records: list[dict[str, Any]], outputs: Path, chance: random.Random) -> None:
    """Some files are no images. Cube grids are left as they are: there the scripts make a broken file 0. No answer is
    empty: such a question is 0 in weft, whose key the scripts cannot work out here."""
    for path in sorted(outputs.rglob("result.json")):
        found = json.loads(path.read_text())
        for task in found["tasks"]:
            said = task["model_response"]
            task["model_response"] = "A" if not said.strip() or said.startswith("ERROR:") else said
        path.write_text(json.dumps(found))
    for path in sorted(outputs.rglob("turn_*_output.png")):
        if "cubes_" not in str(path) and chance.random() < 0.3:
            path.write_bytes(chance.choice((b"", b"no image", path.read_bytes()[:60])))


def name_images(records: list[dict[str, Any]], outputs: Path, chance: random.Random) -> None:
    """Some images of dialogues without dynamic questions lie elsewhere in their folder, where result.json says."""
    dynamic = {
        f"{record['domain']}/{record['subdomain']}/question_{record['sample_id']}"
        for record in records
        for task in record["tasks"]
        if "<DYNAMIC>" in str(task["output"].get("answer"))
    }
    for path in sorted(outputs.rglob("result.json")):
        if "cubes_" in str(path) or path.parent.relative_to(outputs / "m").as_posix() in dynamic:
            continue
        found = json.loads(path.read_text())
        for task in found["tasks"]:
            image = path.parent / f"turn_{task['turn']}_output.png"
            if image.exists() and chance.random() < 0.5:
                task["model_response"] = chance.choice(("mine_{}.png", "sub/mine_{}.jpg")).format(task["turn"])
                (path.parent / task["model_response"]).parent.mkdir(exist_ok=True)
                image.rename(path.parent / task["model_response"])
        path.write_text(json.dumps(found))


def mark_results(records: list[dict[str, Any]], outputs: Path, chance: random.Random) -> None:
    """Some results begin with a byte order mark."""
    for path in sorted(outputs.rglob("result.json")):
        if chance.random() < 0.2:
            path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())


ODD_FILES = {  # what is done to the outputs, and why the sides differ where they do
    "broken and odd results": (change_results, ""),
    "images of another form": (change_forms, ""),
    "broken images": (break_images, ""),
    "images under other names": (name_images, ""),
    "a byte order mark": (mark_results, "the scripts lose a dialogue's text turns; weft reads the file"),
}
