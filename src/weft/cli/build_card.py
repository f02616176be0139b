"""What `weft build card` does: states terms, takes in what people found, and writes the card."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from weft.building.draft import Draft, Row
from weft.building.export import rewrite_card as write_anew
from weft.building.manifest import BuildManifest, read_manifest, write_manifest
from weft.building.parts import read_rows
from weft.building.people import USUAL_PASS, PassRate, estimate_pass_rate, write_pass_rate
from weft.building.selection import find_duplicates, iterate_selected
from weft.building.terms import check_stated
from weft.errors import UserError
from weft.store.locks import lock_run
from weft.types import Reply

if TYPE_CHECKING:
    from weft.api import Run
    from weft.judge_eval.agreement.scores import HumanScores

FULL = 10  # of the scores that a build's checker gives


def rewrite_card(out: Path, terms: Mapping[str, str], rated: str, home: Path) -> Iterator[str]:
    """Write the card of a build; yield lines that say what is in it now."""
    manifest = read_manifest(out)
    check_stated(terms, (), manifest.names)
    rate = _find_rate(out, manifest, rated, home) if rated else None
    with lock_run(out, manifest.run):
        if terms:
            manifest = replace(manifest, terms={**manifest.terms, **terms})
            write_manifest(out, manifest)
        if rate is not None:
            write_pass_rate(out, rate)
        is_written = write_anew(out, manifest)
    if is_written:
        yield f"card: {out / 'card.md'}"
    else:
        yield f"{out} has no whole dataset yet: its card is written when the build is complete"
    if rate is not None:
        yield f"{rate.passed:,} of {rate.rated:,} rated dialogues are right; of all {rate.total:,}: {rate.share}"
    unknown = [role for role in manifest.names if role not in manifest.known_terms]
    if unknown:
        yield f"terms that nobody stated: {', '.join(unknown)}"


def _find_rate(out: Path, manifest: BuildManifest, rated: str, home: Path) -> PassRate:
    """Return what people found of the references of a run. Raises UserError if it is a run of something else."""
    from weft import api
    from weft.judge_eval.agreement.study import annotations_of

    run = api.load(rated, home=home)
    model = run.record.manifest.model.name
    if model != "reference":
        raise UserError(f"{run.id} is a run of {model}: people rate a dataset by a run of the model `reference`")
    left_out = find_duplicates(read_rows(out), manifest.duplicates)
    rows = list(iterate_selected(read_rows(out), left_out))
    part = _find_part(run, rows, out)
    least = manifest.options.get("least_score")
    share = float(least) / FULL if isinstance(least, int | float) else USUAL_PASS
    return estimate_pass_rate(run.id, part, _by_sample(annotations_of(run, home).said), rows, share)


def _find_part(run: "Run", rows: Sequence[Row], out: Path) -> str:
    """Return the part of the dataset that a run is about. Raises UserError where its references are others."""
    by_sample = {str(row.number + 1): row.draft for row in rows if row.draft is not None}
    parts: set[str] = set()
    for turn in run.turns:
        draft = by_sample.get(turn.sample)
        if draft is None or turn.turn >= len(draft.turns) or not _is_reference(turn.reply, draft, turn.turn):
            raise UserError(f"{run.id} is not about {out}: it has another reference in dialogue {turn.sample}")
        parts.add(draft.split)
    if len(parts) != 1:
        raise UserError(f"{run.id} is about {len(parts)} parts of {out}: people rate one")
    return parts.pop()


def _is_reference(reply: Reply, draft: Draft, index: int) -> bool:
    turn = draft.turns[index]
    if turn.makes is None:
        return reply.text == turn.answer.strip()
    image = reply.last_image
    return image is not None and image.digest == draft.images[turn.makes - 1].digest


def _by_sample(said: "HumanScores") -> dict[str, dict[int, dict[str, list[float]]]]:
    """Return people's scores by dialogue, turn and annotator."""
    by_sample: dict[str, dict[int, dict[str, list[float]]]] = {}
    for (sample, turn, _), by_annotator in said.items():
        for annotator, share in by_annotator.items():
            by_sample.setdefault(sample, {}).setdefault(turn, {}).setdefault(annotator, []).append(share)
    return by_sample
