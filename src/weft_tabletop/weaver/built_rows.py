"""Rows of a dataset in WEAVE's files, such as `weft build` and `weft data make` write. Each image is taken for the
scene that it shows: one that is not what was asked for is learnt as it is."""

import random
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from weft.benchmarks.weave.data import load
from weft.benchmarks.weave.views import VIEWS
from weft.errors import UserError
from weft.store.blobs import Blobs
from weft.types import Dataset, Sample
from weft_tabletop.weaver.memory import as_rows, example_row
from weft_tabletop.weaver.rows import Rows
from weft_tabletop.weaver.world import TableWorld
from weft_tabletop.world.readings import read_image
from weft_tabletop.world.scenes import Scene

MAX_TOKENS = 512  # of a row: what the model holds


def digest_dataset(data: Path) -> str:
    """Return the digest of everything in a dataset that a model can learn."""
    with _open(data) as (dataset, _):
        return dataset.digest


def dataset_rows(data: Path, world: TableWorld, view: str) -> Rows:
    """Return a row for each example of a view, shuffled. Raises UserError for a dataset with unusable records, or of
    another world."""
    made: list[tuple[list[int], list[bool]]] = []
    foreign = 0
    images = 0
    with _open(data) as (dataset, blobs):
        for sample in dataset.samples:
            readings = {image.digest: read_image(image, blobs) for image in sample.images}
            scenes = {digest: reading.scene for digest, reading in readings.items()}
            images += len(scenes)
            foreign += sum(not reading.is_sure or not world.holds(reading.scene) for reading in readings.values())
            made += [example_row(example, scenes, world) for example in VIEWS[view](sample)]
        errors = [problem for problem in dataset.problems if problem.severity == "error"]
    if errors:
        raise UserError(f"--data {data}: {len(errors)} problems, such as {errors[0]}")
    if foreign > images / 2:  # a faulty painter may put something elsewhere
        raise UserError(f"--data {data}: {foreign} of {images} images show what the world {world.name} does not have")
    if not made:
        raise UserError(f"--data {data}: it has no example of the view {view}")
    longest = max(len(tokens) for tokens, _ in made)
    if longest > MAX_TOKENS:
        raise UserError(f"--data {data}: the longest row has {longest} tokens; a model holds {MAX_TOKENS}")
    random.Random(0).shuffle(made)
    return as_rows(made)


def read_scenes(sample: Sample, blobs: Blobs) -> dict[str, Scene]:
    """Return the scenes that a sample's images show, by their digests."""
    return {image.digest: read_image(image, blobs).scene for image in sample.images}


@contextmanager
def _open(data: Path) -> Generator[tuple[Dataset, Blobs]]:
    with tempfile.TemporaryDirectory(prefix="weft-rows-") as folder:
        blobs = Blobs(Path(folder))
        yield load(data, blobs), blobs
