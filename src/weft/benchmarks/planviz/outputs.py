"""Outputs made elsewhere in PlanViz's layout: results/<model>/<list>/<index>.png, the index from 0. A task's picture may also lie in the
folder under the task's id. A missing picture is the model's; one that cannot be read leaves its task unscored."""

from pathlib import Path

from msgspec.structs import replace

from weft.benchmarks.outputs import Folder
from weft.benchmarks.planviz.data import ENDINGS
from weft.benchmarks.planviz.files import LISTS
from weft.errors import UserError
from weft.models.endpoint import Sent
from weft.store.blobs import Blobs
from weft.types import Message, Want

NAMES = {listed.name for listed in LISTS}


class Outputs(Folder):
    inner = ("",)

    def __init__(self, root: Path, blobs: Blobs) -> None:
        super().__init__(_of_one_model(root), blobs)
        self.name = f"folder/{root.name}"

    async def send(self, messages: tuple[Message, ...], want: Want) -> Sent:
        of, _, own = want.place.sample.partition("-")
        names = (want.place.file, f"{want.place.sample}.png", f"{of}/{own}.png", f"{own}.png")
        found = next((name for name in names if self.find(name) is not None), want.place.file)
        return await super().send(messages, replace(want, place=replace(want.place, file=found)))

    def find(self, name: str) -> Path | None:
        """Under any ending that a picture may have; a list's own folder may be named alone."""
        stem = name.removesuffix(".png")
        stems = (stem, stem.partition("/")[2]) if self._root.name == stem.partition("/")[0] else (stem,)
        return next((path for one in stems for ending in ENDINGS if (path := super(Outputs, self).find(one + ending)) is not None), None)


def _of_one_model(root: Path) -> Path:
    """The folder of one model, where the folder of all was named."""
    if not root.is_dir() or root.name in NAMES or any((root / name).is_dir() for name in NAMES):
        return root
    models = sorted(path for path in root.iterdir() if path.is_dir() and any((path / name).is_dir() for name in NAMES))
    if len(models) > 1:
        some = ", ".join(path.name for path in models[:8])
        raise UserError(f"{root} has results of {len(models)} models ({some}); name the folder of one")
    return models[0] if models else root
