"""Outputs made elsewhere in WEAVE's layout: images under the dataset's names, texts as <stem>_<turn>.txt."""

from weft.benchmarks.outputs import IMAGE_SUFFIXES, OutputFolder


class WeaveOutputs(OutputFolder):
    """A folder of images and texts that stands for a model."""

    file_names = "images under the names of the dataset's, or <stem of the first image>_<turn>.txt, there or in imgs/"
    patterns = (*(f"*{suffix}" for suffix in (*IMAGE_SUFFIXES, *map(str.upper, IMAGE_SUFFIXES))), "*_[1-9]*.txt")
