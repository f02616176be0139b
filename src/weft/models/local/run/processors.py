"""What prepares texts and pictures for a class. Some of these also want to prepare videos, for which they need
torchvision; nothing here shows a video, so where that is not installed they do without."""

import contextlib
import importlib
import importlib.util
import threading

import transformers
from transformers.processing_utils import ProcessorMixin
from transformers.utils import PushToHubMixin

LOCK = threading.Lock()


class NoVideos(PushToHubMixin):
    """Stands where a preparer of videos would."""

    model_input_names = ()
    valid_kwargs = _auto_class = None

    def to_dict(self):
        return {}

    @classmethod
    def from_pretrained(cls, *_, **__):
        return cls()


@contextlib.contextmanager
def without_video_processors():
    if importlib.util.find_spec("torchvision") is not None:
        yield
        return
    # the package itself has a stand-in for it
    auto = importlib.import_module("transformers.models.auto.video_processing_auto")
    loader = auto.AutoVideoProcessor
    check = ProcessorMixin.check_argument_for_proper_class
    with LOCK:
        auto.AutoVideoProcessor = NoVideos
        ProcessorMixin.check_argument_for_proper_class = lambda self, name, value: (
            type(value) if isinstance(value, NoVideos) else check(self, name, value)
        )
        try:
            yield
        finally:
            auto.AutoVideoProcessor = loader
            ProcessorMixin.check_argument_for_proper_class = check


def load_processor(folder, **named):
    with without_video_processors():
        return transformers.AutoProcessor.from_pretrained(folder, **named)
