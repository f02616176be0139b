"""What is computed from an image, kept by the image's digest: a build that is resumed opens no image twice.

GRID = Feature("grid", "1", compute)
value = await read_feature(GRID, image, blobs, JournalFeatures(journal))
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from weft.store.blobs import Blobs
from weft.store.images import flatten
from weft.store.journal import Journal
from weft.types import Image

if TYPE_CHECKING:
    from PIL import Image as Pil


class Feature(Struct, frozen=True):
    """One thing that can be computed from an image."""

    kind: str
    version: str  # another one is computed anew
    compute: "Callable[[Pil.Image], str]"  # of the decoded image, without transparency


class FeatureStore(Protocol):
    """Where features are kept."""

    async def find(self, digest: str, kind: str, version: str) -> str | None: ...

    def keep(self, digest: str, kind: str, version: str, value: str) -> None: ...


class JournalFeatures(Struct, frozen=True):
    """Features in a journal of this process."""

    journal: Journal

    async def find(self, digest: str, kind: str, version: str) -> str | None:
        return self.journal.find_feature(digest, kind, version)

    def keep(self, digest: str, kind: str, version: str, value: str) -> None:
        self.journal.put_feature(digest, kind, version, value)


async def read_feature(feature: Feature, image: Image, blobs: Blobs, store: FeatureStore) -> str:
    """Return a feature, from the store if it was computed before. Raises ImageError for an image that is lost."""
    value = await store.find(image.digest, feature.kind, feature.version)
    if value is None:
        value = await asyncio.to_thread(_compute, feature, image, blobs)
        store.keep(image.digest, feature.kind, feature.version, value)
    return value


def _compute(feature: Feature, image: Image, blobs: Blobs) -> str:
    with blobs.decode_within_memory(image) as decoded:
        return feature.compute(flatten(decoded))
