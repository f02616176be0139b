"""The weight files of planner and visualizer, and which belongs to which."""

from pathlib import Path

from weft.errors import UserError
from weft_tabletop.tiny.endpoint import digest_files

SHIPPED = Path(__file__).parent / "data"
PLANNER_FILE = "planner.safetensors"
VISUALIZER_FILE = "visualizer.safetensors"
UNTUNED_FILE = "planner-und.safetensors"  # the planner that ships as it was before it was tuned
READER_FILE = "reader.safetensors"  # beside a visualizer: the planner through which it reads orders


def find_file(weights: Path, name: str) -> Path:
    """Return the weights that a user means by a file, or by the folder of a training run. Raises UserError where there
    are none."""
    file = weights / name if weights.is_dir() else weights
    if not file.is_file():
        raise UserError(f"{file}: there are no weights; `weft train tiny-weaver` makes them")
    return file


def find_planner(visualizer: Path, digest: str) -> Path:
    """Return the planner that a visualizer's weights name; it stands beside them."""
    for name in (READER_FILE, PLANNER_FILE):
        file = visualizer.parent / name
        if file.is_file() and digest_files([file]) == digest:
            return file
    raise UserError(
        f"{visualizer} was trained on the planner {digest or '?'}, which is not beside it as {READER_FILE} or "
        f"{PLANNER_FILE}; give it: planner=PATH"
    )
