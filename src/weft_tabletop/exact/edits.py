"""Scores of edits, from pixels and the sidecar, for GEdit-Bench, RISEBench and ImgEdit.

    what was asked for    the share of what the request changes that is as expected: cells, and the background
    what had to stay      the share of everything else that is as it was
    quality               how near the image is to a clean drawing

The right result follows from the table that the question shows. Full marks need a share of one."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from weft.types import Question
from weft_tabletop.exact.cells import describe_distance, describe_losses, describe_wrong_cell, rate_quality, wrong_cells
from weft_tabletop.exact.rover import QUALITY_BANDS, score_band
from weft_tabletop.world.operations import Operation
from weft_tabletop.world.scenes import CELLS, SceneReading

Reference = Mapping[str, Any]  # of a turn, from the sidecar
Answer = dict[str, Any]  # in the question's schema
Reader = Callable[[Question, str], SceneReading]  # the scene in the image of a question's material
RISE_METRICS = ("consistency", "reasoning", "plausibility")
IMGEDIT_METRICS = ("compliance", "seamlessness", "detail", "uge")
GEDIT_METRICS = ("sc", "pq")
KRIS_METRICS = ("consistency", "quality", "instruction", "knowledge")


class EditShares(Struct, frozen=True):
    """How far an edit is right."""

    done: float  # of what the request changes
    done_reason: str
    kept: float  # of everything else
    kept_reason: str


def compare_edit(reference: Reference, source: SceneReading, output: SceneReading) -> EditShares:
    """Compare an edited table with the right result."""
    before = source.scene
    expected = Operation(reference["kind"], reference["args"]).apply(before)
    changed = before.changed_cells(expected)
    stable = [cell for cell in CELLS if cell not in changed and cell not in source.unknown]
    wrong = wrong_cells(output, expected, changed)
    lost = wrong_cells(output, before, stable)
    right = len(changed) - len(wrong)
    kept = len(stable) - len(lost)
    has_expected_background = output.scene.background == expected.background
    changes_background = expected.background != before.background
    if changes_background:
        right += has_expected_background
    else:
        kept += has_expected_background
    reason = "all that had to change is right"
    if wrong:
        reason = describe_wrong_cell(output, expected, wrong[0])
    elif changes_background and not has_expected_background:
        reason = f"the background is {output.scene.background}, not {expected.background}"
    return EditShares(
        _share(right, len(changed) + changes_background),
        reason,
        _share(kept, len(stable) + (not changes_background)),
        describe_losses(lost),
    )


def answer_gedit(reference: Reference, question: Question, read: Reader) -> Answer:
    """Answer a question of GEdit-Bench: two scores from 0 to 10."""
    output = read(question, "output")
    if question.metrics == ("pq",):
        entry = {"reasoning": describe_distance(output), "score": rate_quality(output)}
        entries: dict[str, Answer] = {"naturalness": entry, "artifacts": entry}
    else:
        shares = compare_edit(reference, read(question, "source"), output)
        entries = {
            "success": {"reasoning": shares.done_reason, "score": int(10 * shares.done)},
            "preservation": {"reasoning": shares.kept_reason, "score": int(10 * shares.kept)},
        }
    if question.text_only:
        scores = [entry["score"] for entry in entries.values()]
        return {"score": scores, "reasoning": "; ".join(entry["reasoning"] for entry in entries.values())}
    return entries


def answer_risebench(reference: Reference, question: Question, read: Reader) -> Answer:
    """Answer a question of RISEBench: a score from 1 to 5, or 0 or 1 of a logical edit."""
    (metric,) = question.metrics
    output = read(question, "output")
    if metric == "plausibility":
        return {"reasoning": describe_distance(output), "score": score_band(rate_quality(output) / 10, QUALITY_BANDS)}
    shares = compare_edit(reference, read(question, "source"), output)
    share, reason = shares.done, shares.done_reason
    if metric == "consistency":
        share, reason = shares.kept, shares.kept_reason
    if question.schema["properties"]["score"]["maximum"] == 1:
        return {"reasoning": reason, "score": int(share == 1)}
    return {"reasoning": reason, "score": score_band(share)}


def answer_kris(reference: Reference, question: Question, read: Reader) -> Answer:
    """Answer a question of KRIS-Bench: one or two scores from 1 to 5."""
    output = read(question, "output")
    entries: dict[str, Answer] = {}
    if question.metrics == ("quality",):
        score = score_band(rate_quality(output) / 10, QUALITY_BANDS)
        entries["quality"] = {"reasoning": describe_distance(output), "score": score}
    else:
        shares = compare_edit(reference, read(question, "source"), output)
        for metric in question.metrics:
            share, reason = shares.done, shares.done_reason
            if metric == "consistency":
                share, reason = shares.kept, shares.kept_reason
            entries[metric] = {"reasoning": reason, "score": score_band(share)}
    if question.text_only:
        reasons = "; ".join(entry["reasoning"] for entry in entries.values())
        return {**{f"{metric}_score": entry["score"] for metric, entry in entries.items()}, "reasoning": reasons}
    return entries if len(entries) > 1 else next(iter(entries.values()))


def answer_imgedit(reference: Reference, question: Question, read: Reader) -> Answer:
    """Answer the question of ImgEdit: three scores from 1 to 5, the last two at most the first, or one score."""
    output = read(question, "output")
    shares = compare_edit(reference, read(question, "source"), output)
    compliance = score_band(shares.done)
    seamlessness = min(compliance, score_band(rate_quality(output) / 10, QUALITY_BANDS))
    detail = min(compliance, score_band(shares.kept))
    reason = f"{shares.done_reason}; {shares.kept_reason}; {describe_distance(output)}"
    if question.metrics == ("uge",):
        score = compliance if shares.kept == 1 else min(3, compliance)
        return {"reasoning": reason, "score": score}
    names = [name for name in question.schema["properties"] if name != "reasoning"]
    scores = dict(zip(names, (compliance, seamlessness, detail), strict=True))
    if question.text_only:
        return {**scores, "reasoning": reason}
    return {name: {"reasoning": reason, "score": score} for name, score in scores.items()}


def _share(count: int, total: int) -> float:
    return count / total if total else 1.0
