"""The protocol that benchmarks of judged single-turn edits share: one message with the source image and the
instruction, and one image back.

A benchmark of this kind asks its judge for scores of an edit, and derives others from them:

    class Mine(JudgedEdits):
        metrics, derived_metrics = ("done", "kept", "overall"), ("overall",)

        def questions(self, judged_turn): ...
        def derive(self, parts): ...      # parts["done"], parts["kept"] -> the verdict of "overall"
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from weft.benchmarks.base import Benchmark
from weft.types import Dialogue, Message, Sample, Turn, Verdict

PartVerdicts = Mapping[str, Verdict]  # of one turn and one variant, by metric


class JudgedEdits(Benchmark):
    """A benchmark of edits that a judge scores."""

    def build_messages(self, sample: Sample, turn: Turn, dialogue: Dialogue, options: Any) -> tuple[Message, ...]:
        return (Message("user", turn.prompt),)

    def derive(self, parts: PartVerdicts) -> Iterable[Verdict]:
        """Return the verdicts of the derived metrics, from those of the others."""
        return ()

    def merge_variants(self, verdicts: Sequence[Verdict]) -> list[Verdict]:
        """Merge variants; what is derived follows for each variant by itself."""
        groups: dict[tuple[str, int, str], dict[str, Verdict]] = {}
        for verdict in verdicts:
            groups.setdefault((verdict.sample, verdict.turn, verdict.variant), {})[verdict.metric] = verdict
        derived: list[Verdict] = []
        for parts in groups.values():
            derived += self.derive(parts)
        return super().merge_variants([*verdicts, *derived])
