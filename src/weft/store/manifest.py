"""What a run's manifest must have to be shown, whoever wrote it."""

from msgspec import Struct


class Manifest(Struct, frozen=True):
    """What a manifest must have to be shown."""

    class Named(Struct, frozen=True):
        name: str

    class Data(Struct, frozen=True):
        name: str
        digest: str

    class Rubric(Struct, frozen=True):
        source: str
        digest: str

    benchmark: Named
    dataset: Data
    model: Named
    judge: Named
    rubric: Rubric
    told: list[str] = []
    strategy: str = "none"
    judge_repeats: int = 1
