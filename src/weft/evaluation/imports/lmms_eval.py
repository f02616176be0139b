"""Results of lmms-eval: TIME_results.json with TIME_samples_TASK.jsonl beside it (option --log_samples)."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from weft.errors import UserError
from weft.evaluation.imports.score import ImportedScore, SampleScore, combine, find_full_marks, has_failed
from weft.evaluation.imports.texts import count_of, find_files, find_inside, number_or_none, read_json_lines, text_of
from weft.untrusted import dict_or_empty, read_json_file

TOOL = "lmms-eval"
ENDING = "_results.json"


def find_results(path: Path) -> Path | None:
    """Return the results file: the path itself, or the latest below a folder; None if there is none."""
    if path.is_file():
        return path if path.name.endswith(ENDING) else None
    found = [*find_files(path, f"*{ENDING}"), *find_files(path, f"*/*{ENDING}")]
    return max(found, key=lambda file: file.name, default=None)


def read(path: Path, model: str, metric: str, full: float | None) -> list[ImportedScore]:
    """Return the scores of a run, one for each task that has samples."""
    results = dict_or_empty(read_json_file(path))
    tasks = dict_or_empty(results.get("results"))
    counts = dict_or_empty(results.get("n-samples"))
    scores = [
        _read_task(path, results, task, dict_or_empty(values), model, metric, full)
        for task, values in tasks.items()
        if task in counts
    ]
    if not scores:
        raise UserError(f"{path}: there is no task with a number of samples in it")
    return scores


def _read_task(
    path: Path,
    results: Mapping[str, Any],
    task: str,
    values: Mapping[str, Any],
    model: str,
    metric: str,
    full: float | None,
) -> ImportedScore:
    counts = dict_or_empty(dict_or_empty(results.get("n-samples")).get(task))
    original = count_of(path, counts.get("original"))
    effective = count_of(path, counts.get("effective"))
    if effective < original:
        raise UserError(f"{path}: {text_of(task)} was run on {effective} of {original} samples; run it without --limit")
    name, printed = _choose_metric(path, task, values, metric)
    samples_name = f"{path.name.removesuffix(ENDING)}_samples_{task}.jsonl"
    samples_file = find_inside(path.parent, samples_name)
    if samples_file is None:
        raise UserError(
            f"{path.parent}/{text_of(samples_name)} is missing, and lmms-eval counts failed requests as answers: "
            "run it with --log_samples, and import its whole folder"
        )
    samples = list(_read_samples(samples_file, name))
    full = find_full_marks(f"{task}, {name}", printed, samples, full)
    outcome = combine(printed, samples, full, effective)
    return ImportedScore(
        model=model,
        served_model=text_of(results.get("model_name") or dict_or_empty(results.get("config")).get("model")),
        tool=TOOL,
        version=text_of(results.get("lmms_eval_version") or results.get("git_hash")),
        task=text_of(task),
        metric=text_of(name),
        judge="",
        value=outcome.value,
        scored=outcome.scored,
        expected=outcome.expected,
        printed=printed,
        low=outcome.low,
        high=outcome.high,
        notes=outcome.notes,
        time=text_of(path.name.removesuffix(ENDING)),
    )


def _choose_metric(path: Path, task: str, values: Mapping[str, Any], metric: str) -> tuple[str, float]:
    """Return the metric that the user named, or the task's only one, and its number."""
    numbers: dict[str, float] = {}
    for key, value in values.items():
        name = key.partition(",")[0]
        number = number_or_none(value)
        if number is not None and not isinstance(value, bool) and not name.endswith(("_stderr", "_clt", "_clustered")):
            numbers.setdefault(name, number)
    wanted = metric
    if not wanted and len(numbers) == 1:
        wanted = next(iter(numbers))
    if wanted not in numbers:
        names = ", ".join(numbers) or "no number"
        raise UserError(f"{path}: give --metric: {text_of(task)} has {text_of(names)}")
    return wanted, numbers[wanted]


def _read_samples(path: Path, metric: str) -> Iterator[SampleScore]:
    for line in read_json_lines(path):
        replies = [line.get("filtered_resps"), line.get("resps")]
        yield SampleScore(str(line.get("doc_id")), _read_value(line.get(metric)), has_failed(replies))


def _read_value(value: Any) -> float | None:
    """Return a sample's number. MMMU's tasks give the right answer and the model's, for multiple-choice questions."""
    number = number_or_none(value)
    if number is not None:
        return number
    details = dict_or_empty(value)
    score = number_or_none(details.get("score"))
    if score is not None:
        return score
    if details.get("question_type") != "multiple-choice":
        return None
    answers = _as_list(details.get("answer"))
    predicted = _as_list(details.get("parsed_pred"))
    return float(bool(predicted) and predicted[0] in answers)


def _as_list(value: Any) -> list[Any]:
    if isinstance(value, list):
        return cast(list[Any], value)
    return [value]
