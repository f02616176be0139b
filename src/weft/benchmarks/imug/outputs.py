"""Outputs made elsewhere in IMUG-Bench's layout: <domain>/<subdomain>/question_<id>/ with result.json and
turn_<n>_output.png.

A text turn's reply is its `model_response` in result.json; an image turn's reply is the image, whatever result.json
says. An `ERROR:` of the released client counts as in `weft run`: an empty reply is the model's fault, anything else (a
timeout, a server error) is a failed call, unscored. A missing image or turn is the model's empty reply. Without a
readable result.json nothing is known: its turns are unscored but still expected.
"""

import asyncio
import re
from pathlib import Path
from typing import Any, cast

from weft.benchmarks.outputs import OutputFolder
from weft.errors import UserError
from weft.models.endpoint import NO_RETRY, CallError, EndpointReply
from weft.types import Message, Part, Request, Text
from weft.untrusted import dict_or_empty, read_json_file

ERROR_PREFIX = "ERROR:"  # begins what the released client stores for a turn that failed
EMPTY_REPLY = re.compile(r"ERROR: .*\bnon-empty (?:text|image) field")  # its error for an empty reply


class ImugOutputs(OutputFolder):
    """A folder of outputs in IMUG-Bench's layout, as a model."""

    async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
        path = self._root / want.turn_ref.file
        if want.modality == "image" and path.is_file():
            return await self._send_image(self.check_inside(path))
        result = self.check_inside(path.parent / "result.json")
        turn = want.turn_ref.turn + 1
        response = self._read_response(result, turn)
        if EMPTY_REPLY.match(response):
            return EndpointReply((), "empty", f"an empty reply: {response[:200]}", served_model=self.name)
        if response.startswith(ERROR_PREFIX):
            reason = f"{result}: turn {turn} failed when it was made: {response[:200]}"
            return EndpointReply((Text(response),), "failed", reason, served_model=self.name)
        if want.modality == "text":
            parts: tuple[Part, ...] = (Text(response),) if response.strip() else ()
            return self.build_sent(parts, "text")
        if response:
            path = self.check_inside(path.parent / Path(response).name)
        if not path.is_file():
            return EndpointReply((), "empty", f"no file {want.turn_ref.file} in the outputs", served_model=self.name)
        return await self._send_image(path)

    async def _send_image(self, path: Path) -> EndpointReply:
        return self.build_sent(await asyncio.to_thread(self.read, path, "image"), "image")

    def _read_response(self, result: Path, turn: int) -> str:
        """Return a turn's `model_response`, the last if there are several; "" if there is none."""
        if not result.exists():
            raise CallError(f"there is no {result}", NO_RETRY)
        try:
            tasks: Any = dict_or_empty(read_json_file(result)).get("tasks")
        except UserError as error:
            raise CallError(str(error), NO_RETRY) from None
        response: Any = None
        if isinstance(tasks, list):
            for task in cast(list[Any], tasks):
                fields = dict_or_empty(task)
                if str(fields.get("turn")) == str(turn):
                    response = fields.get("model_response")
        if response is None:
            return ""
        if not isinstance(response, str):
            raise CallError(
                f"{result}: turn {turn} has a model_response that is not text: {str(response)[:80]}", NO_RETRY
            )
        return response
