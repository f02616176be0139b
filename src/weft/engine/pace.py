"""Whether more calls in flight get more done. A server that works on one request at a time behind a lock takes in whatever it is sent, and
answers none of it sooner: what is sent too early waits there until it times out, and is worked on for nobody.

So rounds of calls are compared, in work done a second: by Little's law, twice the calls in flight get twice the work done, unless they
wait. A call counts for the shortest time that a call of its kind has taken: a picture is more work than a letter. What more calls have not
brought in two rounds, they do not bring.
"""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

FEWEST = 4  # calls of a round
MORE = 1.25  # so many times the calls in flight must bring something,
USEFUL = 0.25  # namely this share of what they would bring if none waited
QUICK = 0.05  # seconds: who answers within them is not waited for

Advice = Literal["grow", "stay", "lower"]


class Round(Struct):
    began: float
    calls: int = 0
    work: float = 0.0
    flying: float = 0.0


class Pace:
    """`careful`: nothing grows before one round has been measured."""

    def __init__(self, *, careful: bool = False) -> None:
        self._careful, self._doubt = careful, False
        self._least: dict[str, float] = {}
        self._round: Round | None = None
        self._base: tuple[float, float] | None = None  # calls in flight, and work a second

    def idle(self) -> None:
        """Places are free: what is measured now says nothing about the server."""
        self._round = None

    def came(self, now: float, kind: str, seconds: float, flying: int, limit: float) -> Advice:
        """A call came back, while all places were taken."""
        self._least[kind] = min(seconds, self._least.get(kind, seconds))
        if self._round is None:
            self._round = Round(now - seconds / max(1, flying))
        self._round.calls += 1
        self._round.work += self._least[kind]
        self._round.flying += flying
        if self._round.calls < max(FEWEST, int(limit)):
            return "stay" if self._doubt or (self._careful and self._base is None) else "grow"
        done, self._round = self._round, Round(now)
        return self._compared(done.flying / done.calls, done.work / max(1e-9, now - done.began), list(self._least.values()))

    def _compared(self, flying: float, pace: float, least: Sequence[float]) -> Advice:
        before, self._doubt, doubted = self._base, False, self._doubt
        if before is None or max(least) < QUICK or pace >= before[1] * (1 + USEFUL * (flying / before[0] - 1)):
            if before is None or pace > before[1] or flying / before[0] >= MORE:
                self._base = (flying, pace)
            return "grow"
        if flying / before[0] < MORE:  # about as many as before: it may be chance
            return "grow"
        if not doubted:
            self._doubt = True
            return "stay"
        self._base = None
        return "lower"
