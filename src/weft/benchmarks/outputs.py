"""Outputs made elsewhere as a model: each turn's reply is the file that the benchmark's own layout names for it.

A missing file is an `empty` reply, the model's fault. A file that is there but cannot be opened is `failed`: unscored, with the reason.
Names are looked up only inside the folder; a name that leads out of it, by `..` or by a link, is refused.
"""

import asyncio
from pathlib import Path

from weft.errors import PictureError, UserError
from weft.models.baselines import Local
from weft.models.endpoint import FATAL, NO, CallError, Sent
from weft.models.registry import ModelSpec
from weft.store.blobs import Blobs
from weft.store.images import MAX_BYTES
from weft.types import Kind, Message, Part, Text, Want, outcome_of
from weft.untrusted import read_file, text_file


class Folder(Local):
    """A benchmark with a layout of its own overrides `find`, and where texts lie elsewhere, `send`."""

    sees = False
    inner = ("", "imgs")  # WEAVE's scripts keep outputs in OUT/imgs and are pointed at either

    def __init__(self, root: Path, blobs: Blobs) -> None:
        if not root.is_dir():
            raise UserError(f"folder/{root}: there is no folder {root}")
        super().__init__(f"folder/{root.name}", folder=str(root.absolute()))
        self._root, self._blobs = root.resolve(), blobs

    async def send(self, messages: tuple[Message, ...], want: Want) -> Sent:
        if not want.place.file:
            raise CallError("this benchmark does not say what its output files are called, so a folder of them cannot be scored", FATAL)
        path = self.find(want.place.file)
        if path is None:
            return Sent((), "empty", f"no file {want.place.file} in the outputs", served=self.name)
        return self.sent(await asyncio.to_thread(self.read, path, want.kind), want.kind)

    def find(self, name: str) -> Path | None:
        places = [self.inside(self._root / inner / name) for inner in self.inner if (self._root / inner / name).is_file()]
        return places[0] if places else None

    def read(self, path: Path, kind: Kind) -> tuple[Part, ...]:
        try:
            if kind == "text":
                return (Text(text_file(path).replace("\r\n", "\n").replace("\r", "\n")),)  # as a text file is read everywhere
            return (self._blobs.put(read_file(path, MAX_BYTES, PictureError), durable=False),)
        except PictureError as error:
            raise CallError(f"{path} {error}", NO) from None
        except UserError as error:
            raise CallError(str(error), NO) from None
        except OSError as error:
            raise CallError(f"{path} cannot be read: {error}", NO) from None

    def sent(self, parts: tuple[Part, ...], kind: Kind) -> Sent:
        outcome, reason = outcome_of(parts, kind)
        return Sent(parts, outcome, reason, served=self.name)

    def inside(self, path: Path) -> Path:
        try:
            there = path.resolve().is_relative_to(self._root)
        except (OSError, ValueError, RuntimeError):
            there = False
        if not there:
            raise CallError(f"{path} leads out of {self._root}", NO)
        return path


def from_spec(spec: ModelSpec, blobs: Blobs) -> Folder:
    return Folder(Path(spec.model), blobs)
