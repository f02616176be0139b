"""GenEval's rules: whether the objects in an image are those that a prompt asks for (arXiv 2310.11513, section 3).

    objects     at least `count` of each class that is asked for, and fewer than `count` of each that is excluded
    confidence  above 0.3, or 0.9 where objects are counted; of each class the 16 most confident
    colour      each of the `count` most confident has it
    position    from centre to centre, less a tenth of both sizes, more than half of the way goes in this direction

Computed with 32-bit numbers, as the released code does: what lies right at a threshold is decided in the same way.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from weft.judges.detections import MAX_OBJECTS, Detection

Box = tuple[float, float, float, float]
COUNTING = "counting"
MIN_CONFIDENCE = 0.3
MIN_CONFIDENCE_COUNTING = 0.9
MARGIN = 0.1  # of the sum of two sizes, which does not count as distance
MIN_SHARE = 0.5  # of the distance, that goes in a direction
MIN_DISTANCE = 1e-3  # pixels beyond the margin
RELATIONS = (("left of", "right of"), ("above", "below"))  # by axis: against its direction, and along it


class ObjectRule(Struct, frozen=True, omit_defaults=True):
    """A class that is asked for, or excluded."""

    name: str
    count: int
    color: str = ""
    relation: str = ""  # to `target`
    target: int = 0  # an earlier one of the objects that are asked for


class ImageRules(Struct, frozen=True):
    """What a prompt asks for."""

    tag: str
    include: tuple[ObjectRule, ...]
    exclude: tuple[ObjectRule, ...] = ()


def find_faults(rules: ImageRules, detections: Iterable[Detection]) -> list[str]:
    """Return what is wrong with an image, one line each; nothing if all is right."""
    by_class = select_objects(rules.tag, detections)
    faults: list[str] = []
    groups: list[Sequence[Detection] | None] = []  # the objects of each rule, or None if it is broken
    for rule in rules.include:
        best = by_class.get(rule.name, [])[: rule.count]
        fault = _find_fault(rule, best, groups)
        if fault:
            faults.append(fault)
        groups.append(None if fault else best)
    for rule in rules.exclude:
        count = len(by_class.get(rule.name, ()))
        if count >= rule.count:
            faults.append(f"{rule.name}: {count}, and fewer than {rule.count} are right")
    return faults


def select_objects(tag: str, detections: Iterable[Detection]) -> Mapping[str, list[Detection]]:
    """Return the objects that count, by class, the most confident first."""
    least = _round32(MIN_CONFIDENCE_COUNTING if tag == COUNTING else MIN_CONFIDENCE)
    by_class: dict[str, list[Detection]] = {}
    for detection in detections:
        if _round32(detection.confidence) > least:
            by_class.setdefault(detection.name, []).append(detection)
    for name, found in by_class.items():
        found.sort(key=lambda one: _round32(one.confidence))
        by_class[name] = found[::-1][:MAX_OBJECTS]
    return by_class


def _find_fault(rule: ObjectRule, best: Sequence[Detection], groups: Sequence[Sequence[Detection] | None]) -> str:
    if len(best) < rule.count:
        return f"{rule.name}: {len(best)} of {rule.count}"
    if rule.color:
        colors = [one.color for one in best]
        if any(color != rule.color for color in colors):
            return f"{rule.name}: {', '.join(colors)}, not {rule.color}"
    if not rule.relation:
        return ""
    targets = groups[rule.target]
    if targets is None:
        return f"{rule.name}: there is nothing for it to be {rule.relation}"
    for one in best:
        for target in targets:
            relations = find_relations(one.box, target.box)
            if rule.relation not in relations:
                where = " and ".join(sorted(relations)) or "neither side of"
                return f"{rule.name}: {where} {target.name}, not {rule.relation}"
    return ""


def find_relations(box: Box, target: Box) -> set[str]:
    """Return where a box is, seen from the target; it may be in two directions, or in none."""
    import numpy as np

    corners = np.array([box, target], dtype=np.float32).reshape(2, 2, 2)  # box, corner, axis
    centre, target_centre = corners.mean(axis=1)
    size, target_size = np.abs(corners[:, 1] - corners[:, 0])
    offset = centre - target_centre
    beyond = np.maximum(np.abs(offset) - MARGIN * (size + target_size), 0) * np.sign(offset)
    if (np.abs(beyond) < MIN_DISTANCE).all():
        return set()
    shares = beyond / np.linalg.norm(offset)
    relations: set[str] = set()
    for share, (before, after) in zip(shares, RELATIONS, strict=True):
        if share < -MIN_SHARE:
            relations.add(before)
        if share > MIN_SHARE:
            relations.add(after)
    return relations


def _round32(number: float) -> float:
    return struct.unpack("f", struct.pack("f", number))[0]
