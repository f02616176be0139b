"""Outputs in the authors' layout: METHOD/fullset/TASK/LANGUAGE/KEY.png. Sources that lie beside them are ignored."""

from weft.benchmarks.edits.outputs import EditOutputs
from weft.benchmarks.gedit.data import LANGUAGES, TASKS


class GEditOutputs(EditOutputs):
    """A folder of edited images that stands for a model."""

    file_names = "fullset/<task>/<language>/<key>.png"
    top_folders = ("fullset",)
    folder_names = (top_folders, TASKS, LANGUAGES)
