"""A study for Label Studio, and the annotations that were made there.

A task is a question with its images inside it, so that nothing else needs to be uploaded. One labelling config (XML)
serves all tasks of a study; the choices come with each task. Tasks name neither model, judge nor run.

    FILE.json   import it as the project's tasks
    FILE.xml    paste it as the project's labelling interface

`read` reads the project's export (JSON, with annotations)."""

import base64
import datetime
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from weft.errors import UserError
from weft.judge_eval.annotation.exchange import KnownItems, annotation_from_answer, default_study
from weft.judge_eval.annotation.form import (
    MAX_TEXT,
    AnnotationForm,
    Field,
    build_answer,
    form_value,
    format_value,
    value_at,
)
from weft.judge_eval.annotation.form import Path as FieldPath
from weft.judge_eval.annotation.study import AnnotationItem
from weft.report.gallery import Thumbnails
from weft.report.html import Html, tag, text_block
from weft.store.annotations import Annotation, Study
from weft.store.blobs import write_file
from weft.store.records import is_time
from weft.types import Image, Text
from weft.untrusted import dict_or_empty, read_json_file

IMAGE_SIDE = 1024  # pixels, in a task
MIN_IMAGE_WIDTH = 256  # pixels on the screen
MAX_LISTED = 200  # a number with a wider range is typed


def write(
    path: Path, study: Study, items: Mapping[str, AnnotationItem], annotations: Sequence[Annotation], home: Path
) -> Path:
    """Write the tasks of a study, with the annotations so far, and the labelling config next to them. Return the
    config's path."""
    thumbnails = Thumbnails(home, IMAGE_SIDE)
    choices, texts = _max_controls([item.form for item in items.values()])
    tasks: list[dict[str, Any]] = []
    for number, item in enumerate(items.values(), start=1):
        own = [one for one in annotations if one.study == study.id and one.item == item.id and one.answer]
        data = _empty_data(choices, texts) | _task_data(item, study, thumbnails)
        results = [_encode_annotation(item.form, annotation) for annotation in own]
        tasks.append({"id": number, "data": data, "annotations": results})
    write_file(path, msgspec.json.format(msgspec.json.encode(tasks), indent=1), world_readable=True)
    config = path.with_suffix(".xml")
    write_file(config, _build_config(choices, texts).encode(), world_readable=True)
    return config


def _allowed_values(field: Field) -> list[Any]:
    """The values that can be chosen; none where the annotator types."""
    if field.is_text:
        return []
    if field.kind == "number":
        if field.low is None or field.high is None or field.high - field.low > MAX_LISTED:
            return []
        return list(range(int(field.low), int(field.high) + 1))
    if not field.has_halves:
        return list(field.options)
    values: list[Any] = []
    for option in field.options:
        values.append(option)
        if field.high is None or option + 0.5 <= field.high:
            values.append(option + 0.5)
    return values


def _split_fields(form: AnnotationForm) -> tuple[list[Field], list[Field]]:
    """The fields that are chosen, and the fields that are typed."""
    choices: list[Field] = []
    texts: list[Field] = []
    for field in form.fields:
        if _allowed_values(field):
            choices.append(field)
        else:
            texts.append(field)
    return choices, texts


def _label(field: Field) -> str:
    if field.group:
        return f"{field.group}: {field.label}"
    return field.label


def _max_controls(forms: Sequence[AnnotationForm]) -> tuple[int, int]:
    """The highest number of choices, and of texts, that a form has."""
    choices = 0
    texts = 0
    for form in forms:
        form_choices, form_texts = _split_fields(form)
        choices = max(choices, len(form_choices))
        texts = max(texts, len(form_texts))
    return choices, texts


def _empty_data(choices: int, texts: int) -> dict[str, Any]:
    """A value for everything that the config refers to: what a question does not need stays empty."""
    data: dict[str, Any] = {}
    for number in range(1, choices + 1):
        data[f"label_{number}"] = ""
    for number in range(1, choices + 1):
        data[f"choices_{number}"] = []
    for number in range(1, texts + 1):
        data[f"about_{number}"] = ""
    return data


def _task_data(item: AnnotationItem, study: Study, thumbnails: Thumbnails) -> dict[str, Any]:
    data: dict[str, Any] = {"study": study.id, "item": item.id, "html": str(_render_question(item, thumbnails))}
    choices, texts = _split_fields(item.form)
    for number, field in enumerate(choices, start=1):
        data[f"label_{number}"] = _label(field)
        data[f"choices_{number}"] = [{"value": format_value(value)} for value in _allowed_values(field)]
    for number, field in enumerate(texts, start=1):
        data[f"about_{number}"] = f"{_label(field)} (optional)"
    return data


def _render_question(item: AnnotationItem, thumbnails: Thumbnails) -> Html:
    blocks: list[Html] = []
    if item.line:
        blocks.append(tag("p", tag("b", item.line)))
    for message in item.question.messages:
        for part in message.parts:
            if isinstance(part, Text):
                blocks += [_render_line(line) for line in part.text.splitlines()]
            elif isinstance(part, Image):
                blocks.append(_render_image(part, thumbnails))
    return tag("div", blocks)


def _render_line(line: str) -> Html:
    if line.strip():
        return text_block(line)
    return tag("br")


def _render_image(image: Image, thumbnails: Thumbnails) -> Html:
    data = thumbnails.data(image)
    if data is None:
        return tag("p", "[this image is no longer in the store]")
    suffix = thumbnails.name(image).rpartition(".")[2]
    media_type = {"jpg": "jpeg"}.get(suffix, suffix)
    url = f"data:image/{media_type};base64,{base64.b64encode(data).decode()}"
    return tag("p", tag("img", src=url, width=max(image.width, MIN_IMAGE_WIDTH)))


def _encode_annotation(form: AnnotationForm, annotation: Annotation) -> dict[str, Any]:
    choices, texts = _split_fields(form)
    results: list[dict[str, Any]] = []
    for number, field in enumerate(choices, start=1):
        value = value_at(annotation.answer, field.path)
        if value is not None:
            results.append(_encode_result(f"choice_{number}", "choices", {"choices": [format_value(value)]}))
    for number, field in enumerate(texts, start=1):
        text, _ = form_value(field, annotation.answer)
        if text:
            results.append(_encode_result(f"text_{number}", "textarea", {"text": [text]}))
    created = datetime.datetime.fromtimestamp(annotation.created_at, datetime.UTC).isoformat()
    return {
        "annotator": annotation.annotator,
        "lead_time": annotation.seconds,
        "created_at": created,
        "result": results,
    }


def _encode_result(name: str, kind: str, value: dict[str, Any]) -> dict[str, Any]:
    return {"from_name": name, "to_name": "question", "type": kind, "value": value}


def _build_config(choices: int, texts: int) -> str:
    """The labelling interface: as many choices and texts as any question needs."""
    lines = ["<View>", '  <HyperText name="question" value="$html" inline="true"/>']
    for number in range(1, choices + 1):
        lines += [
            f'  <Header value="$label_{number}" size="5"/>',
            f'  <Choices name="choice_{number}" toName="question" value="$choices_{number}" choice="single" '
            'layout="inline"/>',
        ]
    for number in range(1, texts + 1):
        lines += [
            f'  <Header value="$about_{number}" size="6"/>',
            f'  <TextArea name="text_{number}" toName="question" rows="2" maxSubmissions="1" editable="true"/>',
        ]
    return "\n".join([*lines, "</View>"]) + "\n"


def read(path: Path, known: KnownItems) -> list[Annotation]:
    """Read the annotations of an export. Raises UserError with the task that is wrong."""
    tasks: Any = read_json_file(path)
    if not isinstance(tasks, list):
        raise UserError(f"{path}: it is not a list of tasks, as Label Studio exports them (JSON)")
    annotations: dict[tuple[str, str, str], Annotation] = {}
    for number, task in enumerate(map(dict_or_empty, cast(list[Any], tasks)), start=1):
        where = f"{path}: task {number}"
        data = dict_or_empty(task.get("data"))
        item = known.item(str(data.get("item", "")))
        run = known.source.run.id
        if item is None:
            raise UserError(f"{where}: item {data.get('item')!r} is not a question of {run}: is it of another run?")
        study = str(data.get("study") or default_study(run))
        exported = _list_or_empty(task, "annotations", where)
        for index, entry in enumerate(map(dict_or_empty, exported), start=1):
            if not entry.get("was_cancelled"):
                annotation = _decode_annotation(known, study, item, entry, f"{where}, annotation {index}")
                annotations[study, item.id, annotation.annotator] = annotation
    if not annotations:
        raise UserError(f"{path}: there is no annotation in it")
    return list(annotations.values())


def _list_or_empty(record: Mapping[str, Any], name: str, where: str) -> list[Any]:
    """A list in the export, empty where there is none. Raises UserError for anything else."""
    value: Any = record.get(name) or []
    if not isinstance(value, list):
        raise UserError(f"{where}: its {name!r} are not a list, as Label Studio exports them")
    return cast(list[Any], value)


def _decode_annotation(
    known: KnownItems, study: str, item: AnnotationItem, entry: Mapping[str, Any], where: str
) -> Annotation:
    annotator = " ".join(_annotator_name(entry).split())
    if not annotator:
        raise UserError(f"{where}: it does not say who made it (completed_by)")
    values = _decode_values(item.form, entry, where)
    seconds = entry.get("lead_time")
    if not isinstance(seconds, (int, float)) or not 0 <= seconds < 1e9:
        seconds = 0.0
    return annotation_from_answer(
        known.source,
        study,
        item,
        annotator,
        build_answer(values, item.form.lists),
        where,
        created_at=_parse_time(entry.get("created_at")),
        seconds=float(seconds),
    )


def _decode_values(form: AnnotationForm, entry: Mapping[str, Any], where: str) -> list[tuple[FieldPath, Any]]:
    """The values of an annotation by their paths. Raises UserError where one is missing or not allowed."""
    results: dict[str, dict[str, Any]] = {}
    for result in map(dict_or_empty, _list_or_empty(entry, "result", where)):
        results[str(result.get("from_name"))] = dict_or_empty(result.get("value"))
    choices, texts = _split_fields(form)
    values: list[tuple[FieldPath, Any]] = [*form.fixed]
    for number, field in enumerate(choices, start=1):
        name = f"choice_{number}"
        choice = _single(results.get(name, {}).get("choices"))
        if choice is not None:
            values.append((field.path, _decode_choice(field, choice, where)))
        elif field.required:
            raise UserError(f"{where}: nothing is chosen for {_label(field)} ({name})")
    for number, field in enumerate(texts, start=1):
        text = _single(results.get(f"text_{number}", {}).get("text")) or ""
        values.append((field.path, _decode_text(field, text[:MAX_TEXT], where)))
    return values


def _decode_choice(field: Field, choice: str, where: str) -> Any:
    allowed = {format_value(value): value for value in _allowed_values(field)}
    if choice not in allowed:
        available = ", ".join(allowed)[:200]
        raise UserError(f"{where}: {choice[:40]!r} is not a choice for {_label(field)}; there is {available}")
    return allowed[choice]


def _decode_text(field: Field, text: str, where: str) -> Any:
    if field.kind == "text":
        return text
    if field.kind == "lines":
        return text.splitlines()
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UserError(f"{where}: {text[:40]!r} is not a number")
    return number


def _annotator_name(entry: Mapping[str, Any]) -> str:
    """Our own name where the annotation was exported from weft, else Label Studio's `completed_by`."""
    if entry.get("annotator"):
        return str(entry["annotator"])
    completed_by = entry.get("completed_by")
    if isinstance(completed_by, dict):
        user = dict_or_empty(completed_by)
        return str(user.get("email") or user.get("username") or user.get("id") or "")
    if isinstance(completed_by, (int, str)) and str(completed_by):
        return f"labeller-{completed_by}"
    return ""


def _single(values: Any) -> str | None:
    """The one value of a result, or None where there is none or several."""
    if isinstance(values, str):
        return values
    if isinstance(values, list):
        entries = cast(list[Any], values)
        if len(entries) == 1:
            return str(entries[0])
    return None


def _parse_time(text: Any) -> float:
    try:
        time = datetime.datetime.fromisoformat(str(text)).timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0
    return time if is_time(time) else 0.0
