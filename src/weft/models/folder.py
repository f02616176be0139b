"""Outputs made elsewhere as a model: each turn's reply is the file that the benchmark's own layout names for it.

A missing file is an `empty` reply, the model's fault. A file that is there but cannot be opened is `failed`: unscored, with the reason.
Names are looked up only inside the folder; a name that leads out of it, by `..` or by a link, is refused.
"""

from pathlib import Path

from weft.errors import PictureError, UserError
from weft.models.baselines import Local
from weft.models.endpoint import FATAL, NO, CallError, Sent, outcome_of
from weft.models.registry import Spec
from weft.store.blobs import Blobs
from weft.types import Message, Part, Text, Want


class Folder(Local):
    sees = False

    def __init__(self, root: Path, blobs: Blobs) -> None:
        super().__init__(f"folder/{root.name}", folder=str(root.absolute()))
        self._root, self._blobs = root.resolve(), blobs
        # WEAVE's scripts keep outputs in OUT/imgs and are pointed at either
        self._roots = [self._root, self._root / "imgs"]

    async def send(self, messages: tuple[Message, ...], want: Want) -> Sent:
        if not want.place.file:
            raise CallError("this benchmark does not say what its output files are called, so a folder of them cannot be scored", FATAL)
        path = self._find(want.place.file)
        if path is None:
            return Sent((), "empty", f"no file {want.place.file} in the outputs", served=self.name)
        try:
            if want.kind == "text":
                parts: tuple[Part, ...] = (Text(path.read_text(encoding="utf-8")),)
            else:
                parts = (self._blobs.put(path.read_bytes(), durable=False),)
        except PictureError as error:
            raise CallError(f"{path} {error}", NO) from None
        except (OSError, UnicodeDecodeError) as error:
            raise CallError(f"{path} cannot be read: {error}", NO) from None
        outcome, reason = outcome_of(parts, want.kind)
        return Sent(parts, outcome, reason, served=self.name)

    def _find(self, name: str) -> Path | None:
        for root in self._roots:
            path = root / name
            if path.is_file():
                if not path.resolve().is_relative_to(self._root):
                    raise CallError(f"{path} leads out of {self._root}", NO)
                return path
        return None


def from_spec(spec: Spec, blobs: Blobs) -> Folder:
    spec.take({})
    root = Path(spec.model)
    if not root.is_dir():
        raise UserError(f"{spec.text}: there is no folder {root}")
    return Folder(root, blobs)
