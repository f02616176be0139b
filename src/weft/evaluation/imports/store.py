"""Imported scores in a home: one file each, named by its content, in `imported/`."""

import hashlib
from pathlib import Path

import msgspec

from weft.errors import UserError
from weft.evaluation.imports import dpg, evalscope, lmms_eval, vlmevalkit
from weft.evaluation.imports.score import ImportedScore
from weft.store.blobs import write_file
from weft.untrusted import open_file

FOLDER = "imported"
MAX_BYTES = 100_000
MAX_SCORES = 100_000


def read_results(path: Path, model: str, metric: str = "", full: float | None = None) -> list[ImportedScore]:
    """Read what another tool wrote, whichever of them it was. Raises UserError for anything else.

    `path`: the folder of one run, or its file of results. `metric`: if a task has several. `full`: the full marks of
    the tool's scale, if its files do not say.
    """
    if not path.exists():
        raise UserError(f"{path}: there is no such file or folder")
    for folder in (path, path.parent, path.parent.parent.parent):
        if folder.is_dir() and evalscope.is_run(folder):
            scores = evalscope.read(folder, model, metric, full)
            return [score for score in scores if path == folder or score.task == path.stem]
        if path.is_dir():
            break
    status = vlmevalkit.find_status(path)
    if status is not None:
        return vlmevalkit.read(status, model, metric, full)
    results = lmms_eval.find_results(path)
    if results is not None:
        return lmms_eval.read(results, model, metric, full)
    dpg_results = dpg.find_results(path)
    if dpg_results is not None:
        return dpg.read(dpg_results, model)
    raise UserError(
        f"{path}: not a result that weft can read: give the folder of one run of evalscope (with reports/), lmms-eval "
        "(with TIME_results.json) or VLMEvalKit (with status.json), or the NAME_results.txt of DPG-Bench's script"
    )


def save(score: ImportedScore, home: Path, imported_at: float) -> Path:
    """Keep a score in a home. The same score again replaces itself."""
    digest = hashlib.sha256(msgspec.json.encode(score)).hexdigest()[:16]
    path = home / FOLDER / f"{digest}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, msgspec.json.encode(StoredScore(score, imported_at)), durable=True)
    return path


class StoredScore(msgspec.Struct, frozen=True):
    """A score and when it was imported, in seconds since 1970."""

    score: ImportedScore
    imported_at: float


def load(home: Path) -> list[ImportedScore]:
    """Return the imported scores of a home, of each model, tool and task the one that was imported last.

    Raises UserError for a file that is no imported score.
    """
    stored: list[StoredScore] = []
    for path in sorted((home / FOLDER).glob("*.json"))[:MAX_SCORES]:
        try:
            with open_file(path, MAX_BYTES, UserError, follow=False) as file:
                stored.append(msgspec.json.decode(file.read(), type=StoredScore))
        except (OSError, UserError, msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise UserError(f"{path} is no imported score ({error}): remove it") from None
    latest: dict[tuple[str, str], ImportedScore] = {}
    for entry in sorted(stored, key=lambda entry: entry.imported_at):
        score = entry.score
        latest.pop((score.model, score.column), None)
        latest[score.model, score.column] = score
    return list(latest.values())
