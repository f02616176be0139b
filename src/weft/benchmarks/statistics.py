"""What `weft data stats` counts of a benchmark's records besides what all samples have: `Preparation.statistics`.

class ColourStatistics(DatasetStatistics, frozen=True):
    def count(self, sample):
        return {"colours": len(sample.turns[0].gold)}

class Colours(Benchmark):
    preparation = Preparation(statistics=ColourStatistics(composition=("hue",)))
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from weft.types import Sample, Turn


class DatasetStatistics(Struct, frozen=True, kw_only=True):
    """What is counted of a dataset; the defaults suit any samples."""

    composition: tuple[str, ...] = ()
    """The axes of the table of groups, the coarsest first. Without them: all axes of the benchmark."""
    sequence_axes: tuple[str, ...] = ()
    """The axes by which modality sequences are counted. Without them: the last two of the composition."""
    published: Mapping[str, Mapping[str, float]] = {}
    """What papers print: a row's name -> column of the table of sizes -> number."""
    published_groups: Mapping[tuple[str, ...], int] = {}
    """How many samples the paper counts in a group of the composition, by the groups on the way to it."""

    def counted_turns(self, sample: Sample) -> Sequence[Turn]:
        """Return the turns that are counted: all, unless a benchmark's turns are several ways of asking the same."""
        return sample.turns

    def turn_kind(self, turn: Turn) -> str:
        """Return what kind of turn this is; kinds become columns. By default the expected modality."""
        return turn.modality

    def count(self, sample: Sample) -> Mapping[str, int]:
        """Return further counts of a sample by their names, which become columns. They are summed over samples."""
        return {}

    def histogram_bins(self, sample: Sample) -> Mapping[str, str]:
        """Return the bin that a sample is in, by the histogram's name. Each histogram becomes a table and a plot."""
        return {}
