"""The exact judge: it answers a benchmark's questions in the benchmark's schema, from pixels and the dataset's sidecar.

    key_point            share of key points that hold in the scene read from the picture
    visual_consistency   share of cells that should not have changed, and the background, that did not
    image_quality        10 for a picture as clean as a drawing, less by its distance from one and for cells that cannot be read
    accuracy             10 exact, 5 partly right, 0 otherwise
    points               each evaluation point, 0 to 5 (weft.tabletop.points)
    choice               the letters that are true of the picture a dynamic question is about

What is right is relative to the pictures that the question shows: a model that edits its own wrong picture rightly is right.
"""

import itertools
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from weft.errors import UserError
from weft.models.baselines import Local
from weft.models.endpoint import NO, CallError, Sent
from weft.store.blobs import Blobs
from weft.tabletop import points
from weft.tabletop.choices import Choice
from weft.tabletop.datasets import SIDECAR
from weft.tabletop.language import Asked
from weft.tabletop.operations import Operation
from weft.tabletop.points import at
from weft.tabletop.world import CELLS, Reading, Scene, read, scene_from
from weft.types import Image, Message, Text, Want

LABEL = re.compile(r"Image_\d+ \((.*)\):\s*$")


class Exact(Local):
    def __init__(self, data: Path, blobs: Blobs) -> None:
        path = sidecar_of(data)
        try:
            text = path.read_text(encoding="utf-8")
            self._truth: dict[str, Any] = json.loads(text)["samples"]
        except FileNotFoundError:
            raise UserError(f"tabletop/exact judges tabletop data alone: there is no {path}; `weft data make` writes such data") from None
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(f"{path} cannot be read: {error}") from None
        super().__init__("tabletop/exact", version=1)
        self._blobs = blobs
        self._readings: dict[str, Reading] = {}

    async def send(self, messages: tuple[Message, ...], want: Want) -> Sent:
        try:
            turn = self._truth[want.place.sample]["turns"][want.place.turn]
        except (KeyError, IndexError):
            raise CallError(f"the sidecar has no sample {want.place.sample}, turn {want.place.turn}", NO) from None
        images = [part for message in messages for part in message.parts if isinstance(part, Image)]
        if want.place.metric == "accuracy":
            score, why = accuracy(_answer(messages), turn["answer"])
            found: dict[str, Any] = {"reasoning": why, "score": score}
        elif want.place.metric == "points":
            found = self._points(turn, messages, self._read(images[-1]))
        elif want.place.metric == "choice":
            found = self._choice(turn, self._read(images[-1]) if images else None)
        else:
            score, why = self._picture(want.place.metric, turn, [self._read(image) for image in images])
            found = {"reasoning": why, "score": score}
        said = msgspec.json.encode(found).decode()
        return Sent((Text(said),), "answered", raw=said, served=self.name)

    def _read(self, image: Image) -> Reading:
        if image.digest not in self._readings:
            self._readings[image.digest] = read(self._blobs.open(image))
        return self._readings[image.digest]

    def _points(self, turn: Mapping[str, Any], messages: tuple[Message, ...], made: Reading) -> dict[str, Any]:
        shown = labelled(messages)
        seen: dict[str, Reading] = {}
        for slot, origin in turn["origins"].items():
            label = f"given in turn {origin['turn']}" if origin["kind"] == "input" else f"made by the model in turn {origin['turn']}"
            images = [image for name, image in shown if name == label]
            if origin["at"] < len(images):
                seen[slot] = self._read(images[int(origin["at"])])
        scenes = {slot: reading.scene for slot, reading in seen.items()}
        unknown = seen["image"].unknown if "image" in seen else ()
        results = points.scored(turn, made, scenes.get("image"), scenes.get("source"), unknown)
        return {
            "evaluation_results": [
                {"point_id": number, "reason": why, "score": score} for number, (score, why) in enumerate(results, start=1)
            ]
        }

    def _choice(self, turn: Mapping[str, Any], made: Reading | None) -> dict[str, Any]:
        choice = Choice(Asked(turn["asks"], turn["args"], {}), turn["options"])
        seen = "there is no picture" if made is None else f"the picture shows {made.scene}"
        return {"reasoning": seen, "determined_answer": choice.letters(None if made is None else made.scene)}

    def _picture(self, metric: str, turn: Mapping[str, Any], readings: list[Reading]) -> tuple[float, str]:
        made, references = readings[0], readings[1:]
        if metric == "image_quality":
            score = max(0, 10 - round(made.residual / 4) - len(made.unknown))
            return score, f"distance from a clean drawing {made.residual:.1f}, {len(made.unknown)} cells cannot be read"
        base = references[0].scene if turn["points"][0]["check"] == "done" else None
        source = next((r.scene for r, p in zip(references, _shown(turn), strict=True) if p["check"] == "taken"), None)
        due = None if base is None else Operation(turn["kind"], turn["args"]).apply(base, source)
        touched: set[str] = {*turn["cells"], *(base.differs_at(due) if base and due else ())}
        if metric == "visual_consistency":
            return _consistency(made, base, due, touched | set(references[0].unknown if references else ()))
        held = [_holds(point, made, base, due, touched) for point in turn["points"]]
        failed = [why for ok, why in held if not ok]
        return 10 * sum(ok for ok, _ in held) / len(held), "; ".join(failed) or "every key point holds"


def sidecar_of(data: Path) -> Path:
    """Where the sidecar of a dataset is, or would be."""
    folders = (data.parent if data.is_file() else data, data / "test", data / "data")
    return next((folder / SIDECAR for folder in folders if (folder / SIDECAR).is_file()), folders[0] / SIDECAR)


def labelled(messages: tuple[Message, ...]) -> list[tuple[str, Image]]:
    """The pictures of a question under labels such as `Image_2 (given in turn 1):`."""
    parts = [part for message in messages for part in message.parts]
    found: list[tuple[str, Image]] = []
    for before, part in itertools.pairwise(parts):
        match = LABEL.search(before.text) if isinstance(before, Text) and isinstance(part, Image) else None
        if match and isinstance(part, Image):
            found.append((match.group(1), part))
    return found


def _shown(turn: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The key points that show a picture, in order."""
    return [point for point in turn["points"] if point["check"] != "fact"]


def _holds(point: Mapping[str, Any], made: Reading, base: Scene | None, due: Scene | None, touched: set[str]) -> tuple[bool, str]:
    if point["check"] == "fact":
        return _fact(point, made)
    assert due is not None and base is not None
    wrong = [cell for cell in sorted(touched) if cell in made.unknown or made.scene.at(cell) != due.at(cell)]
    if due.background != base.background and made.scene.background != due.background:
        return False, f"the background is {made.scene.background}, not {due.background}"
    return not wrong, f"at {wrong[0]} is {at(made, wrong[0])}, not {due.at(wrong[0]) or 'nothing'}" if wrong else ""


def _fact(point: Mapping[str, Any], made: Reading) -> tuple[bool, str]:
    if "scene" in point:
        due = scene_from(point["scene"])
        wrong = due.differs_at(made.scene) + list(made.unknown)
        if due.background != made.scene.background:
            return False, f"the background is {made.scene.background}, not {due.background}"
        return not wrong, f"at {wrong[0]} is {at(made, wrong[0])}, not {due.at(wrong[0]) or 'nothing'}" if wrong else ""
    if "background" in point:
        return made.scene.background == point["background"], f"the background is {made.scene.background}, not {point['background']}"
    for cell, thing in point["cells"].items():
        if cell in made.unknown or str(made.scene.at(cell) or "") != (thing or ""):
            return False, f"at {cell} is {at(made, cell)}, not {thing or 'nothing'}"
    return True, ""


def _consistency(made: Reading, base: Scene | None, due: Scene | None, touched: set[str]) -> tuple[float, str]:
    if base is None or due is None:
        return 10.0, "nothing had to stay the same"
    stay = [cell for cell in CELLS if cell not in touched]
    changed = [cell for cell in stay if cell in made.unknown or made.scene.at(cell) != base.at(cell)]
    ground = due.background == base.background
    kept = len(stay) - len(changed) + (ground and made.scene.background == base.background)
    return 10 * kept / (len(stay) + ground) if stay or ground else 10.0, f"changed without need: {', '.join(changed) or 'no cell'}"


def _answer(messages: tuple[Message, ...]) -> str:
    """The answer inside the last pair of marks of the question."""
    text = "".join(part.text for part in messages[-1].parts if isinstance(part, Text))
    found = re.findall(r"(~[0-9a-f]{16}) begins\n(.*?)\n\1 ends", text, re.DOTALL)
    return found[-1][1] if found else text.rpartition("Generated Answer is : ")[2]


def accuracy(said: str, due: str) -> tuple[float, str]:
    """Exact, partly right (some of several items, or the verdict without its reason), or not."""
    mine, right = _plain(said), _plain(due)
    if mine == right:
        return 10, "exact"
    letters = re.fullmatch(r"[A-E]+", due.strip())
    if letters:
        chosen = set(re.sub(r"[^A-E]", "", said)) if re.fullmatch(r"[A-E ,.]+", said.strip()) else set[str]()
        return (5, "some of the letters") if chosen & set(due) and not chosen - set(due) else (0, f"{due} was due")
    items, wanted = set(mine.split(", ")), set(right.split(", "))
    if items & wanted:
        return 5, f"partly: {due} was due"
    return 0, f"{due} was due"


def _plain(text: str) -> str:
    return re.sub(r"\b(a|an|the) ", "", re.sub(r"\s+", " ", text.lower())).strip(" .!")
