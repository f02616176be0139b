"""Outputs made elsewhere in IMUG-Bench's layout: <domain>/<subdomain>/question_<id>/result.json beside
turn_<n>_output.png.

A text turn's reply is its `model_response`, an image turn's the picture, whatever else is there. An `ERROR:` written by
the released client is what `weft run` would have made of the same: an empty reply is the model's, anything else (no
answer in time, an error of the server) a failed call, unscored. A missing picture or a missing turn is the model's
empty reply; without a readable result.json nobody knows, so what it would tell is unscored, and stays in the count."""

import asyncio
import re
from pathlib import Path
from typing import Any, cast

from weft.benchmarks.outputs import OutputFolder
from weft.errors import UserError
from weft.models.endpoint import NO_RETRY, CallError, EndpointReply
from weft.types import Message, Part, Request, Text
from weft.untrusted import dict_or_empty, read_json_file

ERROR_PREFIX = "ERROR:"  # how the released client begins what it keeps of a turn that failed
EMPTY = re.compile(r"ERROR: .*\bnon-empty (?:text|image) field")  # what it says of an empty reply


class ImugOutputs(OutputFolder):
    async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
        path = self._root / want.turn_ref.file
        if want.modality == "image" and path.is_file():
            return self.build_sent(await asyncio.to_thread(self.read, self.check_inside(path), "image"), "image")
        result = self.check_inside(path.parent / "result.json")
        said = self._response(result, want.turn_ref.turn + 1)
        if EMPTY.match(said):
            return EndpointReply((), "empty", f"an empty reply: {said[:200]}", served_model=self.name)
        if said.startswith(ERROR_PREFIX):
            why = f"{result}: turn {want.turn_ref.turn + 1} failed when it was made: {said[:200]}"
            return EndpointReply((Text(said),), "failed", why, served_model=self.name)
        if want.modality == "text":
            if said.strip():
                parts: tuple[Part, ...] = (Text(said),)
            else:
                parts = ()
            return self.build_sent(parts, "text")
        if said:
            picture = self.check_inside(path.parent / Path(said).name)
        else:
            picture = path
        if not picture.is_file():
            return EndpointReply((), "empty", f"no file {want.turn_ref.file} in the outputs", served_model=self.name)
        return self.build_sent(await asyncio.to_thread(self.read, picture, "image"), "image")

    def _response(self, result: Path, turn: int) -> str:
        if not result.exists():
            raise CallError(f"there is no {result}", NO_RETRY)
        try:
            tasks: Any = dict_or_empty(read_json_file(result)).get("tasks")
        except UserError as error:
            raise CallError(str(error), NO_RETRY) from None
        found = [dict_or_empty(task) for task in cast(list[Any], tasks)] if isinstance(tasks, list) else []
        said: list[Any] = [task.get("model_response") for task in found if str(task.get("turn")) == str(turn)]
        if not said or said[-1] is None:
            return ""
        if not isinstance(said[-1], str):
            raise CallError(
                f"{result}: turn {turn} has a model_response that is no text: {str(said[-1])[:80]}", NO_RETRY
            )
        return said[-1]
