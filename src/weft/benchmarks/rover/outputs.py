"""Outputs made elsewhere in ROVER's layout: gen_<id>.png, and gen_<id>.txt with the thinking (IG) or the answer (TG).

A text turn (TG answered in text alone) is gen_<id>.text.txt; in a folder without images it is gen_<id>.txt. An answer
after the reference image is gen_<id>.given.txt. A missing
image or text is the model's fault; a file that cannot be read leaves its task unscored. The reply then has the parts
that the released code would judge, if any: to it a text that is not UTF-8 is none, and no image is broken.
"""

import asyncio
from pathlib import Path

from weft.benchmarks.outputs import IMAGE_SUFFIXES, OutputFolder
from weft.models.endpoint import NO_RETRY, CallError, EndpointReply
from weft.store.blobs import Blobs
from weft.types import Message, Modality, Part, Request, Text, Thought

TEXT_TURN_SUFFIX = ".text.txt"
GIVEN_TURN_SUFFIX = ".given.txt"


class RoverOutputs(OutputFolder):
    """A folder of images and texts that stands for a model."""

    subfolders = ("",)
    file_names = "gen_<id>.png or gen_<id>.txt"
    patterns = tuple(f"gen_*{suffix}" for suffix in (*IMAGE_SUFFIXES, ".txt"))

    def __init__(self, root: Path, blobs: Blobs) -> None:
        super().__init__(root, blobs)
        self._text_turn_suffix = ""  # not looked up yet

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        stem = request.turn_ref.file.removesuffix(".png").removesuffix(TEXT_TURN_SUFFIX)
        if stem.endswith(GIVEN_TURN_SUFFIX):
            return await self._send_text(stem.removesuffix(GIVEN_TURN_SUFFIX), GIVEN_TURN_SUFFIX)
        if request.modality == "text":
            return await self._send_text(stem, await asyncio.to_thread(self._find_text_turn_suffix))
        text_path = self.find(f"{stem}.txt")
        image_path = self._find_image(stem)
        try:
            text = await asyncio.to_thread(self._read_text, text_path)
            parts = _build_text_parts(text, request.modality) if text else ()
            if image_path is not None:
                parts += await asyncio.to_thread(self.read, image_path, "image")
        except CallError as error:
            seen = await asyncio.to_thread(self._read_as_released, text_path, image_path, request.modality)
            if not seen:
                raise
            return EndpointReply(seen, "failed", str(error), served_model=self.name)
        if not parts:
            return EndpointReply((), "empty", f"no file {stem}.png in the outputs", served_model=self.name)
        return self.build_sent(parts, request.modality)

    def _read_text(self, path: Path | None) -> str:
        if path is None:
            return ""
        (part,) = self.read(path, "text")
        assert isinstance(part, Text)
        return part.text.strip()

    def _read_as_released(
        self, text_path: Path | None, image_path: Path | None, modality: Modality
    ) -> tuple[Part, ...]:
        """Return what the released code judges: a text, empty where it finds none, and the image if it can be opened.

        Nothing without an image file, or with an empty one: such a task is dropped.
        """
        if image_path is None or not image_path.stat().st_size:
            return ()
        try:
            text = self._read_text(text_path)
        except CallError:
            text = ""
        try:
            image = self.read(image_path, "image")
        except CallError:
            image = self.convert_image(image_path)
        return (*_build_text_parts(text, modality), *image)

    async def _send_text(self, stem: str, suffix: str) -> EndpointReply:
        path = self.find(f"{stem}{suffix}")
        if path is None:
            return EndpointReply((), "empty", f"no file {stem}{suffix} in the outputs", served_model=self.name)
        return self.build_sent(await asyncio.to_thread(self.read, path, "text"), "text")

    def _find_image(self, stem: str) -> Path | None:
        for suffix in IMAGE_SUFFIXES:
            path = self.find(stem + suffix)
            if path is not None:
                return path
        return None

    def _find_text_turn_suffix(self) -> str:
        """Return how the files of text turns end in this folder. Raises CallError if it has none."""
        if self._text_turn_suffix:
            return self._text_turn_suffix
        names = [path.name.lower() for path in self._root.iterdir() if path.name.lower().startswith("gen_")]
        if any(name.endswith(TEXT_TURN_SUFFIX) for name in names):
            self._text_turn_suffix = TEXT_TURN_SUFFIX
        elif not any(name.endswith(IMAGE_SUFFIXES) for name in names):
            self._text_turn_suffix = ".txt"
        else:
            raise CallError(
                f"{self._root} has no answers in text alone: they would be gen_<id>{TEXT_TURN_SUFFIX}, or gen_<id>.txt "
                "in a folder without images; --mode visual scores what is there",
                NO_RETRY,
            )
        return self._text_turn_suffix


def _build_text_parts(text: str, modality: Modality) -> tuple[Part, ...]:
    """Return a text as ROVER-IG's thinking, which goes with an image, or as ROVER-TG's answer."""
    if modality == "image":
        return (Thought(text),)
    return (Text(text),)
