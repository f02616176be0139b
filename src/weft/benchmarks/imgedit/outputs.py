"""Outputs as the authors' scripts expect them: KEY.png in a folder. UGE's are in a folder UGE, those of dialogues in
Multiturn/TASK/KEY_turnN.png, since the keys of the suites overlap."""

from collections.abc import Iterator
from pathlib import Path

from weft.benchmarks.edits.outputs import EditOutputs
from weft.benchmarks.imgedit.data import BASIC, FOLDERS


class ImgEditOutputs(EditOutputs):
    """A folder of edited images that stands for a model."""

    file_names = "<key>.png, UGE/<key>.png or Multiturn/<task>/<key>_turn<n>.png"

    top_folders = tuple(FOLDERS.values())

    def _is_in_layout(self, path: Path) -> bool:
        """Whether an image is in a suite's folder, or right in the model's."""
        parts = path.relative_to(self._root.parent).parts
        return len(parts) == 2 or any(name in self.top_folders for name in parts[:2])

    def _list_paths(self, name: str) -> Iterator[str]:
        yield from super()._list_paths(name)
        folder, _, file = name.partition("/")
        if folder == FOLDERS[BASIC] and self._root.name not in FOLDERS.values():
            yield file
