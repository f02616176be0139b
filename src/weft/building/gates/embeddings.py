"""A second opinion on whether an image was edited: CLIP's or SigLIP's embeddings of the images before and after.

An edit whose embedding is nearly that of its input counts as not done. Embeddings see an image as a whole, so a small
edit may look like none: the gate on pixels, which looks locally, is the first opinion. Extra `local`.
"""

import asyncio
import base64
import importlib.util
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from weft.building.context import Context
from weft.building.draft import GateVerdict
from weft.building.features import Feature
from weft.building.orders import Order
from weft.errors import UserError
from weft.models.local.weights import import_extra, locate_weights
from weft.store.blobs import Blobs
from weft.types import Image

if TYPE_CHECKING:
    from PIL import Image as Pil

_loaded: dict[str, Feature] = {}  # by the weights' name: one encoder in a process
_loading = threading.Lock()


class EmbeddingGate(Struct, frozen=True):
    """Rejects an edit that is too similar to one of the images it was made from."""

    weights: str  # a folder, or a repository's name
    most: float
    name: str = "embedding"

    async def check(self, order: Order, image: Image, context: Context) -> GateVerdict:
        if not order.shown:
            return GateVerdict(self.name, passed=True)
        feature = await load_feature(self.weights, context.blobs)
        after = decode_vector(await context.feature(feature, image))
        similarities = [cosine(decode_vector(await context.feature(feature, shown)), after) for shown in order.shown]
        highest = max(similarities)
        return GateVerdict(self.name, highest < self.most, round(highest, 4))


def check_embedder(weights: str) -> None:
    """Raise UserError for weights that cannot be had, before anything is called."""
    if not weights:
        return
    if importlib.util.find_spec("transformers") is None:
        raise UserError("--embedder needs the extra `local`, from the clone: pip install -e '.[local]'")
    folder = Path(weights).expanduser()
    if not folder.is_dir() and (weights.startswith(("/", "~", ".")) or weights.count("/") != 1):
        raise UserError(f"--embedder {weights}: there is no such folder, and it is no repository's name")


async def load_feature(weights: str, blobs: Blobs) -> Feature:
    """Return the feature that an encoder computes. Its version is that of the weights."""
    return await asyncio.to_thread(_load_feature, weights, blobs)


def _load_feature(weights: str, blobs: Blobs) -> Feature:
    with _loading:
        if weights not in _loaded:
            import_extra("transformers")
            found = locate_weights(weights, "config.json", blobs)
            folder = found.ensure_local(lambda line: None)
            encoder: Any = import_extra("weft.models.local.run.clip").ImageEncoder(folder)

            def compute(image: "Pil.Image") -> str:
                with _loading:  # one image at a time
                    (vector,) = encoder.embed_images([image])
                return encode_vector(vector)

            identity = msgspec.json.encode(dict(found.identity), order="deterministic").decode()
            _loaded[weights] = Feature("embedding", identity, compute)
        return _loaded[weights]


def cosine(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the cosine of two vectors of length 1."""
    return sum(a * b for a, b in zip(first, second, strict=True))


def encode_vector(vector: Sequence[float]) -> str:
    """Return a vector as 32-bit floats in base64."""
    import numpy as np

    return base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode()


def decode_vector(text: str) -> list[float]:
    import numpy as np

    return np.frombuffer(base64.b64decode(text), dtype="<f4").astype(float).tolist()
