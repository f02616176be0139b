"""Whether more calls in flight get more done. A server that works on one request at a time behind a lock takes in whatever it is sent, and
answers none of it sooner: what is sent too early waits there until it times out, and is worked on for nobody.

So rounds of calls are compared. By Little's law, what gets done a second is the number of calls in flight over the time that each takes:
twice as many get twice as much done, unless they take twice as long. How long a call takes is measured by the shortest that one of its
kind has taken: a picture takes longer than a letter. What more calls have not brought in two rounds, they do not bring.
"""

from typing import Literal

from msgspec import Struct

FEWEST = 4  # calls of a round
MORE = 1.25  # so many times the calls in flight must bring something,
USEFUL = 0.5  # namely this share of what they would bring if none waited: who comes back first of many looks quicker than they are
QUICK = 0.05  # seconds: who answers within them is not waited for

Advice = Literal["grow", "stay", "lower"]


class Round(Struct):
    due: int  # calls
    calls: int = 0
    slow: float = 0.0
    flying: float = 0.0


class Pace:
    """`careful`: nothing grows before one round has been measured."""

    def __init__(self, *, careful: bool = False) -> None:
        self._careful, self._doubt = careful, False
        self.useful = 0.0  # about how many calls the server was found to work on at once, when it was last found to have too many
        self._least: dict[str, float] = {}
        self._round: Round | None = None
        self._base: tuple[float, float] | None = None  # calls in flight, and what they got done

    def idle(self) -> None:
        """Places are free: what is measured now says nothing about the server."""
        self._round = None

    def came(self, kind: str, seconds: float, flying: int, limit: float) -> Advice:
        """A call came back, while all places were taken. `flying`: how many were on their way when it was sent, itself included: those
        are what it may have had to wait for."""
        self._least[kind] = min(seconds, self._least.get(kind, seconds))
        if self._round is None:
            self._round = Round(max(FEWEST, int(limit)))
        self._round.calls += 1
        self._round.slow += seconds / max(1e-9, self._least[kind])
        self._round.flying += flying
        if self._round.calls < self._round.due:
            return "stay" if self._doubt or (self._careful and self._base is None) else "grow"
        done, self._round = self._round, None
        return self._compared(done.flying / done.calls, done.flying / done.slow)

    def _compared(self, flying: float, pace: float) -> Advice:
        before, self._doubt, doubted = self._base, False, self._doubt
        if before is None or max(self._least.values()) < QUICK:
            self._base = (flying, pace)
            return "grow"
        more = flying / before[0]
        if more < MORE:  # about as many as before, or fewer: more are compared with these
            self._base = (flying, pace) if more < 1 else before
            return "grow"
        if pace >= before[1] * (1 + USEFUL * (more - 1)):
            self._base = (flying, pace)
            return "grow"
        if not doubted:
            self._doubt = True
            return "stay"
        self._base, self.useful = None, pace
        return "lower"
