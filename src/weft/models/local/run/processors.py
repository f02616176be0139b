"""Processors, which prepare texts and images for a class.

Some also want to prepare videos, for which they need torchvision. weft never shows a video, so where torchvision is not
installed they are loaded without.
"""

import contextlib
import importlib
import importlib.util
import threading

import transformers
from transformers.processing_utils import ProcessorMixin
from transformers.utils import PushToHubMixin

PATCH_LOCK = threading.Lock()


class NoVideos(PushToHubMixin):
    """Replaces a processor of videos."""

    model_input_names = ()
    valid_kwargs = _auto_class = None

    def to_dict(self):
        return {}

    @classmethod
    def from_pretrained(cls, *_, **__):
        return cls()


@contextlib.contextmanager
def without_video_processors():
    """Let processors load without torchvision: inside this context their video processors are replaced."""
    if importlib.util.find_spec("torchvision") is not None:
        yield
        return
    # imported by its path: the package itself has a dummy in its place
    auto = importlib.import_module("transformers.models.auto.video_processing_auto")
    loader = auto.AutoVideoProcessor
    check = ProcessorMixin.check_argument_for_proper_class

    def check_or_accept(self, name, value):
        if isinstance(value, NoVideos):
            return type(value)
        return check(self, name, value)

    with PATCH_LOCK:
        auto.AutoVideoProcessor = NoVideos
        ProcessorMixin.check_argument_for_proper_class = check_or_accept
        try:
            yield
        finally:
            auto.AutoVideoProcessor = loader
            ProcessorMixin.check_argument_for_proper_class = check


def load_processor(folder, **named):
    with without_video_processors():
        return transformers.AutoProcessor.from_pretrained(folder, **named)
