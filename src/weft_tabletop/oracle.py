"""The oracle: a model that reads the images it is shown, understands the request, and does exactly what it says.

With an error rate it fails that often, at random but reproducibly: a model whose score is known beforehand."""

import hashlib
import random
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from weft.models.baselines import UncachedEndpoint
from weft.models.endpoint import EndpointReply
from weft.store.blobs import Blobs
from weft.types import Image, Message, Part, Request, Text, outcome_of
from weft_tabletop import planning, rewording
from weft_tabletop.building.scripts import answer_script
from weft_tabletop.strategy_words import TablePhrasing
from weft_tabletop.world import answers
from weft_tabletop.world.choices import parse_choice
from weft_tabletop.world.language import TableRequest, describe_scene, parse
from weft_tabletop.world.listening import answer_style, read_request, split_begun_reply
from weft_tabletop.world.operations import Operation, build_frames
from weft_tabletop.world.readings import read_image
from weft_tabletop.world.scenes import CELLS, OBJECTS, Scene, draw
from weft_tabletop.world.wordings import DOCUMENTS, HELPED, QUESTIONS, THINK

Scenes = Mapping[str, Scene]  # by slot of the request: image, source, other


class Oracle(UncachedEndpoint):
    phrasing = TablePhrasing()

    def __init__(self, blobs: Blobs, error: float = 0.0, seed: int = 0, plan: str = "dense") -> None:
        """`plan`: whether, as a planner, it orders each image as a whole (`dense`), or as a change of the previous one
        (`steps`)."""
        identity = {"plan": plan} if plan != "dense" else {}
        name = f"tabletop/oracle-{error:g}" if error else "tabletop/oracle"
        super().__init__(name, error=error, seed=seed, **identity)
        self._blobs = blobs
        self._error = error
        self._seed = seed
        self._plan = plan

    async def send(self, messages: tuple[Message, ...], request: Request) -> EndpointReply:
        written = self._answer_program(request)
        if written is not None:
            return self._text_reply(msgspec.json.encode(written).decode())
        messages, _ = split_begun_reply(messages)
        text, images = read_request(messages)
        choice = parse_choice(text)
        table_request = choice.request if choice else parse(text)
        if table_request is None:
            outcome = "answered" if request.modality == "text" else "empty"
            return EndpointReply((Text(f"I do not understand: {text}"),), outcome, served_model=self.name)
        scenes = {slot: self._scene(images, name) for slot, name in table_request.images.items()}
        rng = random.Random(hashlib.sha256(msgspec.json.encode([messages, self._seed])).digest())
        is_wrong = rng.random() < self._error
        if choice is not None:
            letters = choice.letters(scenes["image"])
            if is_wrong:
                letters = _wrong_letter(letters, rng)
            parts: tuple[Part, ...] = (Text(letters),)
        elif planning.is_plan_requested(messages):
            chained = self._plan == "steps"
            return self._text_reply(planning.write_plan(table_request, scenes, chained=chained, short=is_wrong))
        else:
            parts = self._obey(table_request, scenes, messages, request, rng, is_wrong=is_wrong)
        outcome, reason = outcome_of(parts, request.modality)
        return EndpointReply(parts, outcome, reason, served_model=self.name)

    def _answer_program(self, request: Request) -> dict[str, Any] | None:
        """Return the answer to a question of weft's own programs, which is asked with its material; None for others."""
        if request.question is None:
            return None
        reworded = rewording.answer_rewording(request.question)
        if reworded is not None:
            return reworded
        return answer_script(request.question, self._blobs, is_wrong=lambda rng: rng.random() < self._error)

    def _obey(
        self,
        table_request: TableRequest,
        scenes: Scenes,
        messages: tuple[Message, ...],
        request: Request,
        rng: random.Random,
        *,
        is_wrong: bool,
    ) -> tuple[Part, ...]:
        """Answer a question, write a document, or draw what is asked for."""
        if table_request.kind in QUESTIONS:
            return self._answer_question(table_request, scenes, request, rng, is_wrong=is_wrong)
        if table_request.kind in DOCUMENTS and request.modality == "interleaved":
            return self._write_document(table_request, scenes, rng, is_wrong=is_wrong)
        return self._fulfil(table_request, scenes, messages, rng, is_wrong=is_wrong)

    def _text_reply(self, text: str) -> EndpointReply:
        return EndpointReply((Text(text),), "answered", served_model=self.name)

    def _answer_question(
        self, table_request: TableRequest, scenes: Scenes, request: Request, rng: random.Random, *, is_wrong: bool
    ) -> tuple[Part, ...]:
        answer = "I am not sure" if is_wrong else answers.answer(table_request, scenes)
        if table_request.kind not in HELPED or request.modality != "interleaved":
            return (Text(answer),)
        helper = answers.helper_scene(table_request, scenes)
        if is_wrong:
            helper = _change_cell(helper, rng)
        return self._draw(helper), Text(f"Final Answer: {answer}")

    def _write_document(
        self, request: TableRequest, scenes: Scenes, rng: random.Random, *, is_wrong: bool
    ) -> tuple[Part, ...]:
        """A text and an image for each step; if it is wrong, one of the images is."""
        steps = build_frames(request.kind, request.args, scenes.get("image"))
        wrong_index = rng.randrange(len(steps)) if is_wrong else -1
        parts: list[Part] = []
        for index, (text, scene) in enumerate(steps):
            shown = _change_cell(scene, rng) if index == wrong_index else scene
            parts += [Text(text), self._draw(shown)]
        return tuple(parts)

    def _fulfil(
        self,
        request: TableRequest,
        scenes: Scenes,
        messages: tuple[Message, ...],
        rng: random.Random,
        *,
        is_wrong: bool,
    ) -> tuple[Part, ...]:
        """The image that is asked for, after a description where the request wants one."""
        scene = _apply(request, scenes, messages)
        shown = _change_cell(scene, rng) if is_wrong else scene
        if answer_style(messages) == THINK:
            return Text(f"<think> {describe_scene(scene)} </think>"), self._draw(shown)
        return (self._draw(shown),)

    def _draw(self, scene: Scene) -> Image:
        return self._blobs.put_pil(draw(scene), durable=False)

    def _scene(self, images: Mapping[int, Image], name: str) -> Scene:
        """The scene of the image that a request calls by this name."""
        if name.startswith("Image #"):
            number = int(name.removeprefix("Image #"))
        elif name == "the table":
            number = max(images, default=0)
        else:
            number = min(images, default=0)
        if number in images:
            return read_image(images[number], self._blobs).scene
        return Scene("white")


def _apply(request: TableRequest, scenes: Scenes, messages: tuple[Message, ...]) -> Scene:
    base = scenes.get("image", Scene("white"))
    if request.kind != "put back":
        return request.operation.apply(base, scenes.get("source"))
    restore = find_last_removed(messages)
    if restore is None:
        return base
    return restore.apply(base)


def _change_cell(scene: Scene, rng: random.Random) -> Scene:
    """The scene with one wrong cell."""
    cell = rng.choice(CELLS)
    return scene.put({cell: rng.choice([thing for thing in OBJECTS if thing != scene.at(cell)])})


def _wrong_letter(letters: str, rng: random.Random) -> str:
    return rng.choice([letter for letter in "ABCDE" if letter not in letters])


def find_last_removed(messages: tuple[Message, ...]) -> Operation | None:
    """The operation that puts the last removed object back, from the requests so far; None if nothing was removed."""
    for message in reversed(messages[:-1]):
        if message.role != "user":
            continue
        texts = [part.text for part in message.parts if isinstance(part, Text)]
        request = parse("".join(text for text in texts if not re.fullmatch(r"Image #\d+:", text)))
        if request is not None and request.kind == "remove":
            return Operation("put back", request.args)
    return None
