"""Outputs in the authors' layout: MODEL/images/CATEGORY/INDEX.png, or .jpg, .jpeg."""

from weft.benchmarks.edits.outputs import EditOutputs
from weft.benchmarks.risebench.data import CATEGORIES


class RiseOutputs(EditOutputs):
    """A folder of edited images that stands for a model."""

    file_names = "images/<category>/<index>.png"
    top_folders = ("images",)
    folder_names = (top_folders, CATEGORIES)
