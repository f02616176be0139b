"""The weight files of planner and visualizer, and which belongs to which."""

from pathlib import Path

from weft.errors import UserError
from weft_tabletop.tiny.endpoint import digest_files

SHIPPED = Path(__file__).parent / "data"
PLANNER_FILE = "planner.safetensors"
VISUALIZER_FILE = "visualizer.safetensors"
UNTUNED_FILE = "planner-und.safetensors"  # the planner that ships as it was before it was tuned
LOGS_FILE = "runs.jsonl"  # the logs of the runs that the demos show
READER_FILE = "reader.safetensors"  # beside a visualizer: the planner through which it reads orders


FOLDERS = {PLANNER_FILE: ("planner", "joint"), VISUALIZER_FILE: ("visualizer", "joint")}  # of `weft train tiny-weaver`


def find_file(weights: Path, name: str) -> Path:
    """Return the weights that a user means by a file, by the folder of a training run, or by the folder that holds the
    folders of several stages. Raises UserError where there are none, or more than one."""
    if not weights.is_dir():
        found = [weights] if weights.is_file() else []
    elif (weights / name).is_file():
        found = [weights / name]
    else:
        found = [weights / folder / name for folder in FOLDERS.get(name, ()) if (weights / folder / name).is_file()]
    if len(found) > 1:
        raise UserError(f"{weights} holds the weights of several stages: give {' or '.join(map(str, found))}")
    if not found:
        file = weights / name if weights.is_dir() else weights
        raise UserError(f"{file}: there are no weights; `weft train tiny-weaver` makes them")
    return found[0]


def find_planner(visualizer: Path, digest: str) -> Path:
    """Return the planner that a visualizer's weights name; it stands beside them."""
    for name in (READER_FILE, PLANNER_FILE, UNTUNED_FILE):
        file = visualizer.parent / name
        if file.is_file() and digest_files([file]) == digest:
            return file
    raise UserError(
        f"{visualizer} was trained on the planner {digest or '?'}, which is not beside it as {READER_FILE} or "
        f"{PLANNER_FILE}; give it: planner=PATH"
    )
