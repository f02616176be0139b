"""Outputs made elsewhere in PlanViz's layout: results/<model>/<list>/<index>.png, the index from 0. A task's picture may also lie there
under the task's own name, or in the folder under its id. A missing picture is the model's; one that cannot be read leaves its task
unscored. A folder without any picture is a mistake of the user's."""

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
        places = [self._root, *(self._root / name for name in NAMES if (self._root / name).is_dir())]
        if not any(path.suffix.lower() in ENDINGS for place in places for path in place.iterdir()):
            lists = ", ".join(sorted(NAMES))
            raise UserError(f"{root} has no picture where outputs are looked for: <list>/<index>.png, the lists being {lists}; or <id>.png")
        self._by_index = {place.name: any(path.stem.isdigit() for path in place.iterdir()) for place in places}

    async def send(self, messages: tuple[Message, ...], want: Want) -> Sent:
        found = next((name for name in self._names(want) if self.find(name) is not None), want.place.file)
        return await super().send(messages, replace(want, place=replace(want.place, file=found)))

    def _names(self, want: Want) -> list[str]:
        """What a task's picture may be called. Where files are numbered, a name that is a number is another task's place."""
        of, _, own = want.place.sample.partition("-")
        named = [f"{of}/{own}.png", f"{own}.png"] if not own.isdigit() and not self._by_index.get(of) else []
        return [want.place.file, f"{want.place.sample}.png", *named]

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
