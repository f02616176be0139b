"""Outputs made elsewhere in ROVER's layout: gen_<id>.png, and gen_<id>.txt with the thinking (IG) or the answer (TG).

A text turn (TG answered in text alone) is gen_<id>.text.txt; in a folder without images it is gen_<id>.txt. A missing
image or text is the model's fault; a file that cannot be read leaves its task unscored.
"""

import asyncio
from pathlib import Path

from weft.benchmarks.outputs import OutputFolder
from weft.models.endpoint import NO_RETRY, CallError, EndpointReply
from weft.store.blobs import Blobs
from weft.types import Message, Part, Request, Text, Thought

TEXT_TURN_SUFFIX = ".text.txt"
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")


class RoverOutputs(OutputFolder):
    """A folder of images and texts that stands for a model."""

    subfolders = ("",)

    def __init__(self, root: Path, blobs: Blobs) -> None:
        super().__init__(root, blobs)
        self._text_turn_suffix = ""  # not looked up yet

    async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
        stem = want.turn_ref.file.removesuffix(".png").removesuffix(TEXT_TURN_SUFFIX)
        if want.modality == "text":
            return await self._send_text(stem)
        parts: list[Part] = []
        text_path = self.find(f"{stem}.txt")
        if text_path is not None:
            (text_part,) = await asyncio.to_thread(self.read, text_path, "text")
            assert isinstance(text_part, Text)
            text = text_part.text.strip()
            if text and want.modality == "image":
                parts.append(Thought(text))
            elif text:
                parts.append(Text(text))
        image_path = self._find_image(stem)
        if image_path is not None:
            parts += await asyncio.to_thread(self.read, image_path, "image")
        if not parts:
            return EndpointReply((), "empty", f"no file {stem}.png in the outputs", served_model=self.name)
        return self.build_sent(tuple(parts), want.modality)

    async def _send_text(self, stem: str) -> EndpointReply:
        suffix = await asyncio.to_thread(self._find_text_turn_suffix)
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
