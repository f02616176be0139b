"""Forms for every schema that a judge gets, and that what is filled in goes the way of a judge's reply."""

import asyncio
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

import weft
from conftest import BENCHMARKS  # type: ignore[attr-defined]
from server import drawn
from weft.calls.structured_output import UnusableReply
from weft.errors import UserError
from weft.judge_eval.annotation import attention
from weft.judge_eval.annotation.form import (
    Field,
    MissingAnswer,
    build_answer,
    build_form,
    form_value,
    lowest_values,
    parse_answer,
)
from weft.judge_eval.annotation.page import PagePosition, question_page
from weft.judge_eval.annotation.questions import StudySource, open_study_source
from weft.judge_eval.annotation.study import (
    annotation_of,
    begin_study,
    check_item,
    items_of,
    question_item,
    study_id,
    study_settings,
    verdicts_of,
)
from weft.store.annotations import Annotations
from weft.store.blobs import Blobs
from weft.types import Image, Question


def sent(field: Field, at: int, *, best: bool) -> dict[str, str]:
    if field.is_text:
        return {}
    if field.kind == "number":
        return {f"f{at}": "0"}
    return {f"f{at}": str(0 if best == (field.kind in ("yes", "choice")) else len(field.options) - 1)}


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_every_question_has_a_form_whose_answer_is_read_as_a_judges_is(benchmark: str, sources: dict[str, StudySource]):
    source = sources[benchmark]
    seen: set[tuple[str, ...]] = set()
    for asked in source.questions:
        item = question_item(asked)
        seen.add(asked.question.metrics)
        given = {
            name: value
            for at, field in enumerate(item.form.fields)
            for name, value in sent(field, at, best=True).items()
        }
        answer = parse_answer(item.form, given)
        said = verdicts_of(source, item, answer)
        assert tuple(one.metric for one in said) == asked.question.metrics and all(one.by == "person" for one in said)
        assert (benchmark == "imug" and "choice" in asked.question.metrics) or all(one.value == 1.0 for one in said)
        again = {f"f{at}": form_value(field, answer)[0] for at, field in enumerate(item.form.fields)}
        assert parse_answer(item.form, again) == answer, "what was form_value is shown again as it was"
        with pytest.raises(MissingAnswer):
            parse_answer(item.form, {})
    due = {metric for metrics in seen for metric in metrics}
    judged = {one.metric for one in source.run.verdicts if one.by == "judge"} - set(source.benchmark.derived_metrics)
    assert judged <= due, "whatever the judge was asked, people are asked"


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_pages_name_neither_model_judge_nor_run(benchmark: str, sources: dict[str, StudySource], house: Path):
    source, blobs = sources[benchmark], Blobs(house / "blobs")
    ratings = Annotations(house / "journal.sqlite")
    study, _ = begin_study(source, study_settings("ann", 20), ratings, blobs)
    ratings.close()
    manifest = source.run.record.manifest
    for item in items_of(source, study, blobs).values():
        text = question_page(
            item, PagePosition("/rate/TOKEN", 1, 9, 0), lambda image: f"/rate/TOKEN/img/{image.digest}.png", {}, {}
        )
        for secret in (
            source.run.id,
            manifest.model.name,
            manifest.judge.name,
            "oracle",
            "tabletop",
            "exact judge",
            study.id,
        ):
            assert secret not in text, secret
        shown = re.sub(r"<style>.*?</style>|<script.*?</script>", "", text, flags=re.DOTALL)
        assert len(item.question.turn_ref.sample) < 4 or item.question.turn_ref.sample not in shown


def test_scales_choices_groups_and_words():
    weave = build_form(
        {
            "type": "object",
            "properties": {"reasoning": {"type": "string"}, "score": {"type": "number", "minimum": 0, "maximum": 10}},
        }
    )
    assert (
        [field.kind for field in weave.fields] == ["scale", "text"]
        and weave.fields[0].has_halves
        and len(weave.fields[0].options) == 11
    )
    assert parse_answer(weave, {"f0": "7", "h0": "1"}) == {"score": 7.5, "reasoning": ""}
    assert form_value(weave.fields[0], {"score": 7.5}) == ("7", True) and form_value(weave.fields[0], {"score": 7}) == (
        "7",
        False,
    )
    with pytest.raises(MissingAnswer, match="10.5 is more than 10"):
        parse_answer(weave, {"f0": "10", "h0": "1"})
    with pytest.raises(MissingAnswer, match="not a choice"):
        parse_answer(weave, {"f0": "11"})
    entry = {
        "type": "object",
        "properties": {
            "point_id": {"type": "integer", "enum": [1, 2]},
            "score": {"type": "integer", "minimum": 0, "maximum": 5},
        },
    }
    points = build_form(
        {"type": "object", "properties": {"results": {"type": "array", "items": entry}}}, ["a star", "a ring"]
    )
    assert [field.group for field in points.fields] == ["point 1: a star", "point 2: a ring"]
    found = parse_answer(points, {"f0": "5", "f1": "0"})
    assert found == {"results": [{"point_id": 1, "score": 5}, {"point_id": 2, "score": 0}]}
    fine = build_form({"type": "object", "properties": {"share": {"type": "number", "minimum": 0, "maximum": 1}}})
    assert fine.fields[0].options[3] == 0.3 and not fine.fields[0].has_halves
    many = build_form({"type": "object", "properties": {"steps": {"type": "integer", "minimum": 0, "maximum": 99}}})
    assert many.fields[0].kind == "number" and parse_answer(many, {"f0": "42"}) == {"steps": 42}
    for wrong in ("100", "-1", "4.5", "x"):
        with pytest.raises(MissingAnswer):
            parse_answer(many, {"f0": wrong})
    with pytest.raises(UserError, match="no form"):
        build_form(
            {
                "type": "object",
                "properties": {
                    "all": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "boolean"}}}}
                },
            }
        )
    with pytest.raises(UserError, match="nothing to choose"):
        build_form({"type": "object", "properties": {"why": {"type": "string"}}})


def test_an_answer_that_no_judge_could_give_is_none(sources: dict[str, StudySource]):
    item = next(question_item(one) for one in sources["weave"].questions if one.question.metrics == ("image_quality",))
    for answer in ({"score": 11, "reasoning": ""}, {"reasoning": ""}, {"score": 7.5, "reasoning": ""}):
        with pytest.raises(UnusableReply):
            verdicts_of(sources["weave"], item, answer)


# questions with known answers


def pictures(question: Question) -> list[Image]:
    return [part for message in question.messages for part in message.parts if isinstance(part, Image)]


def test_a_grey_picture_stands_for_the_one_to_judge_where_that_is_surely_bad(
    sources: dict[str, StudySource], house: Path
):
    blobs = Blobs(house / "blobs")
    for source in sources.values():
        for asked in source.questions:
            question, line = attention.build_check_question(asked, blobs)
            known = attention.build_check(asked)
            assert (known.most is None) == bool(line) and known.of == asked.item
            before, after = pictures(asked.question), pictures(question)
            if not line:
                assert not {image.digest for image in after} & asked.reply_images, (
                    "the picture to judge is not to be seen"
                )
                (grey,) = [new for old, new in zip(before, after, strict=True) if old != new]
                with blobs.decode_within_memory(grey) as picture:
                    assert len(picture.getcolors() or ()) == 1 and picture.size == (grey.width, grey.height)
            else:
                assert line.startswith("For this one choose") and question == asked.question
    blind = {
        asked.question.metrics[0]
        for asked in sources["weave"].questions
        if not attention.build_check_question(asked, blobs)[1]
    }
    assert blind == {"key_point", "visual_consistency"}, (
        "a grey picture may be well made: image quality is no such question"
    )


def test_a_known_answer_is_passed_or_failed_without_the_dataset(sources: dict[str, StudySource], house: Path):
    blobs = Blobs(house / "blobs")
    for source in sources.values():
        for asked in source.questions[:12]:
            item, known = check_item(asked, blobs), attention.build_check(asked)
            kept = attention.decode_checks(
                msgspec.json.decode(msgspec.json.encode({"known": {item.id: attention.encode_check(known)}}))
            )[item.id]
            words = [(field.path, "") for field in item.form.fields if field.is_text]
            low = build_answer([*item.form.fixed, *lowest_values(item.form), *words], item.form.lists)
            assert kept.passed(annotation_of(source, "s", item, "ann", low))
            given = {
                name: value
                for at, field in enumerate(item.form.fields)
                for name, value in sent(field, at, best=True).items()
            }
            best = parse_answer(item.form, given)
            if best != low:
                assert not kept.passed(annotation_of(source, "s", item, "ann", best))


# studies


def test_the_same_settings_are_the_same_study_and_others_are_another(sources: dict[str, StudySource], house: Path):
    source, blobs = sources["weave"], Blobs(house / "blobs")
    ratings = Annotations(house / "journal.sqlite")
    first, _ = begin_study(source, study_settings("ann, bob,cem", 12, each=2), ratings, blobs)
    again, newer = begin_study(source, study_settings("ann,bob,cem", 12, each=2), ratings, blobs)
    assert first == again and not newer
    orders = first.settings["orders"]
    assert len(first.settings["known"]) == 1 and sum(map(len, orders.values())) == 12 * 2 + 3
    assert set(first.settings["images"]) <= {path.name for path in (house / "blobs").glob("??/*")}
    others = [
        study_settings("ann,bob,cem", 12),
        study_settings("ann,bob,cem", 13, each=2),
        study_settings("ann,bob,cem", 12, 1, 2),
        study_settings("ann,bob,dan", 12, each=2),
    ]
    assert len({study_id(source, one) for one in others} | {first.id}) == 5
    assert begin_study(source, study_settings("1", 4), ratings, blobs)[0].settings["known"] == {}, (
        "few questions have none"
    )
    assert begin_study(source, study_settings("1", 20, share=0.0), ratings, blobs)[0].settings["known"] == {}
    ratings.close()


@pytest.mark.parametrize(
    "wrong",
    [
        {"annotators": "0"},
        {"annotators": "ann,ann"},
        {"annotators": "ann,,bob"},
        {"annotators": "a" * 41},
        {"annotators": "2", "each": 3},
        {"share": 0.9},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]):
    with pytest.raises(UserError, match="--"):
        study_settings(**wrong)


def test_released_questions_are_not_asked_and_repeats_are_one(toy: Path, tmp_path: Path):
    ways: dict[str, Any] = {"data": toy, "model": "copy", "home": tmp_path / "home"}
    once = weft.evaluate("weave", judge="constant/5", **ways)
    often = weft.evaluate("weave", judge="constant/5", judge_repeats=3, **ways)
    found = [asyncio.run(open_study_source(run.id, tmp_path / "home")) for run in (once, often)]
    assert [one.item for one in found[0].questions] == [one.item for one in found[1].questions]
    empty = tmp_path / "nothing"
    empty.mkdir()
    (empty / "another.png").write_bytes(drawn("of no turn", 40))
    official = weft.evaluate("weave", judge="constant/5", **{**ways, "model": f"folder/{empty}"}, official=True)
    assert any(one.merged_from or one.variant_reading for one in official.verdicts), (
        "the scripts' judge was asked about outputs that are not there"
    )
    with pytest.raises(UserError, match="nothing to annotate"):
        asyncio.run(open_study_source(official.id, tmp_path / "home"))
