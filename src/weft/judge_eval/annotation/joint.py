"""A study of several models' runs: blind, and one reply a task.

Each dialogue goes to one run, so that no annotator sees two models' replies to the same task. In each group of the
benchmark's first axis the runs get as many dialogues as one another. Questions are drawn so that runs and groups keep
their shares, one of each dialogue before a second of any. Every run has a study of its own, in which its annotations
are stored as ever; a joint study is these together, in one order for each annotator."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from weft.errors import UserError
from weft.judge_eval.agreement.pairs import find_same_replies
from weft.judge_eval.annotation import assignment, attention
from weft.judge_eval.annotation.questions import AnnotatedQuestion, StudySource
from weft.judge_eval.annotation.study import (
    AnnotationItem,
    StudySettings,
    begin_study,
    count_checks,
    digest_images,
    encode_checks,
    items_of,
)
from weft.results.run import Run
from weft.store.annotations import Annotations, Study
from weft.store.blobs import Blobs
from weft.store.records import read_clock
from weft.untrusted import dict_or_empty

JOINT = "joint"  # the key of a study's settings that says which studies belong together


class StudyPart(Struct, frozen=True):
    """The study of one run."""

    source: StudySource
    study: Study


class JointStudy(Struct, frozen=True):
    """The studies of one or several runs, as an annotator works through them."""

    id: str
    parts: tuple[StudyPart, ...]
    orders: Mapping[str, Sequence[str]]  # the items of each annotator, in the annotator's order

    @property
    def questions(self) -> int:
        return sum(part.study.settings["questions"] for part in self.parts)

    @property
    def checks(self) -> int:
        """How many attention checks there are."""
        return sum(len(part.study.settings["known"]) for part in self.parts)

    def items(self, blobs: Blobs) -> dict[str, tuple[StudyPart, AnnotationItem]]:
        """All items by id, each with the study that it belongs to."""
        items: dict[str, tuple[StudyPart, AnnotationItem]] = {}
        for part in self.parts:
            for name, item in items_of(part.source, part.study, blobs).items():
                items[name] = (part, item)
        return items


def single_study(source: StudySource, study: Study) -> JointStudy:
    """A study of one run alone."""
    return JointStudy(study.id, (StudyPart(source, study),), study.settings["orders"])


def begin_joint_study(
    sources: Sequence[StudySource], settings: StudySettings, annotations: Annotations, blobs: Blobs
) -> tuple[JointStudy, bool]:
    """Return the study of these runs with these settings, and whether it is new. A new one is stored.

    The order in which the runs are named is of no importance. One run has a study as `begin_study` makes it."""
    if len(sources) == 1:
        study, is_new = begin_study(sources[0], settings, annotations, blobs)
        return single_study(sources[0], study), is_new
    ordered = sorted(sources, key=lambda source: source.run.id)
    _check_sources(ordered)
    name = _digest([[source.run.id for source in ordered], ordered[0].rubric, settings])
    stored = [_find_study(source, _part_id(name, source), annotations) for source in ordered]
    studies = [study for study in stored if study is not None]
    is_new = len(studies) < len(ordered)
    if is_new:
        studies = _draw_studies(ordered, settings, name, blobs)
        annotations.add_all([], studies)
    parts = tuple(StudyPart(source, study) for source, study in zip(ordered, studies, strict=True))
    return JointStudy(name, parts, _joint_orders(name, studies)), is_new


def _joint_orders(name: str, studies: Sequence[Study]) -> dict[str, list[str]]:
    """The joint order of each annotator. Raises UserError if the studies do not have its items: journals can come from
    anywhere."""
    orders: dict[str, list[str]] = studies[0].settings[JOINT].get("orders", {})
    for annotator, order in orders.items():
        own: list[str] = []
        for study in studies:
            own += study.settings.get("orders", {}).get(annotator, [])
        if sorted(own) != sorted(order):
            raise UserError(
                f"{name} is damaged: its runs do not have the questions of {annotator}; give another --seed"
            )
    return orders


def _digest(identity: Any) -> str:
    return f"study-{hashlib.sha256(msgspec.json.encode(identity)).hexdigest()[:10]}"


def _part_id(joint: str, source: StudySource) -> str:
    return _digest([joint, source.run.id])


def _find_study(source: StudySource, name: str, annotations: Annotations) -> Study | None:
    studies = annotations.studies(source.run.id)
    return next((study for study in studies if study.id == name and JOINT in study.settings), None)


def _check_sources(sources: Sequence[StudySource]) -> None:
    """Raise UserError for runs whose replies are not those of several models to the same tasks."""
    runs = [source.run for source in sources]
    if len({run.id for run in runs}) < len(runs):
        raise UserError("a run is named twice; name each run once")
    manifests = [run.record.manifest for run in runs]
    if len({manifest.benchmark.name for manifest in manifests}) > 1:
        raise UserError("the runs are of different benchmarks: people are asked one benchmark's questions in one study")
    if runs[0].benchmark.presentation.pairwise:
        raise UserError("runs of battles are annotated one by one: weft rate RUN")
    if len({manifest.dataset.digest for manifest in manifests}) > 1:
        raise UserError("the runs have different datasets: a study shows one reply to each task of one dataset")
    if len({source.rubric for source in sources}) > 1:
        raise UserError("the runs were judged with different prompts: annotators need the same questions about all")
    for index, run in enumerate(runs):
        for other in runs[:index]:
            if _has_same_replies(run, other):
                raise UserError(
                    f"{other.id} and {run.id} have the same replies: name one of them; `weft agree` finds its "
                    "annotations for both"
                )


def _has_same_replies(run: Run, other: Run) -> bool:
    if run.record.manifest.model.name != other.record.manifest.model.name:
        return False
    return len(find_same_replies(run.turns, other.turns)) == len(run.turns)


def _draw_studies(sources: Sequence[StudySource], settings: StudySettings, name: str, blobs: Blobs) -> list[Study]:
    """Draw the questions of all runs together; return the study of each run."""
    by_item = _deal_questions(sources, settings.seed)
    tasks: dict[str, tuple[str, str]] = {}
    for item, (index, question) in by_item.items():
        sample = question.question.turn_ref.sample
        tasks[item] = (sample, f"{index} {_group_of(sources[index], sample)}")
    drawn = assignment.draw_stratified(tasks, settings.seed)
    chosen = drawn[: settings.sample]
    assigned = assignment.assign_items(chosen, settings.annotators, settings.each, settings.seed)
    count = count_checks(settings, len(chosen), max(map(len, assigned.values())))
    check_sources = (drawn[settings.sample :] + chosen)[:count]
    checks = {attention.check_id(by_item[item][1]): by_item[item] for item in check_sources}
    orders = {
        annotator: assignment.mix_in_checks(items, list(checks), annotator, settings.seed)
        for annotator, items in assigned.items()
    }
    joint = {"id": name, "runs": [source.run.id for source in sources], "orders": orders}
    created_at = read_clock()
    studies: list[Study] = []
    for index, source in enumerate(sources):
        own_checks = {check: question for check, (run, question) in checks.items() if run == index}
        own = {item: by_item[item][1].question for item in chosen if by_item[item][0] == index}
        asked = [*own.values(), *(attention.build_check_question(one, blobs)[0] for one in own_checks.values())]
        mine = own.keys() | own_checks.keys()
        stored = {
            **msgspec.json.decode(msgspec.json.encode(settings)),
            "rubric": source.rubric,
            "questions": len(own),
            "orders": {name: [item for item in order if item in mine] for name, order in orders.items()},
            "known": encode_checks(own_checks),
            "images": digest_images(asked),
            JOINT: joint,
        }
        studies.append(Study(_part_id(name, source), source.run.id, created_at, stored))
    return studies


def _deal_questions(sources: Sequence[StudySource], seed: int) -> dict[str, tuple[int, AnnotatedQuestion]]:
    """Deal the dialogues to the runs; return the questions about each run's own by item, with the run's index."""
    by_sample: dict[str, dict[int, list[AnnotatedQuestion]]] = {}
    groups: dict[str, str] = {}
    for index, source in enumerate(sources):
        for question in source.questions:
            sample = question.question.turn_ref.sample
            by_sample.setdefault(sample, {}).setdefault(index, []).append(question)
            groups[sample] = _group_of(source, sample)
    available = {sample: sorted(by_run) for sample, by_run in by_sample.items()}
    dealt = assignment.deal_dialogues(groups, available, seed)
    questions: dict[str, tuple[int, AnnotatedQuestion]] = {}
    for sample, index in dealt.items():
        questions.update({question.item: (index, question) for question in by_sample[sample][index]})
    return questions


def _group_of(source: StudySource, sample: str) -> str:
    """The sample's group on the benchmark's first axis."""
    axes = source.benchmark.axes
    return source.run.groups.get(sample, {}).get(axes[0], "") if axes else ""


class StudyGroup(Struct, frozen=True):
    """The stored studies of one joint study, or one study alone."""

    study: Study  # as one study, for a table of progress
    members: tuple[str, ...]  # the ids of the stored studies


def join_studies(studies: Sequence[Study]) -> list[StudyGroup]:
    """Put the studies of several runs that belong together into one each."""
    groups: dict[str, StudyGroup] = {}
    for study in studies:
        joint = joint_of(study)
        name = str(joint.get("id", study.id))
        if name not in groups:
            whole = replace(study, id=name, settings={**study.settings, **_orders_of(joint)})
            groups[name] = StudyGroup(whole, (study.id,))
            continue
        known = groups[name].study
        settings = {
            **known.settings,
            "questions": known.settings["questions"] + study.settings["questions"],
            "known": {**known.settings["known"], **study.settings["known"]},
        }
        groups[name] = StudyGroup(replace(known, settings=settings), (*groups[name].members, study.id))
    return list(groups.values())


def joint_of(study: Study) -> Mapping[str, Any]:
    """What a study stores about its joint study; empty if it has none."""
    joint = dict_or_empty(study.settings.get(JOINT))
    return joint if {"id", "orders", "runs"} <= joint.keys() else {}


def _orders_of(joint: Mapping[str, Any]) -> dict[str, Any]:
    return {"orders": joint["orders"]} if joint else {}
