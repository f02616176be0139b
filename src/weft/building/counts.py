"""What a built dataset has: dialogues by domain and type, images, turns, and where all of it comes from.

A recipe that follows a paper has `PublishedCounts`: the card then shows the paper's shares beside the dataset's, under
the paper's names.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct

from weft.building.draft import Draft, Row
from weft.building.provenance import find_party

NO_TYPE = "None"  # of a dialogue without one
Group = tuple[str, str]  # domain and type


class PublishedCounts(Struct, frozen=True):
    """What a paper counts in its own data."""

    title: str  # of the data
    domains: Mapping[str, str]  # a draft's domain -> the paper's name of it
    groups: Mapping[Group, int]  # dialogues by the paper's domain and type
    images_from: Mapping[int, float]  # share of the dialogues with at least so many images
    source: str = ""  # the paper's table and figure

    def share(self, domain: str, kind: str = "") -> float | None:
        """Return the share of a domain, or of a type in it, among all dialogues; None if the paper has none."""
        counts = {name: count for (group, name), count in self.groups.items() if group == domain}
        total = sum(self.groups.values())
        if kind:
            return counts[kind] / total if kind in counts else None
        return sum(counts.values()) / total if counts else None


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


def count_dialogues(rows: Iterable[Row], published: PublishedCounts | None = None) -> BuiltCounts:
    """Count the dialogues of a dataset, one row in memory at a time."""
    counts = BuiltCounts(Counter(), Counter(), Counter(), Counter(), Counter(), Counter())
    names: Mapping[str, str] = {}
    if published is not None:
        names = published.domains
    for row in rows:
        if row.draft is not None:
            _count(counts, row, row.draft, names)
    return counts


def _count(counts: BuiltCounts, row: Row, draft: Draft, names: Mapping[str, str]) -> None:
    counts.groups[names.get(draft.domain, draft.domain), draft.subdomain or NO_TYPE] += 1
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
