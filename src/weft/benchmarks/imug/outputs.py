"""Outputs made elsewhere in IMUG-Bench's layout: <domain>/<subdomain>/question_<id>/result.json beside turn_<n>_output.png.

A text turn's reply is its `model_response`; an `ERROR:` written there by the released client is a failed call of theirs, so the turn is
unscored. A missing picture or a missing turn is the model's empty reply; a missing or broken result.json leaves the sample unscored, not
out of the count.
"""

from pathlib import Path
from typing import Any, cast

from weft.benchmarks.outputs import Folder
from weft.errors import UserError
from weft.models.endpoint import NO, CallError, Sent
from weft.models.http import fields
from weft.outside import json_file
from weft.types import Message, Part, Text, Want


class Outputs(Folder):
    async def send(self, messages: tuple[Message, ...], want: Want) -> Sent:
        path = self._root / want.place.file
        result = self.inside(path.parent / "result.json")
        said = self._response(result, want.place.turn + 1)
        if said.startswith("ERROR:"):
            raise CallError(f"{result}: turn {want.place.turn + 1} failed when it was made: {said[:200]}", NO)
        if want.kind == "text":
            parts: tuple[Part, ...] = (Text(said),) if said.strip() else ()
            return self.sent(parts, "text")
        picture = self.inside(path if path.is_file() or not said else path.parent / Path(said).name)
        if not picture.is_file():
            return Sent((), "empty", f"no file {want.place.file} in the outputs", served=self.name)
        return self.sent(self.read(picture, "image"), "image")

    def _response(self, result: Path, turn: int) -> str:
        if not result.exists():
            raise CallError(f"there is no {result}", NO)
        try:
            tasks: Any = fields(json_file(result)).get("tasks")
        except UserError as error:
            raise CallError(str(error), NO) from None
        found = [fields(task) for task in cast(list[Any], tasks)] if isinstance(tasks, list) else []
        return next((str(task.get("model_response") or "") for task in found if task.get("turn") == turn), "")
