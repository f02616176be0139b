"""Results of evalscope: a folder of one run, with its reports, the reviews of samples, and its configuration."""

import re
from collections.abc import Iterator, Mapping
from glob import escape
from pathlib import Path
from typing import Any, cast

from weft.errors import UserError
from weft.evaluation.imports.score import ImportedScore, SampleScore, combine, find_full_marks, has_failed
from weft.evaluation.imports.texts import count_of, find_files, list_of_dicts, number_or_none, read_json_lines, text_of
from weft.untrusted import dict_or_empty, read_json_file, read_text_file

TOOL = "evalscope"
CONFIG = Path("configs") / "task_config.yaml"


def is_run(folder: Path) -> bool:
    return (folder / CONFIG).is_file() or (folder / "reports").is_dir()


def read(folder: Path, model: str, metric: str, full: float | None) -> list[ImportedScore]:
    """Return the scores of a run, one for each task; those of a run that stopped early have no number."""
    config = _read_config(folder)
    if config.get("limit", "null") != "null":
        raise UserError(
            f"{folder}: only part of each task was run (limit: {text_of(config['limit'])}); run it without a limit"
        )
    reports = find_files(folder, "reports/*/*.json")
    scores = [_read_report(folder, report, config, model, metric, full) for report in reports]
    done = {report.stem for report in reports}
    for predictions in find_files(folder, "predictions/*/*.jsonl"):
        name = predictions.stem
        if not any(name == task or name.startswith(f"{task}_") for task in done):
            scores += [_describe_stopped(folder, predictions, config, model)]
    if not scores:
        raise UserError(f"{folder}: there is no report of evalscope in it (reports/NAME/TASK.json)")
    return scores


def _read_config(folder: Path) -> Mapping[str, str]:
    """Return the top-level values of the configuration, which is YAML written by a program."""
    path = folder / CONFIG
    if not path.exists():
        return {}
    return {name: value.strip() for name, value in re.findall(r"(?m)^(\w+): (.+)$", read_text_file(path))}


def _read_task_names(folder: Path) -> list[str]:
    path = folder / CONFIG
    if not path.exists():
        return []
    listed = re.search(r"(?m)^datasets:\n((?:- .+\n)+)", read_text_file(path))
    if listed is None:
        return []
    return [name.strip() for name in re.findall(r"(?m)^- (.+)$", listed[1])]


def _read_report(
    folder: Path, path: Path, config: Mapping[str, str], model: str, metric: str, full: float | None
) -> ImportedScore:
    report = dict_or_empty(read_json_file(path))
    if report.get("schema_version") != 2:
        version = text_of(repr(report.get("schema_version")))
        raise UserError(f"{path}: its schema_version is {version}; weft reads version 2")
    served_model = text_of(report.get("model_name"))
    chosen = _choose_metric(path, report, metric)
    name = text_of(dict_or_empty(chosen.get("identity")).get("name"))
    printed = number_or_none(chosen.get("score"))
    if printed is None:
        raise UserError(f"{path}: {name} has no score")
    samples = list(_read_samples(folder, path, name))
    value_range = dict_or_empty(dict_or_empty(chosen.get("semantics")).get("value_range"))
    full = find_full_marks(f"{path.name}, {name}", printed, samples, full, number_or_none(value_range.get("max")))
    execution = dict_or_empty(report.get("execution_summary"))
    requested = count_of(path, execution.get("requested"))
    errored = count_of(path, execution.get("errored"))
    expected = max(requested, count_of(path, chosen.get("num")) + errored, len(samples))
    outcome = combine(printed, samples, full, max(expected - errored, len(samples)))
    notes = list(outcome.notes)
    if errored:
        notes.append(f"{errored} requests failed and are unscored; the tool left them out")
    return ImportedScore(
        model=model,
        served_model=served_model,
        tool=TOOL,
        version=text_of(config.get("evalscope_version", "")),
        task=path.stem,
        metric=name,
        judge=_find_judge(report),
        value=outcome.value,
        scored=outcome.scored,
        expected=max(expected, outcome.expected),
        printed=printed,
        low=outcome.low,
        high=outcome.high,
        notes=tuple(notes),
        time=text_of(folder.name),
    )


def _choose_metric(path: Path, report: Mapping[str, Any], metric: str) -> Mapping[str, Any]:
    """Return the metric that the user named, or else the task's primary one."""
    metrics: dict[str, Mapping[str, Any]] = {}
    for entry in list_of_dicts(report.get("metrics")):
        metrics.setdefault(text_of(dict_or_empty(entry.get("identity")).get("name")), entry)
    wanted = metric or text_of(dict_or_empty(report.get("primary_metric_identity")).get("name"))
    if not wanted and len(metrics) == 1:
        return next(iter(metrics.values()))
    if wanted not in metrics:
        raise UserError(f"{path}: give --metric: it has {text_of(', '.join(metrics)) or 'no metric'}")
    return metrics[wanted]


def _read_samples(folder: Path, report: Path, metric: str) -> Iterator[SampleScore]:
    for path in find_files(folder, f"reviews/{escape(report.parent.name)}/{escape(report.stem)}_*.jsonl"):
        subset = path.stem.removeprefix(f"{report.stem}_")
        for line in read_json_lines(path):
            score = dict_or_empty(line.get("sample_score"))
            details = dict_or_empty(score.get("score"))
            failed = details.get("status", "success") != "success" or has_failed(details.get("prediction"))
            value = number_or_none(dict_or_empty(details.get("value")).get(metric))
            yield SampleScore(f"{subset} {score.get('group_id', line.get('index'))}", value, failed)


def _find_judge(report: Mapping[str, Any]) -> str:
    summary = dict_or_empty(report.get("judge_summary"))
    models = summary.get("models") or summary.get("judges") or summary.get("model") or ""
    if isinstance(models, list):
        return text_of(", ".join(map(str, cast(list[Any], models))))
    return text_of(models)


def _describe_stopped(folder: Path, predictions: Path, config: Mapping[str, str], model: str) -> ImportedScore:
    """Return the score of a task that the tool never finished: it has none."""
    answered = sum(1 for _ in read_json_lines(predictions))
    names = [name for name in _read_task_names(folder) if f"{predictions.stem}_".startswith(f"{name}_")]
    task = max(names, key=len, default=predictions.stem)
    return ImportedScore(
        model=model,
        served_model=text_of(predictions.parent.name),
        tool=TOOL,
        version=text_of(config.get("evalscope_version", "")),
        task=text_of(task),
        metric="",
        judge="",
        value=None,
        scored=0,
        expected=answered,
        notes=(f"the tool stopped after {answered} replies, before it scored them: run it again",),
    )
