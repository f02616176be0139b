"""Outputs made elsewhere as a model: each turn's reply is the file that the benchmark's layout names for it.

A missing file is an `empty` reply, the model's fault. A file that cannot be read is a `failed` reply: unscored, with
the reason. Where released scripts see an image in it (a BMP, an animation), the reply contains that image, for the
official row alone.

Files are looked up only inside the folder; a path that leads out of it, by `..` or by a link, is refused.
"""

import asyncio
from pathlib import Path

from weft.errors import ImageError, UserError
from weft.models.baselines import UncachedEndpoint
from weft.models.endpoint import FATAL, NO_RETRY, CallError, EndpointReply
from weft.models.registry import ModelSpec
from weft.store.blobs import Blobs
from weft.store.images import MAX_BYTES
from weft.types import Message, Modality, Part, Request, Text, outcome_of
from weft.untrusted import read_file, read_text_file

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")


class StoredOutputs(UncachedEndpoint):
    """Outputs made elsewhere, in a folder or file, that stand for a model; a subclass reads its benchmark's layout."""

    depends_on_input = False
    file_names = "a file for each turn, named as in the dataset"  # in words

    def __init__(self, root: Path, blobs: Blobs) -> None:
        name = root.stem if root.is_file() else root.name
        super().__init__(f"folder/{name}", folder=str(root.absolute()))


class OutputFolder(StoredOutputs):
    """A folder of outputs. A benchmark with a layout of its own overrides `find`, or `send` if texts are elsewhere."""

    subfolders = ("", "imgs")  # WEAVE's scripts write to OUT/imgs and accept either folder
    patterns: tuple[str, ...] = ("**/*",)  # of files that are outputs, in any of the subfolders

    def __init__(self, root: Path, blobs: Blobs) -> None:
        """Raises UserError for a folder without a single output."""
        if not root.is_dir():
            raise UserError(f"folder/{root}: there is no folder {root}")
        super().__init__(root, blobs)
        self._root = root.resolve()
        self._blobs = blobs
        if not self._has_output():
            raise UserError(f"{root} has no output of a model: expected {self.file_names}")

    def _has_output(self) -> bool:
        for subfolder in self.subfolders:
            for pattern in self.patterns:
                if any(path.is_file() for path in (self._root / subfolder).glob(pattern)):
                    return True
        return False

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        """Return the output file of the request's turn as a reply; the messages are ignored."""
        if not request.turn_ref.file:
            raise CallError(
                "this benchmark does not name its output files, so a folder of them cannot be scored", FATAL
            )
        path = self.find(request.turn_ref.file)
        if path is None:
            return EndpointReply((), "empty", f"no file {request.turn_ref.file} in the outputs", served_model=self.name)
        return await self.send_file(path, request.modality)

    async def send_file(self, path: Path, kind: Modality) -> EndpointReply:
        """Return an output file as a reply: `failed`, with what released scripts see in it, if weft cannot read it."""
        try:
            return self.build_sent(await asyncio.to_thread(self.read, path, kind), kind)
        except CallError as error:
            seen: tuple[Part, ...] = ()
            if kind == "image":
                seen = await asyncio.to_thread(self.convert_image, path)
            if not seen:
                raise
            return EndpointReply(seen, "failed", str(error), served_model=self.name)

    def find(self, name: str) -> Path | None:
        """Return the output file of this name, or None if the model made none."""
        paths = [self._root / subfolder / name for subfolder in self.subfolders]
        existing = [self.check_inside(path) for path in paths if path.is_file()]
        if existing:
            return existing[0]
        return None

    def read(self, path: Path, kind: Modality) -> tuple[Part, ...]:
        """Read an output file as the parts of a reply. Raises CallError if it cannot be read."""
        try:
            if kind == "text":
                text = read_text_file(path).replace("\r\n", "\n").replace("\r", "\n")  # universal newlines
                return (Text(text),)
            return (self._blobs.put(read_file(path, MAX_BYTES, ImageError), durable=False, unchanged=True),)
        except ImageError as error:
            raise CallError(f"{path} {error}", NO_RETRY) from None
        except UserError as error:
            raise CallError(str(error), NO_RETRY) from None
        except OSError as error:
            raise CallError(f"{path} cannot be read: {error}", NO_RETRY) from None

    def convert_image(self, path: Path) -> tuple[Part, ...]:
        """Return what released scripts see in an image file that `read` rejects: one image, or nothing."""
        try:
            return (self._blobs.put_converted(read_file(path, MAX_BYTES, ImageError)),)
        except (ImageError, OSError):
            return ()

    def build_sent(self, parts: tuple[Part, ...], kind: Modality) -> EndpointReply:
        """Build the endpoint's reply from an output's parts."""
        outcome, reason = outcome_of(parts, kind)
        return EndpointReply(parts, outcome, reason, served_model=self.name)

    def check_inside(self, path: Path) -> Path:
        """Return the path. Raises CallError if it leads out of the folder."""
        try:
            is_inside = path.resolve().is_relative_to(self._root)
        except (OSError, ValueError, RuntimeError):
            is_inside = False
        if not is_inside:
            raise CallError(f"{path} leads out of {self._root}", NO_RETRY)
        return path


def from_spec(spec: ModelSpec, blobs: Blobs) -> OutputFolder:
    """Build the model `folder/PATH`."""
    return OutputFolder(Path(spec.model), blobs)
