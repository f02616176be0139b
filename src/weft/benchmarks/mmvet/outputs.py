"""Answers made elsewhere in the authors' layout: one JSON file for a model, `{"v1_0": "the answer", ...}`.

The user names the file, or a folder in which it is the only one. An id that is not in it is the model's empty reply.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weft.benchmarks.outputs import StoredOutputs
from weft.errors import UserError
from weft.models.endpoint import NO_RETRY, CallError, EndpointReply
from weft.store.blobs import Blobs
from weft.types import Message, Request, Text, outcome_of
from weft.untrusted import dict_or_empty, read_json_file


class MMVetOutputs(StoredOutputs):
    """A file of answers that stands for a model."""

    file_names = 'one JSON file of answers, `{"v1_0": "the answer"}`'

    def __init__(self, root: Path, blobs: Blobs) -> None:
        """Raises UserError if there is no such file, or if it is no object of answers."""
        self._file = _find_file(root)
        super().__init__(self._file, blobs)
        self._answers: Mapping[str, Any] = dict_or_empty(read_json_file(self._file))
        if not any(isinstance(answer, str) for answer in self._answers.values()):
            raise UserError(f'{self._file} has no answers: expected {{"v1_0": "the answer", ...}}')

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        """Return the answer to the request's question; the messages are ignored."""
        name = request.turn_ref.file
        if name not in self._answers:
            return EndpointReply((), "empty", f"no answer {name} in the outputs", served_model=self.name)
        answer = self._answers[name]
        if not isinstance(answer, str):
            raise CallError(f"{self._file}: the answer {name} is no text", NO_RETRY)
        parts = (Text(answer),)
        outcome, reason = outcome_of(parts, "text")
        return EndpointReply(parts, outcome, reason, served_model=self.name)


def _find_file(root: Path) -> Path:
    if root.is_file():
        return root
    files = sorted(path for path in root.glob("*.json") if path.is_file()) if root.is_dir() else []
    if len(files) == 1:
        return files[0]
    if files:
        names = ", ".join(path.name for path in files[:8])
        raise UserError(f"{root} has answers of {len(files)} models ({names}); name the file of one")
    raise UserError(f"{root} has no answers: expected one JSON file of answers by id")
