"""Outputs made elsewhere in PlanViz's layout: results/<model>/<list>/<index>.png, the index from 0.

A task's image may also be there under the task's own name, or in the folder under its id. A missing image is the
model's fault; one that cannot be read leaves its task unscored. A folder without any image is a user's mistake.
"""

from pathlib import Path

from msgspec.structs import replace

from weft.benchmarks.outputs import OutputFolder
from weft.benchmarks.planviz.data import IMAGE_SUFFIXES
from weft.benchmarks.planviz.files import TASK_LISTS
from weft.errors import UserError
from weft.models.endpoint import EndpointReply
from weft.store.blobs import Blobs
from weft.types import Message, Request

LIST_NAMES = {task_list.name for task_list in TASK_LISTS}


class PlanVizOutputs(OutputFolder):
    """A folder of images that stands for a model."""

    subfolders = ("",)
    file_names = f"<list>/<index>.png, the lists being {', '.join(sorted(LIST_NAMES))}; or <id>.png"

    def __init__(self, root: Path, blobs: Blobs) -> None:
        super().__init__(_find_model_folder(root), blobs)
        self.name = f"folder/{root.name}"
        self._is_numbered: dict[str, bool] = {}  # by folder: whether files are named by index
        for folder in (self._root, *_find_list_folders(self._root)):
            self._is_numbered[folder.name] = any(path.stem.isdigit() for path in folder.iterdir())

    def _has_output(self) -> bool:
        for folder in (self._root, *_find_list_folders(self._root)):
            if any(path.suffix.lower() in IMAGE_SUFFIXES for path in folder.iterdir()):
                return True
        return False

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        file = request.turn_ref.file
        for name in self._list_names(request):
            if self.find(name) is not None:
                file = name
                break
        return await super().send(messages, replace(request, turn_ref=replace(request.turn_ref, file=file)))

    def _list_names(self, request: Request) -> list[str]:
        """Return the names that a task's image may have.

        Where files are named by index, a task name that is a number would be another task's index.
        """
        names = [request.turn_ref.file, f"{request.turn_ref.sample}.png"]
        task_list, _, task_name = request.turn_ref.sample.partition("-")
        if not task_name.isdigit() and not self._is_numbered.get(task_list):
            names += [f"{task_list}/{task_name}.png", f"{task_name}.png"]
        return names

    def find(self, name: str) -> Path | None:
        """Find an image under any suffix. The root may be the folder of one list."""
        stems = [name.removesuffix(".png")]
        task_list, _, inner = stems[0].partition("/")
        if self._root.name == task_list:
            stems.append(inner)
        for stem in stems:
            for suffix in IMAGE_SUFFIXES:
                path = super().find(stem + suffix)
                if path is not None:
                    return path
        return None


def _find_list_folders(root: Path) -> list[Path]:
    return [root / name for name in LIST_NAMES if (root / name).is_dir()]


def _find_model_folder(root: Path) -> Path:
    """Return the folder of one model, given that folder or the folder of all models."""
    if not root.is_dir() or root.name in LIST_NAMES or _find_list_folders(root):
        return root
    models = sorted(path for path in root.iterdir() if path.is_dir() and _find_list_folders(path))
    if len(models) > 1:
        names = ", ".join(path.name for path in models[:8])
        raise UserError(f"{root} has results of {len(models)} models ({names}); name the folder of one")
    if models:
        return models[0]
    return root
