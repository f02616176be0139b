"""What a user's Python function is shown: texts as `str` and images as PIL images, opened when they are first used."""

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from weft.store.blobs import Blobs
from weft.store.images import open_lazily
from weft.types import Image, Message, Part, Question, Request

if TYPE_CHECKING:
    from PIL import Image as Pil


def open_messages(messages: tuple[Message, ...], blobs: Blobs) -> list[tuple[str, list[Any]]]:
    """Return messages as a function gets them: [(role, [str | PIL.Image, ...]), ...]."""
    return [(message.role, [_open_part(part, blobs) for part in message.parts]) for message in messages]


def open_question(request: Request, blobs: Blobs) -> Request:
    """Return the request with texts and PIL images in its question's material, as in the messages."""
    question = request.question
    if question is None:
        return request
    material: dict[str, Any] = {}
    for name, parts in question.material.items():
        material[name] = [_open_part(part, blobs) for part in parts]
    opened: Question = replace(question, material=material)
    return replace(request, question=opened)


def _open_part(part: Part, blobs: Blobs) -> "str | Pil.Image":
    if isinstance(part, Image):
        return open_lazily(blobs.read(part))
    return part.text
