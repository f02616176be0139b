"""Images in the authors' layout: a folder for each prompt, named by its number, with `samples/0000.png` and so on; its
`metadata.jsonl` says which prompt it is of, where it is there."""

from pathlib import Path

from weft.benchmarks.geneval.data import METADATA
from weft.benchmarks.outputs import OutputFolder
from weft.errors import UserError
from weft.models.endpoint import NO_RETRY, CallError, EndpointReply
from weft.store.blobs import Blobs
from weft.types import Message, Request, Text
from weft.untrusted import dict_or_empty, read_json_file

SAMPLES = "samples"


class GenEvalOutputs(OutputFolder):
    """A folder of generated images that stands for a model."""

    subfolders = ("",)
    file_names = "<number of the prompt>/samples/0000.png, 0001.png and so on"
    patterns = (f"*/{SAMPLES}/*.png",)

    def __init__(self, root: Path, blobs: Blobs) -> None:
        super().__init__(root, blobs)
        self._folders: dict[str, Path] = {}  # by the number in their name, without leading zeros
        self._folders_by_prompt: dict[str, Path] = {}
        for path in sorted(self._root.iterdir()):
            if path.is_dir() and path.name.isdecimal():
                self._folders.setdefault(str(int(path.name)), path)
                prompt = _read_prompt(path)
                if prompt is not None:
                    self._folders_by_prompt.setdefault(prompt, path)

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        """Return an image of the prompt in the messages: the first of its folder for the first turn, and so on."""
        prompt = "".join(part.text for message in messages for part in message.parts if isinstance(part, Text))
        number = request.turn_ref.file.partition("/")[0]
        folder = self._find_folder(prompt, number)
        images: list[Path] = []
        if folder is not None and (folder / SAMPLES).is_dir():
            paths = [path for path in (folder / SAMPLES).glob("*.png") if path.stem.isdecimal() and path.is_file()]
            images = sorted(paths, key=lambda path: int(path.stem))
        if request.turn_ref.turn >= len(images):
            reason = f"no image {request.turn_ref.turn + 1} of prompt {number} in the outputs"
            return EndpointReply((), "empty", reason, served_model=self.name)
        return await self.send_file(self.check_inside(images[request.turn_ref.turn]), request.modality)

    def _find_folder(self, prompt: str, number: str) -> Path | None:
        """Return the folder of a prompt: the one that says so, or that of its number if it does not say what it is of.

        Raises CallError if that folder is of another prompt: its images are not judged by this one's rules.
        """
        folder = self._folders_by_prompt.get(prompt)
        if folder is not None:
            return folder
        folder = self._folders.get(str(int(number)))
        other = None if folder is None else _read_prompt(folder)
        if other is not None:
            raise CallError(f"{folder} is of another prompt, by its {METADATA}: {other[:80]!r}", NO_RETRY)
        return folder


def _read_prompt(folder: Path) -> str | None:
    """Return the prompt in a folder's record; None if there is no record that can be read."""
    try:
        prompt = dict_or_empty(read_json_file(folder / METADATA)).get("prompt")
    except UserError:
        return None
    return prompt if isinstance(prompt, str) else None
