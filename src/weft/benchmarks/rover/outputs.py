"""Outputs made elsewhere in ROVER's layout: gen_<id>.png, and gen_<id>.txt with the thinking (IG) or the whole answer
(TG).

A text turn (TG answered in words alone) is gen_<id>.text.txt; in a folder without pictures it is gen_<id>.txt. A
missing picture or text is the model's; a file that cannot be read leaves its task unscored."""

import asyncio
from pathlib import Path

from weft.benchmarks.outputs import OutputFolder
from weft.models.endpoint import NO_RETRY, CallError, EndpointReply
from weft.store.blobs import Blobs
from weft.types import Message, Part, Request, Text, Thought

IN_WORDS = ".text.txt"
PICTURES = (".png", ".jpg", ".jpeg", ".webp")


class RoverOutputs(OutputFolder):
    subfolders = ("",)

    def __init__(self, root: Path, blobs: Blobs) -> None:
        super().__init__(root, blobs)
        self._ending = ""

    async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
        stem = want.turn_ref.file.removesuffix(".png").removesuffix(".text.txt")
        if want.modality == "text":
            suffix = await asyncio.to_thread(self._text_suffix)
            found = self.find(f"{stem}{suffix}")
            if found is None:
                return EndpointReply((), "empty", f"no file {stem}{suffix} in the outputs", served_model=self.name)
            return self.build_sent(await asyncio.to_thread(self.read, found, "text"), "text")
        picture = next((path for suffix in PICTURES if (path := self.find(stem + suffix)) is not None), None)
        text = self.find(f"{stem}.txt")
        parts: tuple[Part, ...] = ()
        if text is not None:
            (said,) = await asyncio.to_thread(self.read, text, "text")
            assert isinstance(said, Text)
            words = said.text.strip()
            if words:
                parts = ((Thought(words) if want.modality == "image" else Text(words)),)
            else:
                parts = ()
        if picture is not None:
            parts = (*parts, *await asyncio.to_thread(self.read, picture, "image"))
        if not parts:
            return EndpointReply((), "empty", f"no file {stem}.png in the outputs", served_model=self.name)
        return self.build_sent(parts, want.modality)

    def _text_suffix(self) -> str:
        """How the names of answers in words alone end in this folder."""
        if not self._ending:
            names = [path.name.lower() for path in self._root.iterdir() if path.name.lower().startswith("gen_")]
            if any(name.endswith(IN_WORDS) for name in names):
                self._ending = IN_WORDS
            elif not any(name.endswith(PICTURES) for name in names):
                self._ending = ".txt"
            else:
                raise CallError(
                    f"{self._root} has no answers in words alone: they would be gen_<id>{IN_WORDS}, or gen_<id>.txt in a folder without "
                    "pictures; --mode visual scores what is there",
                    NO_RETRY,
                )
        return self._ending
