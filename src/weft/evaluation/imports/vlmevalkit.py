"""Results of VLMEvalKit: status.json of one run, with the files of its replies beside it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from weft.errors import UserError
from weft.evaluation.imports.prediction_file import read_predictions
from weft.evaluation.imports.score import ImportedScore, find_full_marks, has_failed
from weft.evaluation.imports.texts import find_files, find_inside, number_or_none, text_of
from weft.untrusted import dict_or_empty, read_json_file

TOOL = "VLMEvalKit"
STATUS = "status.json"


def find_status(path: Path) -> Path | None:
    """Return the status file: the path itself, or the latest below a folder; None if there is none."""
    if path.is_file():
        return path if path.name == STATUS else None
    if (path / STATUS).is_file():
        return path / STATUS
    return max(find_files(path, f"*/{STATUS}"), key=lambda file: file.parent.name, default=None)


def read(path: Path, model: str, metric: str, full: float | None) -> list[ImportedScore]:
    """Return the scores of a run, one for each dataset."""
    status = dict_or_empty(read_json_file(path))
    datasets = dict_or_empty(status.get("datasets"))
    if not datasets:
        raise UserError(f"{path}: there is no dataset in it")
    scores: list[ImportedScore] = []
    for task, entry in datasets.items():
        scores.append(_read_dataset(path, status, task, dict_or_empty(entry), model, metric, full))
    return scores


def _read_dataset(
    path: Path,
    status: Mapping[str, Any],
    task: str,
    entry: Mapping[str, Any],
    model: str,
    metric: str,
    full: float | None,
) -> ImportedScore:
    predictions = _find_predictions(path, task, entry)
    failed = sum(1 for prediction in predictions if has_failed(prediction))
    expected = len(predictions)
    value: float | None = None
    printed: float | None = None
    name = metric
    notes: list[str] = []
    trouble = entry.get("error_message") or entry.get("skip_reason")
    if entry.get("status") != "done" or trouble:
        reason = trouble or f"its status is {text_of(repr(entry.get('status')))}"
        notes.append(f"the tool did not finish it: {text_of(reason)}")
    elif failed:
        notes.append(f"{failed} of {expected} requests failed, and the tool counted them: run it again to ask them")
    else:
        name, printed = _choose_metric(path, task, entry, metric)
        full = find_full_marks(f"{text_of(task)}, {text_of(name)}", printed, (), full)
        value = 100 * printed / full
        notes.append("no interval: the tool gives no score by sample")
    scored = 0 if value is None else expected
    return ImportedScore(
        model=model,
        served_model=text_of(status.get("model_name")),
        tool=TOOL,
        version=text_of(status.get("vlmeval_version") or status.get("commit")),
        task=text_of(task),
        metric=text_of(name),
        judge=text_of(entry.get("judge_model")),
        value=value,
        scored=scored,
        expected=expected,
        printed=printed,
        notes=tuple(notes),
        time=text_of(status.get("updated_at")),
    )


def _find_predictions(path: Path, task: str, entry: Mapping[str, Any]) -> list[str]:
    """Return the replies, from the file that the status names; only a file in the run's folder is opened."""
    name = entry.get("prediction_file")
    file: Path | None = None
    if isinstance(name, str) and name:
        file = find_inside(path.parent, name) or find_inside(path.parent, name.rpartition("/")[2])
    if file is None:
        raise UserError(
            f"{path}: the replies of {text_of(task)} are not beside it, so failed requests cannot be told from wrong "
            "answers: import the run's whole folder"
        )
    return read_predictions(file)


def _choose_metric(path: Path, task: str, entry: Mapping[str, Any], metric: str) -> tuple[str, float]:
    metrics = dict_or_empty(entry.get("metrics"))
    primary = entry.get("primary_metric")
    if isinstance(primary, list):
        names = [str(name) for name in cast(list[Any], primary)]
    else:
        names = [str(primary)] if primary else []
    wanted = metric or (names[0] if len(names) == 1 else "")
    number = number_or_none(metrics.get(wanted))
    if number is None:
        known = text_of(", ".join(map(str, metrics))) or "no number"
        raise UserError(f"{path}: give --metric: {text_of(task)} has {known}")
    return wanted, number
