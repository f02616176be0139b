"""Outputs made elsewhere in IMUG-Bench's layout: <domain>/<subdomain>/question_<id>/result.json beside turn_<n>_output.png.

A text turn's reply is its `model_response`, an image turn's the picture, whatever else is there. An `ERROR:` written by the released client
is what `weft run` would have made of the same: an empty reply is the model's, anything else (no answer in time, an error of the server)
a failed call, unscored. A missing picture or a missing turn is the model's empty reply; without a readable result.json nobody knows, so
what it would tell is unscored, and stays in the count.
"""

import asyncio
import re
from pathlib import Path
from typing import Any, cast

from weft.benchmarks.outputs import Folder
from weft.errors import UserError
from weft.models.endpoint import NO, CallError, Sent
from weft.types import Message, Part, Text, Want
from weft.untrusted import fields, json_file

ERROR = "ERROR:"  # how the released client begins what it keeps of a turn that failed
EMPTY = re.compile(r"ERROR: .*\bnon-empty (?:text|image) field")  # what it says of an empty reply


class Outputs(Folder):
    async def send(self, messages: tuple[Message, ...], want: Want) -> Sent:
        path = self._root / want.place.file
        if want.kind == "image" and path.is_file():
            return self.sent(await asyncio.to_thread(self.read, self.inside(path), "image"), "image")
        result = self.inside(path.parent / "result.json")
        said = self._response(result, want.place.turn + 1)
        if EMPTY.match(said):
            return Sent((), "empty", f"an empty reply: {said[:200]}", served=self.name)
        if said.startswith(ERROR):
            why = f"{result}: turn {want.place.turn + 1} failed when it was made: {said[:200]}"
            return Sent((Text(said),), "failed", why, served=self.name)
        if want.kind == "text":
            parts: tuple[Part, ...] = (Text(said),) if said.strip() else ()
            return self.sent(parts, "text")
        picture = self.inside(path.parent / Path(said).name) if said else path
        if not picture.is_file():
            return Sent((), "empty", f"no file {want.place.file} in the outputs", served=self.name)
        return self.sent(await asyncio.to_thread(self.read, picture, "image"), "image")

    def _response(self, result: Path, turn: int) -> str:
        if not result.exists():
            raise CallError(f"there is no {result}", NO)
        try:
            tasks: Any = fields(json_file(result)).get("tasks")
        except UserError as error:
            raise CallError(str(error), NO) from None
        found = [fields(task) for task in cast(list[Any], tasks)] if isinstance(tasks, list) else []
        said: list[Any] = [task.get("model_response") for task in found if str(task.get("turn")) == str(turn)]
        if not said or said[-1] is None:
            return ""
        if not isinstance(said[-1], str):
            raise CallError(f"{result}: turn {turn} has a model_response that is no text: {str(said[-1])[:80]}", NO)
        return said[-1]
