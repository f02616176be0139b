"""A study for Label Studio, and what people said there. A task is a question with its pictures inside it, so that nothing else needs to be
uploaded; one labelling config (XML) serves all tasks of a study, whose choices come with each task. Tasks name neither model, judge nor
run.

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
from weft.judge_eval.annotation.exchange import Known, answered, usual_study
from weft.judge_eval.annotation.form import LONGEST, Field, Form, chosen, found_at, nested
from weft.judge_eval.annotation.form import Path as Steps
from weft.judge_eval.annotation.study import Item
from weft.report.gallery import Shown
from weft.report.html import Html, tag, words
from weft.store.annotations import Rating, Study
from weft.store.blobs import write_file
from weft.types import Image, Text
from weft.untrusted import fields, json_file

SIDE = 1024  # of a picture in a task
MANY = 200  # values that can be listed


def write(path: Path, study: Study, items: Mapping[str, Item], ratings: Sequence[Rating], home: Path) -> Path:
    """The tasks, with what was said so far as their annotations, and the config beside them, whose path comes back."""
    shown = Shown(home, SIDE)
    most = _most([item.form for item in items.values()])
    tasks = [_task(number, item, study, ratings, shown, most) for number, item in enumerate(items.values(), start=1)]
    write_file(path, msgspec.json.format(msgspec.json.encode(tasks), indent=1), shown=True)
    config = path.with_suffix(".xml")
    write_file(config, _config(*most).encode(), shown=True)
    return config


def _values(field: Field) -> list[Any]:
    """What can be chosen; nothing where it is written."""
    if field.is_words:
        return []
    if field.kind == "number":
        low, high = field.low, field.high
        return list(range(int(low), int(high) + 1)) if low is not None and high is not None and high - low <= MANY else []
    some = list(field.options)
    if field.halves:
        some = [value for one in some for value in (one, one + 0.5) if field.high is None or value <= field.high]
    return some


def _told(value: Any) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else f"{value:g}" if isinstance(value, (int, float)) else str(value)


def _slots(form: Form) -> tuple[list[Field], list[Field]]:
    """Fields that are chosen, and fields that are written."""
    picked = [field for field in form.fields if _values(field)]
    return picked, [field for field in form.fields if not _values(field)]


def _label(field: Field) -> str:
    return f"{field.group}: {field.label}" if field.group else field.label


def _most(forms: Sequence[Form]) -> tuple[int, int]:
    """How many choices and texts a question has at the most."""
    slots = [_slots(form) for form in forms]
    return max(len(one[0]) for one in slots), max(len(one[1]) for one in slots)


def _task(number: int, item: Item, study: Study, ratings: Sequence[Rating], shown: Shown, most: tuple[int, int]) -> dict[str, Any]:
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


def _question(item: Item, shown: Shown) -> Html:
    made: list[Html] = [tag("p", tag("b", item.line))] if item.line else []
    for message in item.question.messages:
        for part in message.parts:
            if isinstance(part, Text):
                made += [words(line) if line.strip() else tag("br") for line in part.text.splitlines()]
            elif isinstance(part, Image):
                made.append(_picture(part, shown))
    return tag("div", made)


def _picture(image: Image, shown: Shown) -> Html:
    data = shown.data(image)
    if data is None:
        return tag("p", "[a picture that is not in the store any more]")
    kind = {"jpg": "jpeg"}.get(ending := shown.name(image).rpartition(".")[2], ending)
    return tag("p", tag("img", src=f"data:image/{kind};base64,{base64.b64encode(data).decode()}", width=max(image.width, 256)))


def _annotation(form: Form, rating: Rating) -> dict[str, Any]:
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
    created = datetime.datetime.fromtimestamp(rating.at, datetime.UTC).isoformat()
    return {"rater": rating.rater, "lead_time": rating.seconds, "created_at": created, "result": result}


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


def read(path: Path, known: Known) -> list[Rating]:
    """Raises UserError with the task of what is wrong."""
    found: Any = json_file(path)
    if not isinstance(found, list):
        raise UserError(f"{path}: it is no list of tasks, as Label Studio exports them (JSON)")
    made: dict[tuple[str, str, str], Rating] = {}
    for number, task in enumerate(map(fields, cast(list[Any], found)), start=1):
        where = f"{path}: task {number}"
        data = fields(task.get("data"))
        item = known.item(str(data.get("item", "")))
        if item is None:
            raise UserError(f"{where}: item {data.get('item')!r} is no question of {known.source.run.id}: is it another run's?")
        study = str(data.get("study") or usual_study(known.source.run.id))
        annotations: Any = task.get("annotations") or []
        for at, one in enumerate(map(fields, cast(list[Any], annotations)), start=1):
            if not one.get("was_cancelled"):
                rating = _rating(known, study, item, one, f"{where}, annotation {at}")
                made[study, item.id, rating.rater] = rating
    if not made:
        raise UserError(f"{path}: there is no annotation in it")
    return list(made.values())


def _rating(known: Known, study: str, item: Item, one: Mapping[str, Any], where: str) -> Rating:
    rater = " ".join(_rater(one).split())
    if not rater:
        raise UserError(f"{where}: it does not say who made it (completed_by)")
    results = {str(entry.get("from_name")): fields(entry.get("value")) for entry in map(fields, one.get("result") or [])}
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
            raise UserError(f"{where}: {said[:40]!r} is no choice for {_label(field)}; there is {', '.join(allowed)[:200]}")
        values.append((field.path, allowed[said]))
    for at, field in enumerate(written, start=1):
        said = (_only(results.get(f"text_{at}", {}).get("text")) or "")[:LONGEST]
        values.append((field.path, said if field.kind == "text" else said.splitlines() if field.kind == "lines" else _number(said, where)))
    seconds, at_time = one.get("lead_time"), _time(one.get("created_at"))
    took = float(seconds) if isinstance(seconds, (int, float)) and 0 <= seconds < 1e9 else 0.0
    return answered(known.source, study, item, rater, nested(values, item.form.lists), where, at=at_time, seconds=took)


def _rater(one: Mapping[str, Any]) -> str:
    if one.get("rater"):
        return str(one["rater"])
    by = one.get("completed_by")
    if isinstance(by, dict):
        who = fields(by)
        return str(who.get("email") or who.get("username") or who.get("id") or "")
    return f"labeller-{by}" if isinstance(by, (int, str)) and str(by) else ""


def _only(values: Any) -> str | None:
    some = [str(one) for one in cast(list[Any], values)] if isinstance(values, list) else [values] if isinstance(values, str) else []
    return some[0] if len(some) == 1 else None


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
