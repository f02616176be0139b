"""Edited images made elsewhere, as files named by the benchmark's layout, with any suffix of an image.

The folder that a user names may be that of the model, that of all models if there is only one, or any folder on the way
to the images.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

from weft.benchmarks.outputs import IMAGE_SUFFIXES, OutputFolder
from weft.errors import UserError
from weft.store.blobs import Blobs

SUFFIXES = (*IMAGE_SUFFIXES, *map(str.upper, IMAGE_SUFFIXES))


class EditOutputs(OutputFolder):
    """A folder of edited images that stands for a model."""

    subfolders = ("",)
    file_names = "KEY.png"
    patterns = tuple(f"**/*{suffix}" for suffix in SUFFIXES)
    top_folders: tuple[str, ...] = ()  # of which a model's folder has at least one
    folder_names: tuple[Collection[str], ...] = ()  # of the folders above an image, from the top

    def __init__(self, root: Path, blobs: Blobs) -> None:
        super().__init__(self._find_model_folder(root), blobs)
        self.name = f"folder/{root.name}"

    def _find_model_folder(self, root: Path) -> Path:
        """Return the folder of one model, given that folder or the folder of all models."""
        if not root.is_dir() or not self.top_folders or self._has_top_folder(root):
            return root
        models = sorted(path for path in root.iterdir() if path.is_dir() and self._has_top_folder(path))
        if len(models) > 1:
            names = ", ".join(path.name for path in models[:8])
            raise UserError(f"{root} has results of {len(models)} models ({names}); name the folder of one")
        return models[0] if models else root

    def _has_top_folder(self, root: Path) -> bool:
        return any((root / name).is_dir() for name in self.top_folders)

    def _has_output(self) -> bool:
        """Whether some image lies where the layout has one: all of another layout would count as missing, and as 0."""
        for pattern in self.patterns:
            if any(path.is_file() and self._is_in_layout(path) for path in self._root.glob(pattern)):
                return True
        return False

    def _is_in_layout(self, path: Path) -> bool:
        """Whether the folders above an image are those of the layout, whichever of them the root is."""
        names = path.parent.parts[-len(self.folder_names) :]
        return all(name in known for name, known in zip(names, self.folder_names, strict=False))

    def find(self, name: str) -> Path | None:
        """Find an image under any suffix. The root may be a folder on the way to it."""
        for candidate in self._list_paths(name):
            stem = candidate.removesuffix(".png")
            for suffix in SUFFIXES:
                path = super().find(stem + suffix)
                if path is not None:
                    return path
        return None

    def _list_paths(self, name: str) -> Iterator[str]:
        """Yield the path of an image, and what is left of it inside a root that is already on that path."""
        yield name
        parts = name.split("/")
        for count in range(1, len(parts)):
            if self._root.parts[-count:] == tuple(parts[:count]):
                yield "/".join(parts[count:])
