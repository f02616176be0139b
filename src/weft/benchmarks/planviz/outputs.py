"""Outputs made elsewhere in PlanViz's layout: results/<model>/<list>/<index>.png, the index from 0. A task's picture
may also lie there under the task's own name, or in the folder under its id. A missing picture is the model's; one that
cannot be read leaves its task unscored. A folder without any picture is a mistake of the user's."""

from pathlib import Path

from msgspec.structs import replace

from weft.benchmarks.outputs import OutputFolder
from weft.benchmarks.planviz.data import IMAGE_SUFFIXES
from weft.benchmarks.planviz.files import TASK_LISTS
from weft.errors import UserError
from weft.models.endpoint import EndpointReply
from weft.store.blobs import Blobs
from weft.types import Message, Request

NAMES = {listed.name for listed in TASK_LISTS}


class PlanVizOutputs(OutputFolder):
    subfolders = ("",)

    def __init__(self, root: Path, blobs: Blobs) -> None:
        super().__init__(_of_one_model(root), blobs)
        self.name = f"folder/{root.name}"
        places = [self._root, *(self._root / name for name in NAMES if (self._root / name).is_dir())]
        if not any(path.suffix.lower() in IMAGE_SUFFIXES for place in places for path in place.iterdir()):
            lists = ", ".join(sorted(NAMES))
            raise UserError(
                f"{root} has no picture where outputs are looked for: <list>/<index>.png, the lists being {lists}; or <id>.png"
            )
        self._by_index = {place.name: any(path.stem.isdigit() for path in place.iterdir()) for place in places}

    async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
        found = next((name for name in self._names(want) if self.find(name) is not None), want.turn_ref.file)
        return await super().send(messages, replace(want, turn_ref=replace(want.turn_ref, file=found)))

    def _names(self, want: Request) -> list[str]:
        """What a task's picture may be called. Where files are numbered, a name that is a number is another task's
        place."""
        of, _, own = want.turn_ref.sample.partition("-")
        named = [f"{of}/{own}.png", f"{own}.png"] if not own.isdigit() and not self._by_index.get(of) else []
        return [want.turn_ref.file, f"{want.turn_ref.sample}.png", *named]

    def find(self, name: str) -> Path | None:
        """Under any ending that a picture may have; a list's own folder may be named alone."""
        stem = name.removesuffix(".png")
        if self._root.name == stem.partition("/")[0]:
            stems = (stem, stem.partition("/")[2])
        else:
            stems = (stem,)
        return next(
            (
                path
                for one in stems
                for ending in IMAGE_SUFFIXES
                if (path := super(PlanVizOutputs, self).find(one + ending)) is not None
            ),
            None,
        )


def _of_one_model(root: Path) -> Path:
    """The folder of one model, where the folder of all was named."""
    if not root.is_dir() or root.name in NAMES or any((root / name).is_dir() for name in NAMES):
        return root
    models = sorted(path for path in root.iterdir() if path.is_dir() and any((path / name).is_dir() for name in NAMES))
    if len(models) > 1:
        some = ", ".join(path.name for path in models[:8])
        raise UserError(f"{root} has results of {len(models)} models ({some}); name the folder of one")
    if models:
        return models[0]
    return root
