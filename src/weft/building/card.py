"""The dataset card of a build, in Markdown: `card.md` in its folder, `README.md` in an export.

It says what is in the dataset, beside what the paper counts that the recipe follows; which models made it under which
terms; what each step let through; what a dialogue cost; and what share of the dialogues people found right.
"""

import json
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from weft.building.counts import BuiltCounts, PublishedCounts
from weft.building.manifest import BuildManifest
from weft.building.people import PassRate
from weft.building.provenance import FILES, OWN_PROGRAM
from weft.building.status import BuildStatus
from weft.untrusted import format_for_terminal

FILE = "card.md"
EXPORTED = "README.md"
UNKNOWN = "unknown"
MARGIN = 0.02  # share by which a number of images may differ from the paper's without a remark
LAYOUTS: Mapping[str, str] = {
    "weave": "WEAVE's own files: `test.json` or `train.json` and `test/`, with `imgs/`. Where each image and sentence "
    "comes from is in `provenance.jsonl`, a line for each dialogue.",
    "parquet": 'Parquet with the images inside: `datasets.load_dataset("parquet", data_files="*.parquet")`. Where '
    "each image and sentence comes from is in the column `provenance`, as JSON.",
    "webdataset": "WebDataset: tar shards. Where each image and sentence comes from is in the field `provenance` of a "
    "dialogue's JSON.",
    "pairs": "Preference pairs: what was chosen, and what a gate rejected.",
}


class CardFacts(Struct, frozen=True):
    """Everything that a card shows."""

    status: BuildStatus
    counts: BuiltCounts
    left_out: Mapping[str, int]  # duplicates, by kind
    people: PassRate | None
    published: PublishedCounts | None = None


def write_card(facts: CardFacts, layout: str = "weave") -> str:
    """Return the card as Markdown."""
    return "\n".join(_iterate_lines(facts, layout)) + "\n"


def _iterate_lines(facts: CardFacts, layout: str) -> Iterator[str]:
    manifest = facts.status.manifest
    counts = facts.counts
    yield from ("---", f"pretty_name: {_quote(manifest.recipe)}", f"license: {_find_licence(manifest, counts)}")
    yield from ("task_categories:", "- image-to-image", "tags:", "- multi-turn", "- interleaved", "- weft")
    if layout == "parquet":
        yield from ("configs:", "- config_name: default", '  data_files: "*.parquet"')
    yield from ("---", "", f"# {_plain(manifest.recipe)}", "")
    dialogues = max(1, counts.dialogues)
    yield (
        f"{counts.dialogues:,} multi-turn dialogues with {counts.images:,} images ({counts.images / dialogues:.2f} "
        f"each) and {counts.turns:,} turns ({counts.turns / dialogues:.2f} each), made by the recipe "
        f"`{_plain(manifest.recipe)}` (version {_plain(manifest.version)}) of weft from {manifest.seeds:,} seeds."
    )
    if manifest.test_share or counts.splits["test"]:
        yield f"{counts.splits['train']:,} are for training, {counts.splits['test']:,} are the test part."
    yield from ("", LAYOUTS.get(layout, ""), "")
    yield from _iterate_people(facts.people)
    yield from _iterate_groups(counts, facts.published)
    yield from _iterate_image_counts(counts, facts.published)
    yield from _iterate_models(manifest, counts, facts.status)
    yield from _iterate_steps(facts)
    yield from _iterate_options(manifest)


def _iterate_people(people: PassRate | None) -> Iterator[str]:
    yield from ("## What people found", "")
    if people is None:
        yield "Nobody has looked at a sample yet. `weft build card DIR --rated RUN` adds what people found."
    else:
        part = "test part" if people.part == "test" else "training data"
        annotators = f"{people.annotators} annotator{'s' * (people.annotators != 1)}"
        yield (
            f"Of {people.rated:,} dialogues of the {part}, {people.passed:,} were wholly right (each reference had at "
            f"least {people.least:.0%} of full marks) by {annotators}. "
            f"The share among all {people.total:,} of the {part} that there were then is estimated at {people.share}: "
            "the 95% interval, corrected by the checker's scores of the others."
        )
    yield ""


def _iterate_groups(counts: BuiltCounts, published: PublishedCounts | None) -> Iterator[str]:
    yield from ("## Domains and types", "")
    head = ["domain", "type", "dialogues", "share"]
    rows = list(_iterate_group_rows(counts))
    if published is None:
        yield from _iterate_table(head, [row for *row, _, _ in rows], "")
        return
    compared = [(*row, _format_share(published.share(domain, kind))) for *row, domain, kind in rows]
    yield from _iterate_table(
        [*head, published.title], compared, f"The last column has the shares of {published.source}."
    )


def _iterate_group_rows(counts: BuiltCounts) -> Iterator[tuple[str, ...]]:
    """Yield cells, then the domain and the type that a row is about; a domain has no type."""
    by_domain: dict[str, dict[str, int]] = {}
    for (domain, kind), count in counts.groups.items():
        by_domain.setdefault(domain, {})[kind] = count
    total = max(1, counts.dialogues)
    for domain, kinds in sorted(by_domain.items(), key=lambda item: (-sum(item[1].values()), item[0])):
        count = sum(kinds.values())
        yield domain, "", f"{count:,}", f"{count / total:.1%}", domain, ""
        if len(kinds) > 1:
            for kind, number in sorted(kinds.items(), key=lambda item: (-item[1], item[0])):
                yield "", kind, f"{number:,}", f"{number / total:.1%}", domain, kind


def _iterate_image_counts(counts: BuiltCounts, published: PublishedCounts | None) -> Iterator[str]:
    yield from ("## Images of a dialogue", "")
    most = max(counts.images_each, default=0)
    if published is None:
        rows = [(f"{number} or more", f"{counts.share_from(number):.1%}") for number in range(1, most + 1)]
        yield from _iterate_table(("images", "share"), rows, "")
    else:
        compared = [
            (f"{number} or more", f"{counts.share_from(number):.1%}", f"{share:.1%}")
            for number, share in published.images_from.items()
        ]
        note = f"The last column has the shares of {published.source}."
        yield from _iterate_table(("images", "share", published.title), compared, note)
    yield from ("## Turns", "")
    kinds = [(kind, f"{count:,}") for kind, count in counts.kinds.most_common()]
    yield from _iterate_table(("kind", "turns"), kinds, "")


def _iterate_models(manifest: BuildManifest, counts: BuiltCounts, status: BuildStatus) -> Iterator[str]:
    yield from ("## Models, licences and terms", "")
    calls = {total.role: total for total in status.calls}
    rows: list[tuple[str, ...]] = []
    for party in dict.fromkeys((*manifest.names, *counts.image_parties, *counts.word_parties)):
        total = calls.get(party)
        rows.append(
            (
                {FILES: "files of the builder", OWN_PROGRAM: "the recipe's program"}.get(party, party),
                manifest.names.get(party, ""),
                f"{counts.image_parties[party]:,}",
                f"{counts.word_parties[party]:,}",
                f"{total.calls:,}" if total else "",
                manifest.known_terms.get(party, UNKNOWN),
            )
        )
    yield from _iterate_table(
        ("role", "model", "images", "sentences", "calls", "licence or terms"),
        rows,
        "Images and sentences are those in the dialogues. The terms of a service are what the builder states.",
    )
    if counts.without_provenance:
        yield from (f"Of {counts.without_provenance:,} dialogues it is not known where they come from.", "")
    maker = {_family(name) for role, name in manifest.names.items() if not role.startswith("checker")}
    if any(role.startswith("checker") and _family(name) in maker for role, name in manifest.names.items()):
        yield from ("Maker and checker are of one family: they may overlook the same faults.", "")


def _iterate_steps(facts: CardFacts) -> Iterator[str]:
    status = facts.status
    yield from ("## Yields", "")
    rows: list[tuple[str, ...]] = []
    for step in status.steps:
        share = "" if step.share is None else f"{step.share:.1%}"
        reasons = "; ".join(f"{count:,} {reason}" for reason, count in step.reasons.items())
        rows.append((step.step, f"{step.entered:,}", f"{step.left:,}", share, reasons))
    yield from _iterate_table(("step", "in", "out", "yield", "why dialogues ended here"), rows, "")
    if facts.left_out:
        kinds = ", ".join(f"{count:,} by {kind}" for kind, count in facts.left_out.items())
        yield from (f"Left out as duplicates of earlier dialogues: {kinds}.", "")
    elif status.manifest.duplicates:
        yield from ("No dialogue was a duplicate of an earlier one.", "")
    if status.cost_per_kept is not None:
        each = f"A kept dialogue cost ${status.cost_per_kept:.4f}, with what the dropped ones cost"
        yield from (f"{each}; all together cost ${status.cost:.2f}.", "")
    elif status.cost is None:
        yield from ("What a dialogue cost is unknown, because a price is unknown.", "")


def _iterate_options(manifest: BuildManifest) -> Iterator[str]:
    yield from ("## How it was made", "")
    options = {"seeds": manifest.seeds, "tries": manifest.tries, "test_share": manifest.test_share, **manifest.options}
    rows = [(f"`{name}`", str(value)) for name, value in options.items() if value not in ("", None)]
    yield from _iterate_table(("option", "value"), rows, "")


def _iterate_table(head: Sequence[str], rows: Sequence[Sequence[str]], note: str) -> Iterator[str]:
    if not rows:
        yield from ("Nothing.", "")
        return
    yield f"| {' | '.join(head)} |"
    yield f"|{'|'.join(' --- ' for _ in head)}|"
    for row in rows:
        yield f"| {' | '.join(_plain(cell) for cell in row)} |"
    yield ""
    if note:
        yield from (note, "")


def _find_licence(manifest: BuildManifest, counts: BuiltCounts) -> str:
    """Return the one licence that all in the dialogues shares, for the card's header; `other` where there are more."""
    terms = manifest.known_terms
    licences = {terms.get(party, UNKNOWN).lower() for party in (*counts.image_parties, *counts.word_parties)}
    if len(licences) != 1 or counts.without_provenance:
        return "other"
    (licence,) = licences
    is_name = licence.isascii() and licence.replace("-", "").replace(".", "").isalnum()
    return licence if is_name and licence != UNKNOWN else "other"


def _family(model: str) -> str:
    """Return the provider of a model's name."""
    return model.partition("/")[0]


def _format_share(share: float | None) -> str:
    return "" if share is None else f"{share:.1%}"


def _quote(text: str) -> str:
    return json.dumps(format_for_terminal(text))


def _plain(value: object) -> str:
    """Return a value as one line that is no Markdown of its own: names and terms may come from anybody."""
    text = format_for_terminal(str(value)).replace("\n", " ").replace("\\", "\\\\").replace("|", "\\|")
    return text.replace("<", "&lt;").replace("[", "\\[")
