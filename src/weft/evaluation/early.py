"""A dataset that takes long to read (every picture is decoded once) does not keep the endpoints waiting: what has been read is asked about
at once, while the rest is still being read.

Which run it is, is known only when all is read, so nothing is kept of this but the calls themselves, which belong to no run until then. The
run that follows asks for the same again, and finds what is answered, or shares what is in flight. If none follows (an interrupt, data that
cannot be used), the answers are in the journal for the next command, which takes them for its own.
"""

import asyncio
from typing import Any

from weft.calls.caller import Caller, Halt, Halted
from weft.calls.roles import ModelsByRole
from weft.errors import WeftError
from weft.evaluation.generate import Generator, Source
from weft.evaluation.judging import Judging
from weft.evaluation.plan import Plan
from weft.judges.vlm import Jpegs, VlmJudge, most_useless
from weft.types import Message, Reply, Sample, Want


class Nobody:
    """A journal that keeps nothing of a run."""

    def put_turn(self, *_: Any) -> None: ...

    def put_verdict(self, *_: Any) -> None: ...


class Unjudging:
    """A judge's model none of whose answers are declared void: that is for the run to do."""

    def __init__(self, caller: Caller) -> None:
        self.name, self.takes, self.partial, self._caller = caller.name, caller.takes, caller.partial, caller

    async def reply(self, messages: tuple[Message, ...], want: Want) -> Reply:
        return await self._caller.reply(messages, want)

    def void(self, keys: tuple[str, ...], reason: str) -> None: ...


class Passing(Halt):
    """What ends this ends another too, unless it is only time."""

    def __init__(self, other: Halt) -> None:
        super().__init__()
        self._other = other

    def stop(self, reason: WeftError) -> None:
        super().stop(reason)
        if not isinstance(reason, Halted):
            self._other.stop(reason)


class Early:
    """`plan` has no samples yet; `judge` reads replies, and its answers come from the caller that the run will use."""

    def __init__(self, plan: Plan, source: Source, roles: ModelsByRole) -> None:
        """What makes asking pointless now ends the run as well: it would be pointless then."""
        nobody: Any = Nobody()
        self.jpegs: Jpegs = {}
        self._plan, self._halt, self._loop = plan, Passing(roles.halt), asyncio.get_running_loop()
        most = most_useless(official=plan.rubrics.official)
        judge = VlmJudge(Unjudging(roles.callers["judge"]), roles.blobs, plan.benchmark, self.jpegs, most_useless=most)
        judging = Judging(plan, "", judge, roles.blobs, nobody, self._halt)
        self._generator = Generator(plan, "", source, judging, nobody, self._halt, roles.width)
        self._read: asyncio.Queue[Sample | None] = asyncio.Queue()
        self._seen: set[str] = set()
        self._task = asyncio.ensure_future(self._run())

    def take(self, sample: Sample) -> None:
        """A sample that has been read, in whatever thread."""
        if all(sample.groups.get(name) == value for name, value in self._plan.chosen["where"].items()):
            self._loop.call_soon_threadsafe(self._read.put_nowait, sample)

    def stop(self) -> None:
        """All is read: the run itself goes on from here. What is in flight comes back."""
        self._halt.stop(Halted("the run has begun"))
        self._read.put_nowait(None)

    async def close(self, patience: float = 0) -> None:
        """What is in flight has so many seconds to come back: it may have been paid for."""
        self.stop()
        await asyncio.wait({self._task}, timeout=patience)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    @property
    def trouble(self) -> WeftError | None:
        """What ended it, if that was not its time."""
        reason = self._halt.reason
        return None if isinstance(reason, Halted) else reason

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            while (sample := await self._read.get()) is not None and self._halt.reason is None:
                if sample.id not in self._seen:
                    self._seen.add(sample.id)
                    await self._generator.begin(len(self._seen) - 1, sample, group)
