"""A judge with known faults, built on the exact judge: its calibration card must find them.

sigma     the standard deviation of normal noise on every score, in full marks; a new draw each time it is asked
lenient   how much higher every score is, in full marks
first     how often it prefers the first of a battle, whatever it is
blind     how often it scores without looking at the image
obeys     how often it gives full marks when a text asks for them, in an answer or inside an image
"""

import hashlib
import random
from pathlib import Path
from typing import Any, Literal, cast

import msgspec
from msgspec.structs import replace

from weft.models.endpoint import NO_RETRY, UNDECIDED, CallError, EndpointReply
from weft.store.blobs import Blobs
from weft.types import Image, Message, Part, Question, Request, Text
from weft_tabletop.exact.endpoint import Exact
from weft_tabletop.faults import FULL_MARKS_REQUEST, has_full_marks_request, remove_style

GUESS = (0.6, 0.15)  # a blind judge's score: mean and standard deviation, in full marks
ANSWER_MATERIAL = ("output", "answer", "thinking", "reply")  # what questions call the parts of an answer
Mode = Literal["full", "blind", "seen"]  # full marks, a guess, or the exact judge's score with noise


class Erring(Exact):
    def __init__(
        self,
        data: Path | None,
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
        self._has_request: dict[str, bool] = {}  # by image digest

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        question = request.question
        if question is None:
            raise CallError("tabletop/erring is a judge: it answers only questions of benchmarks", NO_RETRY)
        material = {name: _without_style(parts) for name, parts in question.material.items()}
        exact = self.answer(replace(question, material=material))
        reply = self._err(exact, question, self._build_rng(question, request.draw))
        text = msgspec.json.encode(reply).decode()
        return EndpointReply((Text(text),), "answered", raw=text, served_model=self.name)

    def _build_rng(self, question: Question, draw: int) -> random.Random:
        identity = msgspec.json.encode([question.turn_ref, question.metrics, question.variant, question.material])
        return random.Random(hashlib.sha256(identity + f"{self._seed} {draw}".encode()).digest())

    def _err(self, exact: dict[str, Any], question: Question, rng: random.Random) -> dict[str, Any]:
        """The exact judge's reply with this judge's errors."""

        def happens(fault: str) -> bool:
            return rng.random() < self._faults.get(fault, 0.0)

        if "winner" in exact:
            winner = rng.choice(("A", "B")) if happens("blind") else exact["winner"]
            return {**exact, "winner": "A" if happens("first") else winner}
        undecided = exact.pop(UNDECIDED, None)
        mode: Mode = "seen"
        if happens("obeys") and self._is_full_marks_requested(question):
            mode = "full"
        elif happens("blind"):
            mode = "blind"
        reply = self._rescore(exact, question.schema, mode, rng, question.value_key)
        if undecided is not None:
            reply[UNDECIDED] = undecided
        return reply

    def _is_full_marks_requested(self, question: Question) -> bool:
        """Whether the answer asks for full marks."""
        for name in ANSWER_MATERIAL:
            for part in question.material.get(name, ()):
                if isinstance(part, Text) and FULL_MARKS_REQUEST in part.text:
                    return True
                if isinstance(part, Image) and self._reads_request(part):
                    return True
        return False

    def _reads_request(self, image: Image) -> bool:
        if image.digest not in self._has_request:
            self._has_request[image.digest] = has_full_marks_request(self._blobs.decode(image))
        return self._has_request[image.digest]

    def _rescore(self, value: Any, schema: Any, mode: Mode, rng: random.Random, value_key: str, name: str = "") -> Any:
        """The same reply with other scores, each within its scale. `name` is the property that the value belongs to;
        `value_key` is what the question calls its score."""
        if isinstance(value, dict):
            properties: dict[str, Any] = schema.get("properties", {})
            rescored: dict[str, Any] = {}
            for key, inner in cast(dict[str, Any], value).items():
                rescored[key] = self._rescore(inner, properties.get(key, {}), mode, rng, value_key, key)
            return rescored
        if isinstance(value, list):
            items = schema.get("items", {})
            return [self._rescore(inner, items, mode, rng, value_key, name) for inner in cast(list[Any], value)]
        if isinstance(value, bool):
            return _rescore_boolean(value, mode, rng)
        is_score = name == value_key or name.lower().endswith("score")
        if isinstance(value, (int, float)) and is_score:
            return self._rescore_number(value, schema, mode, rng)
        return value

    def _rescore_number(self, value: float, schema: dict[str, Any], mode: Mode, rng: random.Random) -> float:
        allowed = [option for option in schema.get("enum", ()) if isinstance(option, (int, float))]
        low = min(allowed) if allowed else schema.get("minimum")
        high = max(allowed) if allowed else schema.get("maximum")
        if low is None or high is None:
            return value
        if mode == "full":
            share = 1.0
        else:
            if mode == "blind":
                share = rng.gauss(*GUESS)
            else:
                share = (value - low) / (high - low)
            share += self._faults.get("lenient", 0.0) + rng.gauss(0, self._faults.get("sigma", 0.0))
        score = low + (high - low) * min(1.0, max(0.0, share))
        if allowed:
            return min(allowed, key=lambda option: abs(option - score))
        if schema.get("type") == "integer":
            return round(score)
        return score


def _rescore_boolean(value: bool, mode: Mode, rng: random.Random) -> bool:
    if mode == "full":
        return True
    if mode == "blind":
        return rng.random() < GUESS[0]
    return value


def _without_style(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Texts without the lines and padding around the answer."""
    return tuple(Text(remove_style(part.text)) if isinstance(part, Text) else part for part in parts)
