"""Outputs in the authors' layout: MODEL/CATEGORY/KEY.jpg."""

from weft.benchmarks.edits.outputs import EditOutputs
from weft.benchmarks.kris.data import CATEGORIES


class KrisOutputs(EditOutputs):
    """A folder of edited images that stands for a model."""

    file_names = "<category>/<key>.jpg"
    top_folders = tuple(CATEGORIES)
    folder_names = (top_folders,)
