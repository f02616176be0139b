"""What a trainer is. The tabletop's are in `weft_tabletop/weaver`; each is one file with one loop."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from weft.training.checkpoint import Checkpoint
from weft.training.mix import Mix


class Trainer(Protocol):
    def fit(
        self,
        mix: Mix,
        start: Path | None,
        out: Path,
        *,
        steps: int,
        on_checkpoint: Callable[[Checkpoint], None] | None = None,
    ) -> Checkpoint:
        """Train for so many steps from the weights in `start`, or from nothing, into the folder `out`.

        The same call goes on where an earlier one was interrupted.
        """
        ...
