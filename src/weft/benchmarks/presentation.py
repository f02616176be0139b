"""How a benchmark's results are named, scaled and shown: `Benchmark.presentation`. Nothing here changes a verdict.

Plain values are given by keyword; what depends on options, gold data or runs is a method of a subclass:

    class ColoursPresentation(Presentation, frozen=True):
        def describe_gold(self, gold):
            return [f"colour: {gold}"]

    class Colours(Benchmark):
        presentation = ColoursPresentation(title="Colours", max_score=5, digits=1)
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict

from weft.types import Part, Table

if TYPE_CHECKING:
    from weft.benchmarks.base import RunResults
    from weft.benchmarks.paired_verdicts import PairedVerdicts


class Presentation(Struct, frozen=True, kw_only=True):
    """How a benchmark's results are presented."""

    title: str = ""
    """The name that its paper uses; without one, the benchmark's `name` is shown."""
    axis_names: Mapping[str, tuple[str, ...]] = {}
    """The names of an axis's groups, if they are the same in every dataset."""
    distribution_metrics: tuple[str, ...] = ()
    """Metrics whose distribution is plotted, besides that of the headline score."""
    max_score: float = 1.0
    """Full marks as the paper prints them: 1, 10 or 100. Every number that is shown is on this scale."""
    digits: int = 3
    """Decimals of a number that is shown."""
    glossary: Mapping[str, str] = {}
    """Columns and metrics spelled out, as `NAME: what it measures`. Reports show them on hover and below tables."""
    pairwise: bool = False
    """A verdict compares two models. Such runs have no headline score; `ranking` is plotted instead."""
    turn_names: tuple[str, ...] = ()
    """The names of a sample's turns, if they are not a dialogue but several ways of asking the same."""

    def describe_options(self, options: Any) -> list[str]:
        """Describe the options for a run's title: by default those that differ from their defaults."""
        defaults = asdict(type(options)())
        descriptions: list[str] = []
        for name, value in asdict(options).items():
            if value == defaults[name]:
                continue
            if value is True:
                descriptions.append(name)
            else:
                descriptions.append(f"{name} {value}")
        return descriptions

    def describe_outputs(self, options: Any) -> list[str]:
        """Describe the options that matter for outputs made elsewhere, for which the model's inputs are unknown."""
        return []

    def describe_gold(self, gold: Any) -> list[str]:
        """Return lines that show a person a turn's gold data (decoded from JSON). Empty: all of it is shown, folded."""
        return []

    def side_by_side(self, gold: Any) -> list[tuple[str, tuple[Part, ...]]]:
        """Return (title, parts) that a turn's page shows side by side instead of the reply.

        `gold` is the turn's gold data, decoded from JSON.
        """
        return []

    def canonical_group(self, axis: str, name: str) -> str:
        """Return the dataset's name of a group that a user names, as in `--domain "visual"`."""
        return name

    def ranking(self, runs: "Sequence[RunResults]") -> tuple[str, list[dict[str, Any]]]:
        """Return the ranking from pairwise verdicts: what the plotted value is called, and its rows, the best first.

        A row has `name`, `series`, `low`, `high`, and the value under what it is called.
        """
        return "", []

    def agreement_tables(self, paired: "PairedVerdicts", /) -> Iterable[Table]:
        """Yield the paper's tables of agreement between judge and annotators, with the numbers that it prints."""
        return ()
