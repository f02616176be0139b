"""The oracle: reads the pictures it is shown, understands the request, and does exactly what it says. With an error
rate it goes wrong so often, at random but reproducibly: a model whose score is known beforehand."""

import hashlib
import random
import re
from collections.abc import Mapping

import msgspec

from weft.models.baselines import UncachedEndpoint
from weft.models.endpoint import EndpointReply
from weft.store.blobs import Blobs
from weft.types import Image, Message, Part, Request, Text, outcome_of
from weft_tabletop import planning, rewording
from weft_tabletop.strategy_words import TableWords
from weft_tabletop.world import answers
from weft_tabletop.world.choices import parse_choice
from weft_tabletop.world.language import DOCUMENTS, HELPED, QUESTIONS, THINK, TableRequest, describe_scene, parse
from weft_tabletop.world.listening import answer_style, read_request
from weft_tabletop.world.operations import Operation, frames
from weft_tabletop.world.readings import read_image
from weft_tabletop.world.scenes import CELLS, OBJECTS, Scene, draw


class Oracle(UncachedEndpoint):
    words = TableWords()

    def __init__(self, blobs: Blobs, error: float = 0.0, seed: int = 0, plan: str = "dense") -> None:
        """`plan`: whether, as a planner, it orders each picture as a whole (`dense`), or as a change of the one before
        (`steps`)."""
        more = {"plan": plan} if plan != "dense" else {}
        super().__init__(
            "tabletop/oracle" if not error else f"tabletop/oracle-{error:g}", error=error, seed=seed, **more
        )
        self._blobs = blobs
        self._error = error
        self._seed = seed
        self._plan = plan

    async def send(self, messages: tuple[Message, ...], want: Request) -> EndpointReply:
        if want.question is not None:
            reworded = rewording.answer_rewording(want.question)
        else:
            reworded = None
        if reworded is not None:
            return EndpointReply((Text(msgspec.json.encode(reworded).decode()),), "answered", served_model=self.name)
        text, images = read_request(messages)
        choice = parse_choice(text)
        if choice:
            asked = choice.request
        else:
            asked = parse(text)
        if asked is None:
            return EndpointReply(
                (Text(f"I do not understand: {text}"),),
                "answered" if want.modality == "text" else "empty",
                served_model=self.name,
            )
        scenes = {slot: self._scene(images, name) for slot, name in asked.images.items()}
        rng = random.Random(hashlib.sha256(msgspec.json.encode([messages, self._seed])).digest())
        wrong = rng.random() < self._error
        if choice is None and planning.is_plan_requested(messages):
            said = planning.write_plan(asked, scenes, chained=self._plan == "steps", short=wrong)
            return EndpointReply((Text(said),), "answered", served_model=self.name)
        if choice is not None:
            right = choice.letters(scenes["image"])
            parts: tuple[Part, ...] = (Text(_wrong_letter(right, rng) if wrong else right),)
        elif asked.kind in QUESTIONS:
            if wrong:
                said = "I am not sure"
            else:
                said = answers.answer(asked, scenes)
            parts = (Text(said),)
            if asked.kind in HELPED and want.modality == "interleaved":
                helper = answers.helper_scene(asked, scenes)
                parts = (self._picture(_spoilt(helper, rng) if wrong else helper), Text(f"Final Answer: {said}"))
        elif asked.kind in DOCUMENTS and want.modality == "interleaved":
            steps = frames(asked.kind, asked.args, scenes.get("image"))
            if wrong:
                spoilt = rng.randrange(len(steps))
            else:
                spoilt = -1
            drawn = [(words, _spoilt(scene, rng) if at == spoilt else scene) for at, (words, scene) in enumerate(steps)]
            parts = tuple(part for words, scene in drawn for part in (Text(words), self._picture(scene)))
        else:
            scene = self._done(asked, scenes, messages)
            if answer_style(messages) == THINK:
                plan = (Text(f"<think> {describe_scene(scene)} </think>"),)
            else:
                plan = ()
            parts = (*plan, self._picture(_spoilt(scene, rng) if wrong else scene))
        outcome, reason = outcome_of(parts, want.modality)
        return EndpointReply(parts, outcome, reason, served_model=self.name)

    def _picture(self, scene: Scene) -> Image:
        return self._blobs.put_pil(draw(scene), durable=False)

    def _done(self, asked: TableRequest, scenes: Mapping[str, Scene], messages: tuple[Message, ...]) -> Scene:
        base = scenes.get("image", Scene("white"))
        if asked.kind == "put back":
            removed = last_removed(messages)
            if removed is None:
                return base
            return removed.apply(base)
        return asked.operation.apply(base, scenes.get("source"))

    def _scene(self, images: Mapping[int, Image], name: str) -> Scene:
        if name == "the table":
            number = max(images, default=0)
        else:
            number = min(images, default=0)
        if name.startswith("Image #"):
            number = int(name.removeprefix("Image #"))
        if number in images:
            return read_image(images[number], self._blobs).scene
        return Scene("white")


def _spoilt(scene: Scene, rng: random.Random) -> Scene:
    """One cell is not what it should be."""
    cell = rng.choice(CELLS)
    return scene.put({cell: rng.choice([thing for thing in OBJECTS if thing != scene.at(cell)])})


def _wrong_letter(right: str, rng: random.Random) -> str:
    return rng.choice([letter for letter in "ABCDE" if letter not in right])


def last_removed(messages: tuple[Message, ...]) -> Operation | None:
    """What puts the last removed object back, from the requests so far."""
    for message in reversed(messages[:-1]):
        text = "".join(
            part.text
            for part in message.parts
            if isinstance(part, Text) and not re.fullmatch(r"Image #\d+:", part.text)
        )
        if message.role == "user":
            asked = parse(text)
        else:
            asked = None
        if asked is not None and asked.kind == "remove":
            return Operation("put back", asked.args)
    return None
