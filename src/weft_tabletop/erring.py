"""Judges with known faults, made of the exact one: what a judge card must find.

sigma     every score has normal noise of so much of full marks, a new draw each time it is asked
lenient   every score is higher by so much of full marks
first     how often it prefers what stands first in a battle, whatever it is
blind     how often it scores without a look at the picture
obeys     how often it gives full marks when a text asks for them, in an answer or inside a picture
"""

import hashlib
import random
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from weft.models.endpoint import NO_RETRY, UNDECIDED, CallError, EndpointReply
from weft.store.blobs import Blobs
from weft.types import Image, Message, Part, Question, Request, Text
from weft_tabletop.exact.endpoint import Exact
from weft_tabletop.faults import PLEA, has_plea, unworded

GUESS = (0.6, 0.15)  # what a blind judge says of everything: mean and deviation, of full marks


class Erring(Exact):
    def __init__(
        self,
        data: Path,
        blobs: Blobs,
        *,
        sigma: float = 0.0,
        lenient: float = 0.0,
        first: float = 0.0,
        blind: float = 0.0,
        obeys: float = 0.0,
        seed: int = 0,
    ) -> None:
        faults = {"sigma": sigma, "lenient": lenient, "first": first, "blind": blind, "obeys": obeys}
        faults = {name: value for name, value in faults.items() if value}
        super().__init__(data, blobs, "tabletop/erring", **faults, seed=seed)
        self._faults = faults
        self._seed = seed
        self._pleas: dict[str, bool] = {}  # by picture

    async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
        question = want.question
        if question is None:
            raise CallError(
                "tabletop/erring is a judge: it answers questions of benchmarks, and nothing else", NO_RETRY
            )
        chance = self._chance(question, want.draw)
        found = self.found(
            replace(question, material={name: _itself(parts) for name, parts in question.material.items()})
        )
        made = self._erred(found, question, chance)
        said = msgspec.json.encode(made).decode()
        return EndpointReply((Text(said),), "answered", raw=said, served_model=self.name)

    def _chance(self, question: Question, draw: int) -> random.Random:
        shown = msgspec.json.encode([question.turn_ref, question.metrics, question.variant, question.material])
        return random.Random(hashlib.sha256(shown + f"{self._seed} {draw}".encode()).digest())

    def _erred(self, found: dict[str, Any], question: Question, chance: random.Random) -> dict[str, Any]:
        def happens(name: str) -> bool:
            return chance.random() < self._faults.get(name, 0.0)

        if "winner" in found:
            blind = happens("blind")
            if blind:
                winner = chance.choice(("A", "B"))
            else:
                winner = found["winner"]
            return {**found, "winner": "A" if happens("first") else winner}
        left = found.pop(UNDECIDED, None)
        obeys = happens("obeys") and self._is_asked(question)
        if obeys:
            how = "full"
        else:
            if happens("blind"):
                how = "blind"
            else:
                how = "seen"
        made = self._scored(found, question.schema, how, chance, question.value_key)
        return {**made, **({UNDECIDED: left} if left is not None else {})}

    def _is_asked(self, question: Question) -> bool:
        """Whether what was made asks for full marks."""
        parts = [part for name, some in question.material.items() if name in MADE for part in some]
        return any(PLEA in part.text if isinstance(part, Text) else self._reads_plea(part) for part in parts)

    def _reads_plea(self, part: Part) -> bool:
        if not isinstance(part, Image):
            return False
        if part.digest not in self._pleas:
            self._pleas[part.digest] = has_plea(self._blobs.decode(part))
        return self._pleas[part.digest]

    def _scored(self, value: Any, schema: Any, how: str, chance: random.Random, name: str, at: str = "") -> Any:
        """The same reply with other scores, each within its scale. `name`: what the question calls its score; `at`:
        what this is called."""
        if isinstance(value, dict):
            known: dict[str, Any] = schema.get("properties", {})
            return {
                key: self._scored(one, known.get(key, {}), how, chance, name, key)
                for key, one in cast(dict[str, Any], value).items()
            }
        if isinstance(value, list):
            return [self._scored(one, schema.get("items", {}), how, chance, name, at) for one in cast(list[Any], value)]
        if isinstance(value, bool):
            if how == "full":
                return True
            if how == "blind":
                return chance.random() < GUESS[0]
            return value
        allowed = [one for one in schema.get("enum", ()) if isinstance(one, (int, float))]
        low, high = (min(allowed), max(allowed)) if allowed else (schema.get("minimum"), schema.get("maximum"))
        if (
            not isinstance(value, (int, float))
            or low is None
            or high is None
            or not (at == name or at.lower().endswith("score"))
        ):
            return value
        if how == "full":
            share = 1.0
        else:
            if how == "blind":
                share = chance.gauss(*GUESS)
            else:
                share = (value - low) / (high - low)
        if how != "full":
            share += self._faults.get("lenient", 0.0) + chance.gauss(0, self._faults.get("sigma", 0.0))
        score = low + (high - low) * min(1.0, max(0.0, share))
        if allowed:
            return min(allowed, key=lambda one: abs(one - score))
        if schema.get("type") == "integer":
            return round(score)
        return score


MADE = ("made", "answer", "thinking", "reply", "output")  # what questions call the parts of an answer


def _itself(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """What was said, without what was put around it."""
    return tuple(Text(unworded(part.text)) if isinstance(part, Text) else part for part in parts)
