"""weft evaluates unified multimodal models: models that read and write both text and images, in multi-turn, interleaved dialogues.

import weft
run = weft.evaluate("weave", data="DATA", model=my_model, judge="openai-chat/gpt-4o-2024-08-06")
print(run.report())
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Image", "Reply", "Run", "Text", "View", "__version__", "evaluate", "evaluate_async", "validate"]

if TYPE_CHECKING:
    from weft.api import Run, evaluate, evaluate_async, validate
    from weft.types import Image, Reply, Text, View


def __getattr__(name: str) -> Any:
    """The API is imported on first use, so that `weft --help` stays quick."""
    if name in ("Run", "evaluate", "evaluate_async", "validate"):
        from weft import api

        return getattr(api, name)
    if name in ("Image", "Reply", "Text", "View"):
        from weft import types

        return getattr(types, name)
    raise AttributeError(f"module 'weft' has no attribute {name!r}")
