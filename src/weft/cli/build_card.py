"""What `weft build card` does: states terms, takes in what people found, and writes the card."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from weft.building.export import rewrite_card as write_anew
from weft.building.manifest import BuildManifest, read_manifest, write_manifest
from weft.building.parts import read_rows
from weft.building.people import USUAL_PASS, PassRate, estimate_pass_rate, write_pass_rate
from weft.building.selection import find_duplicates, iterate_selected
from weft.building.terms import check_stated, spread_terms
from weft.errors import UserError
from weft.store.locks import lock_run

if TYPE_CHECKING:
    from weft.judge_eval.agreement.scores import HumanScores

SAMPLE = 0  # the place of the sample in a verdict's key
FULL = 10  # of the scores that a build's checker gives


def rewrite_card(out: Path, terms: Mapping[str, str], rated: str, home: Path) -> Iterator[str]:
    """Write the card of a build; yield lines that say what is in it now."""
    manifest = read_manifest(out)
    check_stated(terms, (), manifest.names)
    rate = _find_rate(out, manifest, rated, home) if rated else None
    with lock_run(out, manifest.run):
        if terms:
            manifest = replace(manifest, terms={**manifest.terms, **spread_terms(terms, list(manifest.names))})
            write_manifest(out, manifest)
        if rate is not None:
            write_pass_rate(out, rate)
        write_anew(out, manifest)
    yield f"card: {out / 'card.md'}"
    if rate is not None:
        yield f"{rate.passed:,} of {rate.rated:,} rated dialogues are right; of all {rate.total:,}: {rate.share}"
    unknown = [role for role in manifest.names if role not in manifest.terms]
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
    scores = _by_sample(annotations_of(run, home).said)
    left_out = find_duplicates(read_rows(out), manifest.duplicates)
    rows = list(iterate_selected(read_rows(out), left_out))
    known = {str(row.number + 1) for row in rows}
    strange = sorted(set(scores) - known)
    if strange:
        raise UserError(f"{run.id} has annotations of dialogue {strange[0]}, which {out} does not have")
    least = manifest.options.get("least_score")
    share = float(least) / FULL if isinstance(least, int | float) else USUAL_PASS
    return estimate_pass_rate(run.id, scores, rows, share)


def _by_sample(said: "HumanScores") -> dict[str, dict[str, list[float]]]:
    """Return people's scores by dialogue and annotator."""
    by_sample: dict[str, dict[str, list[float]]] = {}
    for key, by_annotator in said.items():
        for annotator, share in by_annotator.items():
            by_sample.setdefault(key[SAMPLE], {}).setdefault(annotator, []).append(share)
    return by_sample
