"""What a built dataset has: dialogues by domain and type, images, turns, and where all of it comes from.

Domains are named as in WEAVE-100k's Table 5 where they are among its own, so that the counts are those of
`weft data stats weave-100k`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct

from weft.benchmarks.weave.training import PUBLISHED
from weft.benchmarks.weave.training_names import TABLE_5, UNNAMED, find_domain, find_type
from weft.building.draft import Draft, Row
from weft.building.provenance import find_party

IMAGE_COUNTS = (4, 5, 6)  # of Figure 4: dialogues with at least so many images
FIGURE_4: Mapping[int, float] = {  # the share of WEAVE-100k's dialogues with at least so many images
    number: PUBLISHED[f"≥{number} images"] / PUBLISHED["dialogues"] for number in IMAGE_COUNTS
}
Group = tuple[str, str]  # domain and type


class BuiltCounts(Struct):
    """Counts of the dialogues of a dataset."""

    groups: Counter[Group]
    images_each: Counter[int]  # images of a dialogue -> dialogues
    splits: Counter[str]
    kinds: Counter[str]  # of turns
    image_parties: Counter[str]  # whose model made the images: a role, `files` or `program`
    word_parties: Counter[str]  # and the sentences
    turns: int = 0
    without_provenance: int = 0  # dialogues

    @property
    def dialogues(self) -> int:
        return self.groups.total()

    @property
    def images(self) -> int:
        return sum(number * count for number, count in self.images_each.items())

    def share_from(self, images: int) -> float:
        """Return the share of dialogues with at least so many images; 0 without dialogues."""
        count = sum(count for number, count in self.images_each.items() if number >= images)
        return count / max(1, self.dialogues)


def count_dialogues(rows: Iterable[Row]) -> BuiltCounts:
    """Count the dialogues of a dataset, one row in memory at a time."""
    counts = BuiltCounts(Counter(), Counter(), Counter(), Counter(), Counter(), Counter())
    for row in rows:
        if row.draft is not None:
            _count(counts, row, row.draft)
    return counts


def _count(counts: BuiltCounts, row: Row, draft: Draft) -> None:
    counts.groups[name_group(draft)] += 1
    counts.images_each[len(draft.images)] += 1
    counts.splits[draft.split] += 1
    counts.turns += len(draft.turns)
    counts.kinds.update(turn.kind or "turn" for turn in draft.turns)
    if row.provenance is None:
        counts.without_provenance += 1
        return
    counts.image_parties.update(map(find_party, row.provenance.images))
    for words in row.provenance.turns:
        counts.word_parties.update(map(find_party, words.values()))


def name_group(draft: Draft) -> Group:
    """Return a dialogue's domain and type, by Table 5's names if it has them."""
    domain = find_domain(draft.domain)
    if domain is None:
        return draft.domain, draft.subdomain or UNNAMED
    return domain, find_type(draft.subdomain) or draft.subdomain or UNNAMED


def published_share(domain: str, kind: str = "") -> float | None:
    """Return the share of a domain, or of a type in it, among WEAVE-100k's dialogues; None if it has none."""
    counts = TABLE_5.get(domain)
    if counts is None:
        return None
    total = sum(sum(one.values()) for one in TABLE_5.values())
    if not kind:
        return sum(counts.values()) / total
    return counts[kind] / total if kind in counts else None
