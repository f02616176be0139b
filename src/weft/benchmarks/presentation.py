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
    title: str = ""
    """The name that its paper uses; without one, the benchmark's `name` is shown."""
    axis_names: Mapping[str, tuple[str, ...]] = {}
    """The names of an axis's groups, where they are the same in every dataset."""
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
    """The names of a sample's turns, where they are not a dialogue but several ways of asking the same."""

    def describe_options(self, options: Any) -> list[str]:
        """The options in words, for a run's title: by default those that differ from their defaults."""
        usual = asdict(type(options)())
        changed = {name: value for name, value in asdict(options).items() if value != usual[name]}
        return [name if value is True else f"{name} {value}" for name, value in changed.items()]

    def describe_outputs(self, options: Any) -> list[str]:
        """The options in words for outputs made elsewhere: nobody knows what the model was shown for them."""
        return []

    def describe_gold(self, gold: Any) -> list[str]:
        """What a person is shown of a turn's gold data (as JSON has it), line by line. Nothing: all of it, folded."""
        return []

    def side_by_side(self, gold: Any) -> list[tuple[str, tuple[Part, ...]]]:
        """What a turn's page shows side by side instead of the reply, each with its title, from the turn's gold data as
        JSON has it."""
        return []

    def canonical_group(self, axis: str, name: str) -> str:
        """The data's own name of a group that a user names, as in `--domain "visual"`."""
        return name

    def ranking(self, runs: "Sequence[RunResults]") -> tuple[str, list[dict[str, Any]]]:
        """Of pairwise verdicts: what is plotted, and its rows, the best first. A row has `name`, `series`, the value
        under what it is called, `low` and `high`."""
        return "", []

    def agreement_tables(self, found: "PairedVerdicts") -> Iterable[Table]:
        """How far the judge agrees with annotators, as the paper shows it, with the numbers that it prints; by default
        nothing."""
        return ()
