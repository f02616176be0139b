"""Bodies of requests, streamed: pictures are encoded in pieces while they are sent, straight from the blob files, and checked against their
names meanwhile. No second copy of a picture's base64 is ever held: a body is cut at the pictures, and its length is known beforehand."""

import binascii
import hashlib
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from weft.errors import PictureError
from weft.models.endpoint import NO, CallError
from weft.store.blobs import Blobs
from weft.types import Image

PIECE = 3 * 65536  # a multiple of three, so that pieces of base64 join without padding


class Body:
    """A JSON request. Inside `payload`, an `Image` stands where its data URL (or, `bare`, its base64 alone) will."""

    def __init__(self, payload: Mapping[str, Any], blobs: Blobs, *, bare: bool = False) -> None:
        self._blobs = blobs
        self.broken: PictureError | None = None  # why it could not be sent whole
        self._images: list[Image] = []
        marker = "weft-picture-" + binascii.hexlify(time.monotonic_ns().to_bytes(8, "big")).decode()

        def mark(image: Image) -> str:
            self._images.append(image)
            return marker if bare else f"data:{image.media_type};base64,{marker}"

        self._texts = msgspec.json.encode(_replace(payload, mark)).split(marker.encode())
        if len(self._texts) != len(self._images) + 1:
            raise CallError("the request's text collides with weft's picture marker", NO)
        self.length = sum(map(len, self._texts)) + sum(coded_size(image) for image in self._images)

    def coded(self, piece: bytes) -> bytes:
        """A piece of a picture's file as it is sent."""
        return binascii.b2a_base64(piece, newline=False)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for text, image in zip(self._texts, self._images, strict=False):
            yield text
            try:
                for piece in self._pieces(image):
                    yield piece
            except PictureError as error:
                self.broken = error
                raise
        yield self._texts[-1]

    def _pieces(self, image: Image) -> Iterator[bytes]:
        digest = hashlib.sha256()
        try:
            with self._blobs.file(image) as file:
                while piece := file.read(PIECE):
                    digest.update(piece)
                    yield self.coded(piece)
        except OSError as error:
            raise PictureError(f"{image.digest[:12]} cannot be read from the store: {error}") from None
        if digest.hexdigest() != image.digest:  # what was sent by now is no whole request
            raise self._blobs.damaged(image)


class Lines(Body):
    """Requests one after another, a line each."""

    def __init__(self, payloads: Sequence[Mapping[str, Any]], blobs: Blobs, *, bare: bool = False) -> None:
        self._blobs, self.broken, self._images = blobs, None, []
        self._texts = [b""]
        for payload in payloads:
            body = Body(payload, blobs, bare=bare)
            self._texts[-1] += body._texts[0]
            self._texts += body._texts[1:]
            self._texts[-1] += b"\n"
            self._images += body._images
        self.length = sum(map(len, self._texts)) + sum(coded_size(image) for image in self._images)


class LinesFile(Lines):
    """The same as the file of a form, with a purpose."""

    def __init__(self, payloads: Sequence[Mapping[str, Any]], blobs: Blobs, purpose: str) -> None:
        super().__init__(payloads, blobs)
        self.boundary = f"weft-{uuid.uuid4().hex}"
        told = f'--{self.boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\n{purpose}\r\n'
        told += f'--{self.boundary}\r\nContent-Disposition: form-data; name="file"; filename="weft.jsonl"\r\n'
        self._texts[0] = f"{told}Content-Type: application/jsonl\r\n\r\n".encode() + self._texts[0]
        self._texts[-1] += f"\r\n--{self.boundary}--\r\n".encode()
        self.length = sum(map(len, self._texts)) + sum(coded_size(image) for image in self._images)


def coded_size(image: Image) -> int:
    """Bytes of its base64."""
    return (image.size + 2) // 3 * 4


class Form(Body):
    """A form with pictures as files. What is no text goes as JSON has it."""

    def __init__(self, payload: Mapping[str, Any], images: Sequence[Image], blobs: Blobs) -> None:
        self._blobs, self.broken, self._images = blobs, None, list(images)
        self.boundary = f"weft-{uuid.uuid4().hex}"
        texts: list[bytes] = []
        whole = b""
        for name, value in payload.items():
            told = value if isinstance(value, str) else msgspec.json.encode(value).decode()
            whole += self._head(name) + b"\r\n" + told.encode() + b"\r\n"
        field = "image" if len(images) == 1 else "image[]"
        for at, image in enumerate(images):
            ending = image.media_type.partition("/")[2].replace("jpeg", "jpg")
            about = f'; filename="{at + 1}.{ending}"\r\nContent-Type: {image.media_type}'.encode()
            texts.append(whole + self._head(field, about) + b"\r\n")
            whole = b"\r\n"
        self._texts = [*texts, whole + f"--{self.boundary}--\r\n".encode()]
        self.length = sum(map(len, self._texts)) + sum(image.size for image in self._images)

    def _head(self, name: str, about: bytes = b"") -> bytes:
        return f'--{self.boundary}\r\nContent-Disposition: form-data; name="{name}"'.encode() + about + b"\r\n"

    def coded(self, piece: bytes) -> bytes:
        return piece


def _replace(value: Any, mark: Callable[[Image], str]) -> Any:
    """The same JSON with each picture replaced by its marked data URL."""
    if isinstance(value, Image):
        return mark(value)
    if isinstance(value, dict):
        return {key: _replace(one, mark) for key, one in cast(dict[str, Any], value).items()}
    if isinstance(value, list):
        return [_replace(one, mark) for one in cast(list[Any], value)]
    return value
