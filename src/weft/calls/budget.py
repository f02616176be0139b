"""The money for one command, which is never exceeded. There is one rule:

Before a try is sent, the most that it can cost is held, and it is held until a reply says what it did cost. A try that
was not billed frees what was held for it; a try of which nobody says what it cost counts at its most.

The most is what is asked for (`prices.upper_bound`), raised by what the endpoint has billed beyond that. What a reply
teaches also raises what is held already. Until a reply of a kind (text, image, interleaved) has said what it cost,
tries of this kind go to the endpoint one at a time, so that no more than one can cost more than anybody knew. The first
of them goes out alone: no endpoint of the budget is sent anything else meanwhile, so that nobody else uses up the room
that its reply may turn out to need; and it is held at what any endpoint of the budget has billed so far.

Runs that one command makes one after another have one budget, and what an endpoint billed in the first of them is known
in the next.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

from msgspec.structs import replace

from weft.calls.prices import FREE, BillingExcess, Price, Reservation, build_reservation, count_replies
from weft.errors import BudgetReached
from weft.models.batch_api import BatchEndpoint
from weft.models.endpoint import Endpoint, EndpointReply
from weft.types import Image, Message, Modality, Request, Usage


@dataclass(eq=False)
class Charge:
    """What one try costs: `most` is held while it is in flight, `cost` counts when it has returned."""

    most: float
    expected: float | None = None  # the estimated cost; None if the price is unknown
    reservation: Reservation | None = None  # None if the price is unknown, or zero
    cost: float | None = 0.0  # None if it is unknown
    counted: Literal["", "held", "spent"] = ""

    def count_most(self) -> float | None:
        """Count the try at its most: nobody has said what it cost. Return the expected cost, for the journal."""
        self.cost = None if self.expected is None else self.most
        return self.expected


@dataclass
class Bills:
    """How an endpoint bills, as far as its replies have shown it, and what it may still bill."""

    excess: BillingExcess = field(default_factory=BillingExcess)
    open: set[Charge] = field(default_factory=set[Charge])  # of tries of which nobody has said what they cost


@dataclass
class Budget:
    """The money for one command: calls in flight together cannot exceed the limit together, nor can its runs."""

    limit: float | None = None  # in USD
    spent: float = 0.0  # what may have been billed so far
    held: float = 0.0  # the most that tries in flight can cost
    unknown: bool = False  # whether anything was sent at an unknown price
    _is_first_in_flight: bool = False  # a try of a kind of which no reply has come yet
    _waiting: list[asyncio.Future[None]] = field(default_factory=list[asyncio.Future[None]])
    _bills: dict[tuple[str, str], Bills] = field(default_factory=dict[tuple[str, str], Bills])

    @property
    def left(self) -> float | None:
        """What may still be spent; None without a limit."""
        if self.limit is None:
            return None
        return max(0.0, self.limit - self.spent)

    def bills_of(self, endpoint: Endpoint) -> Bills:
        """Return the bills of an endpoint: one that other roles, or runs before this one, have used is known."""
        return self._bills.setdefault((endpoint.address, str(endpoint.identity.get("model", ""))), Bills())

    def max_cost(self, reservation: Reservation) -> float:
        """Return the most that a try can cost if its endpoint bills as the worst of the budget has."""
        excesses = [bills.excess for bills in self._bills.values()]
        return max(excess.max_cost(reservation.bound, reservation.price) for excess in excesses)

    @asynccontextmanager
    async def send_first(self) -> AsyncGenerator[None]:
        """Let nothing else be sent until this try has returned. What is in flight already goes on."""
        while self._is_first_in_flight:
            await self._wait()
        self._is_first_in_flight = True
        try:
            yield
        finally:
            self._is_first_in_flight = False
            self._wake()

    @asynccontextmanager
    async def hold(self, charge: Charge, *, is_first: bool = False) -> AsyncGenerator[Charge]:
        """Hold what a try can cost; what it did cost must be in the charge at the end.

        A try for which too little is left waits for those in flight to turn out cheaper. Raises BudgetReached if it
        could exceed the limit even alone. A try that was counted before goes on in the room that it has.
        """
        if charge.counted == "spent":
            self.spent -= charge.cost or 0.0
            charge.cost = 0.0
        else:
            await self._wait_for_room(charge, is_first=is_first)
        self.held += charge.most
        charge.counted = "held"
        try:
            yield charge
        finally:
            self.held -= charge.most
            if self.held <= 1e-12:  # rounding errors
                self.held = 0.0
            self.spent += charge.cost or 0.0
            charge.counted = "spent"
            self.unknown = self.unknown or charge.cost is None
            self._wake()

    async def _wait_for_room(self, charge: Charge, *, is_first: bool) -> None:
        while self.limit is not None:
            if self._is_first_in_flight and not is_first:
                await self._wait()
                continue
            if self.spent + self.held + charge.most <= self.limit:
                return
            if self.held <= 0 or self.spent + charge.most > self.limit:
                raise BudgetReached(
                    f"the next call may cost up to ${charge.most:.4f} and could pass the budget of ${self.limit:g}; "
                    f"${self.spent:.4f} is spent"
                )
            await self._wait()

    async def _wait(self) -> None:
        room = asyncio.get_running_loop().create_future()
        self._waiting.append(room)
        await room

    def _wake(self) -> None:
        """Let every try that waits for room look again."""
        for room in self._waiting:
            if not room.done():
                room.set_result(None)
        self._waiting.clear()

    def raise_most(self, charge: Charge, most: float) -> None:
        """Count a try, of which nobody has said yet what it costs, at a higher maximum."""
        more = most - charge.most
        charge.most = most
        if charge.counted == "held":
            self.held += more
        elif charge.counted == "spent":
            charge.cost = most
            self.spent += more


@dataclass
class Account:
    """What one endpoint bills to a budget."""

    endpoint: Endpoint
    price: Price | None  # None if it is unknown: nothing is held then
    budget: Budget
    _stated: set[Modality] = field(default_factory=set[Modality])  # kinds of reply that have said what they cost
    _answered: set[Modality] = field(default_factory=set[Modality])  # kinds of which a reply has come, whatever it says
    _alone: asyncio.Lock = field(default_factory=asyncio.Lock)  # of a try of any other kind

    def __post_init__(self) -> None:
        self._bills = self.budget.bills_of(self.endpoint)

    @asynccontextmanager
    async def hold(
        self, messages: tuple[Message, ...], request: Request, submitted: Charge | None
    ) -> AsyncGenerator[Charge]:
        """Hold what a try can cost. It costs nothing unless its charge says so at the end.

        `submitted` is the charge of a request that was submitted before. Raises BudgetReached for a try that could
        exceed the budget.
        """
        async with self._turn(messages, request, submitted) as is_first:
            charge = submitted or self.open(messages, request, self.endpoint.price_share(messages, request))
            self._bills.open.add(charge)
            try:
                async with self.budget.hold(charge, is_first=is_first):
                    yield charge
            finally:
                if not charge.cost:
                    self._bills.open.discard(charge)

    def open(self, messages: tuple[Message, ...], request: Request, share: float) -> Charge:
        """Return the charge of a try at this share of the price."""
        if self.price is None:
            return Charge(0.0)
        if self.price == FREE:
            return Charge(0.0, 0.0)
        reservation = build_reservation(messages, request, self.endpoint, self.price, share)
        most = self._bills.excess.max_cost(reservation.bound, reservation.price)
        if not self._may_send_several(request.modality):
            most = self.budget.max_cost(reservation)
        return Charge(most, reservation.expected, reservation)

    @asynccontextmanager
    async def _turn(
        self, messages: tuple[Message, ...], request: Request, submitted: Charge | None
    ) -> AsyncGenerator[bool]:
        """Let tries of a kind that has said what it costs pass, and of any other one at a time. Yield whether it is
        the first of its kind, which goes out alone."""
        if submitted is None and not self._may_send_several(request.modality):
            async with self._alone:
                if not self._may_send_several(request.modality):
                    if isinstance(self.endpoint, BatchEndpoint):
                        self.endpoint.answer_soon(messages, request)
                    if request.modality in self._answered:
                        yield False
                        return
                    async with self.budget.send_first():
                        yield True
                    return
        yield False

    def _may_send_several(self, modality: Modality) -> bool:
        return self.budget.limit is None or self.price in (None, FREE) or modality in self._stated

    def settle(self, charge: Charge, reply: EndpointReply, request: Request) -> Usage:
        """Count a try at what its reply states, or at its most if that is not all. Return the usage for the journal."""
        self._answered.add(request.modality)
        usage = replace(reply.usage, images=0)
        if charge.reservation is None:
            charge.cost = charge.expected if usage.cost is None else usage.cost
            return replace(usage, cost=charge.cost)
        price = charge.reservation.price
        if price.image:
            images = sum(isinstance(part, Image) for part in reply.parts) * count_replies(self.endpoint.identity)
            usage = replace(usage, images=max(images, reply.usage.images))
        if self._bills.excess.update(charge.reservation.bound, usage, price):
            self._raise_open()
        cost = usage.cost
        if cost is None and (usage.tokens_in or usage.tokens_out or usage.images):
            cost = price.cost_of(usage)
        if cost is None or not _states_all(usage, reply, request, price):
            expected = charge.count_most()
            return replace(usage, cost=expected if cost is None else cost)
        charge.cost = cost
        self._bills.open.discard(charge)
        self._stated.add(request.modality)
        return replace(usage, cost=cost)

    def _raise_open(self) -> None:
        for charge in self._bills.open:
            if charge.reservation is None:
                continue
            most = self._bills.excess.max_cost(charge.reservation.bound, charge.reservation.price)
            if most > charge.most:
                self.budget.raise_most(charge, most)


def _states_all(usage: Usage, reply: EndpointReply, request: Request, price: Price) -> bool:
    """Return whether a reply states all that it is billed for."""
    if usage.cost is not None:
        return True
    if price.tokens_in and not usage.tokens_in:
        return False
    if price.tokens_out and not usage.tokens_out:
        return False
    # of a reply that is no answer, images may be missing that are billed
    return not price.image or request.modality == "text" or reply.outcome == "answered"
