"""Outputs in the authors' layout: MODEL/images/CATEGORY/INDEX.png, or .jpg, .jpeg."""

from weft.benchmarks.edits.outputs import EditOutputs


class RiseOutputs(EditOutputs):
    """A folder of edited images that stands for a model."""

    file_names = "images/<category>/<index>.png"
    top_folders = ("images",)
