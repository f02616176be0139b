"""A study for Label Studio, and what people said there. A task is a question with its pictures inside it, so that
nothing else needs to be uploaded; one labelling config (XML) serves all tasks of a study, whose choices come with each
task. Tasks name neither model, judge nor run.

    FILE.json   import it as the project's tasks
    FILE.xml    paste it as the project's labelling interface

Its export (JSON, with annotations) is read back by `read`."""

import base64
import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from weft.errors import UserError
from weft.judge_eval.annotation.exchange import KnownItems, answered, default_study
from weft.judge_eval.annotation.form import LONGEST, AnnotationForm, Field, chosen, found_at, nested
from weft.judge_eval.annotation.form import Path as Steps
from weft.judge_eval.annotation.study import AnnotationItem
from weft.report.gallery import Thumbnails
from weft.report.html import Html, tag, text_block
from weft.store.annotations import Annotation, Study
from weft.store.blobs import write_file
from weft.types import Image, Text
from weft.untrusted import dict_or_empty, read_json_file

SIDE = 1024  # of a picture in a task
MANY = 200  # values that can be listed


def write(
    path: Path, study: Study, items: Mapping[str, AnnotationItem], ratings: Sequence[Annotation], home: Path
) -> Path:
    """The tasks, with what was said so far as their annotations, and the config beside them, whose path comes back."""
    shown = Thumbnails(home, SIDE)
    most = _most([item.form for item in items.values()])
    tasks = [_task(number, item, study, ratings, shown, most) for number, item in enumerate(items.values(), start=1)]
    write_file(path, msgspec.json.format(msgspec.json.encode(tasks), indent=1), world_readable=True)
    config = path.with_suffix(".xml")
    write_file(config, _config(*most).encode(), world_readable=True)
    return config


def _values(field: Field) -> list[Any]:
    """What can be chosen; nothing where it is written."""
    if field.is_words:
        return []
    if field.kind == "number":
        low = field.low
        high = field.high
        if low is not None and high is not None and high - low <= MANY:
            return list(range(int(low), int(high) + 1))
        return []
    some = list(field.options)
    if field.halves:
        some = [value for one in some for value in (one, one + 0.5) if field.high is None or value <= field.high]
    return some


def _told(value: Any) -> str:
    if isinstance(value, bool):
        if value:
            return "yes"
        return "no"
    if isinstance(value, (int, float)):
        return f"{value:g}"
    return str(value)


def _slots(form: AnnotationForm) -> tuple[list[Field], list[Field]]:
    """Fields that are chosen, and fields that are written."""
    picked = [field for field in form.fields if _values(field)]
    return picked, [field for field in form.fields if not _values(field)]


def _label(field: Field) -> str:
    if field.group:
        return f"{field.group}: {field.label}"
    return field.label


def _most(forms: Sequence[AnnotationForm]) -> tuple[int, int]:
    """How many choices and texts a question has at the most."""
    slots = [_slots(form) for form in forms]
    return max(len(one[0]) for one in slots), max(len(one[1]) for one in slots)


def _task(
    number: int,
    item: AnnotationItem,
    study: Study,
    ratings: Sequence[Annotation],
    shown: Thumbnails,
    most: tuple[int, int],
) -> dict[str, Any]:
    """It has all that the config speaks of: what this question does not need is empty."""
    picked, written = _slots(item.form)
    data: dict[str, Any] = {f"label_{at}": "" for at in range(1, most[0] + 1)}
    data |= {f"choices_{at}": [] for at in range(1, most[0] + 1)} | {f"about_{at}": "" for at in range(1, most[1] + 1)}
    data |= {"study": study.id, "item": item.id, "html": str(_question(item, shown))}
    for at, field in enumerate(picked, start=1):
        data[f"label_{at}"] = _label(field)
        data[f"choices_{at}"] = [{"value": _told(value)} for value in _values(field)]
    for at, field in enumerate(written, start=1):
        data[f"about_{at}"] = f"{_label(field)} (if you like)"
    mine = [one for one in ratings if one.study == study.id and one.item == item.id and one.answer]
    return {"id": number, "data": data, "annotations": [_annotation(item.form, one) for one in mine]}


def _question(item: AnnotationItem, shown: Thumbnails) -> Html:
    if item.line:
        made: list[Html] = [tag("p", tag("b", item.line))]
    else:
        made = []
    for message in item.question.messages:
        for part in message.parts:
            if isinstance(part, Text):
                made += [text_block(line) if line.strip() else tag("br") for line in part.text.splitlines()]
            elif isinstance(part, Image):
                made.append(_picture(part, shown))
    return tag("div", made)


def _picture(image: Image, shown: Thumbnails) -> Html:
    data = shown.data(image)
    if data is None:
        return tag("p", "[a picture that is not in the store any more]")
    kind = {"jpg": "jpeg"}.get(ending := shown.name(image).rpartition(".")[2], ending)
    return tag(
        "p", tag("img", src=f"data:image/{kind};base64,{base64.b64encode(data).decode()}", width=max(image.width, 256))
    )


def _annotation(form: AnnotationForm, rating: Annotation) -> dict[str, Any]:
    picked, written = _slots(form)
    result: list[dict[str, Any]] = []
    for at, field in enumerate(picked, start=1):
        value = found_at(rating.answer, field.path)
        if value is not None:
            result.append(_result(f"choice_{at}", "choices", {"choices": [_told(value)]}))
    for at, field in enumerate(written, start=1):
        text = chosen(field, rating.answer)[0]
        if text:
            result.append(_result(f"text_{at}", "textarea", {"text": [text]}))
    created = datetime.datetime.fromtimestamp(rating.created_at, datetime.UTC).isoformat()
    return {"rater": rating.annotator, "lead_time": rating.seconds, "created_at": created, "result": result}


def _result(name: str, kind: str, value: dict[str, Any]) -> dict[str, Any]:
    return {"from_name": name, "to_name": "question", "type": kind, "value": value}


def _config(most: int, texts: int) -> str:
    """With as many choices and texts as any question needs; where a task has fewer, the rest is empty."""
    lines = ["<View>", '  <HyperText name="question" value="$html" inline="true"/>']
    for at in range(1, most + 1):
        lines += [
            f'  <Header value="$label_{at}" size="5"/>',
            f'  <Choices name="choice_{at}" toName="question" value="$choices_{at}" choice="single" layout="inline"/>',
        ]
    for at in range(1, texts + 1):
        lines += [
            f'  <Header value="$about_{at}" size="6"/>',
            f'  <TextArea name="text_{at}" toName="question" rows="2" maxSubmissions="1" editable="true"/>',
        ]
    return "\n".join([*lines, "</View>"]) + "\n"


def read(path: Path, known: KnownItems) -> list[Annotation]:
    """Raises UserError with the task of what is wrong."""
    found: Any = read_json_file(path)
    if not isinstance(found, list):
        raise UserError(f"{path}: it is no list of tasks, as Label Studio exports them (JSON)")
    made: dict[tuple[str, str, str], Annotation] = {}
    for number, task in enumerate(map(dict_or_empty, cast(list[Any], found)), start=1):
        where = f"{path}: task {number}"
        data = dict_or_empty(task.get("data"))
        item = known.item(str(data.get("item", "")))
        if item is None:
            raise UserError(
                f"{where}: item {data.get('item')!r} is no question of {known.source.run.id}: is it another run's?"
            )
        study = str(data.get("study") or default_study(known.source.run.id))
        annotations: Any = task.get("annotations") or []
        for at, one in enumerate(map(dict_or_empty, cast(list[Any], annotations)), start=1):
            if not one.get("was_cancelled"):
                rating = _rating(known, study, item, one, f"{where}, annotation {at}")
                made[study, item.id, rating.annotator] = rating
    if not made:
        raise UserError(f"{path}: there is no annotation in it")
    return list(made.values())


def _rating(known: KnownItems, study: str, item: AnnotationItem, one: Mapping[str, Any], where: str) -> Annotation:
    rater = " ".join(_rater(one).split())
    if not rater:
        raise UserError(f"{where}: it does not say who made it (completed_by)")
    results = {
        str(entry.get("from_name")): dict_or_empty(entry.get("value"))
        for entry in map(dict_or_empty, one.get("result") or [])
    }
    picked, written = _slots(item.form)
    values: list[tuple[Steps, Any]] = [*item.form.fixed]
    for at, field in enumerate(picked, start=1):
        said = _only(results.get(f"choice_{at}", {}).get("choices"))
        allowed = {_told(value): value for value in _values(field)}
        if said is None and not field.needed:
            continue
        if said is None:
            raise UserError(f"{where}: nothing is chosen for {_label(field)} (choice_{at})")
        if said not in allowed:
            raise UserError(
                f"{where}: {said[:40]!r} is no choice for {_label(field)}; there is {', '.join(allowed)[:200]}"
            )
        values.append((field.path, allowed[said]))
    for at, field in enumerate(written, start=1):
        said = (_only(results.get(f"text_{at}", {}).get("text")) or "")[:LONGEST]
        values.append(
            (
                field.path,
                said if field.kind == "text" else said.splitlines() if field.kind == "lines" else _number(said, where),
            )
        )
    seconds = one.get("lead_time")
    at_time = _time(one.get("created_at"))
    if isinstance(seconds, (int, float)) and 0 <= seconds < 1e9:
        took = float(seconds)
    else:
        took = 0.0
    return answered(known.source, study, item, rater, nested(values, item.form.lists), where, at=at_time, seconds=took)


def _rater(one: Mapping[str, Any]) -> str:
    if one.get("rater"):
        return str(one["rater"])
    by = one.get("completed_by")
    if isinstance(by, dict):
        who = dict_or_empty(by)
        return str(who.get("email") or who.get("username") or who.get("id") or "")
    if isinstance(by, (int, str)) and str(by):
        return f"labeller-{by}"
    return ""


def _only(values: Any) -> str | None:
    if isinstance(values, list):
        some = [str(one) for one in cast(list[Any], values)]
    else:
        some = [values] if isinstance(values, str) else []
    if len(some) == 1:
        return some[0]
    return None


def _number(said: str, where: str) -> float:
    try:
        return float(said)
    except ValueError:
        raise UserError(f"{where}: {said[:40]!r} is no number") from None


def _time(text: Any) -> float:
    try:
        return datetime.datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return 0.0
