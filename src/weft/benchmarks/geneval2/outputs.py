"""Images made elsewhere: `00000.png` and so on by the number of the prompt, or the authors' file of paths by prompt."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weft.benchmarks.outputs import OutputFolder
from weft.errors import UserError
from weft.models.endpoint import NO_RETRY, CallError, EndpointReply
from weft.store.blobs import Blobs
from weft.types import Message, Request, Text
from weft.untrusted import dict_or_empty, read_json_file


class GenEval2Outputs(OutputFolder):
    """A folder of generated images, or a JSON file `{"the prompt": "path of its image"}`, that stands for a model.

    Paths are relative to the file's folder, and stay in it.
    """

    subfolders = ("",)
    patterns = (f"{'[0-9]' * 5}.png",)
    file_names = 'the images 00000.png, 00001.png and so on, or a JSON file {"the prompt": "path of its image"}'

    def __init__(self, root: Path, blobs: Blobs) -> None:
        """Raises UserError for a file without a path, or for a folder without an output."""
        self._paths: Mapping[str, Any] = {}
        if root.is_file():
            self._paths = dict_or_empty(read_json_file(root))
            if not any(isinstance(path, str) for path in self._paths.values()):
                raise UserError(f"{root} has no paths of images: expected {self.file_names}")
            self.patterns = ("**/*",)
            super().__init__(root.parent, blobs)
            self.name = f"folder/{root.stem}"
        else:
            super().__init__(root, blobs)

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        """Return the image of the prompt in the messages, or by its number."""
        if not self._paths:
            return await super().send(messages, request)
        prompt = "".join(part.text for message in messages for part in message.parts if isinstance(part, Text))
        name = self._paths.get(prompt)
        if name is None:
            return EndpointReply((), "empty", "the outputs have no path for the prompt", served_model=self.name)
        if not isinstance(name, str) or "\0" in name:
            raise CallError(f"the path for the prompt {prompt[:80]!r} is no text", NO_RETRY)
        path = self.check_inside(self._root / name)
        if not path.is_file():
            return EndpointReply((), "empty", f"no file {name} in the outputs", served_model=self.name)
        return await self.send_file(path, request.modality)
