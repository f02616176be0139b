"""A fake of every wire that weft speaks, on a real loopback socket: what it was sent, read as the service would read
it; and every way in which such a service answers. What it draws follows from the request alone.

The providers' own libraries talk to the same fakes (test_sdks.py), so that a fake that speaks nonsense is found out.
"""

from fakes.base import Asked, Batches, Fake, reply
from fakes.google import Gemini
from fakes.openai import AnyChat, Images, OpenAI, OpenRouter, Responses, SGLang
from fakes.others import BFL, XAI, Anthropic, Ark, DashScope, Infer, VllmOmni

__all__ = [
    "Anthropic",
    "AnyChat",
    "Asked",
    "Batches",
    "DashScope",
    "Fake",
    "Gemini",
    "Images",
    "OpenAI",
    "OpenRouter",
    "Responses",
    "VllmOmni",
    "reply",
]
FAKES: dict[str, type[Fake]] = {
    kind.provider: kind
    for kind in (
        OpenAI,
        AnyChat,
        Images,
        Responses,
        Gemini,
        OpenRouter,
        Anthropic,
        VllmOmni,
        SGLang,
        DashScope,
        Ark,
        BFL,
        XAI,
        Infer,
    )
}
