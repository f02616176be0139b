"""A model whose answers have known faults: what the oracle makes, spoilt in one of eight ways (`faults.py`), drawn at
any size."""

import asyncio
from collections.abc import Sequence
from random import Random

from weft.models.baselines import UncachedEndpoint
from weft.models.endpoint import EndpointReply
from weft.store.blobs import Blobs
from weft.types import Image, Message, Part, Request, Text, outcome_of
from weft_tabletop.faults import LINES, Fault, blurred, chance_of, fault_of, scene_with, stamped, worded, words_with
from weft_tabletop.oracle import Oracle
from weft_tabletop.world.large import large, photographed
from weft_tabletop.world.listening import asked_how, understand
from weft_tabletop.world.readings import reading_of
from weft_tabletop.world.scenes import SIDE, Scene

# faults of every picture of a document; others are of one
ALL_OF_THEM: tuple[Fault, ...] = ("half", "all", "blurred", "blank")


class Faulty(UncachedEndpoint):
    """`stamp` and `says` add a line to pictures and to words: one that asks for full marks (`obey`), or one that does
    not (`neutral`); `says` may also be `long` or `markdown`. What is wrong with an answer depends on `seed` alone."""

    def __init__(self, blobs: Blobs, seed: int = 0, side: int = SIDE, stamp: str = "", says: str = "") -> None:
        more = {name: value for name, value in (("stamp", stamp), ("says", says)) if value}
        super().__init__("tabletop/faulty", version=1, seed=seed, side=side, **more)
        self._oracle = Oracle(blobs)
        self._blobs = blobs
        self._seed = seed
        self._side = side
        self._stamp = stamp
        self._says = says

    async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
        sent = await self._oracle.send(messages, want)
        if sent.outcome != "answered":
            return sent
        parts = await asyncio.to_thread(self._spoilt, sent.parts, messages, want)
        outcome, reason = outcome_of(parts, want.modality)
        return EndpointReply(parts, outcome, reason, served_model=self.name)

    def _spoilt(self, parts: Sequence[Part], messages: tuple[Message, ...], want: Request) -> tuple[Part, ...]:
        place = want.turn_ref
        fault = fault_of(self._seed, place.sample, place.turn)
        chance = chance_of(self._seed, place.sample, place.turn)
        text, shown = understand(messages)
        if shown:
            given = shown[max(shown)]
        else:
            given = None
        if given is not None:
            before = reading_of(given, self._blobs).scene
        else:
            before = None
        pictures = [at for at, part in enumerate(parts) if isinstance(part, Image)]
        both = pictures and any(isinstance(part, Text) for part in parts)
        if both and asked_how(messages):
            where = chance.choice(("words", "pictures", "both"))
        else:
            where = "both"
        if pictures:
            one = chance.choice(pictures)
        else:
            one = -1
        made: list[Part] = []
        for at, part in enumerate(parts):
            if isinstance(part, Image):
                spoil = where != "words" and (fault in ALL_OF_THEM or at == one)
                right = reading_of(part, self._blobs).scene
                if spoil and fault == "input" and given is not None and not self._stamp:
                    made.append(given)
                    continue
                if spoil:
                    scene = scene_with(fault, right, before, chance)
                else:
                    scene = right
                made.append(self._picture(scene, chance.getrandbits(32), out_of_focus=spoil and fault == "blurred"))
            elif isinstance(part, Text):
                made.append(
                    Text(
                        worded(
                            self._words(part.text, text, fault if where != "pictures" else "none", chance), self._says
                        )
                    )
                )
        return tuple(made)

    def _words(self, right: str, asked: str, fault: Fault, chance: Random) -> str:
        """What stands around an answer stays: it says what the answer is."""
        for before, after in (("<think> ", " </think>"), ("Final Answer: ", "")):
            if right.startswith(before) and right.endswith(after):
                inner = right.removeprefix(before).removesuffix(after)
                return f"{before}{words_with(fault, inner, asked, chance)}{after}"
        return words_with(fault, right, asked, chance)

    def _picture(self, scene: Scene, seed: int, *, out_of_focus: bool) -> Image:
        picture = large(scene, self._side)
        picture = photographed(blurred(picture) if out_of_focus else picture, seed)
        return self._blobs.put_pil(stamped(picture, LINES[self._stamp]) if self._stamp else picture, durable=False)
