"""Outputs made elsewhere in ROVER's layout: gen_<id>.png, and gen_<id>.txt with the thinking (IG) or the whole answer (TG).

A text turn (TG answered in words alone) is gen_<id>.text.txt; in a folder without pictures it is gen_<id>.txt. A missing picture or text
is the model's; a file that cannot be read leaves its task unscored."""

import asyncio
from pathlib import Path

from weft.benchmarks.outputs import Folder
from weft.models.endpoint import Sent
from weft.store.blobs import Blobs
from weft.types import Message, Part, Text, Thought, Want

PICTURES = (".png", ".jpg", ".jpeg", ".webp")


class Outputs(Folder):
    inner = ("",)

    def __init__(self, root: Path, blobs: Blobs) -> None:
        super().__init__(root, blobs)
        self._has_pictures: bool | None = None

    async def send(self, messages: tuple[Message, ...], want: Want) -> Sent:
        stem = want.place.file.removesuffix(".png").removesuffix(".text.txt")
        if want.kind == "text":
            found = self.find(f"{stem}.text.txt") or (None if await asyncio.to_thread(self._drawn) else self.find(f"{stem}.txt"))
            if found is None:
                return Sent((), "empty", f"no file {stem}.text.txt in the outputs", served=self.name)
            return self.sent(await asyncio.to_thread(self.read, found, "text"), "text")
        picture = next((path for suffix in PICTURES if (path := self.find(stem + suffix)) is not None), None)
        text = self.find(f"{stem}.txt")
        parts: tuple[Part, ...] = ()
        if text is not None:
            (said,) = await asyncio.to_thread(self.read, text, "text")
            assert isinstance(said, Text)
            words = said.text.strip()
            parts = ((Thought(words) if want.kind == "image" else Text(words)),) if words else ()
        if picture is not None:
            parts = (*parts, *await asyncio.to_thread(self.read, picture, "image"))
        if not parts:
            return Sent((), "empty", f"no file {stem}.png in the outputs", served=self.name)
        return self.sent(parts, want.kind)

    def _drawn(self) -> bool:
        """Whether the folder has any picture."""
        if self._has_pictures is None:
            self._has_pictures = any(path.suffix.lower() in PICTURES for path in self._root.iterdir())
        return self._has_pictures
