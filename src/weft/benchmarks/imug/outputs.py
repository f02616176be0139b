"""Outputs made elsewhere in IMUG-Bench's layout: <domain>/<subdomain>/question_<id>/ with result.json and
turn_<n>_output.png.

A text turn's reply is its `model_response` in result.json; an image turn's reply is the image, whatever result.json
says, or the file that result.json names. An `ERROR:` of the released client counts as in `weft run`: an empty reply is
the model's fault, anything else (a timeout, a server error) is a failed call, unscored. A missing image or turn is the
model's empty reply. Without a readable result.json nothing is known: its turns are unscored but still expected.

Where a file is there and cannot be read, the reply is noted as `unreadable`: the released scripts lose such a turn.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from weft.benchmarks.outputs import OutputFolder
from weft.errors import UserError
from weft.models.endpoint import NO_RETRY, CallError, EndpointReply
from weft.types import Message, Note, Part, Request, Text
from weft.untrusted import dict_or_empty, read_json_file

Entries = Sequence[Mapping[str, Any]]  # the turns of a result.json
UNREADABLE: Note = "unreadable"
ERROR_PREFIX = "ERROR:"  # begins what the released client stores for a turn that failed
EMPTY_REPLY = re.compile(r"ERROR: .*\bnon-empty (?:text|image) field")  # its error for an empty reply


class ImugOutputs(OutputFolder):
    """A folder of outputs in IMUG-Bench's layout, as a model."""

    subfolders = ("",)
    file_names = "<domain>/<subdomain>/question_<id>/ with result.json and turn_<n>_output.png"
    patterns = ("*/*/question_*/result.json", "*/*/question_*/turn_*_output.png")

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        path = self._root / request.turn_ref.file
        turn = request.turn_ref.turn + 1
        if request.modality == "image" and path.exists():
            return await self._send_image(path)
        result = self.check_inside(path.parent / "result.json")
        if not result.exists():
            raise CallError(f"there is no {result}", NO_RETRY)
        try:
            entries = _read_entries(result)
        except UserError as error:
            return self._build_unreadable(str(error))
        response = _find_response(entries, turn)
        if isinstance(response, str) and EMPTY_REPLY.match(response):
            return EndpointReply((), "empty", f"an empty reply: {response[:200]}", served_model=self.name)
        if isinstance(response, str) and response.startswith(ERROR_PREFIX):
            reason = f"{result}: turn {turn} failed when it was made: {response[:200]}"
            return EndpointReply((Text(response),), "failed", reason, served_model=self.name)
        if response and not isinstance(response, str):
            shown = str(response)[:80]
            return self._build_unreadable(f"{result}: turn {turn} has a model_response that is not text: {shown}")
        if request.modality == "text":
            parts: tuple[Part, ...] = (Text(response),) if response and response.strip() else ()
            return self.build_sent(parts, "text")
        file = self._find_named_image(path.parent, entries, turn)
        if file is not None:
            return await self._send_image(file)
        notes: tuple[Note, ...] = ()
        if not _can_look_up_image(entries, turn):
            notes = (UNREADABLE,)
        reason = f"no file {request.turn_ref.file} in the outputs"
        return EndpointReply((), "empty", reason, served_model=self.name, notes=notes)

    async def _send_image(self, path: Path) -> EndpointReply:
        try:
            return await self.send_file(self.check_inside(path), "image")
        except CallError as error:
            return self._build_unreadable(str(error))

    def _build_unreadable(self, reason: str) -> EndpointReply:
        return EndpointReply((), "failed", reason, served_model=self.name, notes=(UNREADABLE,))

    def _find_named_image(self, folder: Path, entries: Entries, turn: int) -> Path | None:
        """Return the first file that result.json names for an image turn and that exists; None if there is none."""
        for entry in entries:
            name = entry.get("model_response")
            if entry.get("turn") != turn or not name or not isinstance(name, str):
                continue
            for path in (folder / name, folder / Path(name).name):
                if _is_file(path):
                    return path
        return None


def _read_entries(result: Path) -> Entries:
    """Return the turns of a result.json. Raises UserError if it is not JSON with a list of `tasks`."""
    tasks: Any = dict_or_empty(read_json_file(result)).get("tasks", [])
    if not isinstance(tasks, list):
        raise UserError(f"{result}: `tasks` must be a list of turns")
    return [dict_or_empty(task) for task in cast(list[Any], tasks)]


def _find_response(entries: Entries, turn: int) -> Any:
    """Return a turn's `model_response`, the last if there are several; "" if there is none."""
    response: Any = ""
    for entry in entries:
        if _read_turn(entry) == turn:
            response = entry.get("model_response") or ""
    return response


def _read_turn(entry: Mapping[str, Any]) -> int | None:
    turn: Any = entry.get("turn")
    try:
        return int(turn)
    except (TypeError, ValueError, OverflowError):
        return None


def _can_look_up_image(entries: Entries, turn: int) -> bool:
    """Whether the released scripts, which look for the image of a turn here, find that there is none.

    They stop at an entry without `turn`, and at a name that is no text or empty.
    """
    for entry in entries:
        if "turn" not in entry:
            return False
        name = entry.get("model_response")
        if entry["turn"] == turn and (not name or not isinstance(name, str)):
            return False
    return True


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that is too long, or has a NUL in it
        return False
